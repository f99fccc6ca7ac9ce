//! One HTTP/1.1 exchange: hyper over a recording stream.
//!
//! Every exchange has a hyper connection of its own, on a stream that is kept. At the end of the message, the bytes that
//! hyper has read ahead show where the message ended. So recordings on one connection are split exactly.

use std::error::Error;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::TRANSFER_ENCODING;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use opilio_model::error_chain;
use sha1::Digest;
use tracing::{Instrument as _, info_span};

use crate::body_record::{BodyRecord, RecordingEnd};
use crate::config::FetcherConfig;
use crate::exchange::{Exchange, HeadVerdict, PayloadDigest, TruncationCause};
use crate::failure::{FetchFailure, Phase};
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::pool::ConnectionKey;
use crate::proxy_tunnel::credentials_needed;
use crate::recording_stream::{Forward, RecordingStream, Tape};
use crate::request::Prepared;
use crate::spool::{Spool, SpoolWriter};
use crate::stream::Connection;
use crate::wire::{Clock, LimitHit, Watch, Wire};

/// 505 HTTP Version Not Supported (RFC 9110 §15.6.6).
pub(crate) const VERSION_NOT_SUPPORTED: i32 = 505;

/// hyper's minimum for its buffer.
const READ_BUFFER_MIN: usize = 8 * 1024;

/// Hexadecimal digits of a 64-bit number.
const CHUNK_SIZE_DIGITS_MAX: usize = 16;

/// Interim (1xx) responses and the head together may be this many times `header_bytes_max` long.
pub(crate) const HEADS_MAX: usize = 2;

/// The result of an exchange, apart from the bytes.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) head: Option<ResponseHead>,
    pub(crate) time_to_head: Option<Duration>,
    pub(crate) aborted_by_filter: Option<String>,
    pub(crate) truncated: Option<TruncationCause>,
    pub(crate) failure: Option<FetchFailure>,
}

/// Runs one exchange on one connection. A connection that can serve another exchange returns to the pool.
pub(crate) async fn fetch<F>(
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
    let claim = parts.scratch.claim();
    let spool = || SpoolWriter::within(claim.clone(), config.spool_memory_max);
    let tape = Tape::new(
        spool(),
        config.header_bytes_max.saturating_mul(HEADS_MAX),
        prepared.received.clone(),
    );
    let forwards = connection.forwards().cloned();
    let Connection {
        stream,
        peer,
        tls,
        via,
        reused,
    } = connection;
    let forward = forwards.as_ref();
    let forward = forward.map(|proxy| Forward::new(proxy, &prepared.server));
    let io = TokioIo::new(RecordingStream::new(stream, tape.clone(), forward));
    let (mut sender, hyper) = match builder(config).handshake(io).await {
        Ok(ready) => ready,
        Err(error) => return Exchange::without_connection(lost(Phase::Request, &error)),
    };
    let mut wire = Wire::new(hyper, Watch::new(tape.clone(), clock, &parts.cut));
    let mut outcome = Outcome::default();
    let mut body = BodyRecord::new(config.body_bytes_max, claim.clone());

    let mut response = pin!(sender.send_request(prepared.message()));
    let responding = wire.until(|cx| response.as_mut().poll(cx));
    match responding.instrument(info_span!("request")).await {
        Ok(Ok(response)) => {
            outcome.time_to_head = Some(clock.elapsed());
            outcome.head = tape.lock().find_head();
            // Any transfer coding: hyper removes `chunked`, and ends a body with an unknown one at the end of the connection.
            if response.headers().contains_key(TRANSFER_ENCODING) {
                body.separate = Some(spool());
            }
            let final_head = match &outcome.head {
                // Not the final head: the request is repeated over HTTP/2.
                Some(head) if tls.is_some() && i32::from(head.status) == VERSION_NOT_SUPPORTED => {
                    None
                }
                head => head.as_ref(),
            };
            let verdict = match final_head.and_then(|head| Some((head, on_head.take()?))) {
                Some((head, on_head)) => {
                    body.tap = prepared.tap();
                    on_head(head).await
                }
                None => HeadVerdict::Continue,
            };
            wire.watch().restart_measurement();
            match verdict {
                HeadVerdict::Abort { reason } => outcome.aborted_by_filter = Some(reason),
                HeadVerdict::Continue => {
                    let content = response.into_body();
                    let ahead = read_buffer_max(config);
                    let received = body
                        .receive(&mut wire, &tape, ahead, content)
                        .instrument(info_span!("body"))
                        .await;
                    if let Err(end) = received {
                        outcome.recording_ended(end);
                    }
                }
            }
        }
        Ok(Err(error)) => outcome.head_error(&error, &tape),
        Err(limit) => outcome.head_timeout(limit, &tape),
    }

    let complete = outcome.is_complete();
    let idle = complete && wire.can_be_reused(&sender).await;
    let (stream, read_ahead) = wire.into_parts();
    if idle && read_ahead == 0 && config.keep_alive {
        let connection = Connection {
            stream,
            peer,
            tls: tls.clone(),
            via: via.clone(),
            reused: true,
        };
        parts
            .pool
            .put(ConnectionKey::new(config, &prepared.server), connection);
    }
    let mut exchange = outcome.into_exchange(&tape, body, read_ahead);
    if let (Some(proxy), 407) = (&forwards, exchange.status()) {
        return Exchange::without_connection(credentials_needed(proxy));
    }
    exchange.peer = peer;
    exchange.proxy = via.map(|proxy| proxy.to_string());
    exchange.tls = tls;
    exchange.reused_connection = reused;
    exchange
}

