//! A URI whose visit is completed, as JSON under the names of the contract. A missing field has its default.

use serde::{Deserialize, Serialize};

use crate::{ContentState, Finished, NamedValue};

/// A URI whose visit is completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FinishedFacts {
    at: u64,
    pub(super) uri: String,
    status: i32,
    media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<u64>,
    state: ContentState,
    hop_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    queue: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<NamedValue>,
}

impl FinishedFacts {
    pub(super) fn of(event: &Finished) -> Self {
        Self {
            at: event.at,
            uri: event.uri.clone(),
            status: event.status,
            media_type: event.media_type.clone(),
            size: event.size,
            took: event.took,
            state: event.state.into(),
            hop_path: event.hop_path.clone(),
            via: event.via.clone(),
            source: event.source.clone(),
            queue: event.queue.clone(),
            digest: event.digest.clone(),
            annotations: event.annotations.clone(),
            attributes: event.attributes.clone(),
        }
    }

    pub(super) fn finished(&self) -> Finished {
        Finished {
            at: self.at,
            uri: self.uri.clone(),
            status: self.status,
            media_type: self.media_type.clone(),
            size: self.size,
            took: self.took,
            state: self.state.into(),
            hop_path: self.hop_path.clone(),
            via: self.via.clone(),
            source: self.source.clone(),
            queue: self.queue.clone(),
            digest: self.digest.clone(),
            annotations: self.annotations.clone(),
            attributes: self.attributes.clone(),
        }
    }
}
