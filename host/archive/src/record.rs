//! A record to be written, with the names of the standard.
//!
//! `warcinfo` records are not among them, because the writer creates one for each file.

use std::fmt;
use std::io::{self, Read};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Digest;
use crate::fields::Fields;

/// Content type of the bytes of an HTTP request.
pub const HTTP_REQUEST: &str = "application/http;msgtype=request";
/// Content type of the bytes of an HTTP response.
pub const HTTP_RESPONSE: &str = "application/http;msgtype=response";
/// Content type of `warcinfo` and `metadata` blocks.
pub const WARC_FIELDS: &str = "application/warc-fields";
/// Content type of a `dns:` resource (RFC 4501 names, RFC 4027 type).
pub const TEXT_DNS: &str = "text/dns";

/// A record to be written. The constructors set the fields that a kind always has; the others are set directly.
///
/// Text in any field may be hostile. Control characters are replaced by blanks, or percent-encoded in URIs, so that no value can
/// break a header line.
#[derive(Clone, Debug)]
pub struct Record {
    /// `WARC-Record-ID`.
    pub id: RecordId,
    /// `WARC-Type`, and for a revisit its `WARC-Profile`.
    pub kind: RecordKind,
    /// `WARC-Date`: the time when the capture began, equal in all records of one capture. It is written with microseconds:
    /// readers in use take three digits for microseconds and refuse nine.
    pub date: Timestamp,
    /// `WARC-Target-URI`, percent-encoded as fetched.
    pub target_uri: String,
    /// `Content-Type` of the block; one of the constants of this module or the server's own.
    pub content_type: String,
    /// `WARC-Block-Digest`, if the caller has computed it during recording; the writer does not verify it. `None`: the writer reads
    /// the block an additional time to compute it.
    pub block_digest: Option<Digest>,
    /// `WARC-Payload-Digest`: digest of the HTTP body without transfer coding; on a revisit, of the payload that was not
    /// stored.
    pub payload_digest: Option<Digest>,
    /// A second payload digest, by another algorithm, in a header of its own.
    pub further_payload_digest: Option<Digest>,
    /// `WARC-IP-Address` of the server.
    pub ip: Option<IpAddr>,
    /// `WARC-Concurrent-To`: other records of this capture.
    pub concurrent_to: Vec<RecordId>,
    /// `WARC-Refers-To` and its companions. Written only on `revisit` and `metadata` records; the standard
    /// forbids them on others.
    pub refers_to: RefersTo,
    /// `WARC-Truncated`: the reason why the block is shorter than the server's response.
    pub truncated: Option<Truncation>,
    /// `WARC-Protocol`, one header per entry: `http/1.1`, `tls/1.3`, `dns`.
    pub protocols: Vec<String>,
    /// Further headers, written unchanged after the known ones. An invalid name, or one that the writer itself writes, is refused
    /// ([`crate::WriteError::Header`]).
    pub extra: Vec<(String, String)>,
    /// The content.
    pub block: Block,
}

/// `WARC-Record-ID`: `urn:uuid:` and a UUID, written in angle brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub Uuid);

/// Not a `urn:uuid:` identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a urn:uuid record identifier")]
pub struct RecordIdError(pub String);

/// `WARC-Type` of a record that a caller may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// The bytes sent to the server.
    Request,
    /// The bytes sent by the server, headers and body as on the wire.
    Response,
    /// A response without its payload, which is stored already.
    Revisit(RevisitProfile),
    /// Content obtained without a protocol that is worth recording, such as an answer of the DNS.
    Resource,
    /// Metadata about a capture.
    Metadata,
}

/// `WARC-Profile`: the reason why the payload of a revisit is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RevisitProfile {
    /// The payload has the digest of a stored one. A payload digest is required.
    IdenticalPayloadDigest,
    /// The server answered 304 to a conditional request.
    ServerNotModified,
    /// The document was judged unchanged by the headers of the response, and the body was not fetched. The standard has no such
    /// profile. The URI of the profile is Opilio's, so that the record cannot be mistaken for a 304.
    HeadersUnchanged,
}

/// The record that a revisit or a metadata record refers to. Set all known fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefersTo {
    /// `WARC-Refers-To`.
    pub id: Option<RecordId>,
    /// `WARC-Refers-To-Target-URI`, on revisits only.
    pub target_uri: Option<String>,
    /// `WARC-Refers-To-Date`, on revisits only: the `WARC-Date` of that record, with the same microseconds. Replay looks the
    /// record up by it.
    pub date: Option<Timestamp>,
}

/// `WARC-Truncated`: the reasons in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// A limit of bytes was reached.
    Length,
    /// A limit of time was reached.
    Time,
    /// The connection broke.
    Disconnect,
    /// Another reason.
    Unspecified,
}

/// The content of a record, in memory or on disk.
#[derive(Clone)]
pub enum Block {
    /// Content in memory.
    Bytes(Bytes),
    /// Spooled content, which is read when the record is written (twice without a block digest).
    Spool {
        /// Length in bytes. A reader with another length fails the capture.
        length: u64,
        /// Opens a reader at the first byte.
        open: Arc<OpenSpool>,
    },
}

/// Opens a spooled block at its first byte.
pub type OpenSpool = dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync;

