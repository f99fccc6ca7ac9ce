//! Checks that no file of a crate reaches itself through its imports.
//!
//! Two files are in a circle if each can reach the other through imports (see `imports`). To understand one of them, a reader has
//! to read all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::imports::{Imports, imports};
use crate::repository::{Source, sources};

/// Fails if a crate has files in circles.
fn check(sources: &[Source]) -> Result<(), String> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if let Some((name, _)) = source.path.split_once("/src/")
            && name.starts_with("host/")
        {
            crates.entry(name).or_default().push(source);
        }
    }
    let mut faults = Vec::new();
    for (name, files) in &crates {
        let imports = imports(&format!("{name}/src/"), files);
        let circles: Vec<_> = imports
            .keys()
            .filter_map(|file| circle(&imports, file))
            .collect();
        if !circles.is_empty() {
            faults.push(format!(
                "{name} has {} files in circles:\n{}  fix: move what both sides need into a file below them, or pass it as an argument",
                circles.len(),
                in_order(&circles)
            ));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Returns the shortest import path from a file back to itself. The file is its first and last element.
fn circle<'s>(imports: &Imports<'s>, start: &'s str) -> Option<Vec<&'s str>> {
    // For each reached file, the file that imports it.
    let mut reached_from = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while !reached_from.contains_key(start) {
        let file = next.pop_front()?;
        for to in &imports[file] {
            reached_from.entry(*to).or_insert_with(|| {
                next.push_back(to);
                file
            });
        }
    }
    let mut circle = vec![start, reached_from[start]];
    while circle[circle.len() - 1] != start {
        circle.push(reached_from[circle[circle.len() - 1]]);
    }
    circle.reverse();
    Some(circle)
}

/// Lists circles, one on each line, until each file in a circle is listed.
fn in_order(circles: &[Vec<&str>]) -> String {
    let (mut named, mut list) = (BTreeSet::<&str>::new(), String::new());
    for circle in circles {
        if !named.contains(circle[0]) {
            named.extend(circle);
            list += &format!("    {}\n", circle.join(" -> "));
        }
    }
    list
}

#[test]
fn no_file_is_in_a_circle() {
    if let Err(message) = check(&sources("rs")) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, text: &str) -> Source {
        Source::new(&format!("host/x/src/{file}.rs"), text)
    }

    #[test]
    fn files_that_import_each_other_are_listed_in_order() {
        let sources = [
            of("a", "use crate::f;"),
            of("b", "use crate::{c, f::g};"),
            of("c", "use crate::d;"),
            of("d", "use crate::b;"),
            of("f", "mod g;"),
            of("f/g", "use super::h;"),
            of("f/h", "use super::g;"),
            of("lib", "use crate::b;"),
        ];
        let message = check(&sources).expect_err("two circles");
        assert!(
            message.starts_with(
                "host/x has 5 files in circles:\n    b.rs -> c.rs -> d.rs -> b.rs\n    f/g.rs -> f/h.rs -> f/g.rs\n  fix: "
            ),
            "{message}"
        );
    }

    #[test]
    fn acyclic_imports_pass() {
        let sources = [
            of("a", "mod inner;\nuse crate::b;"),
            of("a/inner", "use super::A;\nuse crate::b;"),
            of("b", "mod inside {\n    use super::B;\n}"),
            of("lib", "pub use crate::a::A;"),
        ];
        assert_eq!(check(&sources), Ok(()));
    }
}
