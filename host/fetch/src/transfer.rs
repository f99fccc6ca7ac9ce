//! The common parts of FTP and WHOIS: a recorded conversation in lines, and a content that ends with its connection.
//!
//! Both become an [`Exchange`] with a head that is made from the server's answers. So filters, digests and extractors handle them
//! like HTTP. `version` is `FTP` or `WHOIS`, and [`Exchange::request_bytes`] is the conversation.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::dial::{candidates, dial};
use crate::exchange::{Exchange, PayloadDigest, TruncationCause};
use crate::failure::{FetchFailure, Phase};
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::recording_stream::{ExchangeProgress, Hold, ServerTime};
use crate::scratch::{Claim, NoRoom};
use crate::spool::{Spool, SpoolWriter};
use crate::stream::{Connection, ConnectionProtocol, Server, Stream};
use crate::wire::Clock;

/// Longest line of a conversation. RFC 959 has no limit; servers send welcome texts of a few kilobytes.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Longest conversation that is kept.
const CONVERSATION_BYTES_MAX: usize = 256 * 1024;

const READ_BYTES: usize = 64 * 1024;

/// A conversation in lines.
pub(crate) struct Conversation {
    /// The stream; `None` while TLS is started on it, and permanently if that fails.
    stream: Option<Stream>,
    received: ExchangeProgress,
    /// Bytes that were read but not yet parsed.
    ahead: Vec<u8>,
    /// The conversation of both sides, with secrets replaced by `****`.
    pub(crate) transcript: Vec<u8>,
}

/// A content while it is received.
pub(crate) struct Content {
    spool: SpoolWriter,
    digest: Sha1,
    length: u64,
    length_max: u64,
    claim: Arc<Claim>,
    received: ExchangeProgress,
    pub(crate) truncated: Option<TruncationCause>,
}

/// The beginning of a window in which the rate is measured.
struct RateWindow {
    time: ServerTime,
    /// Length of the content at that time.
    length: u64,
}

/// The facts of a transfer, apart from its content.
#[derive(Default)]
pub(crate) struct TransferFacts {
    pub(crate) head: Option<ResponseHead>,
    pub(crate) time_to_head: Option<Duration>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) tls: Option<crate::tls::TlsInfo>,
    pub(crate) conversation: Vec<u8>,
    pub(crate) aborted_by_filter: Option<String>,
    pub(crate) failure: Option<FetchFailure>,
    pub(crate) annotations: Vec<String>,
}

/// Connects to the first of the addresses that accepts.
pub(crate) async fn connect(
    parts: &Parts,
    server: &Server,
    addresses: &[IpAddr],
    clock: &Clock,
) -> Result<Connection, FetchFailure> {
    let addresses = candidates(parts, server, addresses)?;
    dial(parts, server, &addresses, ConnectionProtocol::Other, clock).await
}

/// Waits until all exchanges together may read more. The read permit is not kept while the crawl waits for the server.
async fn read_permit(parts: &Parts, clock: &Clock) -> Result<(), TruncationCause> {
    if parts.throttle.is_free() {
        return Ok(());
    }
    tokio::select! {
        _permit = parts.throttle.clone().read_permit() => Ok(()),
        () = tokio::time::sleep_until(clock.deadline) => Err(TruncationCause::Time),
        () = parts.cut.happens() => Err(TruncationCause::Stop),
    }
}

