//! Documentation packages of Debian: thousands of real pages that nobody here wrote, for judges and benchmarks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, repository};

/// An unpacked package.
pub(crate) struct Documentation {
    /// The folder to serve.
    pub(crate) root: PathBuf,
    /// The host name to serve it under.
    pub(crate) host: &'static str,
    /// Where a crawl starts, below the folder.
    pub(crate) start: &'static str,
}

/// Packages, the folder of each that is served, its host and its start page.
const PACKAGES: [(&str, &str, &str, &str); 2] = [
    (
        "python3.11-doc",
        "usr/share/doc/python3.11/html",
        "python.docs.localhost",
        "index.html",
    ),
    (
        "postgresql-doc-15",
        "usr/share/doc/postgresql-doc-15/html",
        "postgresql.docs.localhost",
        "index.html",
    ),
];

/// The packages, downloaded into `target/judges/documentation` where they are not there yet.
pub(crate) fn packages() -> Result<Vec<Documentation>> {
    let home = repository::root().join("target/judges/documentation");
    let mut packages = Vec::new();
    for (package, folder, host, start) in PACKAGES {
        let unpacked = home.join(package);
        let root = unpacked.join(folder);
        if !root.is_dir() {
            fs::create_dir_all(&unpacked)?;
            let mut download = Command::new("apt-get");
            // As root apt drops its privileges for the download, which this folder may not allow; it need not.
            download.args(["download", "--quiet", "-o", "APT::Sandbox::User=root"]);
            download.arg(package).current_dir(&unpacked);
            if command::status(&mut download).is_err() {
                // A machine that never asked for a package list has none.
                command::status(Command::new("apt-get").args(["update", "--quiet"]))?;
                command::status(&mut download)?;
            }
            let archive = fs::read_dir(&unpacked)?
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
                .with_context(|| format!("{package} brought no file"))?;
            command::status(Command::new("dpkg").arg("-x").arg(archive).arg(&unpacked))?;
        }
        packages.push(Documentation { root, host, start });
    }
    Ok(packages)
}
