//! The head of a response, parsed from the recorded bytes. Header case, order and repetition stay as the server sent them.

/// Status line and headers of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// As the server wrote it, such as `HTTP/1.1`.
    pub version: String,
    /// 100 to 999.
    pub status: u16,
    /// Reason phrase; often empty.
    pub reason: String,
    /// All headers in the order received: the name in the server's case, the value without surrounding blanks, folded lines
    /// joined by one blank. Bytes outside ASCII are read as ISO-8859-1.
    pub headers: Vec<(String, String)>,
    /// Bytes of the head in the recording, the empty line included.
    pub length: u64,
}

impl ResponseHead {
    /// Finds the head of the final response in a recording, which may begin with interim ones. `None` if no head is found.
    pub fn of_recording(recorded: &[u8]) -> Option<Self> {
        find(recorded).head
    }

    /// Returns `true` if `response`, which begins with this head, has the empty line at its end.
    pub(crate) fn is_whole_in(&self, response: &[u8]) -> bool {
        response.get(..self.length as usize).is_some_and(ends_head)
    }

    /// The first value of a header; the name is compared without case.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a header, in order; the name is compared without case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = move |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, v)| v.as_str())
    }

    /// Media type, lower-case, without parameters; `None` if it is missing or invalid.
    pub fn media_type(&self) -> Option<String> {
        let value = self.first("content-type")?;
        let essence = value.split(';').next().unwrap_or_default().trim();
        let well_formed = essence.split_once('/').is_some_and(|(kind, subtype)| {
            !kind.is_empty() && !subtype.is_empty() && !essence.contains(char::is_whitespace)
        });
        well_formed.then(|| essence.to_ascii_lowercase())
    }

    /// `Content-Encoding` members in the order applied, lower-case, `identity` left out.
    pub fn content_codings(&self) -> Vec<String> {
        self.all("content-encoding")
            .flat_map(|value| value.split(','))
            .map(|coding| coding.trim().to_ascii_lowercase())
            .filter(|coding| !coding.is_empty() && coding != "identity")
            .collect()
    }
}

/// The position of the final response's head in the received bytes.
pub(crate) struct Heads {
    /// Bytes before the final response: interim (1xx) responses and stray empty lines.
    pub interim_length: usize,
    /// The final response's head; `None` if its status line is incomplete.
    pub head: Option<ResponseHead>,
}

/// Finds the final response's head in `received`, which begins with it or with interim ones. A final head that is cut
/// (timeout, limit, lost connection) gives the content of its complete lines.
pub(crate) fn find(received: &[u8]) -> Heads {
    let mut start = 0;
    loop {
        let blank = received[start..]
            .iter()
            .take_while(|b| matches!(b, b'\r' | b'\n'));
        start += blank.count();
        let Some(head) = parse(&received[start..]) else {
            return Heads {
                interim_length: start,
                head: None,
            };
        };
        // 101 ends HTTP: it is final. After another 1xx a further response follows.
        let interim = (100..200).contains(&head.status) && head.status != 101;
        if !interim {
            return Heads {
                interim_length: start,
                head: Some(head),
            };
        }
        let end = start + head.length as usize;
        if !ends_head(&received[start..end]) {
            return Heads {
                interim_length: start,
                head: None,
            };
        }
        start = end;
    }
}

fn ends_head(head: &[u8]) -> bool {
    head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n")
}

/// Parses one head from the start of `bytes`. Its length ends after the empty line, or after the last complete line.
fn parse(bytes: &[u8]) -> Option<ResponseHead> {
    let mut lines = Lines { bytes, at: 0 };
    let mut head = parse_status_line(lines.next()?)?;
    while let Some(line) = lines.next() {
        head.length = lines.at as u64;
        match line {
            [] => return Some(head),
            [b' ' | b'\t', folded @ ..] => {
                if let Some((_, value)) = head.headers.last_mut() {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(&latin1(folded));
                }
            }
            line => {
                // A line without a colon is not a header; it stays in the recording.
                if let Some(colon) = memchr::memchr(b':', line) {
                    let (name, value) = (&line[..colon], &line[colon + 1..]);
                    head.headers.push((latin1(name), latin1(value)));
                }
            }
        }
    }
    head.length = lines.at as u64;
    Some(head)
}

fn parse_status_line(line: &[u8]) -> Option<ResponseHead> {
    let text = latin1(line);
    let mut words = text.splitn(3, ' ');
    let version = words.next().filter(|v| v.starts_with("HTTP/"))?;
    let status = words.next().filter(|s| s.len() == 3)?;
    Some(ResponseHead {
        version: version.to_owned(),
        status: status.parse().ok().filter(|s| *s >= 100)?,
        reason: words.next().unwrap_or_default().trim().to_owned(),
        headers: Vec::new(),
        length: 0,
    })
}

/// Lines that end in LF or CRLF. A last line without a line end is left out.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        self.at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

fn latin1(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|b| char::from(*b)).collect();
    text.trim_matches([' ', '\t']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, headers, and the bytes after the head.
    type Expected<'a> = (u16, &'a [(&'a str, &'a str)], &'a str);

    #[track_caller]
    fn check(received: &str, interim: usize, expected: Option<Expected<'_>>) {
        let heads = find(received.as_bytes());
        assert_eq!(heads.interim_length, interim);
        let found = heads.head.as_ref().map(|head| {
            let headers: Vec<_> = head
                .headers
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .collect();
            let body = &received[interim + head.length as usize..];
            (head.status, headers, body)
        });
        let expected = expected.map(|(status, headers, body)| (status, headers.to_vec(), body));
        assert_eq!(found, expected, "{received:?}");
    }

    #[test]
    fn case_order_and_folding_are_kept() {
        check(
            "HTTP/1.1 200 OK\r\nsET-cookie: a\r\nX:  one\r\n\t two\r\nSet-Cookie: b\r\n\r\nbody",
            0,
            Some((
                200,
                &[("sET-cookie", "a"), ("X", "one two"), ("Set-Cookie", "b")],
                "body",
            )),
        );
        check(
            "HTTP/1.0 404\nA : 1\nno header\n\nx",
            0,
            Some((404, &[("A", "1")], "x")),
        );
    }

    #[test]
    fn interim_responses_and_stray_lines_are_skipped() {
        check(
            "\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            58,
            Some((204, &[], "")),
        );
        check("HTTP/1.1 101 Up\r\n\r\nraw", 0, Some((101, &[], "raw")));
    }

    #[test]
    fn a_cut_head_has_its_whole_lines() {
        check(
            "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2",
            0,
            Some((200, &[("A", "1")], "B: 2")),
        );
        check("HTTP/1.1 200 O", 0, None);
        check("", 0, None);
        check("HTTP/1.1 100 C\r\nA: 1\r\n", 0, None);
    }

    #[test]
    fn other_protocols_have_no_head() {
        for garbage in [
            "<html>\n",
            "HTTP/1.1\n\n",
            "HTTP/1.1 20 x\n\n",
            "ICY 200 OK\n\n",
            "HTTP/1.1 099 x\n\n",
        ] {
            check(garbage, 0, None);
        }
    }
}
