//! Reason for which the arguments of a call are invalid, and the conversion of times and tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::{TableFacts, TableProblem, Tables};

/// Reason for which arguments are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallProblem {
    /// A document has its content in several forms.
    #[error("a document has one of `text`, `bytes`, `base64` and `file`")]
    Contents,
    /// The host decodes the content, so text in another encoding would be misread.
    #[error("a document in {0} needs its content as `base64`, `bytes` or `file`, not as `text`")]
    TextInCharset(String),
    /// The encoding does not exist.
    #[error("charset {0} is unknown")]
    Charset(String),
    /// Invalid base64.
    #[error("the `base64` of a document is not Base64: {0}")]
    Base64(String),
    /// The content is in a file that has not been read.
    #[error("the content in {} has not been read", .0.display())]
    Unread(PathBuf),
    /// A time out of range.
    #[error("{0} is not a time in milliseconds since 1970")]
    Time(u64),
    /// The rows of a table are invalid.
    #[error("table {name}: {problem}")]
    Table {
        /// The table.
        name: String,
        /// The error in the rows.
        problem: TableProblem,
    },
}

/// Makes the host's tables from these facts.
pub(super) fn tables(facts: &BTreeMap<String, TableFacts>) -> Result<Tables, CallProblem> {
    let tables = Tables::default();
    for (name, facts) in facts {
        let table = facts.table().map_err(|problem| CallProblem::Table {
            name: name.clone(),
            problem,
        })?;
        tables.set(name.as_str(), table);
    }
    Ok(tables)
}

/// The time of so many milliseconds since 1970.
pub(super) fn at(millis: u64) -> Result<Timestamp, CallProblem> {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok())
        .ok_or(CallProblem::Time(millis))
}
