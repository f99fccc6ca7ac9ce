//! Third-party programs and libraries from the package registries of Python, Node and Go, in `target/judges`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::status;
use crate::repository::root;

/// The folder of these packages below `target/judges`. Concurrent judges with different packages do not change each other's
/// folders.
fn folder_of(kind: &str, packages: &[&str]) -> PathBuf {
    root()
        .join("target/judges")
        .join(kind)
        .join(packages.join("+").replace(['/', '<'], "-"))
}

/// A Python with these packages.
pub(crate) fn python(packages: &[&str]) -> Result<PathBuf> {
    let environment = folder_of("python", packages);
    let python = environment.join("bin/python");
    if !python.exists() {
        status(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(environment),
        )?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet"]);
    install.arg("--disable-pip-version-check").args(packages);
    status(&mut install)?;
    Ok(python)
}

/// A folder in which Node modules find these packages.
pub(crate) fn node(packages: &[&str]) -> Result<PathBuf> {
    let folder = folder_of("node", packages);
    fs::create_dir_all(&folder)?;
    // Without it npm uses one in a parent folder.
    fs::write(folder.join("package.json"), "{\"private\": true}")?;
    let mut install = Command::new("npm");
    install.args([
        "install",
        "--silent",
        "--no-save",
        "--no-audit",
        "--no-fund",
    ]);
    install.args(["--no-package-lock", "--ignore-scripts"]);
    status(install.args(packages).current_dir(&folder))?;
    Ok(folder)
}

/// A program of a Go module with its version, such as `example.org/tool/cmd/tool@v1.2.3`.
pub(crate) fn go(module: &str) -> Result<PathBuf> {
    let folder = root()
        .join("target/judges/go")
        .join(module.replace('/', "+"));
    let path = module.split('@').next().unwrap_or(module);
    let is_version = |part: &&str| {
        part.strip_prefix('v')
            .is_some_and(|v| v.parse::<u32>().is_ok())
    };
    let name = path.rsplit('/').find(|part| !is_version(part));
    let program = folder.join(name.unwrap_or(path));
    if !program.exists() {
        status(
            Command::new("go")
                .args(["install", module])
                .env("GOBIN", &folder),
        )?;
    }
    Ok(program)
}
