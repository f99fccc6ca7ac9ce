//! SDKs that bring their own build: `recipe.json` in the SDK's folder says which program runs it and how. The program
//! finds the language's toolchain itself, says on standard error what is missing or wrong, and ends with 0, with 1
//! where the project is at fault, or with 2 where a tool is missing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::{BuildError, Language, program};

/// What `recipe.json` holds.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Recipe {
    program: String,
    /// How to get the program.
    program_from: String,
    /// With `{sdk}`, `{folder}` and `{out}` in the place of paths.
    arguments: Vec<String>,
}

/// Has the SDK make the component.
pub(crate) fn build(language: Language, folder: &Path, sdk: &Path) -> Result<Vec<u8>, BuildError> {
    let file = sdk.join("recipe.json");
    let unreadable = |source| BuildError::Read {
        file: file.clone(),
        source,
    };
    let text = fs::read_to_string(&file).map_err(unreadable)?;
    let recipe: Recipe =
        serde_json::from_str(&text).map_err(|problem| unreadable(problem.into()))?;
    let program = program::find(&[&recipe.program], language, folder).ok_or_else(|| {
        BuildError::NoProgram {
            language,
            missing: recipe.program.clone(),
            remedy: format!("it comes from {}", recipe.program_from),
        }
    })?;
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
