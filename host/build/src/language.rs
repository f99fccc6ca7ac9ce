//! The languages of plugins, and the files by which a project of each is recognised.

use std::fs;
use std::path::Path;

/// A language with an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust: a crate.
    Rust,
    /// C or C++: sources beside a `compile_flags.txt`.
    C,
    /// Go: a module.
    Go,
    /// JavaScript: a package.
    JavaScript,
    /// TypeScript: a package with a `tsconfig.json`.
    TypeScript,
    /// Python: a `pyproject.toml`.
    Python,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 6] = [
        Self::Rust,
        Self::C,
        Self::Go,
        Self::JavaScript,
        Self::TypeScript,
        Self::Python,
    ];

    /// The language of the project in `folder`; `None` if it has no project.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        // Node comes last: a project in Python, Go or Rust may contain Node tools.
        let order = [
            Self::Rust,
            Self::Go,
            Self::C,
            Self::Python,
            Self::TypeScript,
            Self::JavaScript,
        ];
        order.into_iter().find(|language| {
            language
                .marks()
                .iter()
                .all(|mark| folder.join(mark).is_file())
        })
    }

    /// The files that identify its projects.
    #[must_use]
    pub fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["Cargo.toml"],
            Self::C => &["compile_flags.txt"],
            Self::Go => &["go.mod"],
            Self::JavaScript => &["package.json"],
            Self::TypeScript => &["package.json", "tsconfig.json"],
            Self::Python => &["pyproject.toml"],
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Go => "Go",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
        }
    }

    /// The folder of its SDK in `sdk/`.
    #[must_use]
    pub fn sdk(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Go => "go",
            Self::JavaScript | Self::TypeScript => "js",
            Self::Python => "python",
        }
    }

    /// The plugin's name in its project; the name of the folder if the project has none.
    pub(crate) fn project_name(self, folder: &Path) -> String {
        let mark = self.marks()[0];
        let text = fs::read_to_string(folder.join(mark)).unwrap_or_default();
        let found = match self {
            Self::JavaScript | Self::TypeScript => serde_json::from_str::<serde_json::Value>(&text)
                .ok()
                .and_then(|package| Some(package["name"].as_str()?.to_owned())),
            Self::Go => after(&text, "module "),
            Self::Python => after(&text, "name = ").map(|name| name.trim_matches('"').to_owned()),
            Self::Rust | Self::C => None,
        };
        // A scope or a path before the name is only for registries.
        let found = found.and_then(|name| Some(name.rsplit('/').next()?.to_owned()));
        let folder = || {
            folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        found.or_else(folder).unwrap_or_else(|| "plugin".to_owned())
    }
}

/// The rest of the first line that begins with `begin`.
fn after(text: &str, begin: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(begin))?;
    Some(rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], language: Option<Language>, name: &str) {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("a-folder");
        fs::create_dir(&project).unwrap();
        for (file, content) in files {
            fs::write(project.join(file), content).unwrap();
        }
        assert_eq!(Language::of(&project), language);
        if let Some(language) = language {
            assert_eq!(language.project_name(&project), name);
        }
    }

    #[test]
    fn a_project_is_recognised_by_its_files() {
        check(&[], None, "");
        check(&[("Cargo.toml", "")], Some(Language::Rust), "a-folder");
        check(
            &[("compile_flags.txt", "-Os")],
            Some(Language::C),
            "a-folder",
        );
        check(
            &[("go.mod", "module example.org/x/night-rest\n\ngo 1.24\n")],
            Some(Language::Go),
            "night-rest",
        );
        check(
            &[("package.json", r#"{"name": "@library/routes"}"#)],
            Some(Language::JavaScript),
            "routes",
        );
        check(
            &[
                ("package.json", r#"{"name": "walls"}"#),
                ("tsconfig.json", "{}"),
            ],
            Some(Language::TypeScript),
            "walls",
        );
        check(
            &[("pyproject.toml", "[project]\nname = \"words\"\n")],
            Some(Language::Python),
            "words",
        );
    }

    #[test]
    fn node_tools_in_a_project_of_another_language_do_not_count() {
        check(
            &[("package.json", "{}"), ("go.mod", "module m\n")],
            Some(Language::Go),
            "m",
        );
    }
}
