//! From a plugin's project to a component: finds what compiles the project's language, runs it, encodes the module.
//!
//! `opilio plugin build` builds projects of authors with it, `cargo xtask plugins` the crates of those that ship. It runs other
//! programs and knows nothing of the sandbox: whether a component is a good plugin, the sandbox says.

use std::path::Path;

use program::Places;

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

pub use component::{ModuleProblem, encode, plugin_names};
pub use crate_build::cargo;
pub use language::Language;
pub use problem::BuildError;
pub use program::in_shell;
pub use sdk::{NoSdk, sdk};
pub use toolchain::{NoToolchain, Remap, TARGET, Toolchain};

/// What came of a project.
#[derive(Clone, Debug)]
pub struct Built {
    /// The project's name, hyphens and all.
    pub name: String,
    /// The component.
    pub component: Vec<u8>,
}

/// Builds the project in `folder` with the SDK that is given, or with that of the checkout. Compilers speak on
/// standard error.
///
/// # Errors
/// No project, no compiler, or what the compiler says.
pub fn build(folder: &Path, given_sdk: Option<&Path>) -> Result<Built, BuildError> {
    let language = Language::of(folder).ok_or_else(|| BuildError::NoProject {
        folder: folder.to_owned(),
    })?;
    if language == Language::Rust {
        return crate_build::build(folder);
    }
    let sdk = sdk(language, given_sdk)?;
    let places = Places::of(language, folder);
    let component = match language {
        Language::C => c::build(folder, &sdk, &places)?,
        Language::Go => go::build(folder, &sdk, &places)?,
        _ => recipe::build(language, folder, &sdk, &places)?,
    };
    Ok(Built {
        name: language.project_name(folder),
        component,
    })
}
