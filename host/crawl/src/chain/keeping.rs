//! How a capture is kept: whole, as a revisit of what is stored already, or not at all.

use std::sync::Arc;

use opilio_archive::{Location, StoredPayload};
use opilio_fetch::Exchange;
use opilio_frontier::ContentState;
use opilio_profile::{ArchiveFormat, Revisit, StrippedEqual, UnchangedHeaders};

use super::Chain;
use super::decisions::Fields;
use crate::context::Halt;
use crate::control::Step;
use crate::duplicates::{Held, PayloadDigests};
use crate::records::{self, About, Keep, Previous};
use opilio_visit::annotations;
use opilio_visit::found;
use opilio_visit::standing::Memory;

/// Whether the response's body was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// As far as it came.
    Fetched,
    /// The server answered 304: it sent none.
    NotModified,
    /// A mid-fetch filter took the headers as proof that nothing has changed.
    LeftAlone,
}

/// A capture on its way into the archive.
pub(super) struct Capture<'c> {
    pub(super) exchange: &'c Arc<Exchange>,
    pub(super) reading: &'c found::Reading,
    pub(super) body: Body,
    pub(super) memory: &'c Memory,
    /// Annotations so far.
    pub(super) annotations: Vec<String>,
    /// Who decided what about it.
    pub(super) decisions: Fields,
}

/// A capture in the archive, or one of which nothing was written.
pub(super) struct Stored {
    /// How it was kept.
    pub(super) keep: Keep,
    /// Where its first record stands; none where nothing was written.
    pub(super) location: Option<Location>,
    /// Everything there is to say about it.
    pub(super) annotations: Vec<String>,
}

