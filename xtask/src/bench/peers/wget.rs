//! wget: recursive retrieval into a gzip WARC. As always, wget also stores the files beside the archive.

use std::fs;

use anyhow::{Context as _, Result};

use super::Run;
use crate::bench::cost::{Cost, bytes_of};
use crate::bench::measured;

/// Exit code after a response such as 404.
const SERVER_ERROR: i32 = 8;

/// Crawls the seeds.
pub(super) fn run(run: &Run<'_>) -> Result<Cost> {
    let mut command = run.command("wget");
    command.args(["--quiet", "--recursive", "--level=inf", "--warc-file=wget"]);
    // A list of the records: the number of exchanges.
    command.arg("--warc-cdx");
    command.args(run.seeds).current_dir(run.folder);
    let measured = measured::run_to(&mut command, &[0, SERVER_ERROR])?;
    let list = fs::read_to_string(run.folder.join("wget.cdx")).context("reading wget.cdx")?;
    let pages = list.lines().skip(1).count() as u64;
    Ok(Cost::of(
        &measured,
        pages,
        bytes_of(run.folder, ".warc.gz")?,
    ))
}
