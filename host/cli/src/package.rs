//! `opilio package`: archives, their index and a list of pages in one WACZ file.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::Timestamp;
use opilio_archive::wacz::{Contents, PackError, PackageMetadata, pack};

use crate::job_directory::known_job;
use crate::usage_error::UsageError;
use crate::warc::{ensure_local, finished, pages, places, refuse_unreadable};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The package leaves out files that end in .open, because a crawl is writing them; stop the crawl to include them. Pages are
HTML documents with status 200, seeds and the targets of their redirects first. The output file gets its name when it is
complete.")]
pub(crate) struct PackageArgs {
    /// Jobs, archives (.warc, .warc.gz), or directories of archives.
    #[arg(required = true, value_name = "JOB|WARC|DIR")]
    what: Vec<PathBuf>,
    /// WACZ file to write.
    #[arg(long, short, value_name = "FILE.wacz")]
    output: PathBuf,
    /// Title of the package.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Description of the package.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Include the crawl.log of a job. It lists every URI that the crawl requested, failures included.
    #[arg(long)]
    logs: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &PackageArgs) -> Result<u8> {
    refuse_unreadable(write_package(args))
}

fn write_package(args: &PackageArgs) -> Result<u8> {
    ensure_local(&args.what, "a package")?;
    let files = finished(&args.what)?;
    let logs = match args.logs {
        true => logs(&args.what)?,
        false => Vec::new(),
    };
    let pages = terminal::spinning("reading the archives", || pages::of(&files))?;
    let (found, seeds) = (pages.len(), pages.iter().filter(|page| page.seed).count());
    let contents = Contents {
        archives: files,
        pages,
        logs,
        about: PackageMetadata {
            title: args.title.clone(),
            description: args.description.clone(),
            created: Timestamp::now(),
            software: format!("opilio {}", env!("CARGO_PKG_VERSION")),
        },
    };
    let packed = terminal::spinning("packing", || pack(&args.output, &contents));
    let packed = packed.map_err(|problem| -> anyhow::Error {
        match problem {
            PackError::Exists(_) | PackError::Format(_) | PackError::SameName(..) => {
                UsageError::new(problem.to_string()).into()
            }
            other => other.into(),
        }
    })?;
    let path = args.output.display();
    let line = match args.json {
        true => serde_json::json!({
            "file": path.to_string(),
            "bytes": packed.bytes,
            "archives": packed.archives,
            "captures": packed.captures,
            "pages": found,
            "seeds": seeds,
        })
        .to_string(),
        false => format!(
            "{path}: {} archives, {} captures, {found} pages, {seeds} of them seeds, {} bytes",
            packed.archives, packed.captures, packed.bytes
        ),
    };
    writeln!(std::io::stdout(), "{}", terminal::line(&line))?;
    Ok(exit::OK)
}

/// Returns the logs of the jobs among the arguments.
fn logs(what: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let jobs: Vec<PathBuf> = what.iter().filter_map(|path| known_job(path)).collect();
    let [job] = jobs.as_slice() else {
        let problem = format!("--logs needs exactly one job, got {}", jobs.len());
        return Err(UsageError::new(problem).into());
    };
    let log = places(job)?.logs.join("crawl.log");
    ensure!(log.is_file(), "{} not found", log.display());
    Ok(vec![log])
}
