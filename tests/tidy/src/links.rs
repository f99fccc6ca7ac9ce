//! Links in Markdown files lead to files and headings that exist, and every page of `docs/` is in the table of contents.
//!
//! Links to other sites are not followed. Anchors are computed like those of GitHub and mdBook.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::repository::{Source, root, sources};

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// A text that `cargo xtask docs` inserts into a page of `docs/`. Its links are relative to that folder.
const PARTS: [&str; 1] = ["xtask/src/docs/contract_notes.md"];

/// Fails if the target of a link does not exist. `exists` returns whether there is a file or folder at a path from the root.
fn check_links(pages: &[Source], exists: impl Fn(&str) -> bool) -> Result<(), String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), anchors(&page.text)))
        .collect();
    let mut faults = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let place = format!("{}:{line}: {target}", page.path);
            let Some(path) = resolve(&page.path, file) else {
                faults.push(format!("{place} leads out of the repository"));
                continue;
            };
            if !exists(&path) {
                faults.push(format!("{place}: no file {path}"));
                continue;
            }
            let headings = anchors.get(path.as_str());
            if !anchor.is_empty() && headings.is_some_and(|them| !them.contains(anchor)) {
                faults.push(format!("{place}: {path} has no heading #{anchor}"));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nfix: correct the link, or the name of the file or heading that it means",
        faults.join("\n")
    ))
}

/// Fails if a page of `docs/` is not in the table of contents.
fn check_contents(pages: &[Source]) -> Result<(), String> {
    let contents = pages.iter().find(|page| page.path == SUMMARY);
    let listed: BTreeSet<String> = contents
        .map(|page| links(&page.text))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(_, target)| resolve(SUMMARY, &target))
        .collect();
    let missing: Vec<_> = pages
        .iter()
        .map(|page| page.path.as_str())
        .filter(|path| path.starts_with("docs/") && *path != SUMMARY && !listed.contains(*path))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not in {SUMMARY}: {}\nfix: add a line for it in the part of the readers that it is for",
        missing.join(", ")
    ))
}

/// Relative links of a page with their line numbers. Code is ignored.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .map(|(_, target)| target);
        let inline = line.split("](").skip(1).map(inside_parentheses);
        for target in definition.into_iter().chain(inline) {
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = target.trim_start_matches('<').trim_end_matches('>');
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !is_elsewhere {
                links.push((number, target.to_owned()));
            }
        }
    }
    links
}

/// The text up to the parenthesis that closes the one before it.
fn inside_parentheses(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth < 0
    });
    end.map_or(text, |end| &text[..end])
}

/// Lines outside fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| start.starts_with(it));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => return Some((number + 1, line)),
            _ => {}
        }
        None
    })
}

/// A line with the content of its code spans removed.
fn without_code(line: &str) -> String {
    let mut outside = true;
    let mut kept = String::new();
    for part in line.split('`') {
        if outside {
            kept.push_str(part);
        }
        outside = !outside;
    }
    kept
}

/// Anchors of a page: its headings, and elements with an `id`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        for id in line.split("id=\"").skip(1) {
            anchors.extend(id.split('"').next().map(str::to_owned));
        }
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbered);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

/// The anchor of a heading: lower-case, blanks as hyphens, without marks and without the targets of links.
fn anchor(heading: &str) -> String {
    let mut shown = String::new();
    let mut parts = heading.split("](");
    shown.push_str(parts.next().unwrap_or_default());
    for part in parts {
        shown.push_str(&part[inside_parentheses(part).len()..]);
    }
    let letters = shown.chars().flat_map(char::to_lowercase);
    letters
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => Some(letter),
            _ => None,
        })
        .collect()
}

/// A link's file as a path from the root. `None` if it is outside of the repository.
fn resolve(page: &str, file: &str) -> Option<String> {
    let page = if PARTS.contains(&page) { SUMMARY } else { page };
    let file = file.split('#').next().unwrap_or_default();
    if file.is_empty() {
        return Some(page.to_owned());
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut path: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for step in file.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            step => path.push(step),
        }
    }
    Some(path.join("/"))
}

#[test]
fn every_link_in_the_documentation_has_a_target() {
    let root = root();
    if let Err(message) = check_links(&sources("md"), |path| Path::new(&root).join(path).exists()) {
        panic!("{message}");
    }
}

#[test]
fn every_page_of_docs_is_in_the_table_of_contents() {
    if let Err(message) = check_contents(&sources("md")) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the links of a page `docs/A.md` in a folder with `docs/B.md`.
    #[track_caller]
    fn check(text: &str, fault: Option<&str>) {
        let other =
            "# Two words\n## `code`, and *marks*!\n## Two words\n```sh\n# no heading\n```\n";
        let pages = [
            Source::new("docs/A.md", text),
            Source::new("docs/B.md", other),
        ];
        let exists = |path: &str| ["", "docs/A.md", "docs/B.md", "LICENSE"].contains(&path);
        match (check_links(&pages, exists), fault) {
            (Ok(()), None) => {}
            (Err(message), Some(fault)) => assert!(message.contains(fault), "{message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn links_to_existing_targets_pass() {
        check(
            "# Own\n[a](B.md) ![b](../LICENSE \"title\") [c](#own) [d](..)",
            None,
        );
        check(
            "[a](B.md#two-words) [b](B.md#code-and-marks) [c](B.md#two-words-1)",
            None,
        );
        check(
            "[a](https://example.org/#x) `[b](gone.md)`\n```\n[c](gone.md)\n```",
            None,
        );
    }

    #[test]
    fn links_to_missing_targets_fail() {
        check(
            "[a](gone.md)",
            Some("docs/A.md:1: gone.md: no file docs/gone.md"),
        );
        check("\n[`a`](B.md#three)", Some("docs/A.md:2"));
        check("[a](B.md#no-heading)", Some("has no heading #no-heading"));
        check("[a]: ../docs/gone.md", Some("no file docs/gone.md"));
        check("[a](../../other)", Some("leads out of the repository"));
    }

    #[test]
    fn a_page_missing_from_the_table_of_contents_fails() {
        let contents = Source::new(SUMMARY, "- [A](A.md)");
        let pages = [
            contents,
            Source::new("docs/A.md", ""),
            Source::new("docs/decisions/0001.md", ""),
        ];
        let message = check_contents(&pages).expect_err("one is missing");
        assert!(
            message.contains("docs/SUMMARY.md: docs/decisions/0001.md\n"),
            "{message}"
        );
        assert_eq!(check_contents(&pages[..2]), Ok(()));
    }
}
