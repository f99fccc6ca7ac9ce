//! Other people's programs: where they are looked for, and how they are run.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Language, sdk};

/// A program by one of its names: in the project's virtual environment, among the toolchains of the checkout, in `PATH`.
pub(crate) fn find(names: &[&str], language: Language, project: &Path) -> Option<PathBuf> {
    let own = [
        project.join(".venv/bin"),
        project.join(".venv/Scripts"),
        sdk::toolchain(language).join("bin"),
    ];
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = own.into_iter().chain(env::split_paths(&path)).collect();
    names.iter().find_map(|name| {
        folders.iter().find_map(|folder| {
            let file = folder.join(name);
            [file.with_extension("exe"), file]
                .into_iter()
                .find(|file| file.is_file())
        })
    })
}
