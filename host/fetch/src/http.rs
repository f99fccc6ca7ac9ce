//! One HTTP/1.1 exchange: hyper over a recording stream.
//!
//! Every exchange gets a hyper connection of its own on a stream that we keep: when the message is over, what hyper has
//! read ahead says where the message ended, so recordings on one connection are split exactly.

use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use ::http::header::TRANSFER_ENCODING;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use sha1::{Digest, Sha1};
use tokio::time::Instant;

use crate::config::Config;
use crate::exchange::{Exchange, HeadVerdict, PayloadDigest, Request, Truncation};
use crate::failure::{FetchFailure, Phase};
use crate::fetcher::Parts;
use crate::head::ResponseHead;
use crate::request::Prepared;
use crate::spool::{Spool, SpoolWriter};
use crate::stream::{Connection, Server};
use crate::tape::{RecordingStream, Tape};
use crate::wire::{Clock, OutOfTime, Wire};

/// Most headers of a response; beyond, its head counts as truncated.
pub const HEADERS_MAX: usize = 512;

/// Addresses of one name tried in one exchange.
pub const CONNECT_ADDRESSES_MAX: usize = 4;

/// hyper's own least for its buffer.
const READ_BUFFER_LEAST: usize = 8 * 1024;

/// Interim (1xx) responses and the head together may be this many times `header_bytes_max`.
const HEADS_MAX: usize = 2;

/// One exchange, on an idle connection or a new one.
pub(crate) async fn fetch(
    parts: &Parts,
    request: &Request,
    on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
) -> Exchange {
    let started = Timestamp::now();
    let clock = Clock::start(&parts.config);
    let mut exchange = match Prepared::new(&parts.config, request) {
        Ok(prepared) => fetch_prepared(parts, request, &prepared, clock, on_head).await,
        Err(failure) => without_connection(failure),
    };
    exchange.started = started;
    exchange.duration = clock.elapsed();
    exchange
}

async fn fetch_prepared(
    parts: &Parts,
    request: &Request,
    prepared: &Prepared,
    clock: Clock,
    on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
) -> Exchange {
    let mut on_head = Some(on_head);
    loop {
        let opened = connect(parts, &prepared.server, request, clock).await;
        let connection = match opened {
            Ok(connection) => connection,
            Err(failure) => return without_connection(failure),
        };
        let exchange = exchange_on(connection, parts, prepared, clock, &mut on_head).await;
        // Taken connections leave the pool, so this ends with a new one.
        if !(is_stale(&exchange) && prepared.method == Method::GET) {
            return exchange;
        }
    }
}

/// A kept connection died before a byte came: the server had closed it and has not served the request
/// (RFC 9112 §9.3.1). A form is not sent twice all the same.
fn is_stale(exchange: &Exchange) -> bool {
    let nothing_came = exchange.wire.is_empty() && exchange.interim.is_empty();
    let dead = matches!(
        exchange.failure,
        Some(FetchFailure::Empty | FetchFailure::Lost { .. })
    );
    exchange.reused_connection && nothing_came && dead
}

/// An idle connection where there is one; otherwise a new one to the first address that takes it.
async fn connect(
    parts: &Parts,
    server: &Server,
    request: &Request,
    clock: Clock,
) -> Result<Connection, FetchFailure> {
    if let Some(idle) = parts.pool.take(server, &request.addresses) {
        return Ok(idle);
    }
    let mut last = FetchFailure::NoAddress {
        host: server.host.clone(),
        reason: "no address was given".to_owned(),
        ttl: None,
    };
    for address in request.addresses.iter().take(CONNECT_ADDRESSES_MAX) {
        let opening = Connection::open(parts, server, *address);
        match tokio::time::timeout_at(clock.deadline, opening).await {
            Ok(Ok(connection)) => return Ok(connection),
            // Another address may have another certificate, but to try would hide that the site is broken.
            Ok(Err(failure @ FetchFailure::Tls { .. })) => return Err(failure),
            Ok(Err(failure)) => last = failure,
            Err(_) => return Err(clock.total_failure(Phase::Connecting)),
        }
    }
    Err(last)
}

/// What came of an exchange, beside the bytes.
#[derive(Default)]
struct Outcome {
    head: Option<ResponseHead>,
    time_to_head: Option<Duration>,
    aborted_by_filter: Option<String>,
    truncated: Option<Truncation>,
    failure: Option<FetchFailure>,
}

