//! `cargo xtask component FOLDER`: builds a plugin crate anywhere on this machine into a component, with the toolchain
//! that `cargo xtask plugins` would use. It is written beside the crate's `Cargo.toml` and noted nowhere.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::toolchain::{self, Toolchain};
use super::{cargo, component, report, root};

/// Options of `cargo xtask component`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder of a plugin crate, one with crate-type cdylib.
    folder: PathBuf,
    /// The component's file [default: FOLDER/CRATE.wasm].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = options
        .folder
        .canonicalize()
        .with_context(|| format!("no folder {}", options.folder.display()))?;
    let toolchain = Toolchain::detect()?;
    let built = module(&folder, &toolchain)?;
    let module = fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    let name = built
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('_', "-");
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| folder.join(format!("{name}.wasm")));
    let component =
        component::encode(&module).with_context(|| format!("making a component of {name}"))?;
    let plugins = component::plugin_names(&module)?;
    fs::write(&out, &component).with_context(|| format!("writing {}", out.display()))?;
    let size = component.len().div_ceil(1024);
    report(&format!(
        "{}: {size} KB, with {}",
        out.display(),
        plugins.join(", ")
    ));
    Ok(())
}

/// Compiles the crate, and says where cargo put the module.
fn module(folder: &std::path::Path, toolchain: &Toolchain) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(folder).args([
        "build",
        "--lib",
        "--release",
        "--target",
        toolchain::TARGET,
    ]);
    command.args(["--message-format", "json-render-diagnostics"]);
    toolchain.prepare(&mut command, &root()?)?;
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build")?;
    ensure!(
        output.status.success(),
        "{} does not build for {}",
        folder.display(),
        toolchain::TARGET
    );
    let files = String::from_utf8(output.stdout).context("cargo's messages")?;
    // Dependencies come first, the crate itself last.
    let wasm = files
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .rfind(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        });
    wasm.with_context(|| {
        format!(
            "{} is no plugin crate: it lacks crate-type = [\"cdylib\", \"rlib\"]",
            folder.display()
        )
    })
}
