//! The record of a payload while it is received: its length, its digest, and a copy without transfer coding where the bytes on the
//! wire differ. It also passes the bytes on to a receiver, if there is one.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use sha1::{Digest, Sha1};

use crate::exchange::TruncationCause;
use crate::payload_tap::{TapEnd, poll_unwanted};
use crate::recording_stream::Tape;
use crate::scratch::{Claim, NoRoom};
use crate::spool::SpoolWriter;
use crate::wire::{LimitHit, Watch, Wire};

/// The record of a payload while it is received.
pub(crate) struct BodyRecord {
    /// A copy of the payload without transfer coding, if the bytes on the wire differ from it.
    pub(crate) separate: Option<SpoolWriter>,
    pub(crate) digest: Sha1,
    pub(crate) length: u64,
    length_max: u64,
    /// Payload bytes that came after `length_max`.
    pub(crate) overshoot: u64,
    pub(crate) scratch_error: Option<io::Error>,
    claim: Arc<Claim>,
    /// The receiver of the payload, if there is one.
    pub(crate) tap: Option<TapEnd>,
}

impl BodyRecord {
    pub(crate) fn new(length_max: Option<u64>, claim: Arc<Claim>) -> Self {
        BodyRecord {
            separate: None,
            digest: Sha1::new(),
            length: 0,
            length_max: length_max.unwrap_or(u64::MAX),
            overshoot: 0,
            scratch_error: None,
            claim,
            tap: None,
        }
    }

    /// Waits until this many more bytes may be recorded. The error is the reason for which no space became free.
    pub(crate) async fn room(
        &self,
        watch: &mut Watch,
        tape: &Tape,
        ahead: usize,
    ) -> Result<(), RecordingEnd> {
        let of_wire = tape.lock().wire.to_disk(ahead);
        let of_payload = self
            .separate
            .as_ref()
            .map_or(0, |spool| spool.to_disk(ahead));
        match of_wire + of_payload {
            0 => Ok(()),
            bytes => match watch.room(&self.claim, bytes).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(NoRoom)) => Err(RecordingEnd::NoRoom),
                Err(limit) => Err(RecordingEnd::LimitHit(limit)),
            },
        }
    }

    /// Receives the body up to its end. The error is the reason for an earlier end.
    pub(crate) async fn receive(
        &mut self,
        wire: &mut Wire,
        tape: &Tape,
        ahead: usize,
        body: Incoming,
    ) -> Result<(), RecordingEnd> {
        let mut body = pin!(body);
        loop {
            self.room(wire.watch(), tape, ahead).await?;
            let tap = &mut self.tap;
            let next = wire.until(|cx| match body.as_mut().poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(Some(frame)),
                Poll::Pending => poll_unwanted(tap, cx).map(|()| None),
            });
            let frame = match next.await {
                Ok(Some(None)) => return Ok(()),
                Ok(Some(Some(frame))) => frame.map_err(RecordingEnd::Hyper)?,
                Ok(None) => return Err(RecordingEnd::Unwanted),
                Err(limit) => return Err(RecordingEnd::LimitHit(limit)),
            };
            if let Ok(data) = frame.into_data() {
                self.append(&data).map_err(RecordingEnd::Cut)?;
                self.pass_on(wire.watch(), data).await?;
            }
        }
    }

    /// Passes received bytes on to the receiver, if there is one. Waits for it, and holds the server up meanwhile.
    pub(crate) async fn pass_on(&self, watch: &mut Watch, data: Bytes) -> Result<(), RecordingEnd> {
        let Some(tap) = self.tap.as_ref().filter(|_| !data.is_empty()) else {
            return Ok(());
        };
        let mut room = pin!(tap.sender.reserve());
        match watch.hold(|cx| room.as_mut().poll(cx)).await {
            Ok(Ok(room)) => {
                room.send(data);
                Ok(())
            }
            Ok(Err(_)) => Err(RecordingEnd::Unwanted),
            Err(limit) => Err(RecordingEnd::LimitHit(limit)),
        }
    }

    /// Appends received bytes. `Err` means that the body is cut here.
    pub(crate) fn append(&mut self, data: &[u8]) -> Result<(), TruncationCause> {
        let room = self.length_max - self.length;
        let kept = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        self.length += kept.len() as u64;
        self.digest.update(kept);
        if let Some(Err(error)) = self.separate.as_mut().map(|spool| spool.append(kept)) {
            self.scratch_error.get_or_insert(error);
            return Err(TruncationCause::Length);
        }
        self.overshoot = (data.len() - kept.len()) as u64;
        match self.overshoot {
            0 => Ok(()),
            _ => Err(TruncationCause::Length),
        }
    }
}

/// The reason why a body is not recorded further.
pub(crate) enum RecordingEnd {
    /// The body has reached a limit of the recording.
    Cut(TruncationCause),
    /// The connection or the framing failed.
    Hyper(hyper::Error),
    NoRoom,
    LimitHit(LimitHit),
    /// The receiver of the payload was dropped.
    Unwanted,
}
