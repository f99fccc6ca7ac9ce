//! The place of a secret: an environment variable or a file. Profiles are archived, so they contain no secrets themselves.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;

/// The place from which a secret is read when a crawl begins. One of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SecretFile {
    /// An environment variable. No default: the secret is in a file.
    pub env: Option<String>,

    /// A file, relative to the profile; a line end at its end is ignored. No default: the secret is in the environment.
    pub file: Option<String>,
}

/// The place of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretSource {
    /// This environment variable.
    Environment(String),
    /// This file.
    File(PathBuf),
}

/// Reason for which a secret is missing.
#[derive(Debug, thiserror::Error)]
pub enum SecretProblem {
    /// The environment variable is not set.
    #[error("the environment has no variable {0}; set it, then run the same command again")]
    Environment(String),
    /// The file cannot be read.
    #[error("cannot read {}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl SecretSource {
    /// Reads the secret.
    ///
    /// # Errors
    /// The secret is missing.
    pub fn read(&self) -> Result<String, SecretProblem> {
        match self {
            Self::Environment(name) => {
                std::env::var(name).map_err(|_| SecretProblem::Environment(name.clone()))
            }
            Self::File(file) => {
                let text = std::fs::read_to_string(file).map_err(|source| SecretProblem::File {
                    file: file.clone(),
                    source,
                })?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
            }
        }
    }
}

impl SecretFile {
    /// The place, if exactly one of the two keys is written. Relative paths of files are not resolved.
    pub(crate) fn place(&self) -> Option<SecretSource> {
        match (&self.env, &self.file) {
            (Some(name), None) => Some(SecretSource::Environment(name.clone())),
            (None, Some(file)) => Some(SecretSource::File(file.into())),
            _ => None,
        }
    }

    pub(crate) fn check(&self, key: &str, part: &mut Part<'_, '_>, folder: &Path) -> SecretSource {
        match (&self.env, &self.file) {
            (Some(name), None) if !name.is_empty() && !name.contains(['=', '\0']) => {
                SecretSource::Environment(name.clone())
            }
            (None, Some(file)) if !file.is_empty() => SecretSource::File(folder.join(file)),
            _ => {
                part.refuse(
                    key,
                    "the place of the secret is missing".to_owned(),
                    "write { env = \"NAME\" } or { file = \"secret.txt\" }",
                );
                SecretSource::Environment(String::new())
            }
        }
    }
}
