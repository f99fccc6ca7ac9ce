//! The folder of tools that all projects of a user share: one virtual environment with Zig, one with componentize-py. Tools in a
//! project's own folder have precedence.

use std::env;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;

use crate::Language;

/// Variable that names another folder. SDKs with a build program of their own get the folder in it.
pub(crate) const VARIABLE: &str = "OPILIO_TOOLCHAINS";

/// The folder of all tools, on Linux `~/.local/share/opilio/toolchains`. `None` if the user has no home directory.
pub(crate) fn folder() -> Option<PathBuf> {
    let given = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let of_user = || {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.data_dir().join("opilio/toolchains"))
    };
    given.map(PathBuf::from).or_else(of_user)
}

/// The folder of a language's tools: a virtual environment of Python, or a folder of Node.
pub(crate) fn of(language: Language) -> Option<PathBuf> {
    Some(folder()?.join(language.sdk()))
}