/// One exchange on one connection, which goes back to the pool where it can serve another.
async fn exchange_on<F>(
    connection: Connection,
    parts: &Parts,
    prepared: &Prepared,
    clock: Clock,
    on_head: &mut Option<F>,
) -> Exchange
where
    F: AsyncFnOnce(&ResponseHead) -> HeadVerdict,
{
    let config = &parts.config;
    let spool = || SpoolWriter::new(config.spool_memory_max, &config.scratch_dir);
    let tape = Tape::new(spool(), config.header_bytes_max.saturating_mul(HEADS_MAX));
    let Connection {
        stream,
        peer,
        tls,
        reused,
    } = connection;
    let io = TokioIo::new(RecordingStream::new(stream, tape.clone()));
    let (mut sender, hyper) = match builder(config).handshake(io).await {
        Ok(ready) => ready,
        Err(error) => return without_connection(lost(Phase::Request, &error)),
    };
    let mut wire = Wire::new(hyper, tape.clone(), clock);
    let mut outcome = Outcome::default();
    let mut body = BodyRecord::new(config.body_bytes_max);

    let mut response = pin!(sender.send_request(prepared.message()));
    match wire.until(|cx| response.as_mut().poll(cx)).await {
        Ok(Ok(response)) => {
            outcome.time_to_head = Some(clock.elapsed());
            outcome.head = tape.lock().find_head();
            // Any transfer coding, chunked or unknown: hyper removes the one and ends the other with the connection.
            if response.headers().contains_key(TRANSFER_ENCODING) {
                body.separate = Some(spool());
            }
            let verdict = match (&outcome.head, on_head.take()) {
                (Some(head), Some(on_head)) => on_head(head).await,
                _ => HeadVerdict::Continue,
            };
            // The server has been waiting for us, not we for it.
            tape.lock().last_activity = Instant::now();
            match verdict {
                HeadVerdict::Abort { reason } => outcome.aborted_by_filter = Some(reason),
                HeadVerdict::Continue => {
                    let content = response.into_body();
                    body.receive(&mut wire, content, &mut outcome).await;
                }
            }
        }
        Ok(Err(error)) => outcome.head_error(&error, &tape),
        Err(limit) => outcome.head_timeout(limit, &tape),
    }

    let complete = outcome.is_complete();
    let idle = complete && wire.settle(&sender).await;
    let (stream, read_ahead) = wire.into_parts();
    if idle && read_ahead == 0 && config.keep_alive {
        let connection = Connection {
            stream,
            peer,
            tls: tls.clone(),
            reused: true,
        };
        parts.pool.put(prepared.server.clone(), connection);
    }
    let mut exchange = outcome.into_exchange(&tape, body, read_ahead);
    exchange.peer = Some(peer);
    exchange.tls = tls;
    exchange.reused_connection = reused;
    exchange
}

/// As lenient as browsers, where that cannot change where a message ends.
fn builder(config: &Config) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .title_case_headers(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(HEADERS_MAX)
        .max_header_size(config.header_bytes_max)
        .max_buf_size(config.header_bytes_max.max(READ_BUFFER_LEAST));
    builder
}

/// The payload as it comes.
struct BodyRecord {
    /// Where the payload is not a part of the wire's bytes as it stands: a transfer coding was removed.
    separate: Option<SpoolWriter>,
    digest: Sha1,
    length: u64,
    length_max: u64,
    /// Payload bytes that came after `length_max`.
    overshoot: u64,
    scratch_error: Option<io::Error>,
}

impl BodyRecord {
    fn new(length_max: Option<u64>) -> Self {
        BodyRecord {
            separate: None,
            digest: Sha1::new(),
            length: 0,
            length_max: length_max.unwrap_or(u64::MAX),
            overshoot: 0,
            scratch_error: None,
        }
    }

    /// Takes the body to its end, or to where it has to stop.
    async fn receive(&mut self, wire: &mut Wire, body: Incoming, outcome: &mut Outcome) {
        let mut body = pin!(body);
        loop {
            match wire.until(|cx| body.as_mut().poll_frame(cx)).await {
                Ok(None) => return,
                Ok(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if let Err(truncation) = self.append(&data) {
                        outcome.truncated = Some(truncation);
                        return;
                    }
                }
                Ok(Some(Err(error))) => return outcome.body_error(&error),
                Err(limit) => return outcome.body_timeout(limit),
            }
        }
    }

    fn append(&mut self, data: &[u8]) -> Result<(), Truncation> {
        let room = self.length_max - self.length;
        let kept = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        self.length += kept.len() as u64;
        self.digest.update(kept);
        if let Some(Err(error)) = self.separate.as_mut().map(|spool| spool.append(kept)) {
            self.scratch_error.get_or_insert(error);
            return Err(Truncation::Length);
        }
        self.overshoot = (data.len() - kept.len()) as u64;
        match self.overshoot {
            0 => Ok(()),
            _ => Err(Truncation::Length),
        }
    }
}

impl Outcome {
    fn is_complete(&self) -> bool {
        self.failure.is_none() && self.truncated.is_none() && self.aborted_by_filter.is_none()
    }

