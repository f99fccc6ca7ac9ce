//! Packages of Debian, unpacked: thousands of real documents by other authors.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, repository};

/// A package's files, downloaded into `target/judges/documentation` where they are not there yet.
pub(crate) fn unpacked(package: &str) -> Result<PathBuf> {
    let unpacked = repository::root()
        .join("target/judges/documentation")
        .join(package);
    // Written last: a download that was broken off is begun again.
    let done = unpacked.join(".unpacked");
    if done.exists() {
        return Ok(unpacked);
    }
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    let mut download = Command::new("apt-get");
    // As root apt drops its privileges for the download, which this folder may not allow; it need not.
    download.args(["download", "-qq", "-o", "APT::Sandbox::User=root"]);
    download.arg(package).current_dir(&unpacked);
    if command::status(&mut download).is_err() {
        // A machine that never asked for a package list has none.
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
