//! The web of the benchmarks: folders in memory, each under a host name.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use opilio_test_web::Web;
use opilio_test_web::directory::Directory;

/// Options of the hidden `cargo xtask bench web`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The host name of each folder.
    #[arg(long = "host", required = true)]
    hosts: Vec<String>,
    /// Folders to serve.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

/// Prints the port, then serves until standard input ends.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let mut web = Web::builder();
    for (host, folder) in options.hosts.iter().zip(&options.folders) {
        let directory = Directory::read(folder);
        let directory = directory.with_context(|| format!("reading {}", folder.display()))?;
        directory.serve(web.site(host));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    println!("{}", web.address().port());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
