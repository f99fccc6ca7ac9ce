//! The recording stream. It records every byte that crosses it, above TLS and below HTTP.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::head::{self, ResponseHead};
use crate::proxy::Proxy;
use crate::spool::SpoolWriter;
use crate::stream::{Server, Stream};
use crate::throttle::ReadPermit;

/// Most bytes of frames that are read before their content is examined. It bounds the memory that a flood of tiny frames takes,
/// and the time between two checks of the limits.
const FRAMED_BYTES_MAX: usize = 64 * 1024;

/// A connection while it serves one exchange.
pub(crate) struct RecordingStream {
    stream: Stream,
    tape: Tape,
    forward: Option<Forward>,
    /// The wait for a read permit, while other exchanges read first.
    read_permit: Option<Pin<Box<dyn Future<Output = ReadPermit> + Send>>>,
    /// The hold on the server meanwhile, if it has sent anything.
    hold: Option<Hold>,
}

/// Rewrites a request, in the form that the server sees and that is recorded, for a forwarding proxy. The proxy needs the whole
/// URI in the first line (RFC 9112 §3.2.2) and its own credentials.
#[derive(Debug)]
pub(crate) struct Forward {
    /// `http://` and the host, with the port where it is not 80.
    origin: String,
    /// Lines that follow the first.
    credentials: String,
    /// The first line, until it is complete; `None` afterwards.
    line: Option<Vec<u8>>,
    /// Rewritten bytes that have not been sent.
    out: BytesMut,
}

/// The recording, shared between the stream, which hyper owns, and the exchange that reads it.
#[derive(Clone, Debug)]
pub(crate) struct Tape(Arc<Mutex<Recording>>);

#[derive(Debug)]
pub(crate) struct Recording {
    /// The request as sent.
    pub sent: Vec<u8>,
    /// The final response, once its head has been found.
    pub wire: SpoolWriter,
    /// Bytes before the final response.
    pub interim: Bytes,
    /// All bytes received, including interim responses; for framed responses only the content of the frames.
    pub received: u64,
    /// Time at which a byte last crossed, in either direction; for framed responses, at which a part of the response last
    /// arrived.
    pub last_activity: Instant,
    /// Time at which the first byte arrived.
    first_byte: Option<Instant>,
    /// The same count as `received`, plus control frames, for observers of the exchange.
    counter: ExchangeProgress,
    /// Time for which `counter` had been held up when the exchange began.
    held_up_before: Duration,
    /// Received before the head was found; at most `before_head_max` and one buffer.
    before_head: Vec<u8>,
    head_found: bool,
    /// `true` if the head that was found ends with its empty line.
    pub head_is_whole: bool,
    before_head_max: usize,
    /// `true` if the head exceeded its limit.
    pub head_overflow: bool,
    /// `true` if TLS ended without close_notify. It counts as the end, as in browsers.
    pub unclean_close: bool,
    /// The scratch file failed; the exchange cannot be recorded.
    pub scratch_error: Option<io::Error>,
    /// `true` if the stream is framed in a form that no record can hold. Another part then writes the recording.
    is_framed: bool,
    /// Bytes of frames that were read since [`Recording::take_framed`].
    framed: usize,
}

/// The bytes that an exchange has received so far, and the time for which the crawl has held its server up. Clones count the same
/// exchange, so that others can observe it.
#[derive(Clone, Debug, Default)]
pub struct ExchangeProgress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    held_up: Mutex<HeldUp>,
}

/// A clock of the time for which the server of an exchange is responsible: it stands while the crawl holds the server up.
#[derive(Debug)]
pub struct ServerTime {
    progress: ExchangeProgress,
    since: Instant,
    held_up_before: Duration,
}

/// The time for which a server was kept waiting, because the receive limit of all exchanges together was reached.
#[derive(Clone, Copy, Debug, Default)]
struct HeldUp {
    /// The time of all holds that have ended.
    before: Duration,
    /// The beginning of the hold that lasts.
    since: Option<Instant>,
}

/// A pause in reading because of a limit of the crawl. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    received: ExchangeProgress,
    counts: bool,
}

impl ExchangeProgress {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns the time for which the server has been held up, including the current hold. It decreases by that hold if the
    /// server turns out to have sent nothing during it.
    pub fn held_up(&self) -> Duration {
        self.held_up_until(Instant::now())
    }

