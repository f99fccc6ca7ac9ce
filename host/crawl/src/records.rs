//! WARC records of a capture: the bytes of the exchange, and metadata about it.

use std::io::Read;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::{
    Algorithm, BODY_UNINDEXED, Block, Digest, Fields, Hasher, Record, RecordId, RefersTo,
    RevisitProfile, StoredPayload, TEXT_DNS, Truncation,
};
use opilio_fetch::{Exchange, Resolution, ResolutionSource, ResponseHead, Spool, TruncationCause};
use opilio_frontier::WarcLocation;
use opilio_profile::ArchiveDigest;
use opilio_uri::Uri;

use crate::duplicates::PayloadDigests;
use opilio_job::crawl_log::annotations_text;
use opilio_visit::extraction::Outlink;
use opilio_visit::{CaptureForm, EarlierCapture};

/// Heritrix's media type for the control conversation of an FTP session.
const FTP_CONVERSATION: &str = "text/x-ftp-control-conversation";

/// Data for the metadata record, and the digests of the payload.
#[derive(Debug, Default)]
pub(crate) struct RecordContext<'a> {
    /// Digests of the payload that the profile selects; `None` for SHA-1 alone.
    pub payload: Option<PayloadDigests>,
    pub via: Option<&'a str>,
    pub hop_path: &'a str,
    pub source: Option<&'a str>,
    pub charset: Option<String>,
    pub annotations: &'a [String],
    /// Fields about decisions on the capture, with the plugins that decided, in order.
    pub decisions: Vec<(&'static str, String)>,
    pub notes: Vec<(String, String)>,
    pub links: &'a [Outlink],
    /// `true` if the body of the request must not be in an index, because it contains a password.
    pub is_body_secret: bool,
}

/// Returns the records of an exchange, the response or revisit record first; empty if nothing is archived or there was no response.
pub(crate) fn of_exchange(
    uri: &Uri,
    exchange: &Exchange,
    keep: &CaptureForm,
    about: &RecordContext<'_>,
) -> Vec<Record> {
    let Some(head) = &exchange.head else {
        return Vec::new();
    };
    let (date, target) = (date_of(exchange), uri.as_str());
    let id = RecordId::random();
    let payload_digest = about
        .payload
        .map_or_else(|| payload_digest(exchange), |payload| payload.main);
    let further_payload_digest = about.payload.and_then(|payload| payload.further);
    let main = match keep {
        CaptureForm::Nothing => return Vec::new(),
        CaptureForm::Note(previous) => return vec![note(uri, exchange, head, previous, about)],
        CaptureForm::Response if !uri.is_http() => Record {
            payload_digest: Some(payload_digest),
            further_payload_digest,
            truncated: exchange.truncated.map(truncation),
            ..resource(id, uri, exchange, head)
        },
        // A revisit record contains HTTP headers, which other schemes do not have.
        CaptureForm::Identical(previous)
        | CaptureForm::Duplicate(previous)
        | CaptureForm::NotModified(previous)
        | CaptureForm::HeadersUnchanged(previous)
            if !uri.is_http() =>
        {
            return vec![note(uri, exchange, head, previous, about)];
        }
        CaptureForm::Response => Record {
            payload_digest: Some(payload_digest),
            further_payload_digest,
            truncated: exchange.truncated.map(truncation),
            ..Record::response(id, date, target, block(&exchange.wire))
        },
        CaptureForm::Identical(previous) | CaptureForm::Duplicate(previous) => Record {
            payload_digest: Some(payload_digest),
            further_payload_digest,
            ..revisit(
                id,
                RevisitProfile::IdenticalPayloadDigest,
                exchange,
                target,
                previous,
                head.length,
            )
        },
        CaptureForm::NotModified(previous) | CaptureForm::HeadersUnchanged(previous) => {
            let profile = match keep {
                CaptureForm::HeadersUnchanged(_) => RevisitProfile::HeadersUnchanged,
                _ => RevisitProfile::ServerNotModified,
            };
            revisit(id, profile, exchange, target, previous, head.length)
        }
    };
    let main = Record {
        ip: exchange.peer,
        protocols: protocols(exchange),
        extra: cipher_suite(exchange),
        ..main
    };
    let request = match uri.scheme() {
        "http" | "https" => Some(Record::request(
            RecordId::random(),
            date,
            target,
            exchange.request_bytes.clone().into(),
        )),
        // The URI represents the whole request, so there is no request record.
        "whois" => None,
        _ => Some(Record {
            content_type: FTP_CONVERSATION.to_owned(),
            block: exchange.request_bytes.clone().into(),
            ..Record::metadata(RecordId::random(), date, target, id, &Fields::new())
        }),
    };
    let request = request.map(|request| Record {
        ip: exchange.peer,
        protocols: protocols(exchange),
        extra: cipher_suite(exchange),
        concurrent_to: vec![id],
        ..request
    });
    let request = request.map(|mut request| {
        let secret = (BODY_UNINDEXED.to_owned(), "login".to_owned());
        request.extra.extend(about.is_body_secret.then_some(secret));
        request
    });
    let mut block_fields = fields(exchange, about);
    if !uri.is_http() {
        push_head(&mut block_fields, uri, head);
    }
    let metadata = Record::metadata(RecordId::random(), date, target, id, &block_fields);
    let records = std::iter::once(main).chain(request);
    records.chain(std::iter::once(metadata)).collect()
}

