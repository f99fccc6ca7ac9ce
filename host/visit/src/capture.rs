//! A capture before and after it is archived, the forms in which it is archived, and the capture that a revisit record refers to.

use std::sync::Arc;

use opilio_fetch::Exchange;
use opilio_frontier::{ContentState, WarcLocation};

use crate::annotations;
use crate::pipeline::Pipeline;
use crate::plugin_view::PluginMemory;
use crate::reading::Reading;

/// A capture that is to be archived.
pub struct PendingCapture<'c> {
    /// The exchange.
    pub exchange: &'c Arc<Exchange>,
    /// The result of reading the response.
    pub reading: &'c Reading,
    /// State of the response's body.
    pub body: Body,
    /// Notes of plugins.
    pub memory: &'c PluginMemory,
    /// Annotations so far. [`PendingCapture::annotate`] adds those that depend on the form in which the capture is archived.
    pub annotations: Vec<String>,
    /// The decisions about the capture, for the metadata record.
    pub decisions: DecisionFields,
}

/// A capture after archiving, even if nothing was written.
pub struct StoredCapture {
    /// The form in which it was archived.
    pub keep: CaptureForm,
    /// The capture's first record; `None` if nothing was written.
    pub at: Option<WarcLocation>,
    /// All annotations.
    pub annotations: Vec<String>,
}

/// The decision fields of the metadata record, in order.
pub type DecisionFields = Vec<(&'static str, String)>;

/// The form in which a capture is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureForm {
    /// The whole response.
    Response,
    /// The payload is stored already, byte for byte.
    Identical(EarlierCapture),
    /// The payload is stored already as the capture of another URI.
    Duplicate(EarlierCapture),
    /// The server answered 304: nothing has changed.
    NotModified(EarlierCapture),
    /// A mid-fetch filter took the headers as proof that nothing has changed; the body was not fetched.
    HeadersUnchanged(EarlierCapture),
    /// The visit and its headers: the content is the same, although the bytes differ.
    Note(EarlierCapture),
    /// Nothing is archived.
    Nothing,
}

/// The capture that a revisit record refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCapture {
    /// Its URI.
    pub uri: String,
    /// Its first record.
    pub at: WarcLocation,
}

/// State of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The body was fetched, as far as it arrived.
    Fetched,
    /// The server answered 304, so there is no body.
    NotModified,
    /// A mid-fetch filter took the headers as proof that nothing has changed.
    LeftAlone,
}

impl PendingCapture<'_> {
    /// Completes the annotations after the form of the capture was decided.
    pub fn annotate(&mut self, pipeline: &Pipeline, keep: &CaptureForm) {
        let notes = self.memory.notes.annotations();
        self.annotations.extend(annotations::of_plugins(&notes));
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
