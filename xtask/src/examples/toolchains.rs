//! Toolchains of the examples. Missing ones are installed from package registries into `target/toolchains`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::steps::{FETCHING, Steps, run_quietly};
use crate::repository::root;

/// Tested versions, as in the documentation of the SDKs. Versions of Node packages are in the SDK's own lock file.
const ZIG: &str = "ziglang==0.15.2";
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Installs all toolchains concurrently.
pub(super) fn fetch(steps: &mut Steps) {
    steps.add(
        FETCHING,
        "componentize-qjs, componentize-js, esbuild, typescript",
        node,
    );
    steps.add(FETCHING, ZIG, || python("c", ZIG, "python-zig"));
    steps.add(FETCHING, COMPONENTIZE_PY, || {
        python("python", COMPONENTIZE_PY, "componentize-py")
    });
}

/// Creates a virtual environment with a package. `program` shows whether it is installed.
fn python(name: &str, package: &str, program: &str) -> Result<()> {
    let environment = root().join("target/toolchains").join(name);
    if environment.join("bin").join(program).is_file() {
        return Ok(());
    }
    let mut make = Command::new("python3");
    run_quietly(make.args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(environment.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    run_quietly(install.arg(package))
}

/// Installs the packages of the SDK's lock file.
fn node() -> Result<()> {
    let (sdk, node) = (root().join("sdk/js"), root().join("target/toolchains/js"));
    // Copied last, to mark the installation as complete.
    let installed = node.join("installed");
    let lock = fs::read(sdk.join("package-lock.json"))?;
    if fs::read(&installed).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    fs::create_dir_all(&node)?;
    copy(&sdk, &node, "package.json")?;
    copy(&sdk, &node, "package-lock.json")?;
    let mut install = Command::new("npm");
    install.args(["ci", "--silent", "--no-audit", "--no-fund"]);
    run_quietly(install.current_dir(&node))?;
    fs::write(installed, lock).context("cannot write what is installed")
}

fn copy(from: &Path, to: &Path, name: &str) -> Result<()> {
    fs::copy(from.join(name), to.join(name))
        .map(drop)
        .with_context(|| format!("cannot copy {}", from.join(name).display()))
}