/// Makes the record of an FTP or WHOIS response: content without headers.
fn resource(id: RecordId, uri: &Uri, exchange: &Exchange, head: &ResponseHead) -> Record {
    let media_type = head.media_type();
    let media_type = media_type.as_deref().unwrap_or("application/octet-stream");
    let content = block(&exchange.wire);
    Record::resource(id, date_of(exchange), uri.as_str(), media_type, content)
}

/// Adds status and headers of a response without a response record.
fn push_head(fields: &mut Fields, uri: &Uri, head: &ResponseHead) {
    let protocol = match uri.scheme() {
        "http" | "https" => "http",
        scheme => scheme,
    };
    fields.push(&format!("{protocol}-status"), head.status.to_string());
    for (name, value) in &head.headers {
        fields.push(&format!("{protocol}-header"), format!("{name}: {value}"));
    }
}

/// Makes a metadata record without other records, which refers to the version that is still valid.
fn note(
    uri: &Uri,
    exchange: &Exchange,
    head: &ResponseHead,
    previous: &EarlierCapture,
    about: &RecordContext<'_>,
) -> Record {
    let id = RecordId::random();
    let mut fields = fields(exchange, about);
    push_head(&mut fields, uri, head);
    let refers_to = RefersTo {
        id: previous.at.record_id.parse().ok(),
        ..RefersTo::default()
    };
    let record = Record::metadata(id, date_of(exchange), uri.as_str(), id, &fields);
    Record {
        concurrent_to: Vec::new(),
        ip: exchange.peer,
        refers_to,
        ..record
    }
}

/// Makes the record of a look-up: a `dns:` resource, as other tools write it.
pub(crate) fn of_resolution(uri: &Uri, resolution: &Resolution, at: Timestamp) -> Record {
    let block = Bytes::copy_from_slice(resolution.text.as_bytes());
    let is_from_dns = resolution.source == ResolutionSource::Dns;
    Record {
        // If the profile, /etc/hosts or the URI itself resolves the name, there is no DNS server.
        ip: resolution.server.filter(|_| is_from_dns),
        protocols: if is_from_dns {
            vec!["dns".to_owned()]
        } else {
            Vec::new()
        },
        ..Record::resource(RecordId::random(), at, uri.as_str(), TEXT_DNS, block.into())
    }
}

