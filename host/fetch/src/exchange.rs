//! One request and its result: the exact bytes, and their meaning.

use std::net::IpAddr;
use std::time::Duration;

use ::http::Method;
use bytes::Bytes;
use jiff::Timestamp;
use opilio_uri::Uri;

use crate::auth::Secret;
use crate::coding::{self, DecodedContent};
use crate::failure::FetchFailure;
use crate::head::ResponseHead;
use crate::payload_tap::PayloadTap;
use crate::recording_stream::ExchangeProgress;
use crate::spool::Spool;
use crate::tls::TlsInfo;

/// A request for one URI.
#[derive(Clone, Debug)]
pub struct Request {
    /// The URI to fetch. User name and password in it are not sent.
    pub uri: Uri,
    /// Addresses to connect to, in order of preference, as [`resolve`](crate::Fetcher::resolve) returned them.
    pub addresses: Vec<IpAddr>,
    /// The page with the link. Left out if it was https and this URI is not (RFC 9110 §10.1.3).
    pub referer: Option<Uri>,
    /// The ETag of the last archived version, as received.
    pub if_none_match: Option<String>,
    /// The Last-Modified of the last archived version, as received.
    pub if_modified_since: Option<String>,
    /// Further headers for this request. They replace the profile's headers of the same name; an empty value removes them.
    pub headers: Vec<(String, String)>,
    /// The method; `None`: POST with a body, GET without.
    pub method: Option<Method>,
    /// A body.
    pub body: Option<RequestBody>,
    /// The receiver of the payload while it comes, for HTTP.
    pub tap: Option<PayloadTap>,
    /// User name and password for an FTP server; `None`: as a guest. HTTP has them in a header.
    pub login: Option<(String, Secret)>,
    /// Counter of received bytes, for observers of the running exchange.
    pub received: ExchangeProgress,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct RequestBody {
    /// `Content-Type`; empty: none.
    pub content_type: String,
    /// The body.
    pub content: Bytes,
}

/// The answer of mid-fetch filters to a response head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadVerdict {
    /// Fetch the body.
    Continue,
    /// Close the connection without the body.
    Abort {
        /// The reason; recorded in [`Exchange::aborted_by_filter`].
        reason: String,
    },
}

/// One request with its response or failure.
#[derive(Debug)]
pub struct Exchange {
    /// Time of the start, before connecting.
    pub started: Timestamp,
    /// Time until the last byte, or until the exchange was given up.
    pub duration: Duration,
    /// Time until the head was complete.
    pub time_to_head: Option<Duration>,
    /// The address of the connection; `None` without a connection, or if only a proxy knows the address.
    pub peer: Option<IpAddr>,
    /// The proxy that the connection led through, without credentials.
    pub proxy: Option<String>,
    /// The request, exactly as sent; empty without a connection.
    pub request_bytes: Bytes,
    /// The final response exactly as received, head and body, transfer coding included. It ends at the end of the message.
    /// HTTP/2 messages are written here, and in `request_bytes`, in the form of HTTP/1.1; see [`Self::http2`].
    pub wire: Spool,
    /// Bytes before the final response: interim (1xx) responses and stray empty lines. Nearly always empty.
    pub interim: Bytes,
    /// The response's head. A head that was cut after its status line is included.
    pub head: Option<ResponseHead>,
    /// The body without transfer coding and with content coding: the input of a WARC payload digest.
    pub payload: Spool,
    /// SHA-1 of `payload`.
    pub payload_digest: PayloadDigest,
    /// The reason why the recording is shorter than the response.
    pub truncated: Option<TruncationCause>,
    /// The filter's reason, if it stopped the exchange after the head.
    pub aborted_by_filter: Option<String>,
    /// The reason why the response is incomplete. A response cut by our own limits is not a failure.
    pub failure: Option<FetchFailure>,
    /// The TLS session, for https.
    pub tls: Option<TlsInfo>,
    /// `true` if it came over HTTP/2, because the server speaks nothing else.
    pub http2: bool,
    /// `true` if the connection had served an exchange before.
    pub reused_connection: bool,
    /// Annotations for the crawl log. Heritrix has `lenTrunc`, `timeTrunc`, `headerTrunc` and `midFetchAbort`. Others are:
    /// `rateTrunc`: the body came too slowly. `scratchTrunc`: the scratch space was full. `stopTrunc`: the exchange was cut.
    /// `unwantedTrunc`: the receiver of the payload went away.
    /// `excessBytes:N`: more bytes came than the message had room for. `noCloseNotify`: TLS ended without this alert.
    pub annotations: Vec<String>,
}

