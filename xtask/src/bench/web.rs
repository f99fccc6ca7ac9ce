//! The web of the benchmark: folders in memory, each under many host names.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use opilio_test_web::Web;
use opilio_test_web::directory::Directory;

/// Options of the hidden `cargo xtask bench web`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many host names.
    #[arg(long)]
    hosts: usize,
    /// Folders; hosts take turns.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

/// The name of a host, counted from 1.
pub(super) fn host(number: usize) -> String {
    format!("h{number:02}.docs.localhost")
}

/// Prints the port, then serves until standard input ends.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let mut directories = Vec::new();
    for folder in &options.folders {
        let directory = Directory::read(folder);
        directories.push(directory.with_context(|| format!("reading {}", folder.display()))?);
    }
    let mut web = Web::builder();
    for (number, directory) in (1..=options.hosts).zip(directories.iter().cycle()) {
        directory.serve(web.site(&host(number)));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    println!("{}", web.address().port());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
