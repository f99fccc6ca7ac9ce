//! Plugins in Go, with Go's own compiler. It makes a module that describes no component and asks for WASI's preview 1;
//! the SDK has the description, and what stands in for WASI is ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{BuildError, Language, component, program};

/// Exported functions came with Go 1.24.
const VERSION_MIN: (u32, u32) = (1, 24);

/// Builds the component.
pub(crate) fn build(folder: &Path, sdk: &Path) -> Result<Vec<u8>, BuildError> {
    let missing = |missing: String| BuildError::NoProgram {
        language: Language::Go,
        missing,
        remedy:
            "it comes from https://go.dev/dl, or as the package golang-go where that is new enough"
                .to_owned(),
    };
    let wanted = format!("go, {}.{} or later", VERSION_MIN.0, VERSION_MIN.1);
    let program =
        program::find(&["go"], Language::Go, folder).ok_or_else(|| missing(wanted.clone()))?;
    let run = |command: &mut Command| {
        command
            .current_dir(folder)
            .output()
            .map_err(|source| BuildError::Run {
                program: program.clone(),
                source,
            })
    };
    let version = run(Command::new(&program).args(["env", "GOVERSION"]))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    if parse(&version).is_none_or(|found| found < VERSION_MIN) {
        return Err(missing(format!("{wanted} (found {version})")));
    }
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let module = scratch.path().join("module.wasm");
    let mut command = Command::new(&program);
    command
        .args([
            "build",
            "-buildmode=c-shared",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
        ])
        .arg(&module)
        .arg(".")
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("GOWORK", "off");
    let status = command
        .current_dir(folder)
        .status()
        .map_err(|source| BuildError::Run {
            program: program.clone(),
            source,
        })?;
    if !status.success() {
        return Err(BuildError::Compile {
            folder: folder.to_owned(),
        });
    }
    let read = |file: &Path| {
        fs::read(file).map_err(|source| BuildError::Read {
            file: file.to_owned(),
            source,
        })
    };
    let mut module = read(&module)?;
    // Sections without a meaning to the engine may follow in any place; a module begins with eight bytes of its own.
    let description = read(&sdk.join("component-type.wasm"))?;
    module.extend_from_slice(description.get(8..).unwrap_or_default());
    component::encode(&module).map_err(|problem| BuildError::Module {
        folder: folder.to_owned(),
        problem,
    })
}

/// `go1.26.8` as its first two numbers.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split(['.', ' ', '-', 'r', 'b']);
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse("go1.26.8"), Some((1, 26)));
        assert_eq!(parse("go1.24rc1"), Some((1, 24)));
        assert!(parse("go1.9.2") < Some(VERSION_MIN));
        assert_eq!(parse("devel"), None);
    }
}
