//! Files of a crate that a file imports.
//!
//! An import is a path that begins with `crate`, `super` or `self`, in a `use` declaration or in the code. It leads to the file
//! that defines the named item: if the file at the path takes the name from another file with a `use` declaration, the import leads
//! to that file. `pub use` does not count as an import, nor does a path to a child module that begins with the child's name. Tests
//! are ignored.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::Source;
use crate::tokens::{item_length, tokens};

/// Imports of each file of a crate. Files are paths from the crate's `src`.
pub(crate) type Imports<'s> = BTreeMap<&'s str, BTreeSet<&'s str>>;

/// Names on the path from the crate's root to a module or item. The root has an empty path.
type Path<'s> = Vec<&'s str>;

/// Most re-exports of a name that are followed in sequence. More are a circle.
const RE_EXPORTS_MAX: usize = 8;

/// A file with the paths in its code, from the crate's root.
#[derive(Default)]
struct File<'s> {
    name: &'s str,
    imported: Vec<Path<'s>>,
    /// Names that `use` declarations at the top of the file import, with their paths.
    names: BTreeMap<&'s str, Path<'s>>,
    /// Modules that are compiled only for tests.
    tests: Vec<Path<'s>>,
}

type Modules<'s> = BTreeMap<Path<'s>, File<'s>>;

/// Returns the imports of the files in a folder `src`, which are sorted by path.
pub(crate) fn imports<'s>(folder: &str, sources: &[&'s Source]) -> Imports<'s> {
    let mut modules = Modules::new();
    for source in sources {
        let name = source.path.strip_prefix(folder).unwrap_or_default();
        let mut module: Path<'_> = name.trim_end_matches(".rs").split('/').collect();
        if module[0] == "bin" || module.contains(&"tests") {
            continue;
        }
        module.pop_if(|last| ["lib", "main", "mod"].contains(last));
        // `lib.rs` comes before `main.rs`, which is a crate of its own.
        modules
            .entry(module)
            .or_insert_with_key(|module| File::read(name, module, &source.text));
    }
    let tests: Vec<_> = modules
        .values()
        .flat_map(|file| file.tests.clone())
        .collect();
    modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let files = modules.values().map(|file| {
        let imported = file.imported.iter().map(|path| defining(path, &modules, 0));
        (file.name, imported.filter(|to| *to != file.name).collect())
    });
    files.collect()
}

impl<'s> File<'s> {
    fn read(name: &'s str, module: &[&'s str], text: &'s str) -> Self {
        let mut file = Self {
            name,
            ..Self::default()
        };
        let code = tokens(text);
        // The current module, and the brace depths at which inline modules were opened.
        let (mut base, mut depth, mut opened) = (module.to_vec(), 0, Vec::new());
        let mut at = 0;
        while at < code.len() {
            let rest = &code[at..];
            at += match rest {
                ["#", "[", "test", "]", ..]
                | ["#", "[", "cfg", "(", "test", ..]
                | ["#", "[", "cfg", "(", "all", "(", "test", ..] => {
                    let length = item_length(rest);
                    if let [.., "mod", name, ";"] = rest[..length] {
                        file.tests.push([&base[..], &[name]].concat());
                    }
                    length
                }
                ["mod", name, "{", ..] => {
                    base.push(name);
                    opened.push(depth);
                    2
                }
                ["{", ..] => {
                    depth += 1;
                    1
                }
                ["}", ..] => {
                    depth -= 1;
                    if opened.pop_if(|opened| *opened == depth).is_some() {
                        base.pop();
                    }
                    1
                }
                // `use<…>` in a type is not a declaration.
                ["use", next, ..] if *next != "<" => {
                    let end = rest.iter().position(|token| *token == ";");
                    let end = end.unwrap_or(rest.len());
                    let mut declared = Vec::new();
                    branches(&rest[1..end], &[], &mut declared);
                    // Follows `pub` or `pub(…)`.
                    let is_public = at > 0 && ["pub", ")"].contains(&code[at - 1]);
                    for (written, name) in declared {
                        let path = absolute(&base, &written);
                        if !is_public && is_relative(written[0]) {
                            file.imported.push(path.clone());
                        }
                        if depth == 0 {
                            file.names.entry(name).or_insert(path);
                        }
                    }
                    end
                }
                [first, "::", ..] if is_relative(first) => {
                    let pairs = rest[1..].chunks_exact(2);
                    let names = pairs.take_while(|pair| pair[0] == "::").map(|pair| pair[1]);
                    let written: Path<'_> = [*first].into_iter().chain(names).collect();
                    file.imported.push(absolute(&base, &written));
                    2 * written.len() - 1
                }
                _ => 1,
            };
        }
        file
    }
}

fn is_relative(first: &str) -> bool {
    ["crate", "super", "self"].contains(&first)
}

/// Adds the paths of a `use` declaration as written, with the imported names. A path that ends with `*` is the module's path.
fn branches<'s>(tree: &[&'s str], prefix: &[&'s str], found: &mut Vec<(Path<'s>, &'s str)>) {
    let mut depth = 0;
    let parts = tree.split(|token| {
        depth += i32::from(*token == "{") - i32::from(*token == "}");
        *token == "," && depth == 0
    });
    for part in parts.filter(|part| !part.is_empty()) {
        let written = part.split(|token| ["{", "as"].contains(token)).next();
        let written = written.into_iter().flatten();
        let mut path = prefix.to_vec();
        path.extend(written.filter(|token| **token != "::"));
        if let [.., "}"] = part {
            let open = part.iter().take_while(|token| **token != "{").count();
            branches(&part[open + 1..part.len() - 1], &path, found);
            continue;
        }
        path.pop_if(|last| ["self", "*"].contains(last));
        let name = match part {
            [.., "self"] => path.last(),
            _ => part.last(),
        };
        found.extend(name.map(|name| (path.clone(), *name)));
    }
}

