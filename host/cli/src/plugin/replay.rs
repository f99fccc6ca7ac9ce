//! `opilio plugin replay`: repeats a recorded call.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use opilio_sandbox::{CallOutcome, FaultWritten, Recording, Replay};
use serde_json::{Value, json};

use super::test::as_diff;
use super::workbench::{Subject, Workbench};
use super::{note, say};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
A recording holds the call, the settings and limits, the results of table look-ups, and the outcome: an answer, or an error
with the guest's frames and log. A crawl writes recordings to JOB/recordings.")]
pub(super) struct ReplayArgs {
    /// Recordings to replay.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Call this component instead of the recorded one.
    #[arg(long, value_name = "PLUGIN")]
    component: Option<String>,
    /// Write a case for each recording into this folder, with the current answer as the expected one.
    #[arg(long, value_name = "DIR")]
    bless: Option<PathBuf>,
    /// Print JSON, one recording per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &ReplayArgs) -> Result<u8> {
    let workbench = Workbench::new()?;
    let mut differs = false;
    for file in &args.files {
        let recording = Recording::read(file)?;
        let named = args.component.as_deref().unwrap_or(&recording.component);
        let subject = workbench.load(named).with_context(|| {
            format!(
                "{} is a recording of {named}; --component selects another component",
                file.display()
            )
        })?;
        let replay = recording.replay(&subject.component)?;
        differs |= !matches!(replay, Replay::Same(_));
        say(&match args.json {
            true => format!("{}\n", as_json(file, &recording, &subject, &replay)),
            false => as_text(file, &recording, &subject, &replay),
        })?;
        if let Some(folder) = &args.bless {
            bless(folder, file, &recording, &subject)?;
        }
    }
    Ok(if differs { exit::FAILED } else { exit::OK })
}

/// Writes the recording as a case.
fn bless(folder: &Path, file: &Path, recording: &Recording, subject: &Subject) -> Result<()> {
    let id = file.file_stem().unwrap_or_default().to_string_lossy();
    let id = id.replace('.', "-");
    let CallOutcome::Answer(answer) = recording.repeat_call(&subject.component)? else {
        note(&format!(
            "{}: the call fails, so no case is written",
            file.display()
        ));
        return Ok(());
    };
    let (case, contents) = recording.case(&id, answer);
    let path = folder.join(format!("{id}.json"));
    ensure!(
        !path.exists(),
        "{} already exists; choose another folder",
        path.display()
    );
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, content) in contents {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = format!("{:#}\n", json!([case]));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

fn as_text(file: &Path, recording: &Recording, subject: &Subject, replay: &Replay) -> String {
    let about = recording.subject.as_deref().unwrap_or("-");
    let mut text = format!(
        "{}: {} of {} {} about {about}, {}\n",
        file.display(),
        recording.call.name(),
        recording.plugin,
        recording.version,
        recording.at
    );
    if recording.component_sha256 != subject.component.sha256() {
        text += &format!(
            "  different component: sha256 {} instead of {}\n",
            short(subject.component.sha256()),
            short(&recording.component_sha256)
        );
    }
    match replay {
        Replay::Same(CallOutcome::Answer(_)) => text += "  same answer\n",
        Replay::Same(CallOutcome::Fault(fault)) => {
            text += "  same error\n";
            text += &of_fault(fault);
        }
        Replay::Differs(difference) => {
            text += "  different answer\n";
            text += &as_diff(difference);
        }
        Replay::Turned(now) => {
            text += &match &recording.outcome {
                CallOutcome::Answer(_) => "  recorded: an answer\n".to_owned(),
                CallOutcome::Fault(fault) => format!("  recorded: error: {fault}\n"),
            };
            text += &match now {
                CallOutcome::Answer(answer) => format!("  now: answer {}\n", answer.written(2)),
                CallOutcome::Fault(fault) => format!("  now: error\n{}", of_fault(fault)),
            };
        }
    }
    text
}

fn of_fault(fault: &FaultWritten) -> String {
    let mut text = format!("  {fault}\n");
    for frame in &fault.backtrace {
        text += &format!("    at {}\n", terminal::line(frame));
    }
    for line in &fault.log {
        text += &format!("    log: {}\n", terminal::line(line));
    }
    text
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}

fn as_json(file: &Path, recording: &Recording, subject: &Subject, replay: &Replay) -> Value {
    let (verdict, now) = match replay {
        Replay::Same(now) => ("same", json!(now)),
        Replay::Differs(difference) => ("differs", json!({"answer": difference.answered})),
        Replay::Turned(now) => ("differs", json!(now)),
    };
    json!({
        "file": file,
        "plugin": recording.plugin,
        "call": recording.call.name(),
        "about": recording.subject,
        "same_component": recording.component_sha256 == subject.component.sha256(),
        "verdict": verdict,
        "was": recording.outcome,
        "is": now,
    })
}
