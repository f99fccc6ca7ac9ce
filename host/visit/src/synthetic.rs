//! Exchanges without a server, for simulations and tests.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::{Exchange, PayloadDigest, ResponseHead, Spool, SpoolWriter};
use sha1::{Digest as _, Sha1};

/// Returns the exchange that would have been recorded of a response.
pub fn exchange(
    head: ResponseHead,
    content: &[u8],
    (started, took): (Timestamp, Duration),
) -> Exchange {
    Exchange {
        started,
        duration: took,
        time_to_head: Some(took),
        peer: None,
        proxy: None,
        request_bytes: Bytes::new(),
        wire: spool(&[]),
        interim: Bytes::new(),
        head: Some(head),
        payload: spool(content),
        payload_digest: PayloadDigest(Sha1::digest(content).into()),
        truncated: None,
        aborted_by_filter: None,
        failure: None,
        tls: None,
        http2: false,
        reused_connection: false,
        annotations: Vec::new(),
    }
}

fn spool(content: &[u8]) -> Spool {
    let mut writer = SpoolWriter::new(usize::MAX, Path::new(""));
    // Writes to memory do not fail.
    let _ = writer.append(content);
    writer.finish()
}
