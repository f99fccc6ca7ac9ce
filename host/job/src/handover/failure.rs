//! Failures of a store, and readable messages for the failures of a bucket. The text of the library describes its attempts and
//! settings; only the last cause in the error chain names the problem.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use object_store::client::{HttpError, HttpErrorKind};
use opilio_profile::SecretProblem;

/// Prefixes of the library's text about a response of the server. Status and body follow.
const ANSWERS: [&str; 2] = [
    "Server returned non-2xx status code:",
    "Server returned error response:",
];

/// Reason for which a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum FileStoreError {
    /// A key of the store is missing.
    #[error(transparent)]
    Secret(#[from] SecretProblem),
    /// The local file cannot be read.
    #[error("cannot read {}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file has changed while it was sent. It is sent again later.
    #[error("{} changed while it was sent", .0.display())]
    Changed(PathBuf),
    /// The folder of the store does not exist. It is not created: the share may not be mounted.
    #[error("folder {} not found; mount it, or create it", .0.display())]
    NoFolder(PathBuf),
    /// The store has another file under this URL.
    #[error(
        "{0} is another file ({1}), which is not replaced; remove it, or choose another archive.store.url"
    )]
    Conflict(String, String),
    /// The copy differs from the file.
    #[error("{url} differs from the file that was sent: {found}")]
    Unverified {
        /// URL of the copy.
        url: String,
        /// The difference.
        found: String,
    },
    /// The folder of the store cannot be written or read.
    #[error("cannot copy to {}", file.display())]
    Folder {
        /// The copy.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The store failed or refused the request.
    // The text of this error contains its cause.
    #[error("{0}")]
    Store(String),
    /// The file was stored, but the record of stored files cannot be written.
    #[error("cannot write handed-over.jsonl")]
    Record(#[source] io::Error),
}

pub(super) fn unreadable(file: &Path, source: io::Error) -> FileStoreError {
    let file = file.to_owned();
    FileStoreError::File { file, source }
}

/// Returns the failure of a bucket on one line.
pub(super) fn failure(problem: &object_store::Error) -> FileStoreError {
    let mut words = cause(problem);
    if let object_store::Error::PermissionDenied { .. }
    | object_store::Error::Unauthenticated { .. } = problem
    {
        words.push_str("; check the keys of archive.store and their rights");
    }
    FileStoreError::Store(words)
}

fn cause(problem: &(dyn Error + 'static)) -> String {
    let mut lost = None;
    let mut last = problem;
    loop {
        lost = last.downcast_ref::<HttpError>().or(lost);
        match last.source() {
            Some(cause) => last = cause,
            None => break,
        }
    }
    let last = last.to_string();
    let last = last.split_whitespace().collect::<Vec<_>>().join(" ");
    match lost.map(HttpError::kind) {
        Some(HttpErrorKind::Connect) => format!("no connection to the store: {last}"),
        Some(HttpErrorKind::Timeout) => format!("the store did not answer in time: {last}"),
        Some(_) => format!("the request to the store failed: {last}"),
        None => answer(&last),
    }
}

/// Returns a message for the response of a server: its status, and the message in its body.
fn answer(text: &str) -> String {
    let Some(rest) = ANSWERS.iter().find_map(|begin| text.strip_prefix(begin)) else {
        return text.to_owned();
    };
    let status = rest.split([':', '<']).next().unwrap_or_default().trim();
    let element = |name: &str| {
        let (_, from) = rest.split_once(&format!("<{name}>"))?;
        Some(from.split_once("</")?.0)
    };
    let message = element("Message").or_else(|| element("Code"));
    let parts = [Some(status), message].into_iter().flatten();
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    match parts.is_empty() {
        true => "the store answers with an error".to_owned(),
        false => format!("the store answers {}", parts.join(": ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(problem: object_store::Error, words: &str) {
        assert_eq!(failure(&problem).to_string(), words);
    }

    fn generic(source: impl Error + Send + Sync + 'static) -> object_store::Error {
        object_store::Error::Generic {
            store: "S3",
            source: Box::new(source),
        }
    }

    #[test]
    fn a_failure_message_is_the_last_cause() {
        let refused = || io::Error::other("Connection refused (os error 111)");
        check(
            generic(HttpError::new(HttpErrorKind::Connect, refused())),
            "no connection to the store: Connection refused (os error 111)",
        );
        check(
            generic(HttpError::new(HttpErrorKind::Interrupted, refused())),
            "the request to the store failed: Connection refused (os error 111)",
        );
        let busy = "Server returned non-2xx status code: 503 Service Unavailable: <?xml version=\"1.0\"?>\n\
                    <Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
        check(
            generic(io::Error::other(busy)),
            "the store answers 503 Service Unavailable: Please reduce your request rate.",
        );
        let denied = "Server returned non-2xx status code: 403 Forbidden: ";
        check(
            object_store::Error::PermissionDenied {
                path: "news/a.warc.gz".to_owned(),
                source: Box::new(io::Error::other(denied)),
            },
            "the store answers 403 Forbidden; check the keys of archive.store and their rights",
        );
        check(
            generic(io::Error::other("Server returned error response: ")),
            "the store answers with an error",
        );
        check(generic(io::Error::other("no\nregion")), "no region");
    }
}
