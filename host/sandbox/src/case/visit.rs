//! A visit and its candidate, as JSON under the names of the contract. A missing field has its default.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document::KeptFacts;
use super::problem::{CallProblem, at};
use crate::visit::{instant, millis};
use crate::{Candidate, ContentState, NamedValue, Neighbourhood, Notes, PastVisit, Signal, Visit};

/// A candidate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CandidateFacts {
    pub(super) uri: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    surt: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hop_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via_surt: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    #[serde(skip_serializing_if = "is_false")]
    seed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<NamedValue>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl CandidateFacts {
    pub(super) fn of(candidate: &Candidate) -> Self {
        let Candidate {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        } = candidate.clone();
        Self {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        }
    }

    pub(super) fn candidate(&self) -> Candidate {
        let Self {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        } = self.clone();
        Candidate {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        }
    }
}

/// A visit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct VisitFacts {
    pub(super) candidate: CandidateFacts,
    #[serde(skip_serializing_if = "is_zero")]
    now: u64,
    status: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    media_type: String,
    state: ContentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_wait: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    overdue: u64,
    #[serde(skip_serializing_if = "is_zero")]
    visits: u64,
    #[serde(skip_serializing_if = "is_zero")]
    versions: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<PastVisitFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    validators: Vec<NamedValue>,
    #[serde(skip_serializing_if = "is_zero")]
    outlinks: u64,
    #[serde(skip_serializing_if = "is_zero")]
    inlinks: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<SignalFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    neighbourhood: Vec<NeighbourhoodFacts>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    measures: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NamedValue>,
    #[serde(skip_serializing_if = "KeptFacts::is_empty")]
    kept: KeptFacts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct PastVisitFacts {
    at: u64,
    status: i32,
    state: ContentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl PastVisitFacts {
    fn of(past: &PastVisit) -> Self {
        Self {
            at: instant(past.at),
            status: past.status,
            state: past.state,
            size: past.size,
        }
    }

    fn past_visit(&self) -> Result<PastVisit, CallProblem> {
        Ok(PastVisit {
            at: at(self.at)?,
            status: self.status,
            state: self.state,
            size: self.size,
            digest: None,
            wait: None,
        })
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct SignalFacts {
    at: u64,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct NeighbourhoodFacts {
    shares: String,
    documents: u64,
    visits: u64,
    changes: u64,
    observed: u64,
}

impl VisitFacts {
    pub(super) fn of(visit: &Visit, own: &str) -> Self {
        let validators = visit.validators.iter();
        Self {
            candidate: CandidateFacts::of(&visit.candidate),
            now: instant(visit.now),
            status: visit.status,
            media_type: visit.media_type.clone(),
            state: visit.state,
            size: visit.size,
            last_wait: visit.last_wait.map(millis),
            overdue: millis(visit.overdue),
            visits: visit.visits,
            versions: visit.versions,
            history: visit.history.iter().map(PastVisitFacts::of).collect(),
            validators: validators
                .map(|(name, value)| NamedValue::new(name, value))
                .collect(),
            outlinks: visit.outlinks,
            inlinks: visit.inlinks,
            signals: visit
                .signals
                .iter()
                .map(|signal| SignalFacts {
                    at: signal.at,
                    source: signal.source.clone(),
                    modified: signal.modified,
                })
                .collect(),
            neighbourhood: visit
                .neighbourhood
                .iter()
                .map(|around| NeighbourhoodFacts {
                    shares: around.shares.clone(),
                    documents: around.documents,
                    visits: around.visits,
                    changes: around.changes,
                    observed: around.observed,
                })
                .collect(),
            measures: visit.measures.clone(),
            notes: visit
                .notes
                .all()
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
            kept: KeptFacts::of(&visit.kept, own),
        }
    }

    pub(super) fn visit(&self, own: &str) -> Result<Visit, CallProblem> {
        let notes = self.notes.iter();
        Ok(Visit {
            status: self.status,
            media_type: self.media_type.clone(),
            state: self.state,
            size: self.size,
            last_wait: self.last_wait.map(Duration::from_millis),
            overdue: Duration::from_millis(self.overdue),
            visits: self.visits,
            versions: self.versions,
            history: self
                .history
                .iter()
                .map(PastVisitFacts::past_visit)
                .collect::<Result<_, _>>()?,
            validators: self
                .validators
                .iter()
                .map(|header| (header.name.to_ascii_lowercase(), header.value.clone()))
                .collect(),
            outlinks: self.outlinks,
            inlinks: self.inlinks,
            signals: self
                .signals
                .iter()
                .map(|signal| Signal {
                    at: signal.at,
                    source: signal.source.clone(),
                    modified: signal.modified,
                })
                .collect(),
            neighbourhood: self
                .neighbourhood
                .iter()
                .map(|around| Neighbourhood {
                    shares: around.shares.clone(),
                    documents: around.documents,
                    visits: around.visits,
                    changes: around.changes,
                    observed: around.observed,
                })
                .collect(),
            measures: self.measures.clone(),
            notes: Notes::of(
                notes
                    .map(|note| (note.name.clone(), note.value.clone()))
                    .collect(),
            ),
            kept: self.kept.kept(own),
            ..Visit::of(self.candidate.candidate(), at(self.now)?)
        })
    }
}