/// Waits for `work`, within the limits on the server's silence and on the whole exchange.
pub(crate) async fn within<T>(
    parts: &Parts,
    clock: &Clock,
    phase: Phase,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, FetchFailure> {
    let silence = parts.config.response_timeout;
    let now = Instant::now();
    // If there is always more to read, work completes at once each time and timers are never polled.
    if now >= clock.deadline {
        return Err(clock.total_failure(phase));
    }
    let until = (now + silence).min(clock.deadline);
    let work = tokio::time::timeout_at(until, work);
    let outcome = parts.cut.unless_made(work).await;
    match outcome.ok_or(FetchFailure::Stopped)? {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(FetchFailure::Lost {
            phase,
            reason: error.to_string(),
        }),
        Err(_) if Instant::now() >= clock.deadline => Err(clock.total_failure(phase)),
        Err(_) => Err(FetchFailure::Timeout {
            phase,
            after: silence,
        }),
    }
}

impl Conversation {
    pub(crate) fn new(stream: Stream, received: ExchangeProgress) -> Self {
        Conversation {
            stream: Some(stream),
            received,
            ahead: Vec::new(),
            transcript: Vec::new(),
        }
    }

    /// Returns the stream, for another use.
    ///
    /// # Errors
    /// Fails if the stream was taken before.
    pub(crate) fn take_stream(&mut self) -> Result<Stream, FetchFailure> {
        self.stream.take().ok_or_else(stream_taken)
    }

    /// Continues the conversation on another stream, after TLS has started. Clear-text bytes that arrived after that point may
    /// come from an attacker and are dropped.
    pub(crate) fn resume_on(&mut self, stream: Stream) {
        self.ahead.clear();
        self.stream = Some(stream);
    }

    /// Sends a line.
    pub(crate) async fn send_line(
        &mut self,
        parts: &Parts,
        clock: &Clock,
        line: &str,
    ) -> Result<(), FetchFailure> {
        self.send_secret_line(parts, clock, line, line).await
    }

    /// Sends a line and records another one in its place.
    pub(crate) async fn send_secret_line(
        &mut self,
        parts: &Parts,
        clock: &Clock,
        line: &str,
        written: &str,
    ) -> Result<(), FetchFailure> {
        self.record(written.as_bytes());
        self.record(b"\r\n");
        let line = format!("{line}\r\n");
        let stream = self.stream.as_mut().ok_or_else(stream_taken)?;
        let send = async {
            stream.write_all(line.as_bytes()).await?;
            stream.flush().await
        };
        within(parts, clock, Phase::Request, send).await
    }

    /// Returns the next line without its end; `None` if the server has closed the connection.
    pub(crate) async fn read_line(
        &mut self,
        parts: &Parts,
        clock: &Clock,
    ) -> Result<Option<String>, FetchFailure> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.ahead) {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                self.record(&line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                return Ok(Some(String::from_utf8_lossy(line).into_owned()));
            }
            if self.ahead.len() > LINE_BYTES_MAX {
                return Err(FetchFailure::Lost {
                    phase: Phase::Head,
                    reason: format!("a line of more than {LINE_BYTES_MAX} bytes"),
                });
            }
            let stream = self.stream.as_mut().ok_or_else(stream_taken)?;
            let ahead = &mut self.ahead;
            ahead.reserve(1024);
            match within(parts, clock, Phase::Head, stream.read_buf(ahead)).await? {
                0 => return Ok(None),
                count => self.received.add(count),
            }
        }
    }

    fn record(&mut self, bytes: &[u8]) {
        let room = CONVERSATION_BYTES_MAX.saturating_sub(self.transcript.len());
        self.transcript
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Ends the hold before a read. The hold counts if the server had sent something by then.
async fn first_read<T>(hold: Hold, read: impl Future<Output = T>) -> T {
    let mut read = std::pin::pin!(read);
    let mut hold = Some(hold);
    std::future::poll_fn(|cx| {
        let polled = read.as_mut().poll(cx);
        match hold.take() {
            Some(hold) if polled.is_pending() => hold.discard(),
            hold => drop(hold),
        }
        polled
    })
    .await
}

fn stream_taken() -> FetchFailure {
    FetchFailure::Lost {
        phase: Phase::Request,
        reason: "the connection was lost when TLS was started".to_owned(),
    }
}

impl Content {
    pub(crate) fn new(parts: &Parts, received: ExchangeProgress) -> Self {
        let config = &parts.config;
        let claim = parts.scratch.claim();
        Content {
            received,
            spool: SpoolWriter::within(claim.clone(), config.spool_memory_max),
            claim,
            digest: Sha1::new(),
            length: 0,
            length_max: config.body_bytes_max.unwrap_or(u64::MAX),
            truncated: None,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Receives everything until the connection ends or a limit is reached. The crawl's own limits are not failures.
    pub(crate) async fn receive(
        &mut self,
        parts: &Parts,
        clock: &Clock,
        stream: &mut Stream,
    ) -> Result<(), FetchFailure> {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let mut window = self.rate_window();
        loop {
            buffer.clear();
            let hold = self.received.hold();
            if let Err(truncation) = self.may_read(parts, clock).await {
                self.truncated = Some(truncation);
                return Ok(());
            }
            let time = window.time.elapsed();
            if time >= parts.config.rate_window {
                let bytes = (self.length - window.length) as f64;
                let least = parts.config.rate_min.unwrap_or(0) as f64;
                if bytes < least * time.as_secs_f64() {
                    self.truncated = Some(TruncationCause::Rate);
                    return Ok(());
                }
                window = self.rate_window();
            }
            let read = first_read(hold, stream.read_buf(&mut buffer));
            match within(parts, clock, Phase::Body, read).await {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    parts.throttle.count_read(count);
                    self.received.add(count);
                    self.append(&buffer)?;
                }
                Err(FetchFailure::Timeout { .. }) if Instant::now() >= clock.deadline => {
                    self.truncated = Some(TruncationCause::Time);
                }
                Err(FetchFailure::Stopped) => self.truncated = Some(TruncationCause::Stop),
                Err(failure) => {
                    self.truncated = Some(match failure {
                        FetchFailure::Timeout { .. } => TruncationCause::Time,
                        _ => TruncationCause::Disconnect,
                    });
                    return Err(failure);
                }
            }
            if self.truncated.is_some() {
                return Ok(());
            }
        }
    }

    /// Returns a window of the rate that begins now.
    fn rate_window(&self) -> RateWindow {
        RateWindow {
            time: self.received.server_time(),
            length: self.length,
        }
    }

    /// Waits until more may be read and recorded.
    async fn may_read(&self, parts: &Parts, clock: &Clock) -> Result<(), TruncationCause> {
        self.room(parts, clock).await?;
        read_permit(parts, clock).await
    }

    /// Waits until as many bytes as one read takes may be recorded.
    async fn room(&self, parts: &Parts, clock: &Clock) -> Result<(), TruncationCause> {
        let bytes = self.spool.to_disk(READ_BYTES);
        if bytes == 0 {
            return Ok(());
        }
        let room = std::future::poll_fn(|cx| self.claim.poll_room(cx, bytes));
        let outcome = tokio::select! {
            room = room => room.map_err(|NoRoom| TruncationCause::Scratch),
            () = tokio::time::sleep_until(clock.deadline) => Err(TruncationCause::Time),
            () = parts.cut.happens() => Err(TruncationCause::Stop),
        };
        self.claim.stop_waiting();
        outcome
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), FetchFailure> {
        let room = usize::try_from(self.length_max - self.length).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        if kept.len() < bytes.len() {
            self.truncated = Some(TruncationCause::Length);
        }
        self.length += kept.len() as u64;
        self.digest.update(kept);
        self.spool
            .append(kept)
            .map_err(|error| FetchFailure::Scratch(Arc::new(error)))
    }

    /// Converts the content and the facts of its transfer into an exchange.
    pub(crate) fn into_exchange(
        self,
        started: Timestamp,
        clock: &Clock,
        facts: TransferFacts,
    ) -> Exchange {
        let payload: Spool = self.spool.finish();
        let mut annotations = facts.annotations;
        annotations.extend(
            self.truncated
                .and_then(TruncationCause::annotation)
                .map(str::to_owned),
        );
        if facts.aborted_by_filter.is_some() {
            annotations.push("midFetchAbort".to_owned());
        }
        Exchange {
            started,
            duration: clock.elapsed(),
            time_to_head: facts.time_to_head,
            peer: facts.peer,
            request_bytes: facts.conversation.into(),
            wire: payload.clone(),
            interim: bytes::Bytes::new(),
            head: facts.head,
            payload,
            payload_digest: PayloadDigest(self.digest.finalize().into()),
            truncated: self.truncated,
            aborted_by_filter: facts.aborted_by_filter,
            failure: facts.failure,
            tls: facts.tls,
            proxy: None,
            http2: false,
            reused_connection: false,
            annotations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FetcherConfig;
    use crate::fetcher::Fetcher;

    /// Reads data that is available at once, as from a server that sends without pause.
    async fn read(parts: &Parts) -> Result<usize, FetchFailure> {
        let clock = Clock::start(&parts.config);
        let read = within(parts, &clock, Phase::Body, async { Ok(1) });
        read.await
    }

    #[tokio::test]
    async fn limits_apply_although_there_is_always_more_to_read() {
        let mut config = FetcherConfig::new("test", "");
        let fetcher = Fetcher::new(config.clone()).unwrap();
        assert_eq!(read(fetcher.parts()).await.unwrap(), 1);
        fetcher.abort_handle().now();
        let stopped = read(fetcher.parts()).await;
        assert!(matches!(stopped, Err(FetchFailure::Stopped)), "{stopped:?}");

        config.total_timeout = Duration::ZERO;
        let fetcher = Fetcher::new(config).unwrap();
        let late = read(fetcher.parts()).await;
        assert!(
            matches!(late, Err(FetchFailure::Timeout { .. })),
            "{late:?}"
        );
    }
}
