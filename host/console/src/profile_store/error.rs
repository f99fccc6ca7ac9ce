//! Errors of the store of profiles.

use std::io;
use std::path::PathBuf;

use crate::folder::NAME_BYTES_MAX;

pub(super) type Result<T, E = ProfileStoreError> = std::result::Result<T, E>;

/// The reason why the store cannot do something. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileStoreError {
    /// The name is not valid for a profile.
    #[error(
        "invalid profile name {0:?}: use at most {NAME_BYTES_MAX} letters, digits, '.', '-' and '_', and begin with a letter or digit"
    )]
    Name(String),
    /// The name is that of a shipped profile.
    #[error(
        "profile {0} is shipped with Opilio: it has no versions and cannot be changed or deleted; opilio profile copy {0} NEW makes one of your own"
    )]
    Shipped(String),
    /// The profile does not exist.
    #[error("profile {name:?} not found in {}; opilio profile list shows all profiles", folder.display())]
    Unknown {
        /// Its name.
        name: String,
        /// The folder of profiles.
        folder: PathBuf,
    },
    /// The profile does not have this version.
    #[error(
        "profile {name:?} has no version {version}; opilio profile history {name} lists its versions"
    )]
    Version {
        /// Its name.
        name: String,
        /// Number of the version.
        version: u64,
    },
    /// The name is in use.
    #[error("profile {0:?} already exists; choose another name")]
    Taken(String),
    /// The profile has changed since it was read.
    #[error("profile {name:?} has changed since you read it: it now has version {version}{}; read that version, then try again", by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default())]
    Changed {
        /// Its name.
        name: String,
        /// Number of the newest version.
        version: u64,
        /// User who made it.
        by: Option<String>,
    },
    /// The file is a link out of the folder: readers of profiles would see its target.
    #[error(
        "{} is a link out of {}, which is not followed; put the file itself there, or set profiles in opilio.toml to its folder",
        file.display(),
        folder.display()
    )]
    Link {
        /// The file.
        file: PathBuf,
        /// The folder of profiles.
        folder: PathBuf,
    },
    /// The file is not a text.
    #[error("{}:{line}: not UTF-8; save it as UTF-8", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// Line of the first invalid byte.
        line: usize,
    },
    /// The text or the reason is too long.
    #[error("{0}")]
    TooLong(String),
    /// The file of a profile cannot be read.
    #[error("cannot read {}: {problem}; correct the file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The cause.
        problem: io::Error,
    },
    /// The file system reports an error.
    #[error("cannot use {}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
