//! Errors in the command line that the parser of the command line cannot find.

use std::error::Error;
use std::fmt;

/// An error in the command line: a value that an argument cannot have, or arguments that do not fit together. Nothing was done,
/// and the program ends with exit code 2.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(problem: impl Into<String>) -> UsageError {
        UsageError(problem.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}
