//! Status and type of an HTTP message.

use std::io;

use crate::record::{Block, HTTP_RESPONSE, Record};

/// Bytes of an HTTP message that are searched for its status and type.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// The part of an HTTP head that an index needs.
#[derive(Default)]
pub(crate) struct HttpHead {
    pub(crate) status: Option<String>,
    pub(crate) media_type: Option<String>,
}

/// The type that the server sent, without parameters.
pub(crate) fn media_type(record: &Record) -> Option<String> {
    head_of(record).media_type
}

pub(crate) fn head_of(record: &Record) -> HttpHead {
    match (&record.block, record.content_type.as_str()) {
        (Block::Bytes(bytes), HTTP_RESPONSE) => http_head(&bytes[..bytes.len().min(HEAD_BYTES)]),
        (Block::Spool { open, .. }, HTTP_RESPONSE) => {
            let mut start = Vec::new();
            // A read error fails the capture when the block is written.
            let _ = open().map(|spool| {
                let mut spool = io::Read::take(spool, HEAD_BYTES as u64);
                io::Read::read_to_end(&mut spool, &mut start)
            });
            http_head(&start)
        }
        _ => HttpHead::default(),
    }
}

pub(crate) fn http_head(message: &[u8]) -> HttpHead {
    let mut head = HttpHead::default();
    let mut lines = message.split(|b| *b == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
    if !first.starts_with("HTTP/") {
        return head;
    }
    let status = first.split_ascii_whitespace().nth(1).unwrap_or_default();
    head.status = (!status.is_empty()).then(|| status.to_owned());
    for line in lines {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-type")
        {
            head.media_type = Some(bare(value));
            break;
        }
    }
    head
}

/// Removes the parameters of a type.
pub(crate) fn bare(content_type: &str) -> String {
    let value = content_type.trim();
    let end = value.find(|c: char| c == ';' || c.is_whitespace());
    value[..end.unwrap_or(value.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_heads_are_read_to_their_end() {
        let head =
            http_head(b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-type: text/html; charset=x\r\n\r\nbody");
        assert_eq!(
            (head.status.as_deref(), head.media_type.as_deref()),
            (Some("200"), Some("text/html"))
        );
        let head = http_head(b"HTTP/1.1 200 OK\r\n\r\nContent-Type: body");
        assert_eq!(head.media_type, None);
        assert_eq!(http_head(b"<html>").status, None);
        assert_eq!(http_head(b"").status, None);
    }
}
