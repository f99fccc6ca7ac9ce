//! `opilio simulate fit`: a scenario made of a crawl's log.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use opilio_simulate::{FitError, fit};

use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct FitArgs {
    /// The crawl log of a job, of Opilio or of Heritrix, in which pages were visited again and again.
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Write the scenario into this file; otherwise it is printed.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &FitArgs) -> Result<u8> {
    let name = args.log.display().to_string();
    let log = File::open(&args.log).with_context(|| format!("cannot read {name}"))?;
    let fitted = match fit(&name, BufReader::new(log)) {
        Ok(fitted) => fitted,
        Err(FitError::Faults(faults)) => {
            writeln!(io::stderr(), "{faults}")?;
            return Ok(exit::USAGE);
        }
        Err(other) => return Err(other.into()),
    };
    match &args.output {
        None => io::stdout().write_all(fitted.scenario.as_bytes())?,
        Some(path) => std::fs::write(path, &fitted.scenario)
            .with_context(|| format!("cannot write {}", path.display()))?,
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
