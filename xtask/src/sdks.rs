//! `cargo xtask sdks`: builds the SDKs as packages and checks them with the registries' own tools. It publishes nothing;
//! CONTRIBUTING.md describes the steps of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use opilio_build::Language;

use crate::command;
use crate::repository::root;

/// Languages that have package registries. Go uses a tag of the repository; C has no registry.
const PACKED: [Language; 3] = [Language::Rust, Language::JavaScript, Language::Python];

/// Tools for Python packages, in tested versions.
const TOOLS_OF_PYTHON: [&str; 2] = ["build==1.3.0", "twine==6.2.0"];

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn run() -> Result<()> {
    let out = root().join("target/sdks");
    for language in PACKED {
        let package = pack(language, &out)?;
        println!("{}: {}", language.name(), package.display());
    }
    Ok(())
}

/// Builds the package of an SDK in a folder, and returns its path.
pub(crate) fn pack(language: Language, out: &Path) -> Result<PathBuf> {
    let sdk = out.join(language.sdk());
    if sdk.exists() {
        fs::remove_dir_all(&sdk)?;
    }
    for (path, content) in opilio_build::sdk_files(language)? {
        let file = sdk.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&sdk))?;
        fs::write(file, content)?;
    }
    let (folder, ending) = match language {
        Language::Rust => {
            let mut package = opilio_build::cargo();
            package.args(["package", "--quiet", "--allow-dirty", "--no-verify"]);
            // A workspace of its own, although it is in the folder of this workspace.
            let manifest = sdk.join("Cargo.toml");
            let text = fs::read_to_string(&manifest)?;
            fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
            package.arg("--target-dir").arg(sdk.join("target"));
            command::status(package.current_dir(&sdk))?;
            (sdk.join("target/package"), "crate")
        }
        Language::JavaScript | Language::TypeScript => {
            let mut pack = Command::new("npm");
            pack.args(["--silent", "pack"]);
            command::output(pack.current_dir(&sdk))?;
            (sdk, "tgz")
        }
        Language::Python => {
            let python = python(out)?;
            let mut build = Command::new(&python);
            build.args(["-m", "build", "--outdir", "dist", "."]);
            command::output(build.current_dir(&sdk))?;
            let mut check = Command::new(&python);
            check.args(["-m", "twine", "check", "--strict"]);
            command::output(check.args(files(&sdk.join("dist"), "")?))?;
            (sdk.join("dist"), "whl")
        }
        Language::C | Language::Go => bail!("{} has no packages", language.name()),
    };
    let found = files(&folder, ending)?;
    ensure!(
        found.len() == 1,
        "{} packages in {}",
        found.len(),
        folder.display()
    );
    Ok(found[0].clone())
}

/// Python with the tools for packages.
fn python(out: &Path) -> Result<PathBuf> {
    let environment = out.join("python-tools");
    let python = environment.join("bin/python");
    if !environment.join("bin/twine").is_file() {
        let mut make = Command::new("python3");
        command::status(make.args(["-m", "venv"]).arg(&environment))?;
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        command::status(install.args(TOOLS_OF_PYTHON))?;
    }
    Ok(python)
}

fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.is_file() && file.to_string_lossy().ends_with(ending))
        .collect())
}
