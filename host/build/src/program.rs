//! External programs: the folders that are searched, their versions, and the quoting of paths for a shell.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Language, toolchains};

/// The folders that are searched for programs, in order.
#[derive(Clone, Debug)]
pub(crate) struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    /// The project's own virtual environment, the tools that all projects share, and `PATH`.
    pub(crate) fn of(language: Language, project: &Path) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let shared = toolchains::of(language).map(|folder| folder.join("bin"));
        Self::among(project, shared.into_iter().chain(env::split_paths(&path)))
    }

    /// The project's own folders, followed by others.
    pub(crate) fn among(project: &Path, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let own = [".venv/bin", ".venv/Scripts"].map(|folder| project.join(folder));
        Self(own.into_iter().chain(others).collect())
    }

    /// Finds a program by one of its names. The first folder with any of them decides, not the first name.
    pub(crate) fn find(&self, names: &[&str]) -> Option<PathBuf> {
        let mut files = self.0.iter().flat_map(|folder| {
            names.iter().flat_map(|name| {
                let file = folder.join(name);
                [file.with_extension("exe"), file]
            })
        });
        files.find(|file| file.is_file())
    }
}

/// The output of a program; `None` if it does not run or fails.
pub(crate) fn output_of(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The numbers of the first version in a text: 20, 11 and 1 of `v20.11.1`, 3 and 14 of `Python 3.14rc1`. The result is empty
/// for a text without a number, so that it is older than any version.
pub(crate) fn version(text: &str) -> Vec<u32> {
    let begin = text.find(|c: char| c.is_ascii_digit());
    let numbers = begin.map_or("", |begin| &text[begin..]).split('.');
    let mut found = Vec::new();
    for number in numbers {
        let end = number.find(|c: char| !c.is_ascii_digit());
        found.extend(number[..end.unwrap_or(number.len())].parse::<u32>());
        if end.is_some() {
            break;
        }
    }
    found
}

/// Formats a path for a command, in quotes if a shell would split it otherwise.
#[must_use]
pub fn in_shell(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/\\:._-+@,~".contains(c);
    match path.chars().all(plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Creates a program for a test: a shell script. A separate process writes it: a program whose file is still open for writing in
/// another thread cannot be started.
#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) fn fake(folder: &Path, name: &str, script: &str) {
    let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", write, "sh"])
        .arg(folder.join(name))
        .arg(script);
    assert!(command.status().unwrap().success());
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(version("go1.26.8"), [1, 26, 8]);
        assert_eq!(version("go1.24rc1"), [1, 24]);
        assert_eq!(version("v20.11.1"), [20, 11, 1]);
        assert_eq!(version("Python 3.14rc1"), [3, 14]);
        assert!(version("v18.19.0") < version("20"));
        assert!(version("Python 3.9.2") < version("3.11"));
        assert!(version("devel") < version("0"));
    }

    #[test]
    fn the_projects_own_program_goes_before_another_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let (project, path) = (folder.path().join("project"), folder.path().join("path"));
        let own = project.join(".venv/bin");
        for (place, name) in [(&own, "python-zig"), (&path, "zig"), (&path, "python-zig")] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join(name), "").unwrap();
        }
        let names = ["zig", "python-zig"];
        let search_path = SearchPath::among(&project, [path.clone()]);
        assert_eq!(search_path.find(&names), Some(own.join("python-zig")));
        let elsewhere = SearchPath::among(folder.path(), [path.clone()]);
        assert_eq!(elsewhere.find(&names), Some(path.join("zig")));
        assert_eq!(elsewhere.find(&["clang"]), None);
    }

    #[test]
    fn a_quoted_path_is_one_word_for_a_shell() {
        assert_eq!(in_shell(Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(in_shell(Path::new("/my plugins/a")), "'/my plugins/a'");
        assert_eq!(in_shell(Path::new("/it's")), r"'/it'\''s'");
    }
}
