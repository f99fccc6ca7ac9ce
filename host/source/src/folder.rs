//! A folder of components that an operator maintains by hand: every file in it with the extension `wasm`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::sha256::Sha256;

/// Maximum components in one folder. A folder with more is most likely the wrong one, which the error reports.
pub const FILES_MAX: usize = 256;

/// The reason why no component can be chosen from a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system reports an error.
    #[error("cannot read folder {path}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        problem: io::Error,
    },
    /// The folder has no `.wasm` file.
    #[error(
        "folder {path} holds no .wasm file; a component is one file, such as `opilio plugin build` makes"
    )]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has more than [`FILES_MAX`] files.
    #[error("folder {path} holds more than {FILES_MAX} .wasm files; name the file itself")]
    TooMany {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has several components, and the reference names no plugin.
    #[error("folder {path} holds {count} components; add #NAME to select a plugin")]
    Unnamed {
        /// The folder.
        path: PathBuf,
        /// Their number.
        count: usize,
    },
    /// No component has the plugin.
    #[error("no component in folder {path} holds a plugin \"{plugin}\"; {held}")]
    NoPlugin {
        /// The folder.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The plugins found, and the files that cannot be used.
        held: String,
    },
    /// Several components have the plugin.
    #[error(
        "plugin \"{plugin}\" is in several components of folder {path}: {}; pin one by its sha256, or name the file itself",
        files.join(", ")
    )]
    Several {
        /// The folder.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Names of the files.
        files: Vec<String>,
    },
    /// No component has the pinned digest.
    #[error("no component in folder {path} has the pinned sha256 {pinned}")]
    NoPin {
        /// The folder.
        path: PathBuf,
        /// The digest.
        pinned: Sha256,
    },
}

/// The component files of a folder, by name.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let unreadable = |problem| FolderError::Io {
        path: folder.to_owned(),
        problem,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_wasm = path.extension().is_some_and(|found| found == "wasm");
        if is_wasm && path.is_file() {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            let path = folder.to_owned();
            return Err(FolderError::TooMany { path });
        }
    }
    if files.is_empty() {
        let path = folder.to_owned();
        return Err(FolderError::Empty { path });
    }
    files.sort_unstable();
    Ok(files)
}
