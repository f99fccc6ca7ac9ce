//! `opilio plugin build`: builds a crate into a component, next to its `Cargo.toml`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::workbench::Workbench;
use super::{note, say};
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// Folder of the plugin's project.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Path of the component [default: DIR/NAME.wasm, with the name of the project].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder of the SDK: sdk/LANGUAGE in a checkout of Opilio, for projects that do not name it
    /// [default: in the checkout this binary was built from].
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &BuildArgs) -> Result<u8> {
    let folder = &args.folder;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("folder {} not found", folder.display()))?;
    let built = match opilio_build::build(&folder, args.sdk.as_deref()) {
        Ok(built) => built,
        // The compiler has reported the errors of the project.
        Err(problem @ opilio_build::BuildError::Compile { .. }) => {
            note(&format!("opilio: {problem}"));
            return Ok(exit::FAILED);
        }
        Err(problem) => return Err(problem.into()),
    };
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| args.folder.join(format!("{}.wasm", built.name)));
    // An invalid component is reported now, and the earlier valid file stays.
    let component = Workbench::new()?
        .load_bytes(&built.component, &file.display().to_string())
        .context("the component was not written")?;
    let unfinished = file.with_extension("wasm.new");
    fs::write(&unfinished, &built.component)
        .and_then(|()| fs::rename(&unfinished, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let plugins: Vec<&str> = component
        .plugins()
        .iter()
        .map(|plugin| plugin.name.as_str())
        .collect();
    let names = plugins.join(", ");
    let kilobytes = built.component.len().div_ceil(1024);
    let sha256 = component.sha256();
    say(&match args.json {
        true => format!(
            "{}\n",
            json!({"component": file, "bytes": built.component.len(), "sha256": sha256, "plugins": plugins})
        ),
        false => format!(
            "{}: {kilobytes} KB, with {names}\nsha256 {sha256}\n",
            file.display()
        ),
    })?;
    Ok(exit::OK)
}
