//! SDKs that bring their own build: `recipe.json` in the SDK's folder says which program runs it and how. The program
//! finds the language's toolchain itself, says on standard error what is missing or wrong, and ends with 0, with 1
//! where the project is at fault, or with 2 where a tool is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::program::{self, Places};
use crate::{BuildError, Language};

/// What `recipe.json` holds.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Recipe {
    program: String,
    /// The oldest version that serves, as `--version` of the program says it.
    version_min: String,
    /// How to get the program.
    program_from: String,
    /// With `{sdk}`, `{folder}` and `{out}` in the place of paths.
    arguments: Vec<String>,
}

impl Recipe {
    /// The program, where it is new enough.
    fn find(&self, language: Language, places: &Places) -> Result<PathBuf, BuildError> {
        let wanted = format!("{}, {} or later", self.program, self.version_min);
        let missing = |missing: String| BuildError::NoProgram {
            language,
            missing,
            remedy: format!("it comes from {}", self.program_from),
        };
        let Some(program) = places.find(&[&self.program]) else {
            return Err(missing(wanted));
        };
        let found = program::answer(&program, &["--version"]).unwrap_or_default();
        if program::version(&found) < program::version(&self.version_min) {
            let place = program.display();
            return Err(missing(format!("{wanted} ({place} is {found})")));
        }
        Ok(program)
    }
}

/// Has the SDK make the component.
pub(crate) fn build(
    language: Language,
    folder: &Path,
    sdk: &Path,
    places: &Places,
) -> Result<Vec<u8>, BuildError> {
    let file = sdk.join("recipe.json");
    let unreadable = |source| BuildError::Read {
        file: file.clone(),
        source,
    };
    let text = fs::read_to_string(&file).map_err(unreadable)?;
    let recipe: Recipe =
        serde_json::from_str(&text).map_err(|problem| unreadable(problem.into()))?;
    let program = recipe.find(language, places)?;
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let out = scratch.path().join("plugin.wasm");
    let places = [("{sdk}", sdk), ("{folder}", folder), ("{out}", &out)];
    let mut command = Command::new(&program);
    for argument in &recipe.arguments {
        let filled = places.iter().fold(argument.clone(), |text, (place, path)| {
            text.replace(place, &path.display().to_string())
        });
        command.arg(filled);
    }
    let status = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| BuildError::Run { program, source })?;
    match status.code() {
        Some(0) => fs::read(&out).map_err(|source| BuildError::Read { file: out, source }),
        // It has said which, and how to get it.
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

    /// What is said where the language's program says that it is this version; nothing where it serves.
    fn said(language: Language, program: &str, version: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        if !version.is_empty() {
            fake(folder.path(), program, &format!("echo '{version}'"));
        }
        let places = Places::among(&folder.path().join("project"), [folder.path().to_owned()]);
        let sdk = crate::sdk(language, None).unwrap();
        let recipe: Recipe =
            serde_json::from_str(&fs::read_to_string(sdk.join("recipe.json")).unwrap()).unwrap();
        let said = recipe.find(language, &places).err()?.to_string();
        Some(said.replace(&folder.path().display().to_string(), "PATH"))
    }

    #[test]
    fn a_program_that_is_too_old_is_named_with_its_version() {
        let node = |version| said(Language::JavaScript, "node", version);
        assert_eq!(
            node("v18.19.0").unwrap(),
            "plugins in JavaScript need node, 20 or later (PATH/node is v18.19.0): it comes from https://nodejs.org, or the package \
             nodejs where that is new enough (Debian 13 and later)"
        );
        assert_eq!(node("v20.0.0"), None);
        assert_eq!(node("v100.1.0"), None);
        let python = |version| said(Language::Python, "python3", version);
        assert_eq!(
            python("Python 3.9.2").unwrap(),
            "plugins in Python need python3, 3.11 or later (PATH/python3 is Python 3.9.2): it comes from https://python.org, or the \
             package python3 where that is new enough (Debian 12 and later)"
        );
        assert_eq!(python("Python 3.11.0rc1"), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_named_too() {
        let nothing = said(Language::TypeScript, "node", "").unwrap();
        assert!(
            nothing.starts_with("plugins in TypeScript need node, 20 or later: it comes from"),
            "{nothing}"
        );
    }
}
