//! How a capture is kept: whole, as a revisit of what is stored already, or not at all.

use opilio_fetch::Exchange;
use opilio_frontier::ContentState;
use opilio_profile::{ArchiveFormat, StrippedEqual};

use super::Chain;
use crate::context::Halt;
use crate::duplicates::{Held, PayloadDigests};
use crate::found;
use crate::records::{self, Keep, Previous};

impl Chain<'_> {
    /// How the capture is kept.
    pub(super) fn keep(
        &self,
        exchange: &Exchange,
        reading: &found::Reading,
        bodyless: bool,
    ) -> Result<Keep, Halt> {
        let record = &self.issue.record;
        let previous = self.previous()?;
        let identical = record.digests.payload == Some(exchange.payload_digest.0);
        let is_arc = self.context.profile.archive.format == ArchiveFormat::Arc;
        Ok(match (previous, reading.state) {
            _ if !reading.archive => Keep::Nothing,
            // ARC can say nothing of a payload that is not there.
            _ if is_arc && bodyless => Keep::Nothing,
            _ if is_arc => Keep::Response,
            (Some(previous), ContentState::Unchanged) if bodyless => Keep::NotModified(previous),
            (Some(previous), ContentState::Unchanged) if identical => Keep::Identical(previous),
            (Some(previous), ContentState::Unchanged) => match self.settings.revisit.stripped_equal
            {
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
    pub(super) async fn hold(
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

    pub(super) fn annotate(
        &self,
        annotations: &mut Vec<String>,
        reading: &found::Reading,
        keep: &Keep,
        not_modified: bool,
    ) {
        if self.issue.record.attempts > 0 {
            annotations.push(format!("{}t", self.issue.record.attempts + 1));
        }
        if reading.state == ContentState::Unchanged {
            annotations.push("unchanged".to_owned());
        }
        if not_modified {
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
