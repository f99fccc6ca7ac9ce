//! Compiles and encodes a plugin crate, anywhere on this machine. It is built as `release`; its `Cargo.toml` sets the
//! optimisation.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::component;
use crate::toolchain::{Remap, TARGET, Toolchain};
use crate::{BuildError, Built};

/// Builds the crate in `folder`. The compiler writes to standard error.
///
/// # Errors
/// There is no crate or no compiler, or the compiler fails.
pub(crate) fn build(folder: &Path) -> Result<Built, BuildError> {
    let here = || folder.to_owned();
    let toolchain = Toolchain::detect()?;
    let file = compile(folder, &toolchain)?;
    let module = std::fs::read(&file).map_err(|source| BuildError::Read {
        file: file.clone(),
        source,
    })?;
    let of_module = |problem| BuildError::Module {
        folder: here(),
        problem,
    };
    // A crate without the SDK's macro could be encoded, but would not be a plugin.
    component::plugin_names(&module).map_err(of_module)?;
    let stem = file.file_stem().unwrap_or_default();
    Ok(Built {
        name: stem.to_string_lossy().replace('_', "-"),
        component: component::encode(&module).map_err(of_module)?,
    })
}

/// Compiles the crate, and returns the path of the module.
fn compile(folder: &Path, toolchain: &Toolchain) -> Result<PathBuf, BuildError> {
    let mut command = cargo();
    command.current_dir(folder);
    command.args(["build", "--lib", "--release", "--target", TARGET]);
    command.args(["--message-format", "json-render-diagnostics"]);
    toolchain.prepare(&mut command, &remaps(folder));
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(BuildError::Cargo)?;
    if !output.status.success() {
        return Err(BuildError::Compile {
            folder: folder.to_owned(),
        });
    }
    // Dependencies come first, the crate itself last.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .rfind(|file| file.extension() == Some(OsStr::new("wasm")))
        .ok_or_else(|| BuildError::NoModule {
            folder: folder.to_owned(),
        })
}

/// Replacements for the paths of the crate and its path dependencies: the names of their packages. If cargo fails here, the
/// build that follows reports the error.
fn remaps(folder: &Path) -> Vec<Remap> {
    let output = cargo()
        .current_dir(folder)
        .args(["metadata", "--format-version", "1"])
        .stderr(Stdio::null())
        .output();
    let metadata = output
        .ok()
        .and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok())
        .unwrap_or_default();
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    packages
        .iter()
        .filter(|package| package["source"].is_null())
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            Some(Remap {
                from: manifest.parent()?.to_owned(),
                to: package["name"].as_str()?.to_owned(),
            })
        })
        .collect()
}

/// The cargo that runs this program, or the one in `PATH`.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use crate::BuildError;

    #[test]
    fn a_folder_without_a_project_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let problem = crate::build(folder.path(), None).unwrap_err();
        assert!(matches!(problem, BuildError::NoProject { .. }), "{problem}");
    }
}
