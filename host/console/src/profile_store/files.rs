//! Files of the store: read as texts, and replaced at once.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::error::{ProfileStoreError, Result};

/// Largest profile. Large numbers of seeds go into a separate file.
pub(super) const PROFILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a file as a text, and reports the place of the first invalid byte.
pub(super) fn read_text(file: &Path) -> Result<String> {
    let unreadable = |problem| ProfileStoreError::Unreadable {
        file: file.to_owned(),
        problem,
    };
    let length = fs::metadata(file).map_err(unreadable)?.len();
    if length > PROFILE_BYTES_MAX {
        return Err(ProfileStoreError::TooLong(format!(
            "{} has {length} bytes, more than 16MiB; put seeds into a file",
            file.display()
        )));
    }
    String::from_utf8(fs::read(file).map_err(unreadable)?).map_err(|problem| {
        let before = &problem.as_bytes()[..problem.utf8_error().valid_up_to()];
        ProfileStoreError::NotText {
            file: file.to_owned(),
            line: before.iter().filter(|it| **it == b'\n').count() + 1,
        }
    })
}

/// Replaces the content of a file at once.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    let draft = file.with_extension("draft");
    let replace = || {
        let mut written = File::create(&draft)?;
        written.write_all(text.as_bytes())?;
        written.sync_all()?;
        fs::rename(&draft, file)
    };
    replace().map_err(failed(file))
}

pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> ProfileStoreError {
    |source| ProfileStoreError::Io {
        path: path.to_owned(),
        source,
    }
}