/// Returns the path from the crate's root of a path that is written in a module.
fn absolute<'s>(module: &[&'s str], written: &[&'s str]) -> Path<'s> {
    let mut path = module.to_vec();
    for name in written {
        match *name {
            "crate" => path.clear(),
            "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name),
        }
    }
    path
}

/// Returns the name of the file that defines what a path names.
fn defining<'s>(path: &[&'s str], modules: &Modules<'s>, re_exports: usize) -> &'s str {
    let mut prefixes = (0..=path.len()).rev().map(|end| &path[..end]);
    let found = prefixes.find_map(|prefix| modules.get_key_value(prefix));
    let Some((module, file)) = found else {
        return "";
    };
    match &path[module.len()..] {
        [name, rest @ ..] if re_exports < RE_EXPORTS_MAX && file.names.contains_key(name) => {
            defining(&[&file.names[name], rest].concat(), modules, re_exports + 1)
        }
        _ => file.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares imports as `FILE > FILE FILE`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let mut sources: Vec<_> = files
            .iter()
            .map(|(file, text)| Source::new(&format!("x/src/{file}.rs"), text))
            .collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let sources: Vec<_> = sources.iter().collect();
        let imports = imports("x/src/", &sources).into_iter();
        let found: Vec<_> = imports
            .filter(|(_, to)| !to.is_empty())
            .map(|(from, to)| format!("{from} > {}", to.into_iter().collect::<Vec<_>>().join(" ")))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn braces_are_followed() {
        let a = "use crate::{\n    b::{self, C, d::{E as F}},\n    g,\n};\nuse std::{fmt, h};";
        let files = [
            ("a", a),
            ("b", ""),
            ("b/d", ""),
            ("g", ""),
            ("h", ""),
            ("lib", ""),
        ];
        check(&files, &["a.rs > b.rs b/d.rs g.rs"]);
    }

    #[test]
    fn super_and_self_are_followed() {
        let d = "use super::e;\nuse super::super::f::G;\nmod inside {\n    use super::h;\n}\nuse super::H;";
        let files = [
            ("b/d", d),
            ("b/d/h", ""),
            ("b/e", ""),
            ("b/mod", "use self::e::E;"),
            ("f", ""),
            ("lib", ""),
        ];
        check(
            &files,
            &[
                "b/d.rs > b/d/h.rs b/e.rs b/mod.rs f.rs",
                "b/mod.rs > b/e.rs",
            ],
        );
    }

    #[test]
    fn re_exports_lead_to_the_defining_file() {
        let files = [
            ("a", "use crate::{B, D as E, b::F, b::Own, c::H};"),
            (
                "b",
                "pub(crate) use crate::c::{F, G as D};\npub struct B;\npub struct Own;",
            ),
            (
                "c",
                "mod inner;\npub use inner::F;\npub struct H;\nfn f() {\n    use crate::i::H;\n}",
            ),
            ("c/inner", "pub use crate::i::J;"),
            ("d", "use crate::c::{H, inner as k, inner::{self}};"),
            ("e", "use super::d::{inner::F, k::J};"),
            ("i", ""),
            ("lib", "mod b;\npub use b::{B, D};"),
        ];
        let expected = [
            "a.rs > b.rs c.rs c/inner.rs",
            "c.rs > i.rs",
            "d.rs > c.rs c/inner.rs",
            "e.rs > c/inner.rs i.rs",
        ];
        check(&files, &expected);
    }

    #[test]
    fn re_exports_in_a_circle_end() {
        let files = [
            ("a", "pub use crate::b::C;"),
            ("b", "pub use crate::a::C;"),
            ("d", "use crate::a::C;"),
            ("lib", ""),
        ];
        check(&files, &["d.rs > a.rs"]);
    }

    #[test]
    fn paths_in_the_code_are_imports() {
        let a = "fn f(x: &crate::b::X) -> impl Fn() + use<'_> { self::inner::g(self.y); super::c::h() }";
        let c = "mod d;\nuse d::E;\nfn h() { d::i() }";
        let files = [
            ("a", a),
            ("a/inner", ""),
            ("b", ""),
            ("c", c),
            ("c/d", ""),
            ("lib", ""),
        ];
        check(&files, &["a.rs > a/inner.rs b.rs c.rs"]);
    }

    #[test]
    fn tests_and_programs_do_not_count() {
        let files = [
            (
                "a",
                "// crate::b\n#[cfg(test)]\nmod cases;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}",
            ),
            ("a/cases", "use crate::b;"),
            ("a/cases/more", "use crate::b;"),
            ("a/tests", "use crate::b;"),
            (
                "b",
                "#[test]\nfn f() { crate::a::g() }\n#[cfg(all(test, unix))]\nuse crate::a;\nconst TEXT: &str = \"crate::a\";",
            ),
            ("bin/c", "use crate::a;"),
            ("lib", ""),
        ];
        check(&files, &[]);
    }
}
