//! `opilio job replay`: replays a job's captures with pywb.
//!
//! The command writes a collection of pywb into `JOB/replay`: its configuration, one index of all archive files, and a list of
//! their paths. Then it becomes pywb's program `wayback`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_archive::{CdxjEntry, MergedIndex, index};
use opilio_console::{REPLAY_ADDRESS, REPLAY_FOLDER, program_in_path};
use opilio_crawl::{is_job, name_of};

use crate::job_directory::existing_job;
use crate::usage_error::UsageError;
use crate::warc::archives;
use crate::warc::index::is_not_modified;
use crate::{exit, terminal};

/// pywb's program.
const WAYBACK: &str = "wayback";

/// Advice for looking at captures without pywb.
const WITHOUT_PYWB: &str =
    "Without pywb: `opilio package JOB -o JOB.wacz`, and open the file on https://replayweb.page";

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
pywb is a program of its own: pip install pywb. Without it, pack the job with opilio package and open the file on
https://replayweb.page, which needs no server.

The index has the captures up to now; run the command again for later ones. The page of a URI in the console has a link
to its captures while pywb runs.")]
pub(super) struct ReplayArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Address on which pywb listens. Everyone who reaches it can read the archive.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: String,
    /// Port on which pywb listens.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// pywb's program `wayback` [default: searched in PATH].
    #[arg(long, value_name = "FILE")]
    wayback: Option<PathBuf>,
    /// Only write the collection, and print the command that starts pywb.
    #[arg(long)]
    print: bool,
}

/// Runs the command.
pub(super) fn run(args: &ReplayArgs) -> Result<u8> {
    if !is_job(&args.job) {
        let problem = format!(
            "{} is not a job; opilio job list lists the jobs",
            args.job.display()
        );
        return Err(UsageError::new(problem).into());
    }
    let job = fs::canonicalize(&args.job)
        .with_context(|| format!("cannot find {}", args.job.display()))?;
    let wayback = match &args.wayback {
        Some(program) => Some(std::path::absolute(program)?),
        None => program_in_path(WAYBACK),
    };
    if !args.print && wayback.as_ref().is_none_or(|program| !program.is_file()) {
        if let Some(program) = &args.wayback {
            let problem = format!(
                "{} is not a file; pass the program `wayback` of pywb. {WITHOUT_PYWB}",
                program.display()
            );
            return Err(UsageError::new(problem).into());
        }
        return refused(&format!(
            "pywb not found; install it (`pip install pywb`) or pass --wayback FILE. {WITHOUT_PYWB}"
        ));
    }
    if !args.print
        && let Err(problem) = TcpListener::bind((args.bind.as_str(), args.port))
    {
        let place = format!("{}:{}", args.bind, args.port);
        return refused(&format!(
            "cannot listen on {place}: {problem}; pass another --port"
        ));
    }
    let folder = job.join(REPLAY_FOLDER);
    fs::create_dir_all(&folder).with_context(|| cannot_write(&folder))?;
    let captures = terminal::spinning("indexing", || write_collection(&args.job, &job, &folder))?;
    let url = format!(
        "http://{}:{}/{}/",
        host(&args.bind),
        args.port,
        name_of(&job)
    );
    let program = wayback.unwrap_or_else(|| PathBuf::from(WAYBACK));
    if args.print {
        terminal::outln!(
            "cd {} && {} -b {} -p {}",
            folder.display(),
            program.display(),
            args.bind,
            args.port
        );
        return Ok(exit::OK);
    }
    terminal::outln!("{captures} captures on {url}\nCtrl-C ends pywb");
    // The process keeps its id when it becomes pywb.
    let address = format!("{url} {}\n", std::process::id());
    let place = folder.join(REPLAY_ADDRESS);
    fs::write(&place, address).with_context(|| cannot_write(&place))?;
    let mut pywb = Command::new(&program);
    pywb.args(["-b", &args.bind, "-p", &args.port.to_string()])
        .current_dir(&folder);
    become_program(pywb).with_context(|| format!("cannot start {}", program.display()))
}

/// Returns a host as it is written in a URL.
fn host(bind: &str) -> String {
    match bind {
        "0.0.0.0" | "::" => "127.0.0.1".to_owned(),
        address if address.contains(':') => format!("[{address}]"),
        address => address.to_owned(),
    }
}

#[cfg(unix)]
fn become_program(mut program: Command) -> Result<u8> {
    use std::os::unix::process::CommandExt as _;
    // `exec` returns only if the program cannot be started.
    Err(program.exec().into())
}

#[cfg(not(unix))]
fn become_program(mut program: Command) -> Result<u8> {
    let ended = program.status()?;
    Ok(if ended.success() {
        exit::OK
    } else {
        exit::FAILED
    })
}

/// Writes the collection. Returns the number of captures.
fn write_collection(given: &Path, job: &Path, folder: &Path) -> Result<u64> {
    let files = archives(&[given.to_owned()])?;
    let at = |name: &str| folder.join(name);
    let mut merged = MergedIndex::new(folder);
    let mut paths = BTreeMap::new();
    for file in &files {
        let file =
            fs::canonicalize(file).with_context(|| format!("cannot find {}", file.display()))?;
        if !merged.add_index_of(&file) {
            let entries =
                index(&file).with_context(|| format!("cannot index {}", file.display()))?;
            merged.add(entries)?;
        }
        let name = name_of(&file);
        let finished = name.strip_suffix(".open").unwrap_or(&name).to_owned();
        let finished_path = file.with_file_name(&finished);
        // A file that is being written gets another name when it is finished.
        paths.insert(finished, format!("{0}\t{0}.open", finished_path.display()));
    }
    let list = at("archives.txt");
    let lines = paths
        .iter()
        .map(|(name, paths)| format!("{name}\t{paths}\n"));
    fs::write(&list, lines.collect::<String>()).with_context(|| cannot_write(&list))?;

    let (draft, index) = (at("index.draft"), at("index.cdxj"));
    let mut captures = 0;
    let mut out = BufWriter::new(File::create(&draft).with_context(|| cannot_write(&draft))?);
    merged.each_line(|line| {
        // pywb sends browsers an empty page for these; `opilio warc index --help` has the reason.
        if line
            .parse()
            .is_ok_and(|entry: CdxjEntry| is_not_modified(&entry))
        {
            return Ok(());
        }
        captures += 1;
        writeln!(out, "{line}")
    })?;
    out.flush().with_context(|| cannot_write(&draft))?;
    fs::rename(&draft, &index).with_context(|| cannot_write(&index))?;

    // Every JSON text is valid YAML.
    let text = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    let config = format!(
        "# Written by opilio job replay. Changes are overwritten.\ncollections:\n  {}:\n    index_paths: {}\n    archive_paths: {}\n",
        serde_json::Value::from(name_of(job)),
        text(&index),
        text(&list),
    );
    let place = at("config.yaml");
    fs::write(&place, config).with_context(|| cannot_write(&place))?;
    Ok(captures)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn refused(problem: &str) -> Result<u8> {
    eprintln!("opilio: {problem}");
    Ok(exit::FAILED)
}
