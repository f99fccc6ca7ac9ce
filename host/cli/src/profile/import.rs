//! `opilio profile import`: makes a profile from a Heritrix 3 job's `crawler-beans.cxml`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_profile::{NamedFiles, import_heritrix};
use serde_json::json;

use crate::usage_error::UsageError;
use crate::{exit, terminal};

/// Largest file that is read.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Path of the job's crawler-beans.cxml.
    #[arg(value_name = "CXML")]
    cxml: PathBuf,
    /// Write the profile to this file; files that it names are looked up next to it [default: standard output].
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Print one JSON object: the profile, and the parts that could not be converted.
    #[arg(long)]
    json: bool,
}

#[expect(
    clippy::print_stderr,
    reason = "notes are for the person at the terminal"
)]
pub(crate) fn run(args: &ImportArgs) -> Result<u8> {
    let shown = args.cxml.display();
    let size = std::fs::metadata(&args.cxml)
        .with_context(|| UsageError::unreadable(&args.cxml))?
        .len();
    if size > BYTES_MAX {
        eprintln!("opilio: {shown} is larger than 64 MiB: {size} bytes");
        return Ok(exit::USAGE);
    }
    let xml = std::fs::read(&args.cxml).with_context(|| UsageError::unreadable(&args.cxml))?;
    let Ok(xml) = String::from_utf8(xml) else {
        eprintln!("opilio: {shown} is not UTF-8; convert it to UTF-8 first");
        return Ok(exit::USAGE);
    };
    let to = args.to.as_deref().unwrap_or(&args.cxml);
    let folder = to.parent().unwrap_or(Path::new(""));
    let builtins: Vec<String> = opilio_builtin::all()
        .map(|builtin| builtin.plugin.to_owned())
        .collect();
    let imported = match import_heritrix(&xml, NamedFiles::In(folder), &builtins) {
        Ok(imported) => imported,
        Err(problem) => {
            eprintln!("opilio: {shown}: {problem}");
            return Ok(exit::USAGE);
        }
    };
    if let Some(file) = &args.to {
        let made = OpenOptions::new().write(true).create_new(true).open(file);
        let mut made = match made {
            Ok(made) => made,
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                let file = file.display();
                eprintln!("opilio: {file} already exists; choose another file");
                return Ok(exit::USAGE);
            }
            Err(problem) => {
                return Err(problem).with_context(|| format!("cannot write {}", file.display()));
            }
        };
        made.write_all(imported.toml.as_bytes())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.json {
        let left = imported
            .left
            .iter()
            .map(|one| json!({ "line": one.line, "bean": one.bean, "problem": one.problem }));
        let left: Vec<_> = left.collect();
        terminal::outln!("{}", json!({ "profile": imported.toml, "left_out": left }));
        return Ok(exit::OK);
    }
    if args.to.is_none() {
        terminal::out!("{}", imported.toml);
    }
    if imported.left.is_empty() {
        eprintln!("all parts were converted");
        return Ok(exit::OK);
    }
    eprintln!("could not be converted:");
    for one in &imported.left {
        let place = match one.line {
            0 => shown.to_string(),
            line => format!("{shown}:{line}"),
        };
        let line = format!("{place}: {}: {}", one.bean, one.problem);
        eprintln!("  {}", terminal::line(&line));
    }
    Ok(exit::OK)
}
