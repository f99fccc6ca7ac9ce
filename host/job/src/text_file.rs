//! Files that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file completely or not at all.
pub fn write_text(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    let draft = draft_of(path);
    File::create(&draft)
        .and_then(|mut file| file.write_all(text.as_ref()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path))
}

/// Returns the path of the draft of a file, until it is complete.
pub(crate) fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("draft")
}
