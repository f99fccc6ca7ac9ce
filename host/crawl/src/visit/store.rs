//! Writing of a capture: deduplication, WARC records, location in the archive.

use opilio_fetch::Exchange;
use opilio_visit::{CaptureForm, PendingCapture, StoredCapture};

use super::{CrawlVisit, stored_payload, warc_location};
use crate::duplicates::{LockedPayload, PayloadDigests};
use crate::error::Halt;
use crate::records::{self, RecordContext};

impl CrawlVisit<'_> {
    /// Writes the records of a capture and adds its payload to the index. `keep` is the form that the capture's own history
    /// requires. If another URI's capture has the payload, it is not stored again.
    pub(super) async fn write_capture(
        &self,
        mut capture: PendingCapture<'_>,
        keep: CaptureForm,
    ) -> Result<StoredCapture, Halt> {
        let (exchange, issue) = (capture.exchange, &self.pipeline.issue);
        let payload = self.context.payload_digests(exchange).await?;
        let held = self.lock_payload(exchange, &keep, payload).await?;
        let keep = match held.as_ref().and_then(|held| held.found.clone()) {
            Some(stored) => CaptureForm::Duplicate(records::previous_of(stored)),
            None => keep,
        };
        capture.annotate(&self.pipeline, &keep);
        let record = &issue.record;
        let login = self.context.network.logins.part_of(&issue.uri);
        let about = RecordContext {
            payload: Some(payload),
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            charset: capture.reading.charset.clone(),
            annotations: &capture.annotations,
            decisions: capture.decisions,
            notes: capture.memory.notes.all().into_iter().collect(),
            links: &capture.reading.extracted.links,
            is_body_secret: login.is_some(),
        };
        let records = records::of_exchange(&issue.uri, exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();
        let date = records::date_of(exchange);
        if let (Some(held), Some(location), CaptureForm::Response) = (&held, &location, &keep) {
            held.add_to_index(&stored_payload(&issue.uri, date, location))?;
        }
        Ok(StoredCapture {
            keep,
            at: location.map(|location| warc_location(location, date)),
            annotations: capture.annotations,
        })
    }

    /// Locks a payload that is to be stored, so that no other visit stores the same payload meanwhile. The returned value has the
    /// location if the payload is stored already. Returns `None` if the payload is not looked up.
    pub(super) async fn lock_payload(
        &self,
        exchange: &Exchange,
        keep: &CaptureForm,
        payload: PayloadDigests,
    ) -> Result<Option<LockedPayload<'_>>, Halt> {
        let is_complete = exchange.truncated.is_none() && exchange.failure.is_none();
        match &self.context.outputs.duplicates {
            Some(duplicates)
                if *keep == CaptureForm::Response
                    && is_complete
                    && duplicates.wants(exchange.payload.length()) =>
            {
                Ok(Some(duplicates.lock(payload).await?))
            }
            _ => Ok(None),
        }
    }
}
