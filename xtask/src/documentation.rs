//! Documentation packages of Debian as webs: what judges and benchmarks crawl.

use std::path::PathBuf;

use anyhow::Result;

use crate::debian;

/// An unpacked package.
pub(crate) struct Documentation {
    /// The folder to serve.
    pub(crate) root: PathBuf,
    /// The host name to serve it under.
    pub(crate) host: &'static str,
    /// First page of a crawl, below the folder.
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

/// The packages, downloaded where they are not there yet.
pub(crate) fn packages() -> Result<Vec<Documentation>> {
    let mut packages = Vec::new();
    for (package, folder, host, start) in PACKAGES {
        let root = debian::unpacked(package)?.join(folder);
        packages.push(Documentation { root, host, start });
    }
    Ok(packages)
}
