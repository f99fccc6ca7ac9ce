//! Writes the daemon's own files atomically, readable only by its user.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces the content of a file.
pub(crate) fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let draft = file.with_extension("draft");
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut written = options.open(&draft)?;
    written.write_all(text)?;
    written.sync_all()?;
    fs::rename(&draft, file)
}
