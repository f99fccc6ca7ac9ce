//! The payload of a record: the body without chunk framing, decoded or as the server coded it.

use anyhow::Result;
use opilio_archive::{BodyPart, HttpPayload, StoredRecord};
use opilio_fetch::{ResponseHead, coding};

use super::note;
use super::row::is_http;

/// Longest coded payload that is decoded, and longest result. The rest is cut off, with a note.
const DECODED_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a block read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Passes the payload of a record to `sink`, piece by piece. `start` is the part of its block that was read already. `raw` keeps
/// the content coding (gzip), as for payload digests.
pub(crate) fn each_piece(
    record: &mut StoredRecord<'_>,
    start: &[u8],
    raw: bool,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    if !is_http(record.headers()) || record.headers().kind() == "request" {
        sink(start)?;
        loop {
            match record.read_block(&mut piece)? {
                0 => return Ok(()),
                length => sink(&piece[..length])?,
            }
        }
    }
    let mut machine = HttpPayload::new();
    let mut codings = None;
    let mut coded = Vec::new();
    let mut next = start.to_vec();
    loop {
        let mut payload = Vec::new();
        machine.feed(&next, |part| {
            if let BodyPart::Payload(bytes) = part {
                payload.extend_from_slice(bytes);
            }
        });
        let length = record.read_block(&mut piece)?;
        let over = length == 0;
        next.clear();
        next.extend_from_slice(&piece[..length]);
        if machine.in_body() {
            let codings: &Vec<String> = codings.get_or_insert_with(|| {
                let head = ResponseHead::of_recording(machine.head());
                head.filter(|_| !raw)
                    .map_or_else(Vec::new, |head| head.content_codings())
            });
            if codings.is_empty() {
                sink(&payload)?;
            } else if coded.len() as u64 + payload.len() as u64 <= DECODED_BYTES_MAX {
                coded.extend_from_slice(&payload);
            }
        }
        if over {
            break;
        }
    }
    let codings = codings.unwrap_or_default();
    if codings.is_empty() {
        return Ok(());
    }
    let decoded = coding::decode(&codings, || coded.as_slice(), DECODED_BYTES_MAX);
    if let Some(problem) = decoded.problem {
        let uri = record.headers().target_uri().unwrap_or_default();
        note(&format!(
            "{uri}: {problem}; the output has the decoded part"
        ));
    }
    sink(&decoded.content)
}
