//! A public type's name belongs to one crate: two of one name are two concepts that a reader mixes up, or one concept
//! written twice. A re-export (`pub use`) is not a second type.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Source, sources};

/// Names that several crates still share, with the number of crates. Entries go, none comes.
const SHARED: &[(&str, usize)] = &[
    ("About", 2),
    ("Answer", 2),
    ("Asked", 3),
    ("Breaker", 2),
    ("BuildError", 2),
    ("ByteSize", 2),
    ("Call", 2),
    ("Candidates", 2),
    ("Case", 2),
    ("Checkpoint", 2),
    ("Component", 3),
    ("Config", 3),
    ("Damage", 2),
    ("Document", 3),
    ("DocumentFacts", 2),
    ("Error", 2),
    ("Extent", 2),
    ("Fault", 4),
    ("FaultKind", 2),
    ("Finding", 2),
    ("Found", 3),
    ("Frontier", 2),
    ("HopPath", 2),
    ("Hosts", 2),
    ("Kept", 2),
    ("KeptFacts", 2),
    ("Kind", 2),
    ("Known", 2),
    ("Limits", 2),
    ("Line", 2),
    ("LogLine", 2),
    ("Outcome", 2),
    ("Page", 2),
    ("Part", 2),
    ("Place", 5),
    ("Plan", 2),
    ("Plugin", 2),
    ("Queue", 2),
    ("QueueFacts", 2),
    ("Reason", 2),
    ("Record", 2),
    ("Robots", 3),
    ("Rule", 2),
    ("Scheme", 2),
    ("Seed", 2),
    ("Seen", 2),
    ("Settings", 10),
    ("Sites", 2),
    ("Stacks", 2),
    ("Standing", 2),
    ("Statistics", 2),
    ("Status", 2),
    ("Step", 2),
    ("Table", 3),
    ("TableFacts", 2),
    ("Times", 2),
    ("Truncation", 2),
    ("UnchangedHeaders", 2),
    ("Visit", 3),
    ("VisitFacts", 2),
    ("Why", 2),
];

/// Projects that stand for themselves: examples to copy, and templates.
const APART: [&str; 3] = ["plugins/examples/", "tests/languages/", "tests/fuzz/"];

const TABLE: &str = "SHARED (tests/tidy/src/type_names.rs)";

/// Crates by the name of the public types that they define.
fn crates_by_type(sources: &[Source], manifests: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut crates = BTreeMap::<_, BTreeSet<_>>::new();
    for source in sources {
        if APART.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        let owner = owner(&source.path, manifests);
        for name in source.text.lines().filter_map(public_type) {
            crates
                .entry(name.to_owned())
                .or_default()
                .insert(owner.to_owned());
        }
    }
    crates
}

/// The folder of the crate that a file belongs to.
fn owner<'p>(path: &'p str, manifests: &[String]) -> &'p str {
    let folders = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
    let mut owners = folders.filter(|folder| manifests.contains(&format!("{folder}/Cargo.toml")));
    owners.next().unwrap_or_default()
}

/// The name of the type that a line makes public.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(end.map_or(name, |end| &name[..end]))
}

/// Fails unless exactly the names of `shared` are in more than one crate, in as many as it says.
fn check(
    crates: &BTreeMap<String, BTreeSet<String>>,
    shared: &[(&str, usize)],
) -> Result<(), String> {
    let shared: BTreeMap<_, _> = shared.iter().copied().collect();
    let mut faults = Vec::new();
    for (name, crates) in crates {
        let (found, allowed) = (crates.len(), shared.get(name.as_str()).copied());
        let places = crates.iter().cloned().collect::<Vec<_>>().join(", ");
        if found > allowed.unwrap_or(1) {
            faults.push(format!(
                "{name} is a public type in {places}.\n  fix: rename one for what it holds, or use the other's type"
            ));
        } else if let Some(allowed) = allowed.filter(|allowed| found < *allowed) {
            let entry = if found > 1 {
                format!("lower it to {found}")
            } else {
                "remove its entry".to_owned()
            };
            faults.push(format!(
                "{name} is in fewer crates now: {found}, not {allowed}.\n  fix: {entry} in {TABLE}"
            ));
        }
    }
    for name in shared.keys().filter(|name| !crates.contains_key(**name)) {
        faults.push(format!(
            "{name} is in no crate now.\n  fix: remove its entry in {TABLE}"
        ));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

#[test]
fn no_two_crates_have_a_public_type_of_one_name() {
    let manifests: Vec<_> = sources("toml").into_iter().map(|it| it.path).collect();
    if let Err(message) = check(&crates_by_type(&sources("rs"), &manifests), SHARED) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates() -> BTreeMap<String, BTreeSet<String>> {
        let manifests = ["a/Cargo.toml", "b/Cargo.toml"].map(str::to_owned);
        let sources = [
            Source::new("a/src/lib.rs", "pub struct Page<'a> {\n    pub enum Kind {"),
            Source::new("a/src/x/y.rs", "pub struct Page;\npub(crate) struct Own;"),
            Source::new(
                "b/src/lib.rs",
                "pub type Page = u8;\nstruct Own;\nstruct Kind;",
            ),
        ];
        crates_by_type(&sources, &manifests)
    }

    #[test]
    fn a_name_in_two_crates_fails_unless_it_is_listed() {
        let message = check(&crates(), &[]).expect_err("Page is in two crates");
        assert!(
            message.starts_with("Page is a public type in a, b."),
            "{message}"
        );
        assert_eq!(check(&crates(), &[("Page", 2)]), Ok(()));
    }

    #[test]
    fn an_entry_that_is_too_large_or_not_needed_fails() {
        let fix = |shared| check(&crates(), shared).expect_err("a stale entry");
        assert!(fix(&[("Page", 3)]).contains("lower it to 2"));
        assert!(fix(&[("Page", 2), ("Kind", 2)]).contains("remove its entry"));
        assert!(fix(&[("Page", 2), ("Gone", 2)]).contains("Gone is in no crate"));
    }
}