    /// Starts a clock of the server's time.
    pub fn server_time(&self) -> ServerTime {
        ServerTime {
            progress: self.clone(),
            since: Instant::now(),
            held_up_before: self.held_up(),
        }
    }

    fn held_up_until(&self, now: Instant) -> Duration {
        let held_up = *self.times();
        let lasts = held_up
            .since
            .map(|since| now.saturating_duration_since(since));
        held_up.before + lasts.unwrap_or_default()
    }

    fn is_held_up(&self) -> bool {
        self.times().since.is_some()
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Begins a hold. An exchange has at most one at a time.
    pub(crate) fn hold(&self) -> Hold {
        self.times().since = Some(Instant::now());
        Hold {
            received: self.clone(),
            counts: true,
        }
    }

    fn times(&self) -> MutexGuard<'_, HeldUp> {
        self.0
            .held_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerTime {
    /// Returns the server's time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        let held_up = self.progress.held_up().saturating_sub(self.held_up_before);
        self.since.elapsed().saturating_sub(held_up)
    }
}

impl Hold {
    /// Ends the hold without counting it: the server had sent nothing, so it was not kept waiting.
    pub(crate) fn discard(mut self) {
        self.counts = false;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held_up = self.received.times();
        if let Some(since) = held_up.since.take().filter(|_| self.counts) {
            held_up.before += since.elapsed();
        }
    }
}

impl RecordingStream {
    pub(crate) fn new(stream: Stream, tape: Tape, forward: Option<Forward>) -> Self {
        RecordingStream {
            stream,
            tape,
            forward,
            read_permit: None,
            hold: None,
        }
    }

    /// Ready when the receive limit of all exchanges leaves room for this one to read. Until then the server is held up, until
    /// [`Self::end_hold`].
    fn poll_read_permit(&mut self, cx: &mut Context<'_>) -> Poll<Option<ReadPermit>> {
        let throttle = self.stream.guard.throttle();
        if self.read_permit.is_none() {
            if throttle.is_free() {
                return Poll::Ready(None);
            }
            self.read_permit = Some(Box::pin(throttle.clone().read_permit()));
            self.hold = Some(self.tape.lock().counter.hold());
        }
        let read_permit = match &mut self.read_permit {
            Some(read_permit) => ready!(read_permit.as_mut().poll(cx)),
            None => return Poll::Ready(None),
        };
        self.read_permit = None;
        Poll::Ready(Some(read_permit))
    }

    /// Ends the hold after a read. If the server had sent nothing, it was not kept waiting: the hold counts as its silence.
    fn end_hold(&mut self, had_sent: bool) {
        match self.hold.take() {
            Some(hold) if had_sent => {
                // Set first, so that the time of the hold never counts as silence.
                self.tape.lock().last_activity = Instant::now();
                drop(hold);
            }
            Some(hold) => hold.discard(),
            None => {}
        }
    }

    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl Forward {
    pub(crate) fn new(proxy: &Proxy, server: &Server) -> Self {
        let origin = match server.port {
            80 => format!("http://{}", server.host),
            port => format!("http://{}:{port}", server.host),
        };
        Forward {
            origin,
            credentials: proxy.authorization(),
            line: Some(Vec::new()),
            out: BytesMut::new(),
        }
    }

    /// Takes the part of `bytes` that belongs to the first line. Returns its length; `None` if the line is complete.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let line = self.line.as_mut()?;
        let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        let count = end.unwrap_or(bytes.len());
        line.extend_from_slice(&bytes[..count]);
        if end.is_some() {
            let target = memchr::memchr(b' ', line).map_or(0, |blank| blank + 1);
            self.out.extend_from_slice(&line[..target]);
            self.out.extend_from_slice(self.origin.as_bytes());
            self.out.extend_from_slice(&line[target..]);
            self.out.extend_from_slice(self.credentials.as_bytes());
            self.line = None;
        }
        Some(count)
    }
}

impl Tape {
    /// Creates a recording for framed responses, whose content another part records.
    pub(crate) fn framed(wire: SpoolWriter, counter: ExchangeProgress) -> Self {
        let tape = Tape::new(wire, 0, counter);
        tape.lock().is_framed = true;
        tape
    }

