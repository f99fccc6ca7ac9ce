//! Reads `crawl.log`.

use std::path::Path;
use std::time::Duration;

/// The columns of a line of the log; `-` for a missing value.
#[derive(Clone, Debug)]
pub struct LoggedUri {
    /// Fetch status.
    pub status: i32,
    /// Bytes of payload.
    pub size: String,
    /// The fetched URI.
    pub uri: String,
    /// Hop path.
    pub hops: String,
    /// The page on which the URI was found.
    pub via: String,
    /// Duration of the fetch, if there was one.
    pub took: Option<Duration>,
    /// Payload digest.
    pub digest: String,
    /// Annotations.
    pub annotations: Vec<String>,
    /// The thirteenth column, if there is one.
    pub extra: Option<String>,
}

/// Returns the lines of a job's crawl log, in order.
pub fn lines(job: &Path) -> Vec<LoggedUri> {
    let text = std::fs::read_to_string(job.join("logs/crawl.log")).unwrap_or_default();
    text.lines().map(read).collect()
}

fn read(line: &str) -> LoggedUri {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let [
        _,
        status,
        size,
        uri,
        hops,
        via,
        _,
        _,
        fetch,
        digest,
        _,
        annotations,
        ref extra @ ..,
    ] = columns[..]
    else {
        panic!("a line of crawl.log has 12 columns: {line:?}");
    };
    assert!(
        extra.len() <= 1,
        "a line of crawl.log has 13 columns at most: {line:?}"
    );
    LoggedUri {
        status: status.parse().unwrap(),
        size: size.to_owned(),
        uri: uri.to_owned(),
        hops: hops.to_owned(),
        via: via.to_owned(),
        took: fetch.split_once('+').map(|(_, took)| {
            let milliseconds = took.parse().unwrap();
            Duration::from_millis(milliseconds)
        }),
        digest: digest.to_owned(),
        annotations: annotations
            .split(',')
            .filter(|note| *note != "-")
            .map(str::to_owned)
            .collect(),
        extra: extra.first().map(|extra| (*extra).to_owned()),
    }
}

impl LoggedUri {
    /// Returns `true` if an annotation begins with this text.
    pub fn notes(&self, beginning: &str) -> bool {
        self.annotations
            .iter()
            .any(|note| note.starts_with(beginning))
    }
}
