//! Compiles and encodes a plugin crate, anywhere on this machine. It is built as `release`; its `Cargo.toml` sets the
//! optimisation.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::component;
use crate::toolchain::{Remap, TARGET, Toolchain};
use crate::{BuildError, BuildResult};

/// Builds the crate in `folder`. The compiler writes to standard error.
///
/// # Errors
/// There is no crate or no compiler, or the compiler fails.
pub(crate) fn build(folder: &Path) -> Result<BuildResult, BuildError> {
    let here = || folder.to_owned();
    let toolchain = Toolchain::detect()?.with_shared_library();
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
    Ok(BuildResult {
        name: stem.to_string_lossy().replace('_', "-"),
        component: component::encode(&module).map_err(of_module)?,
    })
}

/// Compiles the crate, and returns the path of the module.
fn compile(folder: &Path, toolchain: &Toolchain) -> Result<PathBuf, BuildError> {
    let Remaps { crate_only, all } = Remaps::of(folder);
    let mut command = cargo();
    command.current_dir(folder);
    command.arg(crate_only.as_ref().map_or("build", |_| "rustc"));
    command.args(["--lib", "--release", "--target", TARGET]);
    command.args(["--message-format", "json-render-diagnostics"]);
    toolchain.prepare(&mut command, &all);
    if let Some(remap) = crate_only {
        command.arg("--").arg(remap.flag());
    }
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

/// Replacements for the paths of the crate and its path dependencies: the names of their packages.
#[derive(Default)]
struct Remaps {
    /// The path of the crate, if it is alone in its workspace. As a flag for all crates, it would make cargo compile the
    /// dependencies, and the standard library, again for each plugin in one target folder.
    crate_only: Option<Remap>,
    /// The other paths.
    all: Vec<Remap>,
}

impl Remaps {
    /// Asks cargo for the paths. If cargo fails here, the build that follows reports the error.
    fn of(folder: &Path) -> Self {
        let output = cargo()
            .current_dir(folder)
            .args(["metadata", "--format-version", "1"])
            .stderr(Stdio::null())
            .output();
        let metadata = output
            .ok()
            .and_then(|output| serde_json::from_slice(&output.stdout).ok())
            .unwrap_or_default();
        Self::in_metadata(&metadata)
    }

    fn in_metadata(metadata: &Value) -> Self {
        let root = &metadata["resolve"]["root"];
        let is_alone = metadata["workspace_members"]
            .as_array()
            .is_some_and(|members| members.as_slice() == [root.clone()]);
        let mut remaps = Self::default();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let (Some(manifest), Some(name)) =
                (package["manifest_path"].as_str(), package["name"].as_str())
            else {
                continue;
            };
            let Some(from) = Path::new(manifest).parent() else {
                continue;
            };
            let remap = Remap {
                from: from.to_owned(),
                to: name.to_owned(),
            };
            if is_alone && package["id"] == *root {
                remaps.crate_only = Some(remap);
            } else if package["source"].is_null() {
                remaps.all.push(remap);
            }
        }
        remaps
    }
}

/// The cargo that runs this program, or the one in `PATH`.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Names of the paths that are replaced for the crate alone, and for all crates, in a workspace of these members.
    fn check(members: &[&str], crate_only: Option<&str>, all: &[&str]) {
        let package = |name: &str, source: Option<&str>| {
            json!({
                "id": name,
                "name": name,
                "source": source,
                "manifest_path": format!("/work/{name}/Cargo.toml"),
            })
        };
        let remaps = Remaps::in_metadata(&json!({
            "packages": [package("mine", None), package("sdk", None), package("serde", Some("registry"))],
            "workspace_members": members,
            "resolve": {"root": "mine"},
        }));
        assert_eq!(
            remaps.crate_only.map(|remap| remap.to).as_deref(),
            crate_only
        );
        let names: Vec<_> = remaps.all.iter().map(|remap| remap.to.as_str()).collect();
        assert_eq!(names, all);
    }

    #[test]
    fn plugins_in_separate_workspaces_share_the_flags_of_dependencies() {
        check(&["mine"], Some("mine"), &["sdk"]);
        // Its members share one target folder, and their flags are the same.
        check(&["mine", "sdk"], None, &["mine", "sdk"]);
    }

    #[test]
    fn a_folder_without_a_project_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let problem = crate::build(folder.path(), None).unwrap_err();
        assert!(matches!(problem, BuildError::NoProject { .. }), "{problem}");
    }
}
