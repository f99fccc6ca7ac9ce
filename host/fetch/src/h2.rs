//! One exchange over HTTP/2, with servers that speak nothing else.
//!
//! HTTP/2 frames belong to the connection, not to the message, and archive readers do not know them. Therefore the message
//! is recorded in the form of HTTP/1.1, as the WARC community does (iipc/warc-specifications, issues 15 and 42). Header
//! names and values are as received, without reason phrase and transfer coding; `WARC-Protocol: h2` marks the record. Each
//! exchange has a connection of its own, so no state is shared or kept.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use h2::client::{Builder, Connection as H2Connection};
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, Request};
use tracing::{Instrument as _, info_span};

use crate::body_record::BodyRecord;
use crate::exchange::{Exchange, HeadVerdict, TruncationCause};
use crate::failure::{FetchFailure, Phase};
use crate::head::ResponseHead;
use crate::http1::{HEADS_MAX, Outcome};
use crate::parts::Parts;
use crate::payload_tap::poll_unwanted;
use crate::recording_stream::{RecordingStream, Tape};
use crate::request::Prepared;
use crate::spool::SpoolWriter;
use crate::stream::Connection;
use crate::wire::{Clock, LimitHit, Watch};

/// Bytes that a server may send before the crawl has taken them.
const WINDOW: u32 = 256 * 1024;

/// Minimum of [`Wire::overhead_max`]: several of the largest frames that servers may send.
const OVERHEAD_MIN: usize = 64 * 1024;

/// A connection, and the time limits of its exchange.
struct Wire {
    h2: H2Connection<RecordingStream, Bytes>,
    ended: bool,
    watch: Watch,
    tape: Tape,
    /// Bytes of frames since the last part of the response came.
    overhead: usize,
    /// Maximum bytes of control frames and interim responses in a row: as for those before the head of an HTTP/1.1 answer.
    overhead_max: usize,
}

