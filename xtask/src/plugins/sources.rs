//! The hash of a component's sources. It shows whether the component is out of date.
//!
//! Sources are the plugin's and the SDK's `Cargo.toml` and `src/`, `wit/*.wit`, and files of other plugins that a source
//! includes with `#[path = "…"]`. Not counted:
//!
//! - folders named `native`, which no component contains
//! - folders named `published`, with earlier contracts
//! - tests, cases and documentation
//! - the versions in `Cargo.lock`: an update of a dependency does not rewrite every component (`--force` does)
//!
//! The hash is the SHA-256 of one line for each file, in the order of paths from the workspace's root: path, space, SHA-256 of
//! the content, LF. CR LF in the content is read as LF, so that all checkouts have one hash.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The hash of the sources of the plugin in `folder`, in hexadecimal.
pub(super) fn sha256(root: &Path, folder: &Path) -> Result<String> {
    let sdk = root.join("sdk/rust");
    let mut files = vec![folder.join("Cargo.toml"), sdk.join("Cargo.toml")];
    for tree in [folder.join("src"), sdk.join("src"), root.join("wit")] {
        collect(&tree, &mut files)?;
    }
    borrow(&mut files)?;
    let mut lines = Vec::new();
    for file in files {
        let path: Vec<_> = file
            .strip_prefix(root)?
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        lines.push(format!(
            "{} {}\n",
            path.join("/"),
            hex(&unix_lines(&content))
        ));
    }
    lines.sort();
    Ok(hex(lines.concat().as_bytes()))
}

/// Adds the files outside of a source's folder that it includes with `#[path = "…"]` at the start of a line.
fn borrow(files: &mut Vec<PathBuf>) -> Result<()> {
    let mut at = 0;
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text =
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let paths = text.lines().filter_map(|line| {
            let path = line.strip_prefix("#[path = \"")?.strip_suffix("\"]")?;
            path.starts_with("../").then(|| path.to_owned())
        });
        for path in paths {
            let mut named = file.clone();
            named.pop();
            for part in path.split('/') {
                match part {
                    ".." => named.pop(),
                    part => {
                        named.push(part);
                        true
                    }
                };
            }
            if !files.contains(&named) {
                files.push(named);
            }
        }
    }
    Ok(())
}

/// SHA-256 in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "native" && entry.file_name() != "published" {
                collect(&path, files)?;
            }
        } else if !entry.file_name().to_string_lossy().starts_with('.') {
            files.push(path);
        }
    }
    Ok(())
}

fn unix_lines(content: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(content.len());
    for (at, &byte) in content.iter().enumerate() {
        if byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
            lines.push(byte);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of one plugin with these line ends. `native` is the content of the files that are not hashed.
    fn workspace(newline: &str, native: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("plugins/p/Cargo.toml", "[package]\nname = \"p\"\n"),
            ("plugins/p/src/lib.rs", "fn p() {}\n"),
            ("plugins/p/README.md", native),
            ("sdk/rust/Cargo.toml", "[package]\n"),
            ("sdk/rust/src/lib.rs", "fn sdk() {}\n"),
            ("sdk/rust/src/native/double.rs", native),
            ("wit/types.wit", "package a:b;\n"),
            ("wit/published/0.1.0/types.wit", native),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.replace('\n', newline)).unwrap();
        }
        root
    }

    fn hash(root: &tempfile::TempDir) -> String {
        sha256(root.path(), &root.path().join("plugins/p")).unwrap()
    }

    #[test]
    fn line_ends_and_native_files_do_not_change_the_hash() {
        assert_eq!(
            hash(&workspace("\n", "one")),
            hash(&workspace("\r\n", "two"))
        );
    }

    #[test]
    fn included_files_of_other_plugins_change_the_hash() {
        let root = workspace("\n", "");
        let lib = root.path().join("plugins/p/src/lib.rs");
        fs::write(lib, "#[path = \"../../q/src/tokens.rs\"]\nmod tokens;\n").unwrap();
        let tokens = root.path().join("plugins/q/src/tokens.rs");
        fs::create_dir_all(tokens.parent().unwrap()).unwrap();
        fs::write(&tokens, "one").unwrap();
        let before = hash(&root);
        fs::write(&tokens, "two").unwrap();
        assert_ne!(hash(&root), before);
    }

    #[test]
    fn every_source_file_changes_the_hash() {
        let untouched = hash(&workspace("\n", ""));
        for path in [
            "plugins/p/Cargo.toml",
            "plugins/p/src/lib.rs",
            "sdk/rust/Cargo.toml",
            "sdk/rust/src/lib.rs",
            "wit/types.wit",
        ] {
            let root = workspace("\n", "");
            fs::write(root.path().join(path), "changed").unwrap();
            assert_ne!(hash(&root), untouched, "{path}");
        }
        let root = workspace("\n", "");
        fs::write(root.path().join("plugins/p/src/new.rs"), "").unwrap();
        assert_ne!(hash(&root), untouched, "a new file");
    }
}
