//! The format of archive files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments are descriptions in the JSON Schema of profiles. Writers write these versions; readers read any version.
/// Format of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveFormat {
    /// WARC/1.1.
    Warc,
    /// ARC/1.1.
    Arc,
}
