//! The files of this repository.
//!
//! The folders are listed without git, so that the checks also run in an unpacked source archive.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of folders that contain no source, at any place.
const SKIPPED_NAMES: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Paths of folders that contain no source. They are also in `.gitignore`.
const SKIPPED_PATHS: [&str; 3] = ["jobs", "opilio-demo", "sdk/python/build"];

/// A text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the repository's root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// A file for a test.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths of all files, sorted.
pub(crate) fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    walk(&root(), "", &mut paths);
    paths.sort();
    paths
}

/// All files whose names end with `.EXTENSION`, sorted by path.
pub(crate) fn sources(extension: &str) -> Vec<Source> {
    let mut paths = paths();
    paths.retain(|path| {
        Path::new(path)
            .extension()
            .is_some_and(|it| it == extension)
    });
    let read = |path: String| {
        // The file may have been moved since it was listed.
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(Source { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn walk(folder: &Path, path: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}/{name}")
        };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder {
            paths.push(path);
        } else if !is_skipped(&name, &path) {
            walk(&entry.path(), &path, paths);
        }
    }
}

fn is_skipped(name: &str, path: &str) -> bool {
    name.starts_with('.') || SKIPPED_NAMES.contains(&name) || SKIPPED_PATHS.contains(&path)
}

#[test]
fn sources_are_found_and_build_output_is_not() {
    let paths: Vec<_> = sources("rs").into_iter().map(|it| it.path).collect();
    assert!(paths.contains(&"tests/tidy/src/repository.rs".to_owned()));
    assert!(paths.len() > 300, "only {} Rust files", paths.len());
    assert!(is_skipped("target", "plugins/examples/rust/target"));
    assert!(is_skipped(".git", ".git"));
    assert!(!is_skipped("build", "host/build"));
}
