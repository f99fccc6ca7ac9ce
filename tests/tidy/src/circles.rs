//! Modules of a crate import downwards: the files in circles do not become more.
//!
//! A module here is a file directly in `src` together with the folder of its name. Two modules are in a circle if each can reach
//! the other through `crate::` paths. Whoever changes one of them has to understand all.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Source, sources};

/// Modules in circles, by crate. A crate that is not listed has none. Numbers may only fall.
const IN_CIRCLES: &[(&str, usize)] = &[
];

const TABLE: &str = "IN_CIRCLES (tests/tidy/src/circles.rs)";

/// Imports of each module of a crate.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Fails unless the modules in circles are exactly as many as the table says.
fn check(sources: &[Source], table: &[(&str, usize)]) -> Result<(), String> {
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
        let found = in_circles(&imports(name, files));
        let listed = table.iter().find(|(listed, _)| listed == name);
        let allowed = listed.map_or(0, |(_, count)| *count);
        let list = found.join(", ");
        match found.len() {
            count if count > allowed => faults.push(format!(
                "{name} has {count} modules in circles, {allowed} before: {list}.\n  fix: move what both sides need into a module below them"
            )),
            count if count < allowed => faults.push(format!(
                "{name} has {count} modules in circles, {allowed} before.\n  fix: write {count} in {TABLE}"
            )),
            _ => {}
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Returns the modules that each module of a crate imports.
fn imports(name: &str, files: &[&Source]) -> Imports {
    let module = |source: &Source| -> String {
        let inside = source.path.strip_prefix(&format!("{name}/src/"));
        let first = inside.and_then(|path| path.split('/').next());
        first.unwrap_or_default().trim_end_matches(".rs").to_owned()
    };
    let all: BTreeSet<String> = files
        .iter()
        .map(|source| module(source))
        .filter(|name| name != "lib" && name != "main")
        .collect();
    let mut imports = Imports::new();
    for source in files {
        let from = module(source);
        if !all.contains(&from) {
            continue;
        }
        let code = code(&source.text);
        let entry = imports.entry(from.clone()).or_default();
        for (at, _) in code.match_indices("crate::") {
            let path = &code[at + "crate::".len()..];
            let names = match path.strip_prefix('{') {
                Some(list) => roots(list),
                None => vec![word(path)],
            };
            let known = names
                .into_iter()
                .filter(|to| all.contains(*to) && *to != from);
            entry.extend(known.map(str::to_owned));
        }
    }
    imports
}

/// Returns the code of a file without line comments and unit tests.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    let lines = text[..end.unwrap_or(text.len())].lines();
    let lines = lines.map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the first words of the paths in a list of imports, up to its closing brace.
fn roots(list: &str) -> Vec<&str> {
    let (mut depth, mut found, mut is_first) = (0, Vec::new(), true);
    for (at, character) in list.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            c if is_first && c.is_ascii_alphabetic() => {
                found.push(word(&list[at..]));
                is_first = false;
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Returns the modules that can reach themselves.
fn in_circles(imports: &Imports) -> Vec<String> {
    let reaches_itself = |start: &&String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = imports[*start].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(imports.get(module).into_iter().flatten());
            }
        }
        seen.contains(*start)
    };
    imports.keys().filter(reaches_itself).cloned().collect()
}

#[test]
fn modules_in_circles_do_not_become_more() {
    if let Err(message) = check(&sources("rs"), IN_CIRCLES) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(module: &str, text: &str) -> Source {
        Source::new(&format!("host/x/src/{module}.rs"), text)
    }

    #[test]
    fn two_modules_that_import_each_other_are_found() {
        let sources = [
            of("lib", "use crate::a;"),
            of("a", "use crate::{b::{C, D}, e};"),
            of("a/inner", "use crate::e;"),
            of("b", "fn f() { crate::a::g() }"),
            of(
                "e",
                "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
            ),
        ];
        let message = check(&sources, &[]).expect_err("a circle");
        assert!(
            message.contains("2 modules in circles, 0 before: a, b."),
            "{message}"
        );
        assert_eq!(check(&sources, &[("host/x", 2)]), Ok(()));
        assert!(check(&sources, &[("host/x", 3)]).is_err());
        let downwards = [
            of("a", "use crate::b;"),
            of("b", "use crate::e;"),
            of("e", ""),
        ];
        assert_eq!(check(&downwards, &[]), Ok(()));
    }
}
