//! The initial files of a new plugin, from the templates of its language's SDK.
//!
//! A template folder holds `project/` with the files of the project, a folder for each kind, and `next`, the commands to continue
//! with. The folder of a kind holds parts of the project's files and, in its own `project/`, files that only plugins of that kind
//! have.
//!
//! These placeholders are replaced in all files: `{{name}}`, `{{snake}}` (with underscores), `{{type}}` (as types are written),
//! `{{kinds}}`, `{{summary}}` and `{{stacks}}` (lines of a profile). A line `{{part:NAME}}` is replaced by the content of the files
//! `KIND/NAME` of all chosen kinds. The lines of `{{part:import}}` are sorted and made unique.

use std::collections::BTreeSet;

use super::trial::KindName;

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// The values for the templates.
pub(super) struct Template<'a> {
    /// The language's name on the command line.
    pub(super) language: &'a str,
    pub(super) kinds: &'a [KindName],
    /// Placeholders without braces, and their values.
    pub(super) places: Vec<(&'a str, String)>,
}

impl Template<'_> {
    /// Returns every file of the project, with its path.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let files = FILES.iter().filter(|file| file.0 == self.language);
        files
            .filter_map(|(_, path, text)| Some((self.in_project(path)?, text)))
            .map(|(path, text)| (self.filled(path), self.filled(text)))
            .collect()
    }

    /// Returns the path in the project of a file that belongs there.
    fn in_project<'p>(&self, path: &'p str) -> Option<&'p str> {
        let of_kind = |kind: &KindName| path.strip_prefix(kind.word())?.strip_prefix("/project/");
        path.strip_prefix("project/")
            .or_else(|| self.kinds.iter().find_map(of_kind))
    }

    /// Returns the commands to continue with.
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

    /// Returns the first remaining placeholder. The languages use double braces, too, but not around a lower-case word.
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

    /// Every language supports every kind, and no placeholder remains.
    #[test]
    fn every_language_has_every_kind() {
        for language in ["rust", "c", "cpp", "go", "js", "ts", "python"] {
            let template = Template {
                language,
                kinds: &KindName::ALL,
                places: ["name", "snake", "type", "kinds", "summary", "stacks"]
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
