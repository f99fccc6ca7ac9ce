//! One request and what came of it: the exact bytes, and what they mean.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_uri::Uri;

use crate::auth::Secret;
use crate::coding::{self, Decoded};
use crate::failure::FetchFailure;
use crate::head::ResponseHead;
use crate::spool::Spool;
use crate::tape::Received;
use crate::tls::TlsInfo;

/// What to ask for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is fetched. Of user name and password in it nothing is sent.
    pub uri: Uri,
    /// Where to connect, in order of preference, as [`resolve`](crate::Fetcher::resolve) gave them.
    pub addresses: Vec<IpAddr>,
    /// The page that the link stood on. Left out where that was https and this is not (RFC 9110 §10.1.3).
    pub referer: Option<Uri>,
    /// The ETag of the last archived version, as received.
    pub if_none_match: Option<String>,
    /// The Last-Modified of the last archived version, as received.
    pub if_modified_since: Option<String>,
    /// More headers for this request alone; they replace the profile's of the same name, and without a value take it out.
    pub headers: Vec<(String, String)>,
    /// Where there is one, it is sent by POST.
    pub body: Option<RequestBody>,
    /// User name and password for an FTP server; none: as a guest. HTTP has them in a header.
    pub login: Option<(String, Secret)>,
    /// Counts what comes, for whoever watches the exchange meanwhile.
    pub received: Received,
}

/// What a form submission sends.
#[derive(Clone, Debug)]
pub struct RequestBody {
    /// `Content-Type`.
    pub content_type: String,
    /// The body.
    pub content: Bytes,
}

/// What a mid-fetch filter says of a response head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadVerdict {
    /// Fetch the body.
    Continue,
    /// Close the connection without the body.
    Abort {
        /// Why; recorded in [`Exchange::aborted_by_filter`].
        reason: String,
    },
}

/// One request and its response, or what came of it.
#[derive(Debug)]
pub struct Exchange {
    /// When it began, before connecting.
    pub started: Timestamp,
    /// Until its last byte, or until it was given up.
    pub duration: Duration,
    /// Until the head was complete.
    pub time_to_head: Option<Duration>,
    /// The address connected to; none where there was no connection, or a proxy alone knows it.
    pub peer: Option<IpAddr>,
    /// The proxy that the connection led through, without credentials.
    pub proxy: Option<String>,
    /// The request, exactly as sent; empty where there was no connection.
    pub request_bytes: Bytes,
    /// The final response exactly as received, head and body, transfer coding included. It ends where the message ends.
    /// What came over HTTP/2 is written here, and in `request_bytes`, as HTTP/1.1 would have it; see [`Self::http2`].
    pub wire: Spool,
    /// What came before it: interim (1xx) responses and stray empty lines. Nearly always empty.
    pub interim: Bytes,
    /// The response's head, also where it was cut after its status line.
    pub head: Option<ResponseHead>,
    /// The body with transfer coding removed, content coding still applied: what a WARC payload digest is of.
    pub payload: Spool,
    /// SHA-1 of `payload`.
    pub payload_digest: PayloadDigest,
    /// Why the recording is shorter than the response was.
    pub truncated: Option<Truncation>,
    /// The filter's reason, where it stopped the exchange after the head.
    pub aborted_by_filter: Option<String>,
    /// Why there is no complete response. A response cut by our own limits is not a failure.
    pub failure: Option<FetchFailure>,
    /// The TLS session, for https.
    pub tls: Option<TlsInfo>,
    /// It came over HTTP/2, because the server speaks nothing else.
    pub http2: bool,
    /// Whether the connection had served an exchange before.
    pub reused_connection: bool,
    /// For the crawl log: `lenTrunc`, `timeTrunc`, `headerTrunc`, `midFetchAbort` as the predecessor writes them;
    /// `rateTrunc`, `scratchTrunc` and `stopTrunc` where a body came too slowly, found no room, or was cut; `excessBytes:N` where more came than the message had room for; `noCloseNotify` where TLS ended without it.
    pub annotations: Vec<String>,
}

/// Why a recording is shorter than the response was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The payload passed `body_bytes_max`.
    Length,
    /// `total_timeout`, or silence for `response_timeout`.
    Time,
    /// The connection ended first.
    Disconnect,
    /// The head passed `header_bytes_max` or `headers_max`.
    Headers,
    /// The payload came more slowly than `rate_min`.
    Rate,
    /// The recordings of all exchanges together passed `scratch_bytes_max`, and nobody was about to make room.
    Scratch,
    /// The crawl was stopped.
    Stop,
    /// The chunk framing made no sense from there on.
    Framing,
}

/// SHA-1 of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayloadDigest(pub [u8; 20]);

impl Request {
    /// A plain GET.
    pub fn new(uri: Uri, addresses: Vec<IpAddr>) -> Self {
        Request {
            uri,
            addresses,
            referer: None,
            if_none_match: None,
            if_modified_since: None,
            headers: Vec::new(),
            body: None,
            login: None,
            received: Received::default(),
        }
    }
}

impl Exchange {
    /// The payload with its content codings removed, at most `bytes_max` bytes: what plugins read.
    pub fn content(&self, bytes_max: u64) -> Decoded {
        let codings = self.head.as_ref().map(ResponseHead::content_codings);
        let codings = codings.unwrap_or_default();
        coding::decode(&codings, || self.payload.reader(), bytes_max)
    }

    /// The status for the crawl log: the failure's code, or else the HTTP status.
    pub fn status(&self) -> i32 {
        match (&self.failure, &self.head) {
            (Some(failure), _) => failure.status(),
            (None, Some(head)) => i32::from(head.status),
            (None, None) => 0,
        }
    }

    /// Values for `WARC-Protocol`, such as `http/1.1` and `tls/1.3`; empty where nothing was received.
    pub fn protocols(&self) -> Vec<&'static str> {
        let spoken = self
            .head
            .as_ref()
            .and_then(|head| match head.version.as_str() {
                _ if self.http2 => Some("h2"),
                "HTTP/1.0" => Some("http/1.0"),
                "FTP" => Some("ftp"),
                // The community's list of protocols has no name for it.
                "WHOIS" => None,
                _ => Some("http/1.1"),
            });
        spoken
            .into_iter()
            .chain(self.tls.as_ref().and_then(TlsInfo::protocol))
            .collect()
    }
}

impl Truncation {
    /// The value of `WARC-Truncated` (WARC 1.1 §5.13).
    pub fn warc_reason(self) -> &'static str {
        match self {
            Truncation::Length | Truncation::Headers => "length",
            Truncation::Time | Truncation::Rate => "time",
            Truncation::Disconnect => "disconnect",
            Truncation::Scratch | Truncation::Stop | Truncation::Framing => "unspecified",
        }
    }

    /// The annotation of a limit of ours: the predecessor's, where it has that limit.
    pub fn annotation(self) -> Option<&'static str> {
        match self {
            Truncation::Length => Some("lenTrunc"),
            Truncation::Time => Some("timeTrunc"),
            Truncation::Headers => Some("headerTrunc"),
            Truncation::Rate => Some("rateTrunc"),
            Truncation::Scratch => Some("scratchTrunc"),
            Truncation::Stop => Some("stopTrunc"),
            Truncation::Disconnect | Truncation::Framing => None,
        }
    }
}

impl PayloadDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        PayloadDigest(<sha1::Sha1 as sha1::Digest>::digest(bytes).into())
    }
}

/// As logs and WARC headers write it: `sha1:` and base32.
impl std::fmt::Display for PayloadDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha1:{}", data_encoding::BASE32.encode(&self.0))
    }
}