impl Wire {
    /// Drives the connection until `ready` returns a value.
    async fn until<T>(
        &mut self,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, LimitHit> {
        poll_fn(|cx| {
            if let Poll::Ready(value) = ready(cx) {
                return Poll::Ready(Ok(value));
            }
            if !self.ended {
                // `ready` reports the connection's errors too.
                self.ended = std::pin::Pin::new(&mut self.h2).poll(cx).is_ready();
                self.overhead += self.tape.lock().take_framed();
                if let Poll::Ready(value) = ready(cx) {
                    return Poll::Ready(Ok(value));
                }
                if self.overhead > self.overhead_max {
                    return Poll::Ready(Err(LimitHit::Overhead(self.overhead)));
                }
            }
            self.watch.poll(cx).map(Err)
        })
        .await
    }

    /// Counts received bytes of the response.
    fn count_received(&mut self, bytes: usize) {
        if bytes > 0 {
            self.overhead = 0;
            self.tape.lock().count_received(bytes);
        }
    }
}

/// Runs one exchange on a connection that has agreed on HTTP/2.
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
    let Some(message) = Message::of(prepared) else {
        let reason = "the request cannot be sent over HTTP/2".to_owned();
        let host = prepared.server.host.clone();
        return Exchange::without_connection(FetchFailure::Tls { host, reason });
    };
    let config = &parts.config;
    let claim = parts.scratch.claim();
    let wire = SpoolWriter::within(claim.clone(), config.spool_memory_max);
    let tape = Tape::framed(wire, prepared.received.clone());
    let mut body = BodyRecord::new(config.body_bytes_max, claim);
    let mut outcome = Outcome::default();
    let stream = RecordingStream::new(connection.stream, tape.clone(), None);
    let watch = Watch::new(tape.clone(), clock, &parts.cut);
    let recorded = message.recorded();
    run(
        stream,
        watch,
        message,
        parts,
        prepared,
        &tape,
        &mut body,
        &mut outcome,
        on_head,
    )
    .await;
    tape.lock().sent = recorded;
    let mut exchange = outcome.into_exchange(&tape, body, 0);
    exchange.peer = connection.peer;
    exchange.proxy = connection.via.map(|proxy| proxy.to_string());
    exchange.tls = connection.tls;
    exchange.http2 = true;
    exchange
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one exchange are separate, so that the recording outlives the connection"
)]
async fn run<F>(
    stream: RecordingStream,
    mut watch: Watch,
    message: Message,
    parts: &Parts,
    prepared: &Prepared,
    tape: &Tape,
    body: &mut BodyRecord,
    outcome: &mut Outcome,
    on_head: &mut Option<F>,
) where
    F: AsyncFnOnce(&ResponseHead) -> HeadVerdict,
{
    let config = &parts.config;
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(u32::try_from(config.header_bytes_max).unwrap_or(u32::MAX));
    let mut opening = std::pin::pin!(builder.handshake(stream));
    let opened = poll_fn(|cx| match opening.as_mut().poll(cx) {
        Poll::Ready(opened) => Poll::Ready(Ok(opened)),
        Poll::Pending => watch.poll(cx).map(Err),
    })
    .await;
    let (mut sender, h2) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return outcome.failure = Some(lost(Phase::Request, &error)),
        Err(limit) => return outcome.failure = Some(limit.failure(Phase::Request)),
    };
    let mut wire = Wire {
        h2,
        ended: false,
        watch,
        tape: tape.clone(),
        overhead: 0,
        overhead_max: OVERHEAD_MIN.max(config.header_bytes_max.saturating_mul(HEADS_MAX)),
    };
    let content = message.content;
    let response = match sender.send_request(message.request, content.is_empty()) {
        Ok((response, mut rest)) if !content.is_empty() => {
            rest.send_data(content, true).map(|()| response)
        }
        Ok((response, _)) => Ok(response),
        Err(error) => Err(error),
    };
    let mut response = match response {
        Ok(response) => response,
        Err(error) => return outcome.failure = Some(lost(Phase::Request, &error)),
    };
    let answered = wire
        .until(|cx| std::pin::Pin::new(&mut response).poll(cx))
        .instrument(info_span!("request"))
        .await;
    let response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return outcome.failure = Some(lost(Phase::Head, &error)),
        Err(limit) => return outcome.failure = Some(limit.failure(Phase::Head)),
    };
    outcome.time_to_head = Some(wire.watch.elapsed());
    let (head, mut content) = response.into_parts();
    let head_bytes = recorded_head(head.status.as_u16(), &head.headers);
    outcome.head = ResponseHead::of_recording(&head_bytes);
    wire.count_received(head_bytes.len());
    tape.lock().record(&head_bytes);
    if head.headers.len() > config.headers_max {
        return outcome.truncated = Some(TruncationCause::Headers);
    }
    body.tap = prepared.tap();
    if let (Some(head), Some(on_head)) = (&outcome.head, on_head.take())
        && let HeadVerdict::Abort { reason } = on_head(head).await
    {
        return outcome.aborted_by_filter = Some(reason);
    }
    wire.watch.restart_measurement();
    let receiving = async {
        loop {
            if let Err(end) = body.room(&mut wire.watch, tape, WINDOW as usize).await {
                return outcome.recording_ended(end);
            }
            let tap = &mut body.tap;
            let next = wire.until(|cx| match content.poll_data(cx) {
                Poll::Ready(data) => Poll::Ready(Some(data)),
                Poll::Pending => poll_unwanted(tap, cx).map(|()| None),
            });
            match next.await {
                Ok(Some(None)) => return,
                Ok(Some(Some(Ok(data)))) => {
                    wire.count_received(data.len());
                    tape.lock().record(&data);
                    if let Err(truncation) = body.append(&data) {
                        return outcome.truncated = Some(truncation);
                    }
                    let length = data.len();
                    if let Err(end) = body.pass_on(&mut wire.watch, data).await {
                        return outcome.recording_ended(end);
                    }
                    // It fails if the stream was reset; the next poll reports that.
                    let _ = content.flow_control().release_capacity(length);
                }
                Ok(None) => return outcome.truncated = Some(TruncationCause::Unwanted),
                Ok(Some(Some(Err(error)))) => {
                    outcome.truncated = Some(TruncationCause::Disconnect);
                    return outcome.failure = Some(lost(Phase::Body, &error));
                }
                Err(limit) => return outcome.body_timeout(limit),
            }
        }
    };
    receiving.instrument(info_span!("body")).await;
}

/// A request in the form of HTTP/2.
struct Message {
    request: Request<()>,
    authority: String,
    content: Bytes,
}

impl Message {
    fn of(prepared: &Prepared) -> Option<Self> {
        let (mut head, _) = prepared.message().into_parts();
        let authority = head.headers.remove(HOST)?.to_str().ok()?.to_owned();
        // A header of HTTP/1.1 connections, which HTTP/2 forbids (RFC 9113 §8.2.2).
        head.headers.remove(CONNECTION);
        let target = head.uri.path_and_query()?.as_str();
        head.uri = format!("https://{authority}{target}").parse().ok()?;
        head.version = http::Version::HTTP_2;
        Some(Message {
            request: Request::from_parts(head, ()),
            authority,
            content: prepared.content(),
        })
    }

    fn recorded(&self) -> Vec<u8> {
        let target = self.request.uri().path_and_query();
        let target = target.map_or("/", |target| target.as_str());
        let (method, authority) = (self.request.method(), &self.authority);
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(
            format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\n").as_bytes(),
        );
        add_fields(&mut bytes, self.request.headers());
        bytes.extend_from_slice(&self.content);
        bytes.to_vec()
    }
}

fn recorded_head(status: u16, headers: &HeaderMap) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.extend_from_slice(format!("HTTP/1.1 {status} \r\n").as_bytes());
    add_fields(&mut bytes, headers);
    bytes.freeze()
}

fn add_fields(bytes: &mut BytesMut, headers: &HeaderMap) {
    for (name, value) in headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
}

fn lost(phase: Phase, error: &h2::Error) -> FetchFailure {
    FetchFailure::Lost {
        phase,
        reason: format!("HTTP/2: {error}"),
    }
}
