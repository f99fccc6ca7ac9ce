//! Misbehaving servers, and the expected results of their crawl. Each case is one server.

use std::io::Write;
use std::time::Duration;

use opilio_stories::{Certificate, ReceivedRequest, Rogue, RogueStep};
use opilio_test_web::Gate;

use Record::{Cut, Nothing, Whole};
use RogueStep::{Close, Drip, Drop, Flood, Hang, Listen, Reset};

/// `fetch.response-timeout` and `fetch.connect-timeout` of the crawl.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// `fetch.total-timeout` of the crawl.
pub(crate) const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Servers that hold their answers back until the good site has been crawled.
pub(crate) const HOSTAGES: usize = 4;

/// Checks the requests that a server received. Returns the error, if there is one.
pub(crate) type RequestCheck = fn(&[ReceivedRequest]) -> Option<String>;

/// A server, and the expected log lines and records.
pub(crate) struct Case {
    pub(crate) rogue: Rogue,
    /// Status of `/`.
    pub(crate) status: i32,
    /// Status of `/next`, which is requested after `/`. The server answers it properly if it still answers.
    pub(crate) next: i32,
    /// Other URIs and their statuses: targets of the server, or absolute URIs.
    pub(crate) others: Vec<(&'static str, i32)>,
    /// Target or URI to which the following expectations apply.
    pub(crate) about: &'static str,
    pub(crate) record: Record,
    /// Beginnings of the expected annotations. Other annotations about truncation are errors.
    pub(crate) notes: Vec<&'static str>,
    /// The time limit that ends the fetch.
    pub(crate) ended_by: Option<Duration>,
    /// Expected text in the metadata record.
    pub(crate) metadata: Option<&'static str>,
    /// Settings of an override for the host.
    pub(crate) settings: Option<&'static str>,
    pub(crate) asked: Option<RequestCheck>,
}

/// The response record.
#[derive(Debug)]
pub(crate) enum Record {
    /// No record.
    Nothing,
    /// A complete record.
    Whole,
    /// A record with this `WARC-Truncated`.
    Cut(&'static str),
}

fn case(rogue: Rogue, status: i32, record: Record) -> Case {
    Case {
        rogue,
        status,
        next: 200,
        others: Vec::new(),
        about: "/",
        record,
        notes: Vec::new(),
        ended_by: None,
        metadata: None,
        settings: None,
        asked: None,
    }
}

impl Case {
    fn note(mut self, beginning: &'static str) -> Case {
        self.notes.push(beginning);
        self
    }

    fn after(mut self, limit: Duration) -> Case {
        self.ended_by = Some(limit);
        self
    }

    fn next(mut self, status: i32) -> Case {
        self.next = status;
        self
    }

    fn other(mut self, uri: &'static str, status: i32) -> Case {
        self.others.push((uri, status));
        self
    }

    fn about(mut self, uri: &'static str) -> Case {
        self.about = uri;
        self
    }

    fn with(mut self, settings: &'static str) -> Case {
        self.settings = Some(settings);
        self
    }

    fn says(mut self, text: &'static str) -> Case {
        self.metadata = Some(text);
        self
    }

    fn checked(mut self, check: fn(&[ReceivedRequest]) -> Option<String>) -> Case {
        self.asked = Some(check);
        self
    }
}

/// Returns a server with these steps at `/`.
fn page(name: &str, steps: impl Into<Vec<RogueStep>>) -> Rogue {
    Rogue::new(name).answers("/", steps)
}

/// Returns a server with these steps at `/robots.txt`.
fn robots(name: &str, steps: impl Into<Vec<RogueStep>>) -> Rogue {
    Rogue::new(name).answers("/robots.txt", steps)
}

fn send(bytes: impl AsRef<[u8]>) -> RogueStep {
    RogueStep::Send(bytes.as_ref().to_vec())
}

fn flood(bytes: impl AsRef<[u8]>) -> RogueStep {
    Flood(bytes.as_ref().repeat(64))
}

/// Sends a response with status 200, these header lines, and a body with its length.
fn whole(lines: &str, body: impl AsRef<[u8]>) -> RogueStep {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n",
        body.len()
    );
    RogueStep::Send([head.as_bytes(), body].concat())
}

fn redirect(location: &str) -> RogueStep {
    send(format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    ))
}

fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(content.as_ref()).unwrap();
    packed.finish().unwrap()
}

/// Returns 256 MiB of zeros, compressed with gzip.
fn bomb() -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..256 {
        packed.write_all(&zeros).unwrap();
    }
    packed.finish().unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf";
const UNTRUSTED: &str = "fetch.tls-trust = 'platform'";
const DRIP: Duration = Duration::from_millis(150);

pub(crate) fn cases(held: &Gate, free: &Gate) -> Vec<Case> {
    let bomb = bomb();
    [
        slow(),
        endless(),
        framing(),
        smuggling(),
        connections(),
        heads(),
        tls(),
        contents(&bomb),
        redirects(),
        robots_and_cookies(&bomb),
        hostages(held, free),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn slow() -> Vec<Case> {
    vec![
        case(page("silent", [Hang]), -4, Nothing).after(RESPONSE_TIMEOUT),
        case(page("one-byte", [send("H"), Hang]), -4, Nothing)
            .note("timeTrunc")
            .after(RESPONSE_TIMEOUT),
        case(page("half-a-head", [send(OK), Hang]), -4, Cut("time"))
            .note("timeTrunc")
            .after(RESPONSE_TIMEOUT),
        case(
            page(
                "slow-head",
                [send(OK), Drip(b"X-Slow: 1\r\n".to_vec(), DRIP)],
            ),
            -4,
            Cut("time"),
        )
        .note("timeTrunc")
        .after(TOTAL_TIMEOUT),
        // The server sends no further byte within the time limits of this crawl.
        case(page("byte-a-minute", [send(LONG), Hang]), -4, Cut("time"))
            .note("timeTrunc")
            .after(RESPONSE_TIMEOUT),
        case(
            page("slow-body", [send(LONG), Drip(b"x".to_vec(), DRIP)]),
            200,
            Cut("time"),
        )
        .note("timeTrunc")
        .after(TOTAL_TIMEOUT),
        case(
            page(
                "slow-chunks",
                [send(CHUNKED), Drip(b"1\r\nx\r\n".to_vec(), DRIP)],
            ),
            200,
            Cut("time"),
        )
        .note("timeTrunc")
        .after(TOTAL_TIMEOUT),
        case(
            page(
                "slow-interim",
                [Drip(b"HTTP/1.1 102 Wait\r\n\r\n".to_vec(), DRIP)],
            ),
            -4,
            Nothing,
        )
        .note("timeTrunc")
        .after(TOTAL_TIMEOUT),
    ]
}

fn endless() -> Vec<Case> {
    vec![
        case(
            page(
                "endless-header",
                [send("HTTP/1.1 200 OK\r\nX: "), flood("x")],
            ),
            200,
            Cut("length"),
        )
        .note("headerTrunc"),
        case(
            page("endless-headers", [send(OK), flood("X: x\r\n")]),
            200,
            Cut("length"),
        )
        .note("headerTrunc"),
        case(
            page("endless-status", [send("HTTP/1.1 200 "), flood("OK")]),
            -3,
            Nothing,
        ),
        case(
            page(
                "endless-chunks",
                [
                    send(CHUNKED),
                    flood("400\r\n".to_owned() + &"x".repeat(1024) + "\r\n"),
                ],
            ),
            200,
            Cut("length"),
        )
        .note("lenTrunc"),
        case(
            page(
                "endless-chunk",
                [send(CHUNKED), send("7fffffffffffffff\r\n"), flood("x")],
            ),
            200,
            Cut("length"),
        )
        .note("lenTrunc"),
        case(
            page(
                "endless-chunk-extension",
                [send(CHUNKED), send("1;"), flood("x")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "endless-chunk-extensions",
                [send(CHUNKED), flood("1;x=y\r\nx\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "endless-trailers",
                [send(CHUNKED), send("0\r\n"), flood("X: x\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "endless-body",
                [send("HTTP/1.1 200 OK\r\n\r\n"), flood("x")],
            ),
            200,
            Cut("length"),
        )
        .note("lenTrunc"),
        case(
            page("endless-interim", [flood("HTTP/1.1 100 Go on\r\n\r\n")]),
            -3,
            Nothing,
        ),
        case(page("endless-nothing", [flood("\r\n")]), -3, Nothing),
    ]
}

fn framing() -> Vec<Case> {
    let length = |lines: &str| [send(format!("HTTP/1.1 200 OK\r\n{lines}\r\nhello"))];
    vec![
        case(
            page("shorter-than-said", [send(LONG), Close]),
            -3,
            Cut("disconnect"),
        ),
        case(
            page(
                "length-twice",
                length("Content-Length: 5\r\nContent-Length: 5\r\n"),
            ),
            200,
            Whole,
        ),
        case(
            page("length-list", length("Content-Length: 5, 5\r\n")),
            200,
            Whole,
        ),
        case(
            page(
                "lengths-differ",
                length("Content-Length: 5\r\nContent-Length: 4\r\n"),
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page("lengths-differ-in-list", length("Content-Length: 5, 4\r\n")),
            -3,
            Cut("unspecified"),
        ),
        case(
            page("length-negative", length("Content-Length: -5\r\n")),
            -3,
            Cut("unspecified"),
        ),
        case(
            page("length-with-plus", length("Content-Length: +5\r\n")),
            -3,
            Cut("unspecified"),
        ),
        case(
            page("length-hexadecimal", length("Content-Length: 0x5\r\n")),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "length-beyond-numbers",
                length("Content-Length: 99999999999999999999\r\n"),
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "length-exabytes",
                [
                    send("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhello"),
                    Close,
                ],
            ),
            -3,
            Cut("disconnect"),
        ),
        case(
            page(
                "chunk-size-no-number",
                [send(CHUNKED), send("five\r\nhello\r\n0\r\n\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "chunk-size-negative",
                [send(CHUNKED), send("-5\r\nhello\r\n0\r\n\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "chunk-size-beyond-numbers",
                [send(CHUNKED), send("fffffffffffffffff\r\nhello\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "chunk-longer-than-said",
                [send(CHUNKED), send("4\r\nhello\r\n0\r\n\r\n")],
            ),
            -3,
            Cut("unspecified"),
        ),
        case(
            page(
                "chunks-without-end",
                [send(CHUNKED), send("5\r\nhello\r\n"), Close],
            ),
            -3,
            Cut("disconnect"),
        ),
        case(
            page(
                "body-where-none-is",
                [send(
                    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
                )],
            ),
            204,
            Whole,
        )
        .note("excessBytes"),
        case(
            page(
                "not-modified-unasked",
                [send(
                    "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
                )],
            ),
            304,
            Whole,
        ),
    ]
}

/// Responses whose length different readers interpret differently. The smuggled response must not be taken for `/next`.
fn smuggling() -> Vec<Case> {
    const POISON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let both = |lines: &str| {
        [send(format!(
            "HTTP/1.1 200 OK\r\n{lines}\r\n5\r\nhello\r\n0\r\n\r\n{POISON}"
        ))]
    };
    vec![
        case(
            page(
                "second-response",
                [send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello{POISON}"
                ))],
            ),
            200,
            Whole,
        )
        .note("excessBytes"),
        case(
            page(
                "length-and-chunks",
                both("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            ),
            200,
            Whole,
        )
        .note("excessBytes"),
        case(
            page(
                "chunks-and-length",
                both("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
            ),
            200,
            Whole,
        )
        .note("excessBytes"),
        case(
            page(
                "chunks-spaced",
                both("Transfer-Encoding : chunked\r\nContent-Length: 3\r\n"),
            ),
            200,
            Whole,
        )
        .note("excessBytes"),
        case(
            page(
                "chunks-folded",
                both("Transfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n"),
            ),
            200,
            Whole,
        )
        .note("excessBytes"),
    ]
}

fn connections() -> Vec<Case> {
    vec![
        case(Rogue::new("gone").once(), -2, Nothing).next(-2),
        case(Rogue::new("reset-at-once").and_then([Reset]), -3, Nothing).next(-3),
        case(
            Rogue::new("closed-at-once").and_then([Close]),
            -404,
            Nothing,
        )
        .next(-404),
        case(page("reset-after-request", [Reset]), -3, Nothing),
        case(page("closed-after-request", [Close]), -404, Nothing),
        case(
            page("reset-in-status", [send("HTTP/1.1 2"), Reset]),
            -3,
            Nothing,
        ),
        case(
            page("reset-in-head", [send("HTTP/1.1 200 OK\r\nX: y"), Reset]),
            -3,
            Cut("disconnect"),
        ),
        case(
            page("closed-in-head", [send("HTTP/1.1 200 OK\r\nX: y"), Close]),
            -3,
            Cut("disconnect"),
        ),
        case(
            page("reset-in-body", [send(LONG), Reset]),
            -3,
            Cut("disconnect"),
        ),
        case(
            page("reset-in-chunk", [send(CHUNKED), send("5\r\nhel"), Reset]),
            -3,
            Cut("disconnect"),
        ),
        case(
            page(
                "reset-without-length",
                [send("HTTP/1.1 200 OK\r\n\r\nhel"), Reset],
            ),
            -3,
            Cut("disconnect"),
        ),
        case(
            page("reset-after-all", [whole("", "hello"), Reset]),
            200,
            Whole,
        ),
        // Promises to keep the connection open, and closes it.
        case(robots("keeps-no-word", [whole("", ""), Close]), 200, Whole),
    ]
}

fn heads() -> Vec<Case> {
    let line = |line: &str| [whole(line, "hello")];
    vec![
        case(page("http-0-9", [send("<html>hello</html>"), Close]), -3, Nothing),
        case(page("http-2-unasked", [send(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64"), Close]), -3, Nothing),
        case(page("http-3-1", [send("HTTP/3.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")]), -3, Cut("unspecified")),
        case(page("icy", [send("ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello")]), -3, Nothing),
        case(page("status-of-two-digits", [send("HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello")]), -3, Nothing),
        case(page("status-999", [send("HTTP/1.1 999 No\r\nContent-Length: 5\r\n\r\nhello")]), 999, Whole),
        case(page("status-000", [send("HTTP/1.1 000 No\r\nContent-Length: 5\r\n\r\nhello")]), -3, Nothing),
        case(page("switches-protocols", [send("HTTP/1.1 101 Up\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nhello"), Close]), 101, Whole)
            .note("excessBytes"),
        case(
            page("interim-first", [
                send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
                whole("", "hello"),
            ]),
            200,
            Whole,
        ),
        // NUL, CR and LF in a header value are invalid (RFC 9110 §5.5).
        case(page("nul-in-header", line("X-Odd: a\0b\r\n")), -3, Cut("unspecified")),
        case(page("controls-in-header", line("X-Odd: \x01\x07\x1b[31m\x7f\r\nContent-Type: text/\x1b[31mplain\r\n")), 200, Whole),
        case(page("nul-in-name", line("X\0Odd: a\r\n")), -3, Cut("unspecified")),
        case(page("cr-in-header", line("X-Odd: a\rSet-Cookie: b=c\r\n")), -3, Cut("unspecified")).checked(|asked| {
            let sent = asked.iter().any(|asked| asked.head.contains("Cookie:"));
            sent.then(|| "a header that is part of another counts".to_owned())
        }),
        case(page("header-without-colon", line("nothing at all\r\n")), 200, Whole),
        case(page("header-without-name", line(": nothing\r\n")), 200, Whole),
        case(page("header-folded", line("X-Odd: a\r\n b\r\n\tc\r\n")), 200, Whole),
        case(page("header-not-ascii", [send(b"HTTP/1.1 200 \xff\xfe\r\nX-\xc3\xa9: \xc3\xa9\r\nContent-Length: 5\r\n\r\nhello")]), 200, Whole),
        case(page("bare-line-feeds", [send("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello")]), 200, Whole),
        case(page("type-of-nonsense", line(&format!("Content-Type: {}\r\n", "/;,=\"".repeat(1000)))), 200, Whole),
    ]
}

fn tls() -> Vec<Case> {
    let good = |name: &str| Rogue::new(name).with_tls(Certificate::Good);
    let after = |name: &str, steps: Vec<RogueStep>| good(name).and_then(steps);
    vec![
        case(good("tls-untrusted-recorded"), 200, Whole).says("tls-certificate: not trusted"),
        case(
            Rogue::new("tls-expired-recorded").with_tls(Certificate::Expired),
            200,
            Whole,
        )
        .says("tls-certificate: not trusted"),
        case(
            Rogue::new("tls-of-another-recorded").with_tls(Certificate::OfAnother),
            200,
            Whole,
        )
        .says("tls-certificate: not trusted"),
        // If the certificate is not trusted, robots.txt cannot be fetched either.
        case(good("tls-untrusted"), -61, Nothing)
            .with(UNTRUSTED)
            .next(-61)
            .other("/robots.txt", -9),
        case(
            Rogue::new("tls-expired").with_tls(Certificate::Expired),
            -61,
            Nothing,
        )
        .with(UNTRUSTED)
        .next(-61)
        .other("/robots.txt", -9),
        case(
            Rogue::new("tls-of-another").with_tls(Certificate::OfAnother),
            -61,
            Nothing,
        )
        .with(UNTRUSTED)
        .next(-61)
        .other("/robots.txt", -9),
        case(
            after(
                "tls-plain-http",
                vec![
                    send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
                    Hang,
                ],
            ),
            -9,
            Nothing,
        )
        .next(-9),
        case(
            after("tls-garbage", vec![send([0xff_u8; 64]), Hang]),
            -9,
            Nothing,
        )
        .next(-9),
        // The alerts are: fatal, handshake_failure; and fatal, protocol_version (RFC 8446 §6).
        case(
            after(
                "tls-no-common-cipher",
                vec![send(b"\x15\x03\x03\0\x02\x02\x28"), Hang],
            ),
            -9,
            Nothing,
        )
        .next(-9),
        case(
            after(
                "tls-too-old",
                vec![send(b"\x15\x03\x01\0\x02\x02\x46"), Hang],
            ),
            -9,
            Nothing,
        )
        .next(-9),
        case(after("tls-silent", vec![Hang]), -4, Nothing)
            .next(-4)
            .after(RESPONSE_TIMEOUT),
        case(after("tls-closed-in-handshake", vec![Close]), -9, Nothing).next(-9),
        case(
            after("tls-reset-in-handshake", vec![Listen, Reset]),
            -9,
            Nothing,
        )
        .next(-9),
        case(good("tls-silent-page").answers("/", [Hang]), -4, Nothing).after(RESPONSE_TIMEOUT),
        case(
            good("tls-torn-in-body").answers("/", [send(LONG), Drop]),
            -3,
            Cut("disconnect"),
        ),
        case(
            good("tls-reset-in-body").answers("/", [send(LONG), Reset]),
            -3,
            Cut("disconnect"),
        ),
        case(
            good("tls-ended-without-notice")
                .answers("/", [send("HTTP/1.1 200 OK\r\n\r\nhello"), Drop]),
            200,
            Whole,
        )
        .note("noCloseNotify"),
    ]
}

fn contents(bomb: &[u8]) -> Vec<Case> {
    const GZIP: &str = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
    const TWICE: &str = "Content-Type: text/html\r\nContent-Encoding: gzip, gzip\r\n";
    let mut torn = gzip((0..9999).map(|n| format!("{n} ")).collect::<String>());
    let mut damaged = torn.clone();
    let middle = torn.len() / 2;
    torn.truncate(middle);
    damaged[middle..middle + 64].fill(0x55);
    let links: String = (0..20_000)
        .map(|n| format!("<a href='http://elsewhere.invalid/{n}'>{n}</a>"))
        .collect();
    let locations: String = (0..50_000)
        .map(|n| format!("<url><loc>http://elsewhere.invalid/{n}</loc></url>"))
        .collect();
    let map = gzip(format!(
        "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{locations}</urlset>"
    ));
    vec![
        case(page("gzip-bomb", [whole(GZIP, bomb)]), 200, Whole).note("decodedLenTrunc"),
        case(
            page("gzip-bomb-twice", [whole(TWICE, gzip(bomb))]),
            200,
            Whole,
        )
        .note("decodedLenTrunc"),
        case(page("gzip-torn", [whole(GZIP, torn)]), 200, Whole).note("damagedContentEncoding"),
        case(page("gzip-damaged", [whole(GZIP, damaged)]), 200, Whole)
            .note("damagedContentEncoding"),
        case(page("gzip-is-none", [whole(GZIP, "<p>plain")]), 200, Whole)
            .note("unsatisfiableContentEncoding:gzip"),
        case(
            page(
                "coded-forty-times",
                [whole(
                    &format!("Content-Encoding: {}gzip\r\n", "gzip, ".repeat(39)),
                    "x",
                )],
            ),
            200,
            Whole,
        )
        .note("unsatisfiableContentEncoding:40"),
        case(
            page(
                "coded-as-nobody-knows",
                [whole("Content-Encoding: \x01\x02, zip\r\n", "x")],
            ),
            200,
            Whole,
        )
        .note("unsatisfiableContentEncoding"),
        case(
            page("link-flood", [whole("Content-Type: text/html\r\n", &links)]),
            200,
            Whole,
        )
        .note("dol:"),
        case(
            page(
                "deep-page",
                [whole(
                    "Content-Type: text/html\r\n",
                    "<div><b><table>".repeat(50_000),
                )],
            ),
            200,
            Whole,
        ),
        case(
            robots(
                "sitemap-bomb",
                [whole(
                    "Content-Type: text/plain\r\n",
                    "Sitemap: /bomb.xml.gz\nSitemap: /map.xml.gz\n",
                )],
            )
            .answers(
                "/bomb.xml.gz",
                [whole("Content-Type: application/gzip\r\n", bomb)],
            )
            .answers(
                "/map.xml.gz",
                [whole("Content-Type: application/gzip\r\n", map)],
            ),
            200,
            Whole,
        )
        .about("/map.xml.gz")
        .other("/bomb.xml.gz", 200)
        .other("/map.xml.gz", 200)
        .note("dol:"),
        case(
            robots(
                "sitemap-of-itself",
                [whole("Content-Type: text/plain\r\n", "Sitemap: /map.xml\n")],
            )
            .answers(
                "/map.xml",
                [whole(
                    "Content-Type: application/xml\r\n",
                    "<sitemapindex><sitemap><loc>/map.xml</loc></sitemap></sitemapindex>",
                )],
            ),
            200,
            Whole,
        )
        .about("/map.xml")
        .other("/map.xml", 200),
    ]
}

fn redirects() -> Vec<Case> {
    vec![
        case(
            ["/", "/1", "/2", "/3", "/4", "/5", "/6"]
                .windows(2)
                .fold(Rogue::new("redirect-chain"), |rogue, pair| {
                    rogue.answers(pair[0], [redirect(pair[1])])
                }),
            302,
            Whole,
        )
        .other("/5", 302)
        .about("/5")
        .note("redirectsTrunc:5"),
        case(
            page("redirect-loop", [redirect("/there")]).answers("/there", [redirect("/")]),
            302,
            Whole,
        )
        .other("/there", 302),
        case(page("redirect-to-itself", [redirect("/")]), 302, Whole),
        case(
            page("redirect-to-private", [redirect("http://10.255.0.1/")]),
            302,
            Whole,
        )
        .other("http://10.255.0.1/", -5001),
        case(
            page(
                "redirect-to-metadata",
                [redirect("http://169.254.169.254/latest/")],
            ),
            302,
            Whole,
        )
        .other("http://169.254.169.254/latest/", -5001),
        case(
            page(
                "redirect-to-mapped",
                [redirect("http://[::ffff:169.254.169.254]/")],
            ),
            302,
            Whole,
        ),
        case(
            page("redirect-to-file", [redirect("file:///etc/passwd")]),
            302,
            Whole,
        ),
        case(
            page("redirect-to-script", [redirect("javascript:alert(1)")]),
            302,
            Whole,
        ),
        case(
            page(
                "redirect-to-nowhere",
                [send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")],
            ),
            302,
            Whole,
        ),
        case(
            page(
                "redirect-to-much",
                [redirect(&format!("/{}", "a/".repeat(6000)))],
            ),
            302,
            Whole,
        ),
        case(
            page("redirect-of-controls", [redirect("/\x01\x1b[31m/\x7f")]),
            302,
            Whole,
        ),
    ]
}

fn robots_and_cookies(bomb: &[u8]) -> Vec<Case> {
    const RULES: &str = "User-agent: *\nDisallow: /next\n";
    const LOOP: [&str; 8] = [
        "/robots.txt",
        "/r1",
        "/r2",
        "/r3",
        "/r4",
        "/r5",
        "/r6",
        "/r7",
    ];
    let cookies: String = (0..90)
        .map(|n| format!("Set-Cookie: c{n}={}\r\n", "x".repeat(60)))
        .collect();
    vec![
        case(
            robots("robots-of-100-mb", [
                send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 104857600\r\n\r\n"),
                send(RULES),
                Flood(b"# nothing\n".repeat(1024)),
            ]),
            200,
            Cut("length"),
        )
        .about("/robots.txt")
        .other("/robots.txt", 200)
        .note("lenTrunc")
        .next(-9998),
        case(robots("robots-to-itself", [redirect("/robots.txt")]), 200, Whole),
        case(
            LOOP.windows(2).fold(Rogue::new("robots-chain"), |rogue, pair| {
                rogue.answers(pair[0], [redirect(pair[1])])
            }),
            200,
            Whole,
        ),
        case(robots("robots-to-private", [redirect("http://10.255.0.1/robots.txt")]), -5001, Nothing)
            .next(-5001),
        case(robots("robots-silent", [Hang]), -61, Nothing).other("/robots.txt", -4).next(-61),
        case(robots("robots-reset", [Reset]), -61, Nothing).other("/robots.txt", -3).next(-61),
        case(
            robots("robots-500", [send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")]),
            -61,
            Nothing,
        )
        .next(-61),
        case(robots("robots-of-rubbish", [whole("", "\0\x01\x02\x7f\0\n\0:\0\n: /\n")]), 200, Whole),
        case(
            robots("robots-bomb", [whole("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", bomb)]),
            200,
            Whole,
        ),
        case(robots("robots-of-one-line", [whole("", "x".repeat(900_000))]), 200, Whole),
        case(robots("robots-slower-than-a-year", [whole("", "User-agent: *\nCrawl-delay: 1e308\n")]), 200, Whole)
            .with("politeness.crawl-delay-max = '10ms'"),
        case(page("cookie-flood", [whole(&cookies, "hello")]), 200, Whole).checked(|asked| {
            let next = asked.iter().find(|asked| asked.target == "/next")?;
            let sent = next.head.matches("=x").count();
            (sent != 50).then(|| format!("{sent} cookies are sent back"))
        }),
        case(
            page("cookie-too-long", [whole(&format!("Set-Cookie: a={}\r\n", "x".repeat(9000)), "hello")]),
            200,
            Whole,
        )
        .checked(|asked| {
            let sent = asked.iter().any(|asked| asked.head.contains("Cookie:"));
            sent.then(|| "a cookie of 9000 bytes is sent back".to_owned())
        }),
        case(
            page("later-than-ever", [send(
                "HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n",
            )]),
            503,
            Whole,
        ),
    ]
}

/// Servers that hold their answers back until the good site is crawled. The good site answers once all of them have a request in
/// flight. The case shows that hanging servers do not delay other sites.
fn hostages(held: &Gate, free: &Gate) -> Vec<Case> {
    const PATIENT: &str = "fetch = { response-timeout = '250s', total-timeout = '250s' }";
    let wait = || [RogueStep::Pass(held.clone()), RogueStep::Pass(free.clone())];
    let hostage = |name: &str, before: &str, after: &str| {
        let mut steps = vec![send(before)];
        steps.extend(wait());
        steps.push(send(after));
        case(page(name, steps), 200, Whole).with(PATIENT)
    };
    let all = vec![
        hostage(
            "hostage-silent",
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ),
        hostage(
            "hostage-in-head",
            "HTTP/1.1 200 OK\r\nCont",
            "ent-Length: 5\r\n\r\nhello",
        ),
        hostage(
            "hostage-in-body",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
            "llo",
        ),
        hostage("hostage-in-chunk", CHUNKED, "5\r\nhello\r\n0\r\n\r\n"),
    ];
    assert_eq!(all.len(), HOSTAGES);
    all
}
