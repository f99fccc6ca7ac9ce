//! Documentation packages of Debian as web sites for judges and benchmarks.

use std::path::PathBuf;

use anyhow::Result;

use crate::debian;

/// An unpacked package.
pub(crate) struct Documentation {
    /// The folder to serve.
    pub(crate) root: PathBuf,
    /// The host name of the site.
    pub(crate) host: &'static str,
    /// First page of a crawl, below the folder.
    pub(crate) start: &'static str,
}

/// Packages: the name, the served folder, the host and the start page.
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

/// The packages, downloaded if they are missing.
pub(crate) fn packages() -> Result<Vec<Documentation>> {
    let mut packages = Vec::new();
    for (package, folder, host, start) in PACKAGES {
        let root = debian::unpacked(package)?.join(folder);
        packages.push(Documentation { root, host, start });
    }
    Ok(packages)
}
