//! Exchanges without a server, for simulations, tools and tests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::{Exchange, PayloadDigest, ResponseHead, Spool};
use opilio_profile::Render;
use opilio_sandbox::{Candidate, Visit};
use sha1::{Digest as _, Sha1};

use crate::plugin_view::PluginMemory;
use crate::reading::ReadingTask;

/// Returns the head of a response.
pub fn head(status: u16, headers: Vec<(String, String)>) -> ResponseHead {
    ResponseHead {
        version: "HTTP/1.1".to_owned(),
        status,
        reason: String::new(),
        headers,
        length: 0,
    }
}

/// Returns an exchange as a fetch of this response would have recorded it.
pub fn exchange(
    head: ResponseHead,
    content: Bytes,
    (started, took): (Timestamp, Duration),
) -> Exchange {
    Exchange {
        started,
        duration: took,
        time_to_head: Some(took),
        peer: None,
        proxy: None,
        request_bytes: Bytes::new(),
        wire: Spool::default(),
        interim: Bytes::new(),
        head: Some(head),
        payload_digest: PayloadDigest(Sha1::digest(&content).into()),
        payload: content.into(),
        truncated: None,
        aborted_by_filter: None,
        failure: None,
        tls: None,
        http2: false,
        reused_connection: false,
        annotations: Vec::new(),
    }
}

/// Returns the work of reading a coded page of `http://a.example/`, without plugins and without an earlier version. Plugins may see
/// 64 MiB of it. `payload` is the page as gzip.
pub fn reading_task(payload: Bytes) -> ReadingTask {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        header("Content-Type", "text/html"),
        header("Content-Encoding", "gzip"),
    ];
    let head = head(200, headers);
    let times = (Timestamp::UNIX_EPOCH, Duration::ZERO);
    let uri = "http://a.example/".to_owned();
    let candidate = Candidate::seed(uri.clone(), String::new());
    ReadingTask {
        stacks: Arc::default(),
        exchange: Arc::new(exchange(head.clone(), payload, times)),
        head,
        base: uri.clone(),
        uri,
        visit: Visit::of(candidate, Timestamp::UNIX_EPOCH),
        last: None,
        last_fingerprint: None,
        last_extractor: None,
        render: Render::Never,
        bodyless: false,
        content_max: 64 << 20,
        links_max: 10,
        memory: PluginMemory::default(),
    }
}