/// Header with the visited URI in records of requests in passing: an answered challenge, a redirect of robots.txt. `crawl.log` has
/// a line for the visited URI, but no lines for these exchanges.
pub(crate) const IN_PASSING: &str = "Opilio-In-Passing-For";

/// Marks the records of requests in passing during the visit of a URI.
pub(crate) fn in_passing(mut records: Vec<Record>, visited: &Uri) -> Vec<Record> {
    for record in &mut records {
        let header = (IN_PASSING.to_owned(), visited.as_str().to_owned());
        record.extra.push(header);
    }
    records
}

/// Makes the content of a `urn:pageinfo:` record: the requests of a rendered page, as Browsertrix lists them. The URIs of requests
/// other than GET contain the method, as in indexes.
pub(crate) fn page_info(
    uri: &str,
    date: Timestamp,
    page_id: &str,
    report: &opilio_browser::PageReport,
    behaviors: &[crate::behavior_steps::BehaviorRun],
) -> String {
    let mut urls = serde_json::Map::new();
    for resource in &report.resources {
        let mut entry = serde_json::json!({
            "status": resource.status.unwrap_or(0),
            "type": resource_type(resource),
        });
        if let Some(media_type) = &resource.media_type {
            entry["mime"] = media_type.as_str().into();
        }
        if let opilio_browser::ResourceResult::Rejected(reason) = &resource.result {
            entry["error"] = reason.as_str().into();
        }
        let key = match resource.method.as_str() {
            "GET" => resource.uri.clone(),
            method => {
                let sign = if resource.uri.contains('?') { '&' } else { '?' };
                format!("{}{sign}__wb_method={method}", resource.uri)
            }
        };
        urls.entry(key).or_insert(entry);
    }
    let mut info = serde_json::json!({
        "pageid": page_id,
        "url": uri,
        "ts": format!("{:.3}", to_millisecond(date)),
        "urls": urls,
    });
    if !behaviors.is_empty() {
        info["behaviors"] = serde_json::json!(behaviors);
    }
    info.to_string()
}

/// Returns `true` if this is the URI of a WebSocket.
pub(crate) fn is_web_socket(uri: &str) -> bool {
    uri.starts_with("ws:") || uri.starts_with("wss:")
}

/// Returns Chromium's name for the type of a resource, from the name in `Sec-Fetch-Dest`.
fn resource_type(resource: &opilio_browser::PageResource) -> &'static str {
    match resource.destination.as_deref() {
        _ if is_web_socket(&resource.uri) => "WebSocket",
        Some("document" | "iframe" | "frame") => "Document",
        Some("style") => "Stylesheet",
        Some("image") => "Image",
        Some("script" | "worker" | "sharedworker" | "serviceworker") => "Script",
        Some("font") => "Font",
        Some("audio" | "video" | "track") => "Media",
        Some("manifest") => "Manifest",
        Some("empty") => "Fetch",
        _ => "Other",
    }
}

/// Returns the `WARC-Date` of a capture, with milliseconds. The frontier keeps the same date, so that the `WARC-Refers-To-Date` of
/// a later revisit record is identical.
pub(crate) fn date_of(exchange: &Exchange) -> Timestamp {
    to_millisecond(exchange.started)
}

/// Truncates a time to the millisecond.
pub(crate) fn to_millisecond(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// Converts the location of a stored payload to the reference of a revisit record.
pub(crate) fn previous_of(stored: StoredPayload) -> EarlierCapture {
    EarlierCapture {
        uri: stored.uri,
        at: WarcLocation {
            file: stored.file,
            offset: stored.offset,
            // An index of an earlier archive has no record ids, so the field is not written.
            record_id: stored.record_id.unwrap_or_default(),
            date: stored.date,
        },
    }
}

/// Computes the digests of a payload that the profile selects. It reads the payload once more for SHA-256, so it must not run on a
/// thread that serves sockets.
pub(crate) fn payload_digests(
    exchange: &Exchange,
    wanted: ArchiveDigest,
) -> std::io::Result<PayloadDigests> {
    PayloadDigests::new(wanted, payload_digest(exchange), || {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let mut source = exchange.payload.reader();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok(hasher.finish()),
                got => hasher.update(&buffer[..got]),
            }
        }
    })
}

