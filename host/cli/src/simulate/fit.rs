//! `opilio simulate fit`: makes a scenario from a crawl's logs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use opilio_simulate::{FitError, fit};
use serde_json::json;

use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
pub(super) struct FitArgs {
    /// Crawl logs of one job of Opilio or Heritrix with repeated visits of pages: rotated logs in any order, plain or
    /// compressed with gzip; `-` reads standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Write the scenario to this file, which must not exist yet [default: standard output].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the figures as one JSON object; needs --output.
    #[arg(long, requires = "output")]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &FitArgs) -> Result<u8> {
    // Large logs take time: an existing output file is reported before they are read.
    if let Some(file) = &args.output
        && file.symlink_metadata().is_ok()
    {
        return refuse_existing(file);
    }
    let logs = args.logs.iter().map(|log| open(log));
    let fitted = terminal::spinning("reading the logs", || fit(logs));
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(fault @ (FitError::Faults(_) | FitError::Span { .. })) => {
            writeln!(io::stderr(), "{fault}")?;
            return Ok(exit::USAGE);
        }
        // All other errors are about the given logs, too.
        Err(other) => {
            writeln!(io::stderr(), "opilio: {:#}", anyhow::Error::new(other))?;
            return Ok(exit::USAGE);
        }
    };
    match &args.output {
        None => terminal::out!("{}", fitted.scenario),
        Some(file) => {
            let cannot = || format!("cannot write {}", file.display());
            let made = OpenOptions::new().write(true).create_new(true).open(file);
            let mut made = match made {
                Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                    return refuse_existing(file);
                }
                made => made.with_context(cannot)?,
            };
            made.write_all(fitted.scenario.as_bytes())
                .with_context(cannot)?;
        }
    }
    if args.json {
        let file = args.output.as_ref().map(|file| file.display().to_string());
        let object = json!({
            "answer": "created",
            "file": file,
            "pages": fitted.pages,
            "revisited": fitted.revisited,
            "intervals": fitted.intervals,
        });
        terminal::outln!("{object}");
        return Ok(exit::OK);
    }
    writeln!(
        io::stderr(),
        "{} pages, {} of them visited again, {} intervals",
        fitted.pages,
        fitted.revisited,
        fitted.intervals
    )?;
    Ok(exit::OK)
}

/// Opens a log. Returns its name for errors with it.
fn open(log: &Path) -> (String, io::Result<Box<dyn Read>>) {
    if log == Path::new("-") {
        return ("standard input".to_owned(), Ok(Box::new(io::stdin())));
    }
    let opened = File::open(log).map(|log| Box::new(log) as Box<dyn Read>);
    (log.display().to_string(), opened)
}

fn refuse_existing(file: &Path) -> Result<u8> {
    let file = file.display();
    writeln!(
        io::stderr(),
        "opilio: {file} already exists; choose another file"
    )?;
    Ok(exit::USAGE)
}
