//! The recording stream: every byte that crosses it, above TLS and below HTTP, is written down.

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
use crate::throttle::Turn;

/// The most that is read of frames before somebody looks at what they hold. Bounds what a flood of the smallest frames
/// takes of memory, and how long it keeps limits from being looked at.
const FRAMED_BYTES_MAX: usize = 64 * 1024;

/// A connection while it serves one exchange.
pub(crate) struct RecordingStream {
    stream: Stream,
    tape: Tape,
    forward: Option<Forward>,
    /// On the way to the right to read, where others are to read first.
    turn: Option<Pin<Box<dyn Future<Output = Turn> + Send>>>,
    /// The server is kept waiting meanwhile, if it has sent anything.
    hold: Option<Hold>,
}

/// Turns a request as the server is to see it, and as it is recorded, into what a proxy that forwards wants: the whole URI
/// in the first line (RFC 9112 §3.2.2), and the proxy's own credentials.
#[derive(Debug)]
pub(crate) struct Forward {
    /// `http://` and the host, with the port where it is not 80.
    origin: String,
    /// Lines that go behind the first.
    credentials: String,
    /// The first line, until it is whole; none behind it.
    line: Option<Vec<u8>>,
    /// Rewritten and not yet sent.
    out: BytesMut,
}

/// What has been written down; shared between the stream, which hyper owns, and the exchange that reads it.
#[derive(Clone, Debug)]
pub(crate) struct Tape(Arc<Mutex<Recording>>);

#[derive(Debug)]
pub(crate) struct Recording {
    /// The request as sent.
    pub sent: Vec<u8>,
    /// The final response, once its head has been found.
    pub wire: SpoolWriter,
    /// What came before the final response.
    pub interim: Bytes,
    /// All bytes received, interim ones included; of what is framed only what was in the frames.
    pub received: u64,
    /// When a byte last crossed, in either direction; of what is framed, when a part of the response last came.
    pub last_activity: Instant,
    /// When the first byte came.
    first_byte: Option<Instant>,
    /// The same as `received`, and what control frames took, for whoever watches the exchange.
    counter: Received,
    /// How long `counter` had been held up when the exchange began.
    held_up_before: Duration,
    /// Received before the head was found; at most `before_head_max` and one buffer.
    before_head: Vec<u8>,
    head_found: bool,
    /// The head that was found has its empty line.
    pub head_is_whole: bool,
    before_head_max: usize,
    /// The head did not end where it had to.
    pub head_overflow: bool,
    /// TLS ended without saying so; taken as the end, as browsers do.
    pub unclean_close: bool,
    /// The scratch file failed; the exchange cannot be recorded.
    pub scratch_error: Option<io::Error>,
    /// What crosses is framed in a way that no record can keep: others write the recording.
    is_framed: bool,
    /// Bytes of frames that were read since [`Recording::take_framed`].
    framed: usize,
}

/// The bytes that an exchange has received so far, and the time for which the crawl has held its server up. Clones count the
/// same exchange, so that others can watch it meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Received(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    held_up: Mutex<HeldUp>,
}

/// The time for which a server was kept waiting, because all exchanges together may receive no more.
#[derive(Clone, Copy, Debug, Default)]
struct HeldUp {
    /// The time of all holds that have ended.
    before: Duration,
    /// The beginning of the hold that lasts.
    since: Option<Instant>,
}

/// The exchange reads nothing until this is dropped, because of a limit of ours.
#[derive(Debug)]
pub(crate) struct Hold {
    received: Received,
    counts: bool,
}

impl Received {
    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// The time for which the server has been held up, a hold that lasts included. It falls back by that hold if the server
    /// turns out to have sent nothing meanwhile.
    pub fn held_up(&self) -> Duration {
        self.held_up_until(Instant::now())
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

    /// Begins a hold. An exchange has one at a time.
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

impl Hold {
    /// Ends the hold without counting it: the server had sent nothing, so that it was not kept waiting.
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
            turn: None,
            hold: None,
        }
    }

    /// Ready when as much as all exchanges may take leaves room for this one to read. Until then the server is held up:
    /// [`Self::end_hold`] ends that.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Turn>> {
        let throttle = self.stream.seat.throttle();
        if self.turn.is_none() {
            if throttle.is_free() {
                return Poll::Ready(None);
            }
            self.turn = Some(Box::pin(throttle.clone().turn()));
            self.hold = Some(self.tape.lock().counter.hold());
        }
        let turn = match &mut self.turn {
            Some(turn) => ready!(turn.as_mut().poll(cx)),
            None => return Poll::Ready(None),
        };
        self.turn = None;
        Poll::Ready(Some(turn))
    }

    /// The turn has been used. A server that had sent nothing was not kept waiting: it has been silent since it last sent.
    fn end_hold(&mut self, had_sent: bool) {
        match self.hold.take() {
            Some(hold) if had_sent => {
                // First, so that nobody takes the time of the hold for silence.
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

    /// Takes what it can of the first line; how much, none where that line is through.
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
    /// For what comes in frames, whose content others write down.
    pub(crate) fn framed(wire: SpoolWriter, counter: Received) -> Self {
        let tape = Tape::new(wire, 0, counter);
        tape.lock().is_framed = true;
        tape
    }

    /// `before_head_max` bounds interim responses and head together.
    pub(crate) fn new(wire: SpoolWriter, before_head_max: usize, counter: Received) -> Self {
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
    /// The head is there, or nothing more comes: finds it, and moves what was held back into the recording.
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

    /// Since when the server has been silent of its own accord.
    pub(crate) fn silent_since(&self, now: Instant) -> Instant {
        match self.counter.is_held_up() {
            true => now,
            false => self.last_activity,
        }
    }

    /// How long we have let the server wait in this exchange.
    pub(crate) fn held_up_for(&self, now: Instant) -> Duration {
        let held_up = self.counter.held_up_until(now);
        held_up.saturating_sub(self.held_up_before)
    }

    /// Since when the head has been coming, while it is not whole. Over HTTP/2 it comes in one piece.
    pub(crate) fn head_since(&self) -> Option<Instant> {
        self.first_byte.filter(|_| !self.head_found)
    }

    /// A part of the response has come in frames.
    pub(crate) fn came(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.last_activity = Instant::now();
    }

    /// Bytes of frames since this was last asked.
    pub(crate) fn take_framed(&mut self) -> usize {
        std::mem::take(&mut self.framed)
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.counter.add(bytes.len());
        if self.is_framed {
            // Control frames are no sign that the response comes on.
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

    /// Writes down; where that fails, the exchange does.
    pub(crate) fn record(&mut self, bytes: &[u8]) {
        if let Err(error) = self.wire.append(bytes) {
            self.scratch_error.get_or_insert(error);
        }
    }

    /// Whether hyper may read on.
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
        let _turn = ready!(this.poll_turn(cx));
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.end_hold(result.is_ready());
        let result = ready!(result);
        let mut tape = this.tape.lock();
        match result {
            Ok(()) => {
                let new = &buffer.filled()[before..];
                if !new.is_empty() {
                    this.stream.seat.throttle().took(new.len());
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
    /// Ready when what was rewritten for a proxy has been sent.
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
