//! The files that a new plugin begins with, from the templates of its language's SDK.
//!
//! A template folder holds `project/`, whose files make the project; a folder for each kind, whose files are parts of
//! those, or in its own `project/` files that only plugins of that kind have; and `next`, the commands to go on with. In
//! all of them `{{name}}`, `{{snake}}` (with underscores), `{{type}}` (as types are written), `{{kinds}}`, `{{summary}}`,
//! `{{sdk}}` (the SDK's folder), `{{sdk-uri}}` (the same as a URI) and `{{stacks}}` (lines of a profile) are replaced. A line `{{part:NAME}}` is replaced by
//! what the files `KIND/NAME` of all chosen kinds hold; the lines of `{{part:import}}` are sorted, and each stands once.

use std::collections::BTreeSet;

use super::trial::KindName;

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// What the templates are filled with.
pub(super) struct Template<'a> {
    /// As the command line calls the language.
    pub(super) language: &'a str,
    pub(super) kinds: &'a [KindName],
    /// Placeholders, braces left off, and what stands in their place.
    pub(super) places: Vec<(&'a str, String)>,
}

impl Template<'_> {
    /// Every file of the project, by its path.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let files = FILES.iter().filter(|file| file.0 == self.language);
        files
            .filter_map(|(_, path, text)| Some((self.in_project(path)?, text)))
            .map(|(path, text)| (self.filled(path), self.filled(text)))
            .collect()
    }

    /// The path in the project of a file that belongs there.
    fn in_project<'p>(&self, path: &'p str) -> Option<&'p str> {
        let of_kind = |kind: &KindName| path.strip_prefix(kind.word())?.strip_prefix("/project/");
        path.strip_prefix("project/")
            .or_else(|| self.kinds.iter().find_map(of_kind))
    }

    /// The commands to go on with.
    pub(super) fn next(&self) -> String {
        self.filled(self.file("next").unwrap_or_default())
    }

    fn file(&self, path: &str) -> Option<&'static str> {
        let mut files = FILES.iter();
        let (_, _, text) =
            files.find(|(language, known, _)| *language == self.language && *known == path)?;
        Some(text)
    }

    fn filled(&self, text: &str) -> String {
        let mut filled = String::new();
        for line in text.split_inclusive('\n') {
            let part = line.trim().strip_prefix("{{part:");
            match part.and_then(|part| part.strip_suffix("}}")) {
                Some(part) => {
                    let kinds = self.kinds.iter();
                    let parts =
                        kinds.filter_map(|kind| self.file(&format!("{}/{part}", kind.word())));
                    match part {
                        "import" => {
                            let lines = parts.flat_map(|part| part.split_inclusive('\n'));
                            filled.extend(lines.collect::<BTreeSet<_>>());
                        }
                        _ => filled.extend(parts),
                    }
                }
                None => filled.push_str(line),
            }
        }
        self.places.iter().fold(filled, |text, (place, value)| {
            text.replace(&format!("{{{{{place}}}}}"), value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first that is left. Languages have double braces of their own, with anything but a small word in them.
    fn placeholder(text: &str) -> Option<&str> {
        let words = text
            .split("{{")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once("}}")?.0));
        let mut left = words.filter(|word| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || b":-".contains(&byte))
        });
        left.next()
    }

    /// Every language can make every kind, and leaves no placeholder.
    #[test]
    fn every_language_has_every_kind() {
        for language in ["rust", "c", "cpp", "go", "js", "ts", "python"] {
            let template = Template {
                language,
                kinds: &KindName::ALL,
                places: [
                    "name", "snake", "type", "kinds", "summary", "sdk", "sdk-uri", "stacks",
                ]
                .map(|place| (place, "filled".to_owned()))
                .to_vec(),
            };
            assert!(!template.next().is_empty(), "{language} has no `next`");
            let files = template.files();
            for (path, text) in &files {
                assert_eq!(placeholder(text), None, "{language}: {path}");
            }
            for kind in KindName::ALL {
                let parts = format!("{}/", kind.word());
                assert!(
                    FILES
                        .iter()
                        .any(|file| file.0 == language && file.1.starts_with(&parts)),
                    "sdk templates of {language} lack the folder {parts}"
                );
            }
        }
    }
}
