//! Checks that the source files in the glossary, the architecture page and CONTRIBUTING.md exist. These pages name a file in a code
//! span, by its path or the end of it (`host/uri/src/hop.rs`, `breaker.rs`), which no Markdown tool checks.

use crate::repository::{Source, paths, sources};

/// The checked pages.
const PAGES: [&str; 3] = [
    "CONTRIBUTING.md",
    "docs/ARCHITECTURE.md",
    "docs/GLOSSARY.md",
];

/// Fails if a page names a source file and no path ends with that name.
fn check(pages: &[Source], paths: &[String]) -> Result<(), String> {
    let mut faults = Vec::new();
    for page in pages
        .iter()
        .filter(|page| PAGES.contains(&page.path.as_str()))
    {
        for (number, line) in page.text.lines().enumerate() {
            for name in line
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|it| is_source(it))
            {
                let end = format!("/{name}");
                if !paths
                    .iter()
                    .any(|path| path == name || path.ends_with(&end))
                {
                    faults.push(format!("{}:{}: no file {name}", page.path, number + 1));
                }
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nfix: write where the code is now, by its path or the end of it",
        faults.join("\n")
    ))
}

/// Returns `true` if a code span is the name of a source file.
fn is_source(span: &str) -> bool {
    let is_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    (span.ends_with(".rs") || span.ends_with(".wit")) && span.chars().all(is_path)
}

#[test]
fn files_named_in_the_documentation_exist() {
    if let Err(message) = check(&sources("md"), &paths()) {
        panic!("{message}");
    }
}

#[test]
fn a_missing_file_fails() {
    let paths = ["host/uri/src/hop.rs".to_owned()];
    let page = |text| [Source::new(PAGES[2], text)];
    let named = "`src/hop.rs` and `hop.rs`, `Hop` in `a b.rs`";
    assert_eq!(check(&page(named), &paths), Ok(()));
    let message = check(&page("a\n| `op.rs` |"), &paths).expect_err("no such file");
    assert!(
        message.starts_with("docs/GLOSSARY.md:2: no file op.rs"),
        "{message}"
    );
}
