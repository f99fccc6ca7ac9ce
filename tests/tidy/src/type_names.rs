//! A public type's name may occur in only one crate. Otherwise readers confuse two concepts, or one concept is defined twice. A
//! re-export (`pub use`) is not a second type.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Source, sources};

/// Independent projects: the shipped plugins, each a component that the host does not import, and examples and templates. Their
/// types have the usual names of a plugin, such as `Settings`.
const INDEPENDENT_FOLDERS: [&str; 3] = ["plugins/", "tests/languages/", "tests/fuzz/"];

/// The guest's and the host's side of the plugin contract. A type in both is one concept, under its name in the contract or in case
/// files. It is defined twice because the SDK is built into components and uses no crate of the host.
const CONTRACT_SIDES: (&str, &str) = ("sdk/rust", "host/sandbox");

/// Crates by the name of the public types that they define.
fn crates_by_type(sources: &[Source], manifests: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut crates = BTreeMap::<_, BTreeSet<_>>::new();
    for source in sources {
        if INDEPENDENT_FOLDERS
            .iter()
            .any(|folder| source.path.starts_with(folder))
        {
            continue;
        }
        let mut owner = owner(&source.path, manifests);
        if owner == CONTRACT_SIDES.0 {
            owner = CONTRACT_SIDES.1;
        }
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

/// The name of the public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(end.map_or(name, |end| &name[..end]))
}

/// Fails if a name occurs in more than one crate.
fn check(crates: &BTreeMap<String, BTreeSet<String>>) -> Result<(), String> {
    let shared = crates.iter().filter(|(_, crates)| crates.len() > 1);
    let faults: Vec<_> = shared
        .map(|(name, crates)| {
            let places = crates.iter().cloned().collect::<Vec<_>>().join(", ");
            format!(
                "{name} is a public type in {places}.\n  fix: rename one of them, or use the other's type"
            )
        })
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

#[test]
fn no_two_crates_have_a_public_type_of_one_name() {
    let manifests: Vec<_> = sources("toml").into_iter().map(|it| it.path).collect();
    if let Err(message) = check(&crates_by_type(&sources("rs"), &manifests)) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates(files: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let manifests = ["a", "b", "plugins/p", "sdk/rust", "host/sandbox"]
            .map(|folder| format!("{folder}/Cargo.toml"));
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        crates_by_type(&sources, &manifests)
    }

    #[test]
    fn a_public_type_in_two_crates_fails() {
        let message = check(&crates(&[
            (
                "a/src/lib.rs",
                "pub struct Page<'a> {\n    pub enum Kind {\nstruct Own;",
            ),
            (
                "a/src/x/y.rs",
                "pub struct Page;\npub(crate) struct Inside;",
            ),
            (
                "b/src/lib.rs",
                "pub type Page = u8;\nstruct Inside;\npub struct Own;",
            ),
        ]))
        .expect_err("Page is in two crates");
        let (shared, fix) = message.split_once('\n').expect("a fix");
        assert_eq!(shared, "Page is a public type in a, b.");
        assert!(fix.starts_with("  fix: rename one"), "{fix}");
    }

    #[test]
    fn plugins_and_the_contract_may_share_type_names() {
        let visit = "pub struct Visit;";
        let mut files = vec![
            ("plugins/p/src/lib.rs", visit),
            ("sdk/rust/src/lib.rs", visit),
            ("host/sandbox/src/visit.rs", visit),
        ];
        assert_eq!(check(&crates(&files)), Ok(()));
        files.push(("a/src/lib.rs", visit));
        let message = check(&crates(&files)).expect_err("Visit is in two crates");
        assert!(
            message.starts_with("Visit is a public type in a, host/sandbox."),
            "{message}"
        );
    }
}
