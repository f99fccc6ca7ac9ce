//! Packages of Debian, unpacked: thousands of real documents by other authors.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, repository};

/// A package's files, downloaded into `target/judges/documentation` if they are missing.
pub(crate) fn unpacked(package: &str) -> Result<PathBuf> {
    let unpacked = repository::root()
        .join("target/judges/documentation")
        .join(package);
    // Written last, so that an interrupted download is repeated.
    let done = unpacked.join(".unpacked");
    if done.exists() {
        return Ok(unpacked);
    }
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    let mut download = Command::new("apt-get");
    // As root, apt drops its privileges for the download. This folder may not allow that, and it is not needed.
    download.args(["download", "-qq", "-o", "APT::Sandbox::User=root"]);
    download.arg(package).current_dir(&unpacked);
    if command::status(&mut download).is_err() {
        // A machine that has never downloaded a package list has none.
        command::status(Command::new("apt-get").args(["update", "-qq"]))?;
        command::status(&mut download)?;
    }
    let archive = fs::read_dir(&unpacked)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("{package} brought no file"))?;
    command::status(Command::new("dpkg").arg("-x").arg(&archive).arg(&unpacked))?;
    fs::remove_file(archive)?;
    fs::write(done, "")?;
    Ok(unpacked)
}
