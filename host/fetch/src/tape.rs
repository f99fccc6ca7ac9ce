//! The recording stream: every byte that crosses it, above TLS and below HTTP, is written down.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::head::{self, ResponseHead};
use crate::spool::SpoolWriter;
use crate::stream::Stream;

/// A connection while it serves one exchange.
#[derive(Debug)]
pub(crate) struct RecordingStream {
    stream: Stream,
    tape: Tape,
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
    /// All bytes received, interim ones included.
    pub received: u64,
    /// When a byte last crossed, in either direction.
    pub last_activity: Instant,
    /// Received before the head was found; at most `before_head_max` and one buffer.
    before_head: Vec<u8>,
    head_found: bool,
    before_head_max: usize,
    /// The head did not end where it had to.
    pub head_overflow: bool,
    /// TLS ended without saying so; taken as the end, as browsers do.
    pub unclean_close: bool,
    /// The scratch file failed; the exchange cannot be recorded.
    pub scratch_error: Option<io::Error>,
}

impl RecordingStream {
    pub(crate) fn new(stream: Stream, tape: Tape) -> Self {
        RecordingStream { stream, tape }
    }

    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl Tape {
    /// `before_head_max` bounds interim responses and head together.
    pub(crate) fn new(wire: SpoolWriter, before_head_max: usize) -> Self {
        Tape(Arc::new(Mutex::new(Recording {
            sent: Vec::new(),
            wire,
            interim: Bytes::new(),
            received: 0,
            last_activity: Instant::now(),
            before_head: Vec::new(),
            head_found: false,
            before_head_max,
            head_overflow: false,
            unclean_close: false,
            scratch_error: None,
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
        self.record(&held[found.interim_length..]);
        found.head
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        self.last_activity = Instant::now();
        match self.head_found {
            true => self.record(bytes),
            false => self.before_head.extend_from_slice(bytes),
        }
    }

    fn record(&mut self, bytes: &[u8]) {
        if let Err(error) = self.wire.append(bytes) {
            self.scratch_error.get_or_insert(error);
        }
    }

    /// Whether hyper may read on.
    fn check(&mut self) -> io::Result<()> {
        if self.scratch_error.is_some() {
            return Err(io::Error::other("scratch directory"));
        }
        if !self.head_found && self.before_head.len() >= self.before_head_max {
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
        this.tape.lock().check()?;
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut this.stream).poll_read(cx, buffer));
        let mut tape = this.tape.lock();
        match result {
            Ok(()) => {
                let new = &buffer.filled()[before..];
                if !new.is_empty() {
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
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, buffer))?;
        let mut tape = this.tape.lock();
        tape.sent.extend_from_slice(&buffer[..count]);
        tape.last_activity = Instant::now();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
