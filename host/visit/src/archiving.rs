//! The archiving decision: a capture is stored in full, as a revisit record of a stored capture, or not at all.

use opilio_frontier::ContentState;
use opilio_profile::{ArchiveFormat, Revisit, StrippedEqual, UnchangedHeaders};

use crate::capture::{Body, CaptureForm, EarlierCapture};
use crate::driver::Driver;
use crate::pipeline::Pipeline;
use crate::reading::Reading;
use crate::response::Response;

/// Decides the form in which a capture is archived, by the settings for its media type.
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
    /// Decides the form in which a capture is archived if `previous` has the payload of the version that was archived last.
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
            // The rendered page differs, and its payload is the same.
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

/// Returns the capture with the payload of the version that was archived last. It may be a capture of another URI.
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
