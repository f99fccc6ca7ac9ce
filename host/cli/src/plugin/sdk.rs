//! `opilio plugin sdk`: the SDK in a project, which `plugin new` writes and a newer program can replace.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use opilio_build::{BuildError, Language, SDK_FOLDER, SDK_VERSION};
use serde_json::json;

use super::{note, say};
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The SDK is the folder opilio-sdk of the project. `opilio plugin new` writes it, so that the project builds on every machine that
has opilio and the tools of the language. Commit it with the project. After an update of opilio, this command replaces it.")]
pub(super) struct SdkArgs {
    /// Folder of the project.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &SdkArgs) -> Result<u8> {
    let folder = &args.folder;
    let language = Language::of(folder).ok_or_else(|| BuildError::NoProject {
        folder: folder.clone(),
    })?;
    let before = opilio_build::sdk_version(folder);
    opilio_build::write_sdk(language, folder).with_context(|| language.name())?;
    let place = folder.join(SDK_FOLDER);
    let place = place.display().to_string();
    let object = json!({
        "answer": "written", "folder": place, "sdk_version": SDK_VERSION, "version_before": before,
    });
    say(&match (args.json, before) {
        (true, _) => format!("{object}\n"),
        (false, Some(before)) => format!("{place}: version {SDK_VERSION} in place of {before}\n"),
        (false, None) => format!("{place}: version {SDK_VERSION}\n"),
    })?;
    Ok(exit::OK)
}

/// Prints a note if the project has an SDK of another version than this program.
pub(super) fn note_other_version(project: &Path) {
    let Some(version) = opilio_build::sdk_version(project) else {
        return;
    };
    if version != SDK_VERSION {
        note(&format!(
            "note: {SDK_FOLDER} has version {version}, this program carries {SDK_VERSION}; `opilio plugin sdk {}` replaces it",
            opilio_build::in_shell(project)
        ));
    }
}