    /// No head, or not all of it.
    fn head_error(&mut self, error: &hyper::Error, tape: &Tape) {
        let mut tape = tape.lock();
        self.head = tape.find_head();
        let too_long = tape.head_overflow || error.is_parse_too_large();
        match (too_long, &self.head) {
            (true, Some(_)) => self.truncated = Some(Truncation::Headers),
            _ if tape.received == 0 && error.is_incomplete_message() => {
                self.failure = Some(FetchFailure::Empty);
            }
            _ if too_long || error.is_parse() => {
                self.failure = Some(FetchFailure::NotHttp {
                    phase: Phase::Head,
                    reason: reasons(error),
                });
            }
            _ if tape.received == 0 => self.failure = Some(lost(Phase::Request, error)),
            _ => {
                self.truncated = Some(Truncation::Disconnect);
                self.failure = Some(lost(Phase::Head, error));
            }
        }
    }

    fn head_timeout(&mut self, limit: OutOfTime, tape: &Tape) {
        let mut tape = tape.lock();
        self.head = tape.find_head();
        let phase = match tape.received {
            0 => Phase::Request,
            _ => Phase::Head,
        };
        self.truncated = (tape.received > 0).then_some(Truncation::Time);
        self.failure = Some(limit.failure(phase));
    }

    fn body_error(&mut self, error: &hyper::Error) {
        let cause = error.source().and_then(|e| e.downcast_ref::<io::Error>());
        let misframed = cause.is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            )
        });
        if misframed {
            self.truncated = Some(Truncation::Framing);
            self.failure = Some(FetchFailure::NotHttp {
                phase: Phase::Body,
                reason: reasons(error),
            });
        } else {
            self.truncated = Some(Truncation::Disconnect);
            self.failure = Some(lost(Phase::Body, error));
        }
    }

    /// Running out of the total time is our own limit and leaves the response standing; silence is the server's doing.
    fn body_timeout(&mut self, limit: OutOfTime) {
        self.truncated = Some(Truncation::Time);
        if let OutOfTime::Silence(_) = limit {
            self.failure = Some(limit.failure(Phase::Body));
        }
    }

    /// Cuts the recording where the message ended, and puts everything together.
    fn into_exchange(mut self, tape: &Tape, body: BodyRecord, read_ahead: u64) -> Exchange {
        let mut tape = tape.lock();
        let scratch_error = tape.scratch_error.take().or(body.scratch_error);
        if let Some(error) = scratch_error {
            self.failure = Some(FetchFailure::Scratch(Arc::new(error)));
        }
        if self.failure.is_none() && self.head.is_none() {
            // hyper and we read heads alike; should we ever not, what came is no response.
            self.failure = Some(FetchFailure::NotHttp {
                phase: Phase::Head,
                reason: "no status line".to_owned(),
            });
        }
        let mut annotations = Vec::new();
        annotations.extend(
            self.truncated
                .and_then(Truncation::annotation)
                .map(str::to_owned),
        );
        if self.aborted_by_filter.is_some() {
            annotations.push("midFetchAbort".to_owned());
        }
        let beyond = match self.truncated {
            _ if self.is_complete() => {
                if read_ahead > 0 {
                    annotations.push(format!("excessBytes:{read_ahead}"));
                }
                read_ahead
            }
            // What hyper had read but not decoded stays out, so that the payload is all of the recorded body.
            Some(Truncation::Length) => read_ahead + body.overshoot,
            _ => 0,
        };
        if tape.unclean_close {
            annotations.push("noCloseNotify".to_owned());
        }
        let empty = SpoolWriter::new(0, std::path::Path::new(""));
        let wire = std::mem::replace(&mut tape.wire, empty).finish();
        let end = match (&self.aborted_by_filter, &self.head) {
            // Of the body not a byte, though some may have come with the head.
            (Some(_), Some(head)) => head.length,
            _ => wire.length().saturating_sub(beyond),
        };
        let wire = wire.slice(0..end);
        let payload = match (body.separate, &self.head) {
            (Some(separate), _) => separate.finish(),
            (None, Some(head)) => wire.slice(head.length..head.length.saturating_add(body.length)),
            (None, None) => Spool::default(),
        };
        Exchange {
            started: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            time_to_head: self.time_to_head,
            peer: None,
            request_bytes: std::mem::take(&mut tape.sent).into(),
            wire,
            interim: std::mem::take(&mut tape.interim),
            head: self.head,
            payload,
            payload_digest: PayloadDigest(body.digest.finalize().into()),
            truncated: self.truncated,
            aborted_by_filter: self.aborted_by_filter,
            failure: self.failure,
            tls: None,
            reused_connection: false,
            annotations,
        }
    }
}

/// An exchange that did not come to be. Its times are set by [`fetch`].
fn without_connection(failure: FetchFailure) -> Exchange {
    Exchange {
        started: Timestamp::UNIX_EPOCH,
        duration: Duration::ZERO,
        time_to_head: None,
        peer: None,
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
        reused_connection: false,
        annotations: Vec::new(),
    }
}

fn lost(phase: Phase, error: &hyper::Error) -> FetchFailure {
    FetchFailure::Lost {
        phase,
        reason: reasons(error),
    }
}

/// The error with its causes: hyper's own texts leave them out.
fn reasons(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