/// Configures hyper to be as lenient as browsers, unless leniency could change where a message ends.
fn builder(config: &FetcherConfig) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .title_case_headers(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(config.headers_max)
        .max_header_size(config.header_bytes_max)
        .max_buf_size(read_buffer_max(config));
    builder
}

/// The maximum that hyper reads at once.
fn read_buffer_max(config: &FetcherConfig) -> usize {
    config.header_bytes_max.max(READ_BUFFER_MIN)
}

impl Outcome {
    pub(crate) fn recording_ended(&mut self, end: RecordingEnd) {
        match end {
            RecordingEnd::Cut(truncation) => self.truncated = Some(truncation),
            RecordingEnd::Hyper(error) => self.body_error(&error),
            RecordingEnd::NoRoom => self.truncated = Some(TruncationCause::Scratch),
            RecordingEnd::LimitHit(limit) => self.body_timeout(limit),
            RecordingEnd::Unwanted => self.truncated = Some(TruncationCause::Unwanted),
        }
    }

    fn is_complete(&self) -> bool {
        self.failure.is_none() && self.truncated.is_none() && self.aborted_by_filter.is_none()
    }

    /// Returns `true` if a head has come after which no body can be read.
    fn is_refused_at_head(&self) -> bool {
        let not_http = matches!(
            self.failure,
            Some(FetchFailure::NotHttp {
                phase: Phase::Head,
                ..
            })
        );
        not_http || self.truncated == Some(TruncationCause::Headers)
    }

    /// Records the error of a missing or incomplete head.
    fn head_error(&mut self, error: &hyper::Error, tape: &Tape) {
        let mut tape = tape.lock();
        self.head = tape.find_head();
        let too_long = tape.head_overflow || error.is_parse_too_large();
        match (too_long, &self.head) {
            (true, Some(_)) => self.truncated = Some(TruncationCause::Headers),
            _ if tape.received == 0 && is_closed_by_server(error) => {
                self.failure = Some(FetchFailure::Empty);
            }
            _ if too_long || error.is_parse() => {
                // For example two lengths: the end of the body is unknown.
                self.truncated = self.head.as_ref().map(|_| TruncationCause::Framing);
                self.failure = Some(FetchFailure::NotHttp {
                    phase: Phase::Head,
                    reason: error_chain(error),
                });
            }
            _ if tape.received == 0 => self.failure = Some(lost(Phase::Request, error)),
            _ => {
                self.truncated = Some(TruncationCause::Disconnect);
                self.failure = Some(lost(Phase::Head, error));
            }
        }
    }