/// The reason why a recording is shorter than the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncationCause {
    /// The payload passed `body_bytes_max`.
    Length,
    /// `total_timeout` passed, or silence for `response_timeout`.
    Time,
    /// The connection ended first.
    Disconnect,
    /// The head passed `header_bytes_max` or `headers_max`.
    Headers,
    /// The payload came more slowly than `rate_min`.
    Rate,
    /// The recordings of all exchanges together passed `scratch_bytes_max`, and no other exchange was about to free space.
    Scratch,
    /// The crawl was stopped.
    Stop,
    /// The chunk framing was invalid from there on.
    Framing,
    /// The receiver of [`Request::tap`] went away.
    Unwanted,
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
            method: None,
            body: None,
            tap: None,
            login: None,
            received: ExchangeProgress::default(),
        }
    }
}

impl Exchange {
    /// An exchange without a connection. The caller sets its times.
    pub(crate) fn without_connection(failure: FetchFailure) -> Exchange {
        Exchange {
            started: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            time_to_head: None,
            peer: None,
            proxy: None,
            request_bytes: Bytes::new(),
            wire: Spool::default(),
            interim: Bytes::new(),
            head: None,
            payload: Spool::default(),
            payload_digest: PayloadDigest::of(b""),
            truncated: None,
            aborted_by_filter: None,
            failure: Some(failure),
            tls: None,
            http2: false,
            reused_connection: false,
            annotations: Vec::new(),
        }
    }

    /// The payload without its content codings, at most `bytes_max` bytes. Plugins read this.
    pub fn content(&self, bytes_max: u64) -> DecodedContent {
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
        let application_protocol =
            self.head
                .as_ref()
                .and_then(|head| match head.version.as_str() {
                    _ if self.http2 => Some("h2"),
                    "HTTP/1.0" => Some("http/1.0"),
                    "FTP" => Some("ftp"),
                    // The community's list of protocols has no name for WHOIS.
                    "WHOIS" => None,
                    _ => Some("http/1.1"),
                });
        application_protocol
            .into_iter()
            .chain(self.tls.as_ref().and_then(TlsInfo::protocol))
            .collect()
    }
}

impl TruncationCause {
    /// The value of `WARC-Truncated` (WARC 1.1 §5.13).
    pub fn warc_reason(self) -> &'static str {
        match self {
            TruncationCause::Length | TruncationCause::Headers => "length",
            TruncationCause::Time | TruncationCause::Rate => "time",
            TruncationCause::Disconnect => "disconnect",
            TruncationCause::Scratch
            | TruncationCause::Stop
            | TruncationCause::Framing
            | TruncationCause::Unwanted => "unspecified",
        }
    }

    /// The annotation for a limit of our own: Heritrix's, if it has that limit.
    pub fn annotation(self) -> Option<&'static str> {
        match self {
            TruncationCause::Length => Some("lenTrunc"),
            TruncationCause::Time => Some("timeTrunc"),
            TruncationCause::Headers => Some("headerTrunc"),
            TruncationCause::Rate => Some("rateTrunc"),
            TruncationCause::Scratch => Some("scratchTrunc"),
            TruncationCause::Stop => Some("stopTrunc"),
            TruncationCause::Unwanted => Some("unwantedTrunc"),
            TruncationCause::Disconnect | TruncationCause::Framing => None,
        }
    }
}

impl PayloadDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        PayloadDigest(<sha1::Sha1 as sha1::Digest>::digest(bytes).into())
    }
}

/// Formats the digest as in logs and WARC headers: `sha1:` and base32.
impl std::fmt::Display for PayloadDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha1:{}", data_encoding::BASE32.encode(&self.0))
    }
}