impl Chain<'_> {
    /// How the capture is kept, by the settings that hold for its media type.
    pub(super) fn keep(
        &self,
        exchange: &Exchange,
        reading: &found::Reading,
        body: Body,
        settings: &Revisit,
    ) -> Result<Keep, Halt> {
        let record = &self.issue.record;
        let previous = self.previous()?;
        let identical = record.digests.payload == Some(exchange.payload_digest.0);
        let is_arc = self.context.profile.archive.format == ArchiveFormat::Arc;
        Ok(match (previous, reading.state) {
            _ if !reading.archive => Keep::Nothing,
            // ARC can say nothing of a payload that is not there.
            _ if is_arc && body != Body::Fetched => Keep::Nothing,
            _ if is_arc => Keep::Response,
            (Some(previous), ContentState::Unchanged) if body == Body::NotModified => {
                Keep::NotModified(previous)
            }
            (Some(previous), ContentState::Unchanged) if body == Body::LeftAlone => {
                match settings.unchanged_headers {
                    UnchangedHeaders::Revisit => Keep::HeadersUnchanged(previous),
                    UnchangedHeaders::Note => Keep::Note(previous),
                    UnchangedHeaders::Drop => Keep::Nothing,
                    UnchangedHeaders::ServerNotModified => Keep::NotModified(previous),
                }
            }
            (Some(previous), ContentState::Unchanged) if identical => Keep::Identical(previous),
            (Some(previous), ContentState::Unchanged) => match settings.stripped_equal {
                StrippedEqual::Archive => Keep::Response,
                StrippedEqual::Note => Keep::Note(previous),
                StrippedEqual::Drop => Keep::Nothing,
            },
            _ => Keep::Response,
        })
    }

    /// The capture that has the payload of the version that was archived last: that one, or one of another URI.
    fn previous(&self) -> Result<Option<Previous>, Halt> {
        let record = &self.issue.record;
        let Some(at) = record.archived.clone() else {
            return Ok(None);
        };
        let original = match (&self.context.duplicates, record.digests.payload) {
            (Some(duplicates), Some(payload)) => duplicates.original(&record.uri, payload)?,
            _ => None,
        };
        let own = || Previous {
            uri: record.uri.clone(),
            at,
        };
        Ok(Some(original.map_or_else(own, records::previous_of)))
    }

    /// A payload that is to be stored whole, so that nobody else stores the same meanwhile; where it is stored already
    /// the answer says where. None: it is not looked up.
    async fn hold(
        &self,
        exchange: &Exchange,
        keep: &Keep,
        payload: PayloadDigests,
    ) -> Result<Option<Held<'_>>, Halt> {
        let is_complete = exchange.truncated.is_none() && exchange.failure.is_none();
        match &self.context.duplicates {
            Some(duplicates)
                if *keep == Keep::Response
                    && is_complete
                    && duplicates.wants(exchange.payload.length()) =>
            {
                Ok(Some(duplicates.hold(payload).await?))
            }
            _ => Ok(None),
        }
    }

    /// Writes the records of a capture, and remembers where its payload stands. `keep` is what the capture itself calls
    /// for; a payload that another URI has brought is not stored again.
    pub(super) async fn store(&self, capture: Capture<'_>, keep: Keep) -> Result<Stored, Halt> {
        let Capture {
            exchange,
            reading,
            body,
            memory,
            mut annotations,
            decisions,
        } = capture;
        let payload = self.context.payload_digests(exchange).await?;
        let held = self.hold(exchange, &keep, payload).await?;
        let keep = match held.as_ref().and_then(|held| held.found.clone()) {
            Some(stored) => Keep::Duplicate(records::previous_of(stored)),
            None => keep,
        };
        annotations.extend(
            memory
                .notes
                .annotations()
                .iter()
                .map(annotations::of_plugin),
        );
        self.annotate(&mut annotations, reading, &keep, body);
        let record = &self.issue.record;
        let about = About {
            payload: Some(payload),
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            charset: reading.charset.clone(),
            annotations: &annotations,
            decisions,
            notes: memory.notes.all().into_iter().collect(),
            links: &reading.extracted.links,
        };
        self.flight.step(Step::Archive);
        let records = records::of_exchange(&self.issue.uri, exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();
        if let (Some(held), Some(location), Keep::Response) = (&held, &location, &keep) {
            held.keep(&StoredPayload {
                uri: self.issue.uri.as_str().to_owned(),
                date: records::date_of(exchange),
                record_id: Some(location.record_id.to_string()),
                file: location.file.clone(),
                offset: location.offset,
            })?;
        }
        Ok(Stored {
            keep,
            location,
            annotations,
        })
    }

    fn annotate(
        &self,
        annotations: &mut Vec<String>,
        reading: &found::Reading,
        keep: &Keep,
        body: Body,
    ) {
        if self.issue.record.attempts > 0 {
            annotations.push(format!("{}t", self.issue.record.attempts + 1));
        }
        if reading.state == ContentState::Unchanged {
            annotations.push("unchanged".to_owned());
        }
        if body == Body::NotModified {
            annotations.push("duplicate:server-not-modified".to_owned());
        }
        match keep {
            Keep::Identical(_) => {
                annotations.push("duplicate:digest".to_owned());
                annotations.push("warcRevisit:digest".to_owned());
            }
            Keep::Duplicate(_) => {
                annotations.push("duplicate:digest".to_owned());
                annotations.push("warcRevisit:uriAgnosticDigest".to_owned());
            }
            Keep::NotModified(_) => annotations.push("warcRevisit:notModified".to_owned()),
            Keep::HeadersUnchanged(_) => {
                annotations.push("warcRevisit:headersUnchanged".to_owned());
            }
            Keep::Response | Keep::Note(_) | Keep::Nothing => {}
        }
        if reading.extracted.dropped > 0 {
            annotations.push(format!("dol:{}", reading.extracted.dropped));
        }
        for (plugin, problem) in &reading.extracted.problems {
            tracing::debug!(uri = %self.issue.uri, plugin, problem, "could not be read in full");
        }
    }
}
