//! `opilio plugin test`: runs the cases of a plugin against its component.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use opilio_sandbox::{AnswerDifference, CallResult, Case, CaseFile, CaseProblem, Examiner};
use serde_json::{Value, json};

use super::workbench::{Subject, Workbench, as_in_a_crawl};
use super::{count, note, say};
use crate::exit;

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 2;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Cases are JSON files with lists of calls and expected answers; docs/PLUGINS.md#cases describes the format. A new case may
expect null; --bless replaces null by the answer of the plugin. Review the written answers before you keep them.")]
pub(super) struct TestArgs {
    /// Folder of a built project, or component.
    #[arg(default_value = ".", value_name = "DIR|PLUGIN")]
    pub(super) component: String,
    /// Folder of the cases [default: `cases` next to the component].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
    /// Write the answers of the plugin into the cases, as the expected answers.
    #[arg(long)]
    pub(super) bless: bool,
    /// Run only the case with this id; may be repeated.
    #[arg(long, value_name = "ID")]
    pub(super) only: Vec<String>,
    /// Print JSON, one case per line.
    #[arg(long)]
    pub(super) json: bool,
}

/// The result of one case.
enum Verdict {
    Holds,
    Differs(AnswerDifference),
    Blessed,
    /// No answer.
    Failed(String),
}

/// Runs the command.
pub(super) fn run(args: &TestArgs) -> Result<u8> {
    let subject = Workbench::new()?.load(&args.component)?;
    subject.note_if_stale();
    let folder = match args.cases.clone().or_else(|| subject.cases()) {
        Some(folder) => folder,
        None => PathBuf::from(&args.component).join("cases"),
    };
    ensure!(
        folder.is_dir(),
        "the folder {} of the cases is missing; name another with --cases",
        folder.display()
    );
    let files = CaseFile::read_all(&folder)?;
    let known = |id: &String| {
        files
            .iter()
            .flat_map(|file| &file.cases)
            .any(|case| case.id == *id)
    };
    if let Some(unknown) = args.only.iter().find(|id| !known(id)) {
        anyhow::bail!("no case {unknown} in {}", folder.display());
    }
    ensure!(
        files.iter().any(|file| !file.cases.is_empty()),
        "no cases in {}",
        folder.display()
    );
    let mut tally = Tally::default();
    let mut examiner = Examiner::new(&subject.component);
    for file in &files {
        put_file(args, &subject, &mut examiner, file, &mut tally)?;
    }
    conclude(args, &subject, &tally)?;
    Ok(match tally.failed {
        0 => exit::OK,
        _ => exit::FAILED,
    })
}

/// The results of all cases.
#[derive(Default)]
struct Tally {
    held: u64,
    blessed: u64,
    failed: u64,
    /// Cases of each plugin.
    plugins: BTreeMap<String, u64>,
}

fn put_file(
    args: &TestArgs,
    subject: &Subject,
    examiner: &mut Examiner,
    file: &CaseFile,
    tally: &mut Tally,
) -> Result<()> {
    let mut answers: Vec<(String, CallResult)> = Vec::new();
    for case in &file.cases {
        if !args.only.is_empty() && !args.only.contains(&case.id) {
            continue;
        }
        *tally.plugins.entry(case.plugin.clone()).or_default() += 1;
        let verdict = match examiner.call(&as_in_a_crawl(&subject.component, case)) {
            Err(problem) => Verdict::Failed(problem_text(&problem)),
            Ok(answer) => match case.compare(&answer) {
                Ok(()) => Verdict::Holds,
                Err(_) if args.bless => {
                    answers.push((case.id.clone(), answer));
                    Verdict::Blessed
                }
                Err(difference) => Verdict::Differs(difference),
            },
        };
        match verdict {
            Verdict::Holds => tally.held += 1,
            Verdict::Blessed => tally.blessed += 1,
            Verdict::Differs(_) | Verdict::Failed(_) => tally.failed += 1,
        }
        print_verdict(args, &file.path, case, &verdict)?;
    }
    if !answers.is_empty() {
        CaseFile::bless(&file.path, &answers).context("cannot write the answers")?;
    }
    Ok(())
}

/// Returns an error with everything that its author needs.
fn problem_text(problem: &CaseProblem) -> String {
    let CaseProblem::Fault(fault) = problem else {
        return problem.to_string();
    };
    let mut text = format!("{}: {}", fault.kind, fault.message);
    if let Some(described) = &fault.described {
        text += &format!("\n  of {described}");
    }
    for frame in &fault.backtrace {
        text += &format!("\n  at {frame}");
    }
    for line in &fault.log {
        text += &format!("\n  log: {}", line.message);
    }
    text
}

fn print_verdict(args: &TestArgs, file: &Path, case: &Case, verdict: &Verdict) -> Result<()> {
    if args.json {
        let (word, more) = match verdict {
            Verdict::Holds => ("holds", json!({})),
            Verdict::Blessed => ("blessed", json!({})),
            Verdict::Failed(problem) => ("failed", json!({"problem": problem})),
            Verdict::Differs(AnswerDifference { expected, answered }) => (
                "differs",
                json!({"expected": expected, "answered": answered}),
            ),
        };
        let mut line =
            json!({"case": case.id, "plugin": case.plugin, "file": file, "verdict": word});
        merge(&mut line, more);
        return say(&format!("{line}\n"));
    }
    match verdict {
        Verdict::Holds => Ok(()),
        Verdict::Blessed => say(&format!("blessed  {}\n", case.id)),
        Verdict::Failed(problem) => say(&format!(
            "FAIL     {} ({})\n{}\n",
            case.id,
            file.display(),
            indented(problem)
        )),
        Verdict::Differs(difference) => say(&format!(
            "FAIL     {} ({})\n{}",
            case.id,
            file.display(),
            as_diff(difference)
        )),
    }
}

fn merge(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}

fn indented(text: &str) -> String {
    format!("         {}", text.replace('\n', "\n         "))
}

/// Returns the expected (-) and the actual answer (+), as lines of JSON.
pub(super) fn as_diff(difference: &AnswerDifference) -> String {
    let (expected, answered) = (
        format!("{:#}\n", difference.expected),
        format!("{:#}\n", difference.answered),
    );
    let diff = similar::TextDiff::from_lines(&expected, &answered);
    let mut text = String::new();
    for (number, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if number > 0 {
            text += "         …\n";
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            text += &format!("         {}{}", change.tag(), change.value());
        }
    }
    text
}

fn conclude(args: &TestArgs, subject: &Subject, tally: &Tally) -> Result<()> {
    if args.json {
        return Ok(());
    }
    if args.only.is_empty() {
        let silent = subject.plugins().into_iter();
        for description in silent.filter(|one| !tally.plugins.contains_key(&one.name)) {
            note(&format!("note: no case for {}", description.name));
        }
    }
    let Tally {
        held,
        blessed,
        failed,
        ..
    } = tally;
    let mut text = match held {
        1 => "1 case passed".to_owned(),
        held => format!("{held} cases passed"),
    };
    if *blessed > 0 {
        text += &format!(", {} blessed", count(*blessed, "case", "cases"));
    }
    if *failed > 0 {
        text += &format!(", {} failed", count(*failed, "case", "cases"));
    }
    say(&format!("{text}\n"))
}
