//! Errors in the command line that its parser cannot detect.

use std::error::Error;
use std::fmt;
use std::path::Path;

/// An error in the command line: a value that an argument cannot have, arguments that do not fit together, or a file that cannot
/// be read. Nothing was done, and the program ends with exit code 2.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(problem: impl Into<String>) -> UsageError {
        UsageError(problem.into())
    }

    /// Returns the context for an error while reading a file that the command line names.
    pub(crate) fn unreadable(file: &Path) -> UsageError {
        UsageError(format!("cannot read {}", file.display()))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}
