//! `opilio plugin build`: builds a project into a component in its folder.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::HumanBytes;
use opilio_build::Language;
use serde_json::json;

use super::workbench::Workbench;
use super::{note, say, sdk};
use crate::{exit, preparing};

/// The command line.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// Folder of the plugin's project.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// Path of the component [default: DIR/NAME.wasm, with the name of the project].
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Folder of another SDK, such as sdk/LANGUAGE in a checkout of Opilio; Rust and Go take the one that the project names
    /// [default: DIR/opilio-sdk, or else the SDK that this program carries].
    #[arg(long, value_name = "DIR")]
    pub(super) sdk: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs the command.
pub(super) fn run(args: &BuildArgs) -> Result<u8> {
    let folder = &args.folder;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("folder {} not found", folder.display()))?;
    sdk::note_other_version(&folder);
    let build = || opilio_build::build(&folder, args.sdk.as_deref());
    let result = match Language::of(&folder) {
        // Cargo shows its own progress.
        None | Some(Language::Rust) => build(),
        Some(language) => {
            let what = format!("building {} ({})", args.folder.display(), language.name());
            preparing::with_lines(&what, build)
        }
    };
    let built = match result {
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
    // An invalid component is reported before it could replace an earlier valid file.
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
    let size = HumanBytes(built.component.len() as u64);
    let sha256 = component.sha256();
    say(&match args.json {
        true => format!(
            "{}\n",
            json!({"component": file, "bytes": built.component.len(), "sha256": sha256, "plugins": plugins})
        ),
        false => format!(
            "{}: {size}, with {names}\nsha256 {sha256}\n",
            file.display()
        ),
    })?;
    Ok(exit::OK)
}