    fn head_timeout(&mut self, limit: LimitHit, tape: &Tape) {
        let mut tape = tape.lock();
        self.head = tape.find_head();
        let phase = match tape.received {
            0 => Phase::Request,
            _ => Phase::Head,
        };
        self.truncated = match limit {
            LimitHit::Cut => None,
            _ => (tape.received > 0).then_some(TruncationCause::Time),
        };
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
            self.truncated = Some(TruncationCause::Framing);
            self.failure = Some(FetchFailure::NotHttp {
                phase: Phase::Body,
                reason: error_chain(error),
            });
        } else {
            self.truncated = Some(TruncationCause::Disconnect);
            self.failure = Some(lost(Phase::Body, error));
        }
    }

    /// Records a limit that a body has reached. Our own limits are not failures; silence and floods of frames are the server's.
    pub(crate) fn body_timeout(&mut self, limit: LimitHit) {
        self.truncated = Some(match limit {
            LimitHit::Silence(_) | LimitHit::Total(_) | LimitHit::Head(_) => TruncationCause::Time,
            LimitHit::Overhead(_) => TruncationCause::Framing,
            LimitHit::Rate => TruncationCause::Rate,
            LimitHit::Cut => TruncationCause::Stop,
        });
        if let LimitHit::Silence(_) | LimitHit::Overhead(_) = limit {
            self.failure = Some(limit.failure(Phase::Body));
        }
    }

    /// The body of a response that announces chunks and has none. Archive readers take such bodies as they are.
    fn raw_body(&self, wire: &Spool, body: &BodyRecord) -> Option<Vec<u8>> {
        let head = self.head.as_ref()?;
        let is_misframed =
            self.truncated == Some(TruncationCause::Framing) && body.separate.is_some();
        if !is_misframed || body.length > 0 {
            return None;
        }
        let mut raw = Vec::new();
        let mut recorded = wire.slice(head.length..wire.length()).reader();
        recorded.read_to_end(&mut raw).ok()?;
        (!begins_with_chunk(&raw)).then_some(raw)
    }

    /// Cuts the recording at the end of the message, and assembles the exchange.
    pub(crate) fn into_exchange(
        mut self,
        tape: &Tape,
        mut body: BodyRecord,
        read_ahead: u64,
    ) -> Exchange {
        let mut tape = tape.lock();
        let scratch_error = tape.scratch_error.take().or(body.scratch_error.take());
        if let Some(error) = scratch_error {
            self.failure = Some(FetchFailure::Scratch(Arc::new(error)));
        }
        if self.failure.is_none() && self.head.is_none() {
            // hyper and `find_head` agree on heads. If they ever differ, the bytes are not a response.
            self.failure = Some(FetchFailure::NotHttp {
                phase: Phase::Head,
                reason: "no status line".to_owned(),
            });
        }
        let mut annotations = Vec::new();
        annotations.extend(
            self.truncated
                .and_then(TruncationCause::annotation)
                .map(str::to_owned),
        );
        if self.aborted_by_filter.is_some() {
            annotations.push("midFetchAbort".to_owned());
        }
        let empty = SpoolWriter::new(0, std::path::Path::new(""));
        let wire = std::mem::replace(&mut tape.wire, empty).finish();
        let raw = self.raw_body(&wire, &body);
        let beyond = match self.truncated {
            _ if self.is_complete() => {
                if read_ahead > 0 {
                    annotations.push(format!("excessBytes:{read_ahead}"));
                }
                read_ahead
            }
            Some(TruncationCause::Framing) if raw.is_some() => 0,
            // Bytes that hyper read but did not decode are left out, so that the payload is all of the recorded body.
            Some(TruncationCause::Length | TruncationCause::Scratch | TruncationCause::Framing) => {
                read_ahead + body.overshoot
            }
            _ => 0,
        };
        if tape.unclean_close {
            annotations.push("noCloseNotify".to_owned());
        }
        let end = match (&self.aborted_by_filter, &self.head) {
            // The body is left out, even if a part of it came with the head.
            (Some(_), Some(head)) => head.length,
            (None, Some(head)) if tape.head_is_whole && self.is_refused_at_head() => head.length,
            _ => wire.length().saturating_sub(beyond),
        };
        let wire = wire.slice(0..end);
        let payload_digest = match &raw {
            Some(raw) => PayloadDigest::of(raw),
            None => PayloadDigest(body.digest.finalize().into()),
        };
        let payload = match (body.separate, &self.head) {
            (Some(separate), _) if raw.is_none() => separate.finish(),
            (Some(_), Some(head)) => wire.slice(head.length..end),
            (_, Some(head)) => wire.slice(head.length..head.length.saturating_add(body.length)),
            (_, None) => Spool::default(),
        };
        Exchange {
            started: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            time_to_head: self.time_to_head,
            peer: None,
            proxy: None,
            request_bytes: std::mem::take(&mut tape.sent).into(),
            wire,
            interim: std::mem::take(&mut tape.interim),
            head: self.head,
            payload,
            payload_digest,
            truncated: self.truncated,
            aborted_by_filter: self.aborted_by_filter,
            failure: self.failure,
            tls: None,
            http2: false,
            reused_connection: false,
            annotations,
        }
    }
}

/// Returns `true` if a body begins with the size of a chunk (RFC 9112 §7.1).
fn begins_with_chunk(body: &[u8]) -> bool {
    let digits = body.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = digits.count();
    let ends = |byte: &u8| matches!(byte, b';' | b' ' | b'\t' | b'\r' | b'\n');
    (1..=CHUNK_SIZE_DIGITS_MAX).contains(&digits) && body.get(digits).is_none_or(ends)
}

/// Returns `true` if the server closed the connection, after the request or before it was sent.
fn is_closed_by_server(error: &hyper::Error) -> bool {
    let cause = error.source();
    let cause = cause.and_then(|cause| cause.downcast_ref::<hyper::Error>());
    error.is_incomplete_message() || cause.is_some_and(hyper::Error::is_incomplete_message)
}

fn lost(phase: Phase, error: &hyper::Error) -> FetchFailure {
    FetchFailure::Lost {
        phase,
        reason: error_chain(error),
    }
}
