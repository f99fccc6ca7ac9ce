//! Examples in doc comments are tested only in crates with doctests. Most crates have no examples and set `doctest = false`,
//! because cargo needs a second for each crate to find that out.

use crate::doc_comments::doc_text;
use crate::repository::{Source, sources};

/// Attributes of code blocks that rustdoc does not test.
const OTHERS: [&str; 5] = ["ignore", "json", "sh", "text", "toml"];

/// Fails if a crate without doctests has an example.
fn check(manifests: &[Source], sources: &[Source]) -> Result<(), String> {
    let folders: Vec<String> = manifests
        .iter()
        .filter(|manifest| manifest.text.contains("\ndoctest = false"))
        .filter_map(|manifest| Some(format!("{}src/", manifest.path.strip_suffix("Cargo.toml")?)))
        .collect();
    let mut faults = Vec::new();
    for source in sources {
        if !folders.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        let mut inside = false;
        for (number, line) in source.text.lines().enumerate() {
            let fence = doc_text(line).and_then(|text| text.trim().strip_prefix("```"));
            if let Some(language) = fence {
                if !inside && !OTHERS.contains(&language) {
                    faults.push(format!("{}:{}: an example", source.path, number + 1));
                }
                inside = !inside;
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nfix: remove `doctest = false` from the crate's Cargo.toml, or write ```text",
        faults.join("\n")
    ))
}

#[test]
fn examples_are_in_crates_with_doctests() {
    if let Err(message) = check(&sources("toml"), &sources("rs")) {
        panic!("{message}");
    }
}

#[test]
fn an_untested_example_fails() {
    // A tilde replaces a slash, so that this text is not an example itself.
    let block = |fence: &str| {
        let text = format!("//~ {fence}\n//~ a\n//~ ```\n").replace('~', "/");
        [Source::new("a/src/lib.rs", &text)]
    };
    let crates = |line| [Source::new("a/Cargo.toml", &format!("[lib]\n{line}\n"))];
    let without = crates("doctest = false");
    assert_eq!(check(&without, &block("```text")), Ok(()));
    assert_eq!(check(&crates(""), &block("```no_run")), Ok(()));
    for fence in ["```", "```no_run"] {
        let message = check(&without, &block(fence)).expect_err("an example");
        assert!(
            message.starts_with("a/src/lib.rs:1: an example"),
            "{message}"
        );
    }
}
