//! `opilio job handover`: hands over the files of a job to its store, or lists their state.

use anyhow::Result;
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use opilio_control::{Author, HandoverAtRest};
use opilio_crawl::{HandedOver, HandoverFile, HandoverState};
use serde_json::json;

use super::send::{refused, user};
use super::target::JobTarget;
use crate::{exit, figures, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
A running crawl hands its files over by itself; this command is for the files that were left at its end. Files go to
archive.store and archive.on-close of the job's profile. The job's handed-over.jsonl lists the files that are safe.

Examples:
  opilio job handover JOB --list
  opilio job handover JOB

Exit codes: 0 all files are handed over, 1 files are left, 2 not a job, a running job, or a job without a store.")]
pub(super) struct HandoverArgs {
    #[command(flatten)]
    target: JobTarget,
    /// List the files and their state, and hand nothing over. Also works while the job runs.
    #[arg(long)]
    list: bool,
}

/// Runs the command.
pub(super) async fn run(args: &HandoverArgs) -> Result<u8> {
    let JobTarget { job, json } = &args.target;
    if args.list {
        return match opilio_control::handover_list(job) {
            Ok(listed) => Ok(print_list(&listed.files, *json)),
            Err(problem) => Ok(refused(&problem)),
        };
    }
    let by = Author {
        user: user(),
        pid: std::process::id(),
    };
    let handover = match HandoverAtRest::begin(job, &by) {
        Ok(handover) => handover,
        Err(problem) => return Ok(refused(&problem)),
    };
    let spinner = terminal::spinner("handing files over");
    let mut say = |result: Result<HandedOver, String>| {
        spinner.suspend(|| match (&result, json) {
            (Ok(done), true) => terminal::outln!("{}", json!(done)),
            (Ok(done), false) => {
                let to = done.url.as_deref().unwrap_or("taken");
                terminal::outln!("{}", terminal::line(&format!("{} -> {to}", done.file)));
            }
            (Err(why), true) => terminal::outln!("{}", json!({"problem": why})),
            (Err(why), false) => terminal::outln!("{}", terminal::line(why)),
        });
    };
    let totals = handover.run(&mut say).await;
    spinner.finish_and_clear();
    let totals = match totals {
        Ok(totals) => totals,
        Err(problem) => return Ok(refused(&problem)),
    };
    for total in &totals {
        match json {
            true => terminal::outln!("{}", json!(total)),
            false => terminal::outln!("{}", terminal::line(&figures::handover(total))),
        }
    }
    Ok(match totals.iter().any(|total| total.left > 0) {
        true => exit::FAILED,
        false => exit::OK,
    })
}

fn print_list(files: &[HandoverFile], json: bool) -> u8 {
    let waiting = files
        .iter()
        .filter(|file| file.state == HandoverState::Waiting);
    let waiting = waiting.count() as u64;
    for file in files {
        match json {
            true => terminal::outln!("{}", json!(file)),
            false => terminal::outln!("{}", terminal::line(&file_line(file))),
        }
    }
    if !json {
        let all = figures::numbered(files.len() as u64, "file");
        terminal::outln!("{all}, {} not handed over", HumanCount(waiting));
    }
    match waiting {
        0 => exit::OK,
        _ => exit::FAILED,
    }
}

fn file_line(file: &HandoverFile) -> String {
    let state = match file.state {
        HandoverState::Done => "done",
        HandoverState::Moved => "moved",
        HandoverState::Waiting => "waiting",
    };
    let size = HumanBytes(file.size).to_string();
    let url = file.url.as_deref().unwrap_or("-");
    format!("{state:<7}  {size:>10}  {}  {url}", file.file)
}
