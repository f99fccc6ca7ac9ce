//! The SDKs. This program carries all of them in their self-contained form; `build.rs` packs them. A new project gets a copy of its
//! language's SDK. Projects without a copy use the one that is unpacked in the user's cache.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::{fs, process};

use etcetera::BaseStrategy as _;
use flate2::read::DeflateDecoder;

use crate::Language;

// `VERSION`, and `FILES`: SDK, path with slashes, and length of every file, in the order of the contents.
include!(concat!(env!("OUT_DIR"), "/sdks.rs"));

/// The contents of all files, deflated.
static CONTENTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sdks.deflate"));

/// Version of the SDKs that this program carries: that of the plugin contract.
pub const SDK_VERSION: &str = VERSION;

/// Folder of the SDK in a project.
pub const SDK_FOLDER: &str = "opilio-sdk";

/// File of an SDK that holds its version.
const VERSION_FILE: &str = "VERSION";

/// The SDK was not found.
#[derive(Debug, thiserror::Error)]
pub enum NoSdk {
    /// The given folder is not an SDK.
    #[error("{} is not the SDK: it has no {mark}", folder.display())]
    NotThis {
        /// The folder.
        folder: PathBuf,
        /// The file that it lacks.
        mark: &'static str,
    },
    /// There is no cache directory to unpack the SDK into.
    #[error(
        "the user has no home directory for the SDK: set HOME, or name the folder of an SDK with --sdk"
    )]
    NoHome,
    /// The SDK cannot be unpacked.
    #[error("cannot write the SDK to {}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}

/// The SDK for a project: the given one, the project's own, or the one that this program carries, unpacked.
pub(crate) fn sdk(
    language: Language,
    project: &Path,
    given: Option<&Path>,
) -> Result<PathBuf, NoSdk> {
    let mark = mark(language);
    if let Some(folder) = given {
        let found = folder.canonicalize().ok();
        let found = found.filter(|folder| folder.join(mark).is_file());
        return found.ok_or_else(|| NoSdk::NotThis {
            folder: folder.to_owned(),
            mark,
        });
    }
    let own = project.join(SDK_FOLDER);
    if own.join(mark).is_file() {
        return Ok(own);
    }
    unpacked(language)
}

/// Version of the SDK in a project. `None` if the project has no SDK of its own.
#[must_use]
pub fn sdk_version(project: &Path) -> Option<String> {
    let text = fs::read_to_string(project.join(SDK_FOLDER).join(VERSION_FILE)).ok()?;
    Some(text.trim().to_owned())
}

/// Writes the SDK of a language into a project. It replaces the one that the project has.
///
/// # Errors
/// The files cannot be written. An earlier SDK stays then.
pub fn write_sdk(language: Language, project: &Path) -> Result<(), NoSdk> {
    let folder = project.join(SDK_FOLDER);
    let unfinished = project.join(format!("{SDK_FOLDER}.new"));
    let written = || {
        remove(&unfinished)?;
        write(language, &unfinished)?;
        remove(&folder)?;
        fs::rename(&unfinished, &folder)
    };
    written().map_err(|source| NoSdk::Write { folder, source })
}

/// The files of a language's SDK, by their paths.
///
/// # Errors
/// The program is damaged.
pub fn sdk_files(language: Language) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut contents = DeflateDecoder::new(CONTENTS);
    let mut files = Vec::new();
    for (sdk, path, length) in FILES {
        let mut content = vec![0; *length];
        contents.read_exact(&mut content)?;
        if *sdk == language.sdk() {
            files.push((*path, content));
        }
    }
    Ok(files)
}

/// The folder in the user's cache with this program's SDK of a language. It is written when it is first needed.
fn unpacked(language: Language) -> Result<PathBuf, NoSdk> {
    let base = etcetera::choose_base_strategy().map_err(|_| NoSdk::NoHome)?;
    // Programs of one version may carry different files while the SDK is in development.
    let files = base
        .cache_dir()
        .join("opilio/sdk")
        .join(format!("{SDK_VERSION}-{:08x}", crc(CONTENTS)));
    let folder = files.join(language.sdk());
    if folder.is_dir() {
        return Ok(folder);
    }
    let unfinished = files.join(format!("{}.{}", language.sdk(), process::id()));
    let written = || {
        write(language, &unfinished)?;
        match fs::rename(&unfinished, &folder) {
            // Another process was faster.
            Err(_) if folder.is_dir() => fs::remove_dir_all(&unfinished),
            renamed => renamed,
        }
    };
    written().map_err(|source| NoSdk::Write {
        folder: folder.clone(),
        source,
    })?;
    Ok(folder)
}

fn write(language: Language, folder: &Path) -> io::Result<()> {
    for (path, content) in sdk_files(language)? {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(&file, content)?;
        // Node's package managers link programs, which must be executable.
        #[cfg(unix)]
        if path.starts_with("bin/") {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Checksum of some bytes (CRC-32).
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A file that only the SDK has.
fn mark(language: Language) -> &'static str {
    match language {
        Language::Rust => "Cargo.toml",
        Language::C => "include/opilio.h",
        Language::Go => "component-type.wasm",
        Language::JavaScript | Language::TypeScript | Language::Python => "recipe.json",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn every_sdk_is_complete_in_a_project() {
        for language in Language::ALL {
            let project = tempfile::tempdir().unwrap();
            write_sdk(language, project.path()).unwrap();
            let own = project.path().join(SDK_FOLDER);
            assert_eq!(sdk(language, project.path(), None).unwrap(), own);
            assert_eq!(sdk_version(project.path()).as_deref(), Some(SDK_VERSION));
            for (path, content) in sdk_files(language).unwrap() {
                assert_eq!(fs::read(own.join(path)).unwrap(), content, "{path}");
                let text = String::from_utf8_lossy(&content);
                let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
                for outside in [checkout, "../../wit", "../../docs", "workspace = true"] {
                    assert!(!text.contains(outside), "{path} names {outside}");
                }
            }
        }
    }

    #[test]
    fn an_sdk_replaces_the_earlier_one() {
        let project = tempfile::tempdir().unwrap();
        let old = project.path().join(SDK_FOLDER);
        fs::create_dir(&old).unwrap();
        fs::write(old.join("old.go"), "").unwrap();
        write_sdk(Language::Go, project.path()).unwrap();
        assert!(old.join("go.mod").is_file());
        assert!(!old.join("old.go").exists());
        let left = fs::read_dir(project.path()).unwrap().count();
        assert_eq!(left, 1);
    }

    #[test]
    fn a_folder_without_the_sdk_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let problem = sdk(Language::C, folder.path(), Some(folder.path())).unwrap_err();
        assert!(
            problem.to_string().contains("no include/opilio.h"),
            "{problem}"
        );
    }
}