/// Returns the digest that WARC defines: of the body without transfer coding.
pub(crate) fn payload_digest(exchange: &Exchange) -> Digest {
    Digest::Sha1(exchange.payload_digest.0)
}

/// Converts a spool to a block of the archive.
fn block(spool: &Spool) -> Block {
    match spool.bytes_if_small() {
        Some(bytes) => Block::Bytes(bytes),
        None => {
            let spool = spool.clone();
            Block::spool(spool.length(), move || {
                Ok(Box::new(spool.reader()) as Box<dyn Read + Send>)
            })
        }
    }
}

/// Makes a revisit record with the received headers. It refers to the capture with the payload.
fn revisit(
    id: RecordId,
    profile: RevisitProfile,
    exchange: &Exchange,
    target: &str,
    previous: &EarlierCapture,
    head_length: u64,
) -> Record {
    let refers_to = RefersTo {
        id: previous.at.record_id.parse().ok(),
        target_uri: Some(previous.uri.clone()),
        date: Some(previous.at.date),
    };
    Record::revisit(
        id,
        profile,
        date_of(exchange),
        target,
        refers_to,
        block(&exchange.wire.slice(0..head_length)),
    )
}

fn fields(exchange: &Exchange, about: &RecordContext<'_>) -> Fields {
    let mut fields = Fields::new();
    match about.via {
        Some(via) => fields.push("via", via),
        None => fields.push("seed", ""),
    };
    if !about.hop_path.is_empty() {
        fields.push("hopsFromSeed", about.hop_path);
    }
    fields.push_some("sourceTag", about.source);
    fields.push("fetchTimeMs", exchange.duration.as_millis().to_string());
    fields.push_some("charsetForLinkExtraction", about.charset.as_ref());
    if let Some(tls) = &exchange.tls {
        fields.push("tls-certificate", tls_words(tls));
    }
    fields.push_some("proxy", exchange.proxy.as_ref());
    if !about.annotations.is_empty() {
        fields.push("annotations", annotations_text(about.annotations));
    }
    for (name, value) in &about.decisions {
        fields.push(name, value);
    }
    for (name, value) in &about.notes {
        fields.push("note", format!("{name} {value}"));
    }
    for link in about.links {
        fields.outlink(link.uri.as_str(), link.hop.letter(), &link.context);
    }
    fields
}

fn tls_words(tls: &opilio_fetch::TlsInfo) -> String {
    match &tls.verified {
        Ok(()) => "verified".to_owned(),
        Err(problem) => format!("not trusted: {problem}"),
    }
}

/// Returns the header that other tools write beside the TLS version in `WARC-Protocol`.
fn cipher_suite(exchange: &Exchange) -> Vec<(String, String)> {
    let suite = exchange
        .tls
        .as_ref()
        .and_then(|tls| tls.cipher_suite.clone());
    suite
        .map(|suite| ("WARC-Cipher-Suite".to_owned(), suite))
        .into_iter()
        .collect()
}

fn protocols(exchange: &Exchange) -> Vec<String> {
    exchange
        .protocols()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn truncation(truncation: TruncationCause) -> Truncation {
    match truncation {
        TruncationCause::Length | TruncationCause::Headers => Truncation::Length,
        TruncationCause::Time | TruncationCause::Rate => Truncation::Time,
        TruncationCause::Disconnect => Truncation::Disconnect,
        TruncationCause::Framing
        | TruncationCause::Scratch
        | TruncationCause::Stop
        | TruncationCause::Unwanted => Truncation::Unspecified,
    }
}
