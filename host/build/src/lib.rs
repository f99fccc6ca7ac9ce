//! Builds a component from a plugin's project: finds the compiler of its language, runs it, and encodes the module.
//!
//! `opilio plugin build` uses it for projects of authors, `cargo xtask plugins` for the shipped plugins. It only runs other
//! programs and does not depend on the sandbox, which decides whether a component is a valid plugin.

use std::path::Path;

use program::SearchPath;

mod c;
mod component;
mod crate_build;
mod go;
mod language;
mod problem;
mod program;
mod recipe;
mod sdk;
mod toolchain;
mod toolchains;

pub use component::{ModuleProblem, encode, plugin_names};
pub use crate_build::cargo;
pub use language::Language;
pub use problem::BuildError;
pub use program::in_shell;
pub use sdk::{NoSdk, SDK_FOLDER, SDK_VERSION, sdk_files, sdk_version, write_sdk};
pub use toolchain::{NoToolchain, Remap, TARGET, Toolchain};

/// The result of a build.
#[derive(Clone, Debug)]
pub struct BuildResult {
    /// The project's name, including hyphens.
    pub name: String,
    /// The component.
    pub component: Vec<u8>,
}

/// Builds the project in `folder` with the given SDK, its own, or the one that this program carries. Compilers write to standard
/// error.
///
/// # Errors
/// There is no project or no compiler, or the compiler fails.
pub fn build(folder: &Path, given_sdk: Option<&Path>) -> Result<BuildResult, BuildError> {
    let language = Language::of(folder).ok_or_else(|| BuildError::NoProject {
        folder: folder.to_owned(),
    })?;
    if language == Language::Rust {
        return crate_build::build(folder);
    }
    let sdk = sdk::sdk(language, folder, given_sdk)?;
    let search_path = SearchPath::of(language, folder);
    let component = match language {
        Language::C => c::build(folder, &sdk, &search_path)?,
        Language::Go => go::build(folder, &sdk, &search_path)?,
        _ => recipe::build(language, folder, &sdk, &search_path)?,
    };
    Ok(BuildResult {
        name: language.project_name(folder),
        component,
    })
}
