//! The source files of a project's component. Other files in the folder are left out, such as installed packages, build folders and
//! the component itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use opilio_build::{Language, SDK_FOLDER};

/// Extensions of sources that may be next to the component.
const ENDINGS: [&str; 10] = ["c", "cc", "cpp", "cxx", "go", "h", "hpp", "js", "py", "ts"];

/// Files with modification time and length, to detect changes.
pub(super) type FileStates = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// Returns the sources of the project in a folder. Not all of them need to exist.
pub(super) fn of_project(folder: &Path) -> Vec<PathBuf> {
    let marks = Language::of(folder).map_or(&[][..], Language::marks);
    let mut sources: Vec<PathBuf> = marks.iter().map(|mark| folder.join(mark)).collect();
    sources.push(folder.join(SDK_FOLDER).join("VERSION"));
    let beside = fs::read_dir(folder).into_iter().flatten().flatten();
    sources.extend(beside.map(|entry| entry.path()).filter(|path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ENDINGS.contains(&ending))
    }));
    sources.extend(below(&folder.join("src")));
    sources
}

/// Returns all files in a folder and its subfolders. Empty if the folder does not exist.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

/// Returns `true` if a source of a component in a project's folder has changed since it was built.
pub(super) fn is_newer_than(component: &Path) -> bool {
    let changed = |path: &Path| Some(state(path)?.0);
    let folder = component.parent().unwrap_or(component);
    let built = changed(component);
    of_project(folder)
        .iter()
        .any(|source| changed(source) > built)
}

/// Returns the current states of files.
pub(super) fn states(files: impl IntoIterator<Item = PathBuf>) -> FileStates {
    let files = files.into_iter();
    files.map(|file| (file.clone(), state(&file))).collect()
}

fn state(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
