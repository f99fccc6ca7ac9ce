//! Builds plugins in Go, with Go's own compiler. The compiler writes a core module, which imports WASI preview 1 and does not
//! describe a component. The description comes from the SDK (`component-type.wasm`). `component.rs` replaces WASI.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{self, SearchPath};
use crate::{BuildError, Language, component};

/// Oldest version of Go: exported functions came with 1.24.
const VERSION_MIN: [u32; 2] = [1, 24];

/// Builds the component.
pub(crate) fn build(
    folder: &Path,
    sdk: &Path,
    search_path: &SearchPath,
) -> Result<Vec<u8>, BuildError> {
    let missing = |missing: String| BuildError::NoProgram {
        language: Language::Go,
        missing,
        remedy:
            "it comes from https://go.dev/dl, or as the package golang-go where that is new enough"
                .to_owned(),
    };
    let wanted = format!("go, {}.{} or later", VERSION_MIN[0], VERSION_MIN[1]);
    let program = search_path
        .find(&["go"])
        .ok_or_else(|| missing(wanted.clone()))?;
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
    if program::version(&version)[..] < VERSION_MIN[..] {
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
    // A module may end with custom sections, so those of the description are appended, without its header of eight bytes.
    let description = read(&sdk.join("component-type.wasm"))?;
    module.extend_from_slice(description.get(8..).unwrap_or_default());
    component::encode(&module).map_err(|problem| BuildError::Module {
        folder: folder.to_owned(),
        problem,
    })
}
