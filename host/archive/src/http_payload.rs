//! The payload of a recorded HTTP message: the bytes after the headers, without chunk framing. Used to verify payload digests
//! and to pass on archived bodies. Content coding (gzip) is part of the payload and is not removed.

/// Maximum bytes of the head of an HTTP message. Servers send shorter heads, and clients read no longer ones. A message with a
/// longer head has no payload here.
pub const HTTP_HEAD_BYTES_MAX: usize = 1024 * 1024;

/// Maximum bytes of a line with a chunk's size and extensions; more than the limit of Opilio's fetcher.
const CHUNK_LINE_BYTES_MAX: usize = 32 * 1024;

/// Splits an HTTP message into head and body while its bytes arrive, in pieces of any size.
///
/// - Interim answers (1xx, except 101) before the final one count as part of the head.
/// - A message without a status or request line (HTTP/0.9) is payload as a whole.
/// - A body announced as chunked may not begin with a chunk size. Then it was stored without framing, and is used as it is.
/// - Framing that breaks later ends the payload.
#[derive(Debug, Default)]
pub struct HttpPayload {
    head: Vec<u8>,
    /// Offset of the head that is being read, after interim answers.
    head_start: usize,
    line: Vec<u8>,
    state: State,
    chunked: bool,
}

/// A piece of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart<'a> {
    /// Bytes as recorded, chunk framing included.
    Raw(&'a [u8]),
    /// Bytes without chunk framing.
    Payload(&'a [u8]),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// No framing: all further bytes are payload.
    Plain,
    ChunkSize {
        first: bool,
    },
    ChunkData(u64),
    ChunkEnd,
    /// Trailer fields, or broken framing: no more payload.
    Over,
}

impl HttpPayload {
    /// Creates a parser without input.
    pub fn new() -> HttpPayload {
        HttpPayload::default()
    }

    /// The head as far as it was received: start line, headers, blank line, with interim answers.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns `true` if the end of the head was reached.
    pub fn in_body(&self) -> bool {
        self.state != State::Head
    }

    /// Returns `true` if the headers announce chunked transfer coding.
    pub fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// Processes the next bytes of the message and passes the parts of the body to `sink`. Each byte of the body is passed as
    /// [`BodyPart::Raw`], and each byte of the payload also as [`BodyPart::Payload`].
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(BodyPart<'_>)) {
        let mut rest = bytes;
        while self.state == State::Head {
            let Some((&byte, after)) = rest.split_first() else {
                return;
            };
            self.head.push(byte);
            rest = after;
            if byte == b'\n' {
                self.end_of_head_line();
            }
            if self.head.len() >= 5 && !is_message(&self.head) {
                // In HTTP/0.9 there is no head, and the bytes are the body.
                self.state = State::Plain;
                let body = std::mem::take(&mut self.head);
                sink(BodyPart::Raw(&body));
                sink(BodyPart::Payload(&body));
            } else if self.head.len() > HTTP_HEAD_BYTES_MAX {
                self.state = State::Over;
            }
        }
        if !rest.is_empty() {
            sink(BodyPart::Raw(rest));
            self.feed_body(rest, sink);
        }
    }

    fn end_of_head_line(&mut self) {
        let head = &self.head[self.head_start..];
        if !(head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n")) {
            return;
        }
        if is_interim(head) {
            self.head_start = self.head.len();
            return;
        }
        self.chunked = is_chunked(head);
        self.state = if self.chunked {
            State::ChunkSize { first: true }
        } else {
            State::Plain
        };
    }

    fn feed_body(&mut self, mut rest: &[u8], mut sink: impl FnMut(BodyPart<'_>)) {
        while !rest.is_empty() {
            match self.state {
                State::Head | State::Over => return,
                State::Plain => {
                    sink(BodyPart::Payload(rest));
                    return;
                }
                State::ChunkData(left) => {
                    let take = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    let (data, after) = rest.split_at(take);
                    sink(BodyPart::Payload(data));
                    rest = after;
                    let left = left - take as u64;
                    self.state = if left == 0 {
                        State::ChunkEnd
                    } else {
                        State::ChunkData(left)
                    };
                }
                State::ChunkSize { first } => {
                    rest = self.take_line(rest);
                    self.state = match self.chunk_size() {
                        LineState::Unfinished => continue,
                        LineState::Size(0) => State::Over,
                        LineState::Size(size) => State::ChunkData(size),
                        LineState::Nonsense if first => {
                            sink(BodyPart::Payload(&self.line));
                            State::Plain
                        }
                        LineState::Nonsense => State::Over,
                    };
                    self.line.clear();
                }
                State::ChunkEnd => {
                    rest = self.take_line(rest);
                    if self.line.ends_with(b"\n") {
                        let blank = matches!(self.line.as_slice(), b"\n" | b"\r\n");
                        self.state = if blank {
                            State::ChunkSize { first: false }
                        } else {
                            State::Over
                        };
                        self.line.clear();
                    } else if self.line.len() > 1 {
                        self.state = State::Over;
                    }
                }
            }
        }
    }

    /// Moves bytes up to the end of the line to `self.line` and returns the remaining bytes.
    fn take_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = CHUNK_LINE_BYTES_MAX
            .saturating_sub(self.line.len())
            .max(1)
            .min(bytes.len());
        let end = bytes[..room]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(room, |at| at + 1);
        self.line.extend_from_slice(&bytes[..end]);
        &bytes[end..]
    }

    fn chunk_size(&self) -> LineState {
        if !self.line.ends_with(b"\n") {
            let long = self.line.len() >= CHUNK_LINE_BYTES_MAX;
            return if long {
                LineState::Nonsense
            } else {
                LineState::Unfinished
            };
        }
        let text = String::from_utf8_lossy(&self.line);
        let size = text.split(';').next().unwrap_or_default().trim();
        if size.is_empty() || !size.bytes().all(|b| b.is_ascii_hexdigit()) {
            return LineState::Nonsense;
        }
        u64::from_str_radix(size, 16).map_or(LineState::Nonsense, LineState::Size)
    }
}

enum LineState {
    Unfinished,
    Size(u64),
    Nonsense,
}

/// Returns `true` if the bytes begin like a response. Only responses are split, because the start line of a request has no fixed
/// form.
fn is_message(head: &[u8]) -> bool {
    head.starts_with(b"HTTP/")
}

fn is_interim(head: &[u8]) -> bool {
    let status = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
    status.starts_with(b"1") && !status.starts_with(b"101")
}

/// Returns `true` if the headers announce chunked coding. A line that begins with a blank continues the one before (RFC 9112 §5.2).
fn is_chunked(head: &[u8]) -> bool {
    let mut last_coding = None;
    let mut is_coding = false;
    for line in head.split(|b| *b == b'\n').skip(1) {
        let line = String::from_utf8_lossy(line);
        let value = match line.split_once(':') {
            _ if line.starts_with([' ', '\t']) => line.as_ref(),
            Some((name, value)) => {
                is_coding = name.trim().eq_ignore_ascii_case("transfer-encoding");
                value
            }
            None => continue,
        };
        let mut codings = value.split(',').map(str::trim);
        let last = codings.rfind(|coding| !coding.is_empty());
        if let (true, Some(coding)) = (is_coding, last) {
            last_coding = Some(coding.to_owned());
        }
    }
    last_coding.is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes the message in one piece and in small pieces. The payload must be the same.
    #[track_caller]
    fn check(message: &str, payload: &str) {
        for step in [message.len(), 1, 7] {
            let mut machine = HttpPayload::new();
            let (mut raw, mut found) = (Vec::new(), Vec::new());
            for piece in message.as_bytes().chunks(step.max(1)) {
                machine.feed(piece, |part| match part {
                    BodyPart::Raw(bytes) => raw.extend_from_slice(bytes),
                    BodyPart::Payload(bytes) => found.extend_from_slice(bytes),
                });
            }
            assert_eq!(
                String::from_utf8_lossy(&found),
                payload,
                "in pieces of {step}"
            );
            assert_eq!(
                [machine.head(), &raw].concat(),
                message.as_bytes(),
                "nothing lost"
            );
        }
    }

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[test]
    fn a_plain_body_is_the_payload() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello");
        check("HTTP/1.0 200 OK\n\nhello", "hello");
        check("HTTP/1.1 304 Not Modified\r\n\r\n", "");
        check("HTTP/1.1 200 OK\r\nNo-End: 1\r\n", "");
        check("", "");
    }

    #[test]
    fn chunk_framing_is_removed() {
        check(
            &format!("{CHUNKED}5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\n\r\n"),
            "hello world",
        );
        check(
            &format!("{CHUNKED}A\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n"),
            "0123456789",
        );
        check(&format!("{CHUNKED}5\nhello\n0\n\n"), "hello");
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "a",
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\nX: a\r\n b\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "a",
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n1\r\na\r\n",
            "1\r\na\r\n",
        );
    }

    #[test]
    fn broken_framing_ends_the_payload() {
        check(&format!("{CHUNKED}5\r\nhel"), "hel");
        check(&format!("{CHUNKED}5\r\nhello\r\nzz\r\nmore"), "hello");
        check(&format!("{CHUNKED}5\r\nhelloXX\r\n5\r\nworld"), "hello");
        check(
            &format!("{CHUNKED}5\r\nhello\r\nFFFFFFFFFFFFFFFFFF\r\nx"),
            "hello",
        );
    }

    #[test]
    fn framing_that_was_removed_before_is_not_removed_again() {
        check(&format!("{CHUNKED}<html>\nhello"), "<html>\nhello");
    }

    #[test]
    fn interim_answers_belong_to_the_head() {
        check(
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody",
            "body",
        );
        check("HTTP/1.1 101 Switching Protocols\r\n\r\nraw", "raw");
    }

    #[test]
    fn a_message_without_a_status_line_is_payload() {
        check("<html>\r\n\r\nold", "<html>\r\n\r\nold");
    }
}
