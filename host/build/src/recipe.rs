//! Builds with SDKs that bring their own build program. `recipe.json` in the SDK's folder has the program and its arguments.
//! The program finds the language's toolchain and reports errors on standard error. It ends with 0, with 1 if the project has
//! an error, or with 2 if a tool is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::program::{self, SearchPath};
use crate::{BuildError, Language, toolchains};

/// The content of `recipe.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Recipe {
    program: String,
    /// The oldest suitable version, in the form of the program's `--version`.
    version_min: String,
    /// Source of the program, for the error text.
    program_from: String,
    /// Arguments, with `{sdk}`, `{folder}` and `{out}` in place of paths.
    arguments: Vec<String>,
}

impl Recipe {
    /// The program, if it is new enough.
    fn find(&self, language: Language, search_path: &SearchPath) -> Result<PathBuf, BuildError> {
        let wanted = format!("{}, {} or later", self.program, self.version_min);
        let missing = |missing: String| BuildError::NoProgram {
            language,
            missing,
            remedy: format!("it comes from {}", self.program_from),
        };
        let Some(program) = search_path.find(&[&self.program]) else {
            return Err(missing(wanted));
        };
        let found = program::output_of(&program, &["--version"]).unwrap_or_default();
        if program::version(&found) < program::version(&self.version_min) {
            let place = program.display();
            return Err(missing(format!("{wanted} ({place} is {found})")));
        }
        Ok(program)
    }
}

/// Runs the SDK's build of the component.
pub(crate) fn build(
    language: Language,
    folder: &Path,
    sdk: &Path,
    search_path: &SearchPath,
) -> Result<Vec<u8>, BuildError> {
    let file = sdk.join("recipe.json");
    let unreadable = |source| BuildError::Read {
        file: file.clone(),
        source,
    };
    let text = fs::read_to_string(&file).map_err(unreadable)?;
    let recipe: Recipe =
        serde_json::from_str(&text).map_err(|problem| unreadable(problem.into()))?;
    let program = recipe.find(language, search_path)?;
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let out = scratch.path().join("plugin.wasm");
    let placeholders = [("{sdk}", sdk), ("{folder}", folder), ("{out}", &out)];
    let mut command = Command::new(&program);
    for argument in &recipe.arguments {
        let filled = placeholders
            .iter()
            .fold(argument.clone(), |text, (place, path)| {
                text.replace(place, &path.display().to_string())
            });
        command.arg(filled);
    }
    command.envs(toolchains::folder().map(|folder| (toolchains::VARIABLE, folder)));
    let status = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| BuildError::Run { program, source })?;
    match status.code() {
        Some(0) => fs::read(&out).map_err(|source| BuildError::Read { file: out, source }),
        // The program has reported the missing tool and how to get it.
        Some(2) => Err(BuildError::NoTool { language }),
        _ => Err(BuildError::Compile {
            folder: folder.to_owned(),
        }),
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::program::fake;

    /// The error if the language's program reports this version; `None` if the version is suitable.
    fn problem_of(language: Language, program: &str, version: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        if !version.is_empty() {
            fake(folder.path(), program, &format!("echo '{version}'"));
        }
        let search_path =
            SearchPath::among(&folder.path().join("project"), [folder.path().to_owned()]);
        let files = crate::sdk_files(language).unwrap();
        let (_, recipe) = files
            .iter()
            .find(|(path, _)| *path == "recipe.json")
            .unwrap();
        let recipe: Recipe = serde_json::from_slice(recipe).unwrap();
        let problem = recipe.find(language, &search_path).err()?.to_string();
        Some(problem.replace(&folder.path().display().to_string(), "PATH"))
    }

    #[test]
    fn an_outdated_program_is_named_with_its_version() {
        let node = |version| problem_of(Language::JavaScript, "node", version);
        assert_eq!(
            node("v18.19.0").unwrap(),
            "plugins in JavaScript need node, 20 or later (PATH/node is v18.19.0): it comes from https://nodejs.org, or the package \
             nodejs where that is new enough (Debian 13 and later)"
        );
        assert_eq!(node("v20.0.0"), None);
        assert_eq!(node("v100.1.0"), None);
        let python = |version| problem_of(Language::Python, "python3", version);
        assert_eq!(
            python("Python 3.9.2").unwrap(),
            "plugins in Python need python3, 3.11 or later (PATH/python3 is Python 3.9.2): it comes from https://python.org, or the \
             package python3 where that is new enough (Debian 12 and later)"
        );
        assert_eq!(python("Python 3.11.0rc1"), None);
    }

    #[test]
    fn a_missing_program_is_named() {
        let nothing = problem_of(Language::TypeScript, "node", "").unwrap();
        assert!(
            nothing.starts_with("plugins in TypeScript need node, 20 or later: it comes from"),
            "{nothing}"
        );
    }
}
