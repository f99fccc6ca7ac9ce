//! Converts the model's types into those of the contract when a plugin reads them.

use opilio_model::{ContentState, KeptValue, PastVisit};

use crate::types::opilio::plugin::types;
use crate::visit::instant;

impl From<ContentState> for types::ContentState {
    fn from(state: ContentState) -> Self {
        match state {
            ContentState::New => Self::New,
            ContentState::Changed => Self::Changed,
            ContentState::Unchanged => Self::Unchanged,
            ContentState::Unknown => Self::Unknown,
        }
    }
}

impl From<types::ContentState> for ContentState {
    fn from(state: types::ContentState) -> Self {
        match state {
            types::ContentState::New => Self::New,
            types::ContentState::Changed => Self::Changed,
            types::ContentState::Unchanged => Self::Unchanged,
            types::ContentState::Unknown => Self::Unknown,
        }
    }
}

impl From<&PastVisit> for types::PastVisit {
    fn from(visit: &PastVisit) -> Self {
        Self {
            at: instant(visit.at),
            status: visit.status,
            state: visit.state.into(),
            size: visit.size,
        }
    }
}

impl From<KeptValue> for types::KeptValue {
    fn from(kept: KeptValue) -> Self {
        let KeptValue { version, value } = kept;
        Self { version, value }
    }
}