impl Record {
    /// A `request` record with the bytes that were sent.
    pub fn request(
        id: RecordId,
        date: Timestamp,
        target_uri: impl Into<String>,
        block: Block,
    ) -> Record {
        Record::new(
            id,
            RecordKind::Request,
            date,
            target_uri.into(),
            HTTP_REQUEST,
            block,
        )
    }

    /// A `response` record with the bytes that were received. Set its payload digest.
    pub fn response(
        id: RecordId,
        date: Timestamp,
        target_uri: impl Into<String>,
        block: Block,
    ) -> Record {
        Record::new(
            id,
            RecordKind::Response,
            date,
            target_uri.into(),
            HTTP_RESPONSE,
            block,
        )
    }

    /// A `revisit` record. The block is only the header part of the response.
    pub fn revisit(
        id: RecordId,
        profile: RevisitProfile,
        date: Timestamp,
        target_uri: impl Into<String>,
        refers_to: RefersTo,
        block: Block,
    ) -> Record {
        let kind = RecordKind::Revisit(profile);
        Record {
            refers_to,
            ..Record::new(id, kind, date, target_uri.into(), HTTP_RESPONSE, block)
        }
    }

    /// A `resource` record of the given content type, for example [`TEXT_DNS`].
    pub fn resource(
        id: RecordId,
        date: Timestamp,
        target_uri: impl Into<String>,
        content_type: &str,
        block: Block,
    ) -> Record {
        Record::new(
            id,
            RecordKind::Resource,
            date,
            target_uri.into(),
            content_type,
            block,
        )
    }

    /// A `metadata` record about another record of the same capture.
    pub fn metadata(
        id: RecordId,
        date: Timestamp,
        target_uri: impl Into<String>,
        about: RecordId,
        fields: &Fields,
    ) -> Record {
        let block = Block::Bytes(fields.to_bytes());
        let record = Record::new(
            id,
            RecordKind::Metadata,
            date,
            target_uri.into(),
            WARC_FIELDS,
            block,
        );
        Record {
            concurrent_to: vec![about],
            ..record
        }
    }

    fn new(
        id: RecordId,
        kind: RecordKind,
        date: Timestamp,
        target_uri: String,
        content_type: &str,
        block: Block,
    ) -> Record {
        Record {
            id,
            kind,
            date,
            target_uri,
            content_type: content_type.to_owned(),
            block_digest: None,
            payload_digest: None,
            further_payload_digest: None,
            ip: None,
            concurrent_to: Vec::new(),
            refers_to: RefersTo::default(),
            truncated: None,
            protocols: Vec::new(),
            extra: Vec::new(),
            block,
        }
    }
}

impl RecordId {
    /// A fresh identifier (UUID version 4).
    pub fn random() -> RecordId {
        RecordId(Uuid::new_v4())
    }
}

/// Formats the identifier without angle brackets: `urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0`.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.urn())
    }
}

/// Parses an identifier with or without angle brackets.
impl FromStr for RecordId {
    type Err = RecordIdError;

    fn from_str(text: &str) -> Result<RecordId, RecordIdError> {
        let bare = text
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'))
            .unwrap_or(text);
        let fault = || RecordIdError(text.to_owned());
        let uuid = bare.strip_prefix("urn:uuid:").ok_or_else(fault)?;
        Uuid::try_parse(uuid).map(RecordId).map_err(|_| fault())
    }
}

impl RecordKind {
    /// The value of `WARC-Type`.
    pub fn name(self) -> &'static str {
        match self {
            RecordKind::Request => "request",
            RecordKind::Response => "response",
            RecordKind::Revisit(_) => "revisit",
            RecordKind::Resource => "resource",
            RecordKind::Metadata => "metadata",
        }
    }
}

impl RevisitProfile {
    /// The URI of the profile, in the form of WARC/1.1 if the standard has it.
    pub fn uri(self) -> &'static str {
        match self {
            RevisitProfile::IdenticalPayloadDigest => {
                "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
            }
            RevisitProfile::ServerNotModified => {
                "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
            }
            RevisitProfile::HeadersUnchanged => "urn:opilio:revisit:headers-unchanged",
        }
    }
}

impl RevisitProfile {
    /// Returns `true` if the standard requires `WARC-Payload-Digest` with this profile.
    pub fn needs_payload_digest(self) -> bool {
        self == RevisitProfile::IdenticalPayloadDigest
    }
}

impl Truncation {
    /// The value of `WARC-Truncated`.
    pub fn reason(self) -> &'static str {
        match self {
            Truncation::Length => "length",
            Truncation::Time => "time",
            Truncation::Disconnect => "disconnect",
            Truncation::Unspecified => "unspecified",
        }
    }
}

impl Block {
    /// Creates a spooled block from its length and a function that opens it.
    pub fn spool<F>(length: u64, open: F) -> Block
    where
        F: Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    {
        Block::Spool {
            length,
            open: Arc::new(open),
        }
    }

    /// Length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Block::Bytes(bytes) => bytes.len() as u64,
            Block::Spool { length, .. } => *length,
        }
    }
}

impl<T: Into<Bytes>> From<T> for Block {
    fn from(bytes: T) -> Block {
        Block::Bytes(bytes.into())
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Block::Spool { length, .. } => write!(f, "Spool({length} bytes)"),
        }
    }
}
