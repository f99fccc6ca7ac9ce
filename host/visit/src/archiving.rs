//! The archiving decision: a capture is stored whole, as a revisit of a stored capture, or not at all.

use std::sync::Arc;

use opilio_fetch::Exchange;
use opilio_frontier::{ContentState, WarcLocation};
use opilio_profile::{ArchiveFormat, Revisit, StrippedEqual, UnchangedHeaders};

use crate::capture::{Body, CaptureForm, EarlierCapture};
use crate::decisions::DecisionFields;
use crate::driver::Driver;
use crate::pipeline::Pipeline;
use crate::plugin_view::PluginMemory;
use crate::reading::Reading;
use crate::response::Response;

/// A capture on its way into the archive.
pub struct PendingCapture<'c> {
    /// The exchange.
    pub exchange: &'c Arc<Exchange>,
    /// The response as it was read.
    pub reading: &'c Reading,
    /// Whether its body was fetched.
    pub body: Body,
    /// Notes of plugins.
    pub memory: &'c PluginMemory,
    /// Annotations so far. [`PendingCapture::annotate`] adds those that depend on how it is kept.
    pub annotations: Vec<String>,
    /// The decisions about it, for the metadata record.
    pub decisions: DecisionFields,
}

/// A capture that has been through the archive.
pub struct StoredCapture {
    /// The form in which it was archived.
    pub keep: CaptureForm,
    /// Its first record; none if nothing was written.
    pub at: Option<WarcLocation>,
    /// All annotations.
    pub annotations: Vec<String>,
}

/// Decides how a capture is kept, by the settings for its media type.
pub(crate) fn keep<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    response: &Response,
    reading: &Reading,
    settings: &Revisit,
) -> Result<CaptureForm, D::Error> {
    let previous = previous(pipeline, driver)?;
    Ok(response.keep(pipeline, reading, settings, previous))
}

impl Response {
    /// Decides how a capture is kept if `previous` has the payload of the version that was archived last.
    pub fn keep(
        &self,
        pipeline: &Pipeline,
        reading: &Reading,
        settings: &Revisit,
        previous: Option<EarlierCapture>,
    ) -> CaptureForm {
        let (record, body) = (&pipeline.issue.record, self.body);
        let identical = record.digests.payload == Some(self.exchange.payload_digest.0);
        let is_arc = pipeline.profile.archive.format == ArchiveFormat::Arc;
        match (previous, reading.state) {
            _ if !reading.archive => CaptureForm::Nothing,
            // ARC has no record for a missing payload.
            _ if is_arc && body != Body::Fetched => CaptureForm::Nothing,
            _ if is_arc => CaptureForm::Response,
            (Some(previous), ContentState::Unchanged) if body == Body::NotModified => {
                CaptureForm::NotModified(previous)
            }
            (Some(previous), ContentState::Unchanged) if body == Body::LeftAlone => {
                match settings.unchanged_headers {
                    UnchangedHeaders::Revisit => CaptureForm::HeadersUnchanged(previous),
                    UnchangedHeaders::Note => CaptureForm::Note(previous),
                    UnchangedHeaders::Drop => CaptureForm::Nothing,
                    UnchangedHeaders::ServerNotModified => CaptureForm::NotModified(previous),
                }
            }
            (Some(previous), ContentState::Unchanged) if identical => {
                CaptureForm::Identical(previous)
            }
            // The page shows something else, and its payload is the same.
            (Some(previous), _) if identical && reading.is_rendered => {
                CaptureForm::Identical(previous)
            }
            (Some(previous), ContentState::Unchanged) => match settings.stripped_equal {
                StrippedEqual::Archive => CaptureForm::Response,
                StrippedEqual::Note => CaptureForm::Note(previous),
                StrippedEqual::Drop => CaptureForm::Nothing,
            },
            _ => CaptureForm::Response,
        }
    }
}

/// The capture with the payload of the version that was archived last: its own, or one of another URI.
fn previous<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
) -> Result<Option<EarlierCapture>, D::Error> {
    let record = &pipeline.issue.record;
    let Some(at) = record.archived.clone() else {
        return Ok(None);
    };
    let original = match record.digests.payload {
        Some(payload) => driver.original(payload)?,
        None => None,
    };
    let own = || EarlierCapture {
        uri: record.uri.clone(),
        at,
    };
    Ok(Some(original.unwrap_or_else(own)))
}

impl PendingCapture<'_> {
    /// Completes the annotations once it is decided how the capture is kept.
    pub fn annotate(&mut self, pipeline: &Pipeline, keep: &CaptureForm) {
        let notes = self.memory.notes.annotations();
        self.annotations
            .extend(crate::annotations::of_plugins(&notes));
        let record = &pipeline.issue.record;
        let mut add = |annotation: &str| self.annotations.push(annotation.to_owned());
        if record.attempts > 0 {
            add(&format!("{}t", record.attempts + 1));
        }
        if self.reading.state == ContentState::Unchanged {
            add("unchanged");
        }
        if self.body == Body::NotModified {
            add("duplicate:server-not-modified");
        }
        match keep {
            CaptureForm::Identical(_) => {
                add("duplicate:digest");
                add("warcRevisit:digest");
            }
            CaptureForm::Duplicate(_) => {
                add("duplicate:digest");
                add("warcRevisit:uriAgnosticDigest");
            }
            CaptureForm::NotModified(_) => add("warcRevisit:notModified"),
            CaptureForm::HeadersUnchanged(_) => add("warcRevisit:headersUnchanged"),
            CaptureForm::Response | CaptureForm::Note(_) | CaptureForm::Nothing => {}
        }
        if self.reading.extracted.dropped > 0 {
            add(&format!("dol:{}", self.reading.extracted.dropped));
        }
        for (plugin, problem) in &self.reading.extracted.problems {
            tracing::debug!(uri = %pipeline.issue.uri, plugin, problem, "could not be read in full");
        }
    }
}
