//! Examples in doc comments are tested only in crates with doctests. Most crates have no examples and set `doctest = false`,
//! because cargo needs a second for each crate to find that out.

use crate::doc_comments::doc_text;
use crate::repository::{Source, sources};

/// Attributes of code blocks that rustdoc does not test.
const OTHERS: [&str; 5] = ["ignore", "json", "sh", "text", "toml"];

/// Fails if a crate without doctests has an example, or a crate with doctests has no example.
fn check(manifests: &[Source], sources: &[Source]) -> Result<(), String> {
    let mut faults = Vec::new();
    for manifest in manifests {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else {
            continue;
        };
        let folder = format!("{folder}src/");
        let own = sources.iter().filter(|it| it.path.starts_with(&folder));
        let examples: Vec<String> = own.flat_map(examples).collect();
        let has_doctests = !manifest.text.contains("\ndoctest = false");
        if !has_doctests {
            faults.extend(examples);
        } else if examples.is_empty() && is_checked(&manifest.path, sources) {
            faults.push(format!("{}: doctests without an example", manifest.path));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nfix: write `doctest = false` under [lib] of a crate without examples; otherwise remove it, or write ```text",
        faults.join("\n")
    ))
}

/// The places of a file's examples.
fn examples(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in source.text.lines().enumerate() {
        let fence = doc_text(line).and_then(|text| text.trim().strip_prefix("```"));
        if let Some(language) = fence {
            if !inside && !OTHERS.contains(&language) {
                found.push(format!("{}:{}: an example", source.path, number + 1));
            }
            inside = !inside;
        }
    }
    found
}

/// Returns `true` if a manifest is of a library in the workspace. Plugins do not count: their manifests are among the sources of
/// the built components, so each change makes these out of date.
fn is_checked(manifest: &str, sources: &[Source]) -> bool {
    let parts: Vec<&str> = manifest.split('/').collect();
    let [area, name, _] = parts.as_slice() else {
        return false;
    };
    let library = format!("{area}/{name}/src/lib.rs");
    *area != "plugins" && sources.iter().any(|it| it.path == library)
}

#[test]
fn examples_are_in_crates_with_doctests() {
    if let Err(message) = check(&sources("toml"), &sources("rs")) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library whose doc comment has a code block that begins with `fence`.
    fn library(path: &str, fence: &str) -> [Source; 1] {
        // A tilde replaces a slash, so that this text is not an example itself.
        let text = format!("//~ {fence}\n//~ a\n//~ ```\n").replace('~', "/");
        [Source::new(path, &text)]
    }

    fn manifest(path: &str, line: &str) -> [Source; 1] {
        [Source::new(path, &format!("[lib]\n{line}\n"))]
    }

    #[test]
    fn an_untested_example_fails() {
        let block = |fence| library("a/b/src/lib.rs", fence);
        let crates = |line| manifest("a/b/Cargo.toml", line);
        let without = crates("doctest = false");
        assert_eq!(check(&without, &block("```text")), Ok(()));
        assert_eq!(check(&crates(""), &block("```no_run")), Ok(()));
        for fence in ["```", "```no_run"] {
            let message = check(&without, &block(fence)).expect_err("an example");
            assert!(
                message.starts_with("a/b/src/lib.rs:1: an example"),
                "{message}"
            );
        }
    }

    #[test]
    fn doctests_without_an_example_fail() {
        let block = library("a/b/src/lib.rs", "```text");
        let message = check(&manifest("a/b/Cargo.toml", ""), &block).expect_err("no example");
        assert!(
            message.starts_with("a/b/Cargo.toml: doctests without an example"),
            "{message}"
        );
        // A program, a plugin, and a crate outside the workspace.
        for (folder, file) in [
            ("a/b", "src/main.rs"),
            ("plugins/b", "src/lib.rs"),
            ("a/b/c", "src/lib.rs"),
        ] {
            let block = library(&format!("{folder}/{file}"), "```text");
            let manifest = manifest(&format!("{folder}/Cargo.toml"), "");
            assert_eq!(check(&manifest, &block), Ok(()), "{folder}");
        }
    }
}