    /// Creates a recording. `before_head_max` bounds interim responses and head together.
    pub(crate) fn new(
        wire: SpoolWriter,
        before_head_max: usize,
        counter: ExchangeProgress,
    ) -> Self {
        Tape(Arc::new(Mutex::new(Recording {
            sent: Vec::new(),
            wire,
            interim: Bytes::new(),
            received: 0,
            last_activity: Instant::now(),
            first_byte: None,
            held_up_before: counter.held_up(),
            counter,
            before_head: Vec::new(),
            head_found: false,
            head_is_whole: false,
            before_head_max,
            head_overflow: false,
            unclean_close: false,
            scratch_error: None,
            is_framed: false,
            framed: 0,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    /// Finds the head once it is complete or nothing more comes, and moves the held bytes into the recording.
    pub(crate) fn find_head(&mut self) -> Option<ResponseHead> {
        self.head_found = true;
        let held: Bytes = std::mem::take(&mut self.before_head).into();
        let found = head::find(&held);
        self.interim = held.slice(..found.interim_length);
        let response = &held[found.interim_length..];
        self.head_is_whole = found
            .head
            .as_ref()
            .is_some_and(|head| head.is_whole_in(response));
        self.record(response);
        found.head
    }

    /// Returns the time since which the server has been silent. Time for which the crawl held it up does not count.
    pub(crate) fn silent_since(&self, now: Instant) -> Instant {
        match self.counter.is_held_up() {
            true => now,
            false => self.last_activity,
        }
    }

    /// Returns the time for which the crawl has kept the server waiting in this exchange.
    pub(crate) fn held_up_for(&self, now: Instant) -> Duration {
        let held_up = self.counter.held_up_until(now);
        held_up.saturating_sub(self.held_up_before)
    }

    /// Returns the time since which an incomplete head has been arriving. Over HTTP/2 it arrives in one piece.
    pub(crate) fn head_since(&self) -> Option<Instant> {
        self.first_byte.filter(|_| !self.head_found)
    }

    /// Counts a part of the response that arrived in frames.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.last_activity = Instant::now();
    }

    /// Returns the bytes of frames since the last call.
    pub(crate) fn take_framed(&mut self) -> usize {
        std::mem::take(&mut self.framed)
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.counter.add(bytes.len());
        if self.is_framed {
            // Control frames do not show that the response continues.
            self.framed += bytes.len();
            return;
        }
        self.received += bytes.len() as u64;
        self.last_activity = Instant::now();
        self.first_byte.get_or_insert(self.last_activity);
        match self.head_found {
            true => self.record(bytes),
            false => self.before_head.extend_from_slice(bytes),
        }
    }

    /// Records bytes. If that fails, the exchange fails.
    pub(crate) fn record(&mut self, bytes: &[u8]) {
        if let Err(error) = self.wire.append(bytes) {
            self.scratch_error.get_or_insert(error);
        }
    }

    /// Checks whether hyper may continue to read.
    fn check(&mut self) -> io::Result<()> {
        if self.scratch_error.is_some() {
            return Err(io::Error::other("scratch directory"));
        }
        if !self.head_found && !self.is_framed && self.before_head.len() >= self.before_head_max {
            self.head_overflow = true;
            return Err(io::Error::other("response head too long"));
        }
        Ok(())
    }
}

impl AsyncRead for RecordingStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        {
            let mut tape = this.tape.lock();
            tape.check()?;
            if tape.framed >= FRAMED_BYTES_MAX {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let _permit = ready!(this.poll_read_permit(cx));
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.end_hold(result.is_ready());
        let result = ready!(result);
        let mut tape = this.tape.lock();
        match result {
            Ok(()) => {
                let new = &buffer.filled()[before..];
                if !new.is_empty() {
                    this.stream.guard.throttle().count_read(new.len());
                    tape.receive(new);
                }
                Poll::Ready(Ok(()))
            }
            // rustls reports a missing close_notify this way; a plain socket never does.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tape.unclean_close = true;
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for RecordingStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_rewritten(cx))?;
        let taken = this
            .forward
            .as_mut()
            .and_then(|forward| forward.take(buffer));
        let count = match taken {
            Some(count) => count,
            None => ready!(Pin::new(&mut this.stream).poll_write(cx, buffer))?,
        };
        let mut tape = this.tape.lock();
        if !tape.is_framed {
            tape.sent.extend_from_slice(&buffer[..count]);
            tape.last_activity = Instant::now();
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_rewritten(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl RecordingStream {
    /// Ready when the bytes that were rewritten for a proxy have been sent.
    fn poll_rewritten(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(forward) = &mut self.forward else {
            return Poll::Ready(Ok(()));
        };
        while !forward.out.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &forward.out))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            forward.out.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}
