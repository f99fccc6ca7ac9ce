//! Remembered answers of plugins. A plugin has no state, clock or randomness, so its answer depends only on the host's answers to
//! its questions during the call. The host asks these questions about the next document itself. It calls the plugin only if one of
//! its answers is new. Simulations use this, because they visit the same pages hundreds of times. A crawl does not: its documents
//! are new.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use crate::answers::Wait;
use crate::candidates::{Candidates, Column};
use crate::document::Document;
use crate::kept_values::KeptFor;
use crate::owner::Owner;
use crate::visit::{Visit, millis};
use crate::{Ruling, Stage};

/// Questions that are remembered of a plugin, and its answers, by kind; some hundred bytes each. One answer on many candidates
/// counts as many. Beyond, all are forgotten.
const HELD_MAX: usize = 1 << 18;

/// A field of a document that a plugin read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentField {
    Uri,
    Base,
    Status,
    Headers,
    Header(String),
    MediaType,
    Charset,
    Fragment,
    Length,
    Read { offset: u64, length: u32 },
    Text,
    Note(String),
    Attribute(String),
    SiteValue(String),
}

/// A field of a visit that a plugin read, if it is not new at every visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VisitField {
    Candidate,
    Status,
    MediaType,
    State,
    Size,
    LastWait,
    Versions,
    Validator(String),
    Outlinks,
    Inlinks,
    Signals,
    Note(String),
    Attribute(String),
    SiteValue(String),
}

/// A field of the candidates that a plugin read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CandidatesField {
    Length,
    Column(Column),
    Seeds,
    One(u32),
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Document(DocumentField),
    Visit(VisitField),
    Candidates(CandidatesField),
}

/// Hash of an answer of the host, in 128 bits. Pages are made up, so nobody forges one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostAnswerHash(u128);

/// Questions of a plugin and the answers, during a call.
#[derive(Debug, Default)]
pub(crate) struct Trace(Vec<(Question, HostAnswerHash)>);

/// Subject of a call, and the owner of its kept values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) document: Option<&'a Document>,
    pub(crate) visit: Option<&'a Visit>,
    pub(crate) candidates: Option<&'a Candidates>,
    pub(crate) owner: Owner<'a>,
}

/// An answer, and what the plugin counted with it.
#[derive(Debug)]
pub(crate) struct CachedAnswer<A> {
    pub(crate) answer: A,
    pub(crate) counts: Vec<(String, u64)>,
}

/// The answers of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// On documents, by stage.
    pub(crate) on_documents: Remembered<Stage, Ruling>,
    /// On candidates, by stage and number.
    pub(crate) on_candidates: Remembered<(Stage, usize), Vec<Ruling>>,
    pub(crate) waits: Remembered<(), Option<Wait>>,
}

/// Its answers of one type, by what it was asked.
#[derive(Debug)]
pub(crate) struct Remembered<Q, A>(Mutex<Tree<Q, A>>);

/// A decision tree: at each inner point a question of the plugin, with the next point for each answer of the host. Its leaves are
/// answers of the plugin.
#[derive(Debug)]
struct Tree<Q, A> {
    /// Answers beyond one at a point.
    further: usize,
    begins: HashMap<Q, usize>,
    points: Vec<Point<A>>,
    next_points: HashMap<(usize, HostAnswerHash), usize, foldhash::fast::RandomState>,
}

#[derive(Debug)]
enum Point<A> {
    Asks(Question),
    Says(Arc<CachedAnswer<A>>),
}

impl HostAnswerHash {
    fn of(value: impl Hash) -> Self {
        let mut hash = Xxh3::new();
        value.hash(&mut hash);
        Self(hash.digest128())
    }
}

impl DocumentField {
    fn answer_hash(&self, document: &Document, owner: Owner<'_>) -> HostAnswerHash {
        match self {
            Self::Uri => HostAnswerHash::of(document.uri()),
            Self::Base => HostAnswerHash::of(document.base()),
            Self::Status => HostAnswerHash::of(document.status()),
            Self::Headers => HostAnswerHash::of(document.headers()),
            Self::Header(name) => {
                let mut hash = Xxh3::new();
                for value in document.values_of(name) {
                    value.hash(&mut hash);
                }
                HostAnswerHash(hash.digest128())
            }
            Self::MediaType => HostAnswerHash::of(document.media_type()),
            Self::Charset => {
                HostAnswerHash::of(document.charset().map(encoding_rs::Encoding::name))
            }
            Self::Fragment => HostAnswerHash::of(document.fragment()),
            Self::Length => HostAnswerHash::of(document.content().len()),
            Self::Read { offset, length } => HostAnswerHash::of(document.part(*offset, *length)),
            Self::Text => HostAnswerHash::of(document.text()),
            Self::Note(name) => HostAnswerHash::of(document.notes().get(name)),
            Self::Attribute(name) => {
                HostAnswerHash::of(owner.get(document.kept(), KeptFor::Uri, name))
            }
            Self::SiteValue(name) => {
                HostAnswerHash::of(owner.get(document.kept(), KeptFor::Site, name))
            }
        }
    }
}

impl VisitField {
    fn answer_hash(&self, visit: &Visit, owner: Owner<'_>) -> HostAnswerHash {
        match self {
            Self::Candidate => HostAnswerHash::of(&visit.candidate),
            Self::Status => HostAnswerHash::of(visit.status),
            Self::MediaType => HostAnswerHash::of(&visit.media_type),
            Self::State => HostAnswerHash::of(visit.state),
            Self::Size => HostAnswerHash::of(visit.size),
            Self::LastWait => HostAnswerHash::of(visit.last_wait.map(millis)),
            Self::Versions => HostAnswerHash::of(visit.versions),
            Self::Validator(name) => HostAnswerHash::of(visit.validator(name)),
            Self::Outlinks => HostAnswerHash::of(visit.outlinks),
            Self::Inlinks => HostAnswerHash::of(visit.inlinks),
            Self::Signals => HostAnswerHash::of(&visit.signals),
            Self::Note(name) => HostAnswerHash::of(visit.notes.get(name)),
            Self::Attribute(name) => HostAnswerHash::of(owner.get(&visit.kept, KeptFor::Uri, name)),
            Self::SiteValue(name) => {
                HostAnswerHash::of(owner.get(&visit.kept, KeptFor::Site, name))
            }
        }
    }
}

impl CandidatesField {
    /// Returns `true` if the answer is of URIs, hop paths and seed flags alone.
    pub(crate) fn is_of_uri(&self) -> bool {
        match self {
            Self::Length | Self::Seeds => true,
            Self::Column(column) => {
                matches!(column, Column::Uris | Column::Surts | Column::HopPaths)
            }
            Self::One(_) | Self::All => false,
        }
    }

    fn answer_hash(&self, candidates: &Candidates) -> HostAnswerHash {
        match self {
            Self::Length => HostAnswerHash::of(candidates.len()),
            Self::Column(column) => HostAnswerHash::of(candidates.column(*column)),
            Self::Seeds => {
                let seeds = candidates.iter().map(|candidate| candidate.seed);
                HostAnswerHash::of(seeds.collect::<Vec<_>>())
            }
            Self::One(index) => HostAnswerHash::of(candidates.get(*index as usize)),
            Self::All => HostAnswerHash::of(candidates.as_slice()),
        }
    }
}

impl Trace {
    pub(crate) fn of_document(
        &mut self,
        question: DocumentField,
        document: &Document,
        owner: Owner<'_>,
    ) {
        let hash = question.answer_hash(document, owner);
        self.0.push((Question::Document(question), hash));
    }

    pub(crate) fn of_visit(&mut self, question: VisitField, visit: &Visit, owner: Owner<'_>) {
        let hash = question.answer_hash(visit, owner);
        self.0.push((Question::Visit(question), hash));
    }

    pub(crate) fn of_candidates(&mut self, question: CandidatesField, candidates: &Candidates) {
        let hash = question.answer_hash(candidates);
        self.0.push((Question::Candidates(question), hash));
    }
}

impl<Q: Clone + Eq + Hash, A> Remembered<Q, A> {
    /// Returns the earlier answer of the plugin for which all questions had the same answers as now.
    pub(crate) fn recall(&self, asked: &Q, about: About<'_>) -> Option<Arc<CachedAnswer<A>>> {
        let tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = *tree.begins.get(asked)?;
        loop {
            let hash = match &tree.points[at] {
                Point::Says(cached) => return Some(cached.clone()),
                Point::Asks(Question::Document(question)) => {
                    question.answer_hash(about.document?, about.owner)
                }
                Point::Asks(Question::Visit(question)) => {
                    question.answer_hash(about.visit?, about.owner)
                }
                Point::Asks(Question::Candidates(question)) => {
                    question.answer_hash(about.candidates?)
                }
            };
            at = *tree.next_points.get(&(at, hash))?;
        }
    }

    /// Takes note of an answer, with the questions that led to it. It counts for so many `answers`.
    pub(crate) fn remember(
        &self,
        asked: &Q,
        trace: Trace,
        cached: CachedAnswer<A>,
        answers: usize,
    ) {
        let mut tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tree.points.len() + tree.further + trace.0.len() + answers > HELD_MAX {
            *tree = Tree::default();
        }
        tree.further += answers.saturating_sub(1);
        let mut previous = None;
        for (question, hash) in trace.0 {
            let at = tree.point(asked, previous, || Point::Asks(question));
            previous = Some((at, hash));
        }
        tree.point(asked, previous, || Point::Says(Arc::new(cached)));
    }
}

impl<Q: Clone + Eq + Hash, A> Tree<Q, A> {
    /// Returns the point that an answer leads to, a new one if the answer is new.
    fn point(
        &mut self,
        asked: &Q,
        previous: Option<(usize, HostAnswerHash)>,
        new: impl FnOnce() -> Point<A>,
    ) -> usize {
        let known = match &previous {
            None => self.begins.get(asked),
            Some(way) => self.next_points.get(way),
        };
        if let Some(known) = known {
            return *known;
        }
        self.points.push(new());
        let at = self.points.len() - 1;
        match previous {
            None => self.begins.insert(asked.clone(), at),
            Some(way) => self.next_points.insert(way, at),
        };
        at
    }
}

// Derived ones would ask for a default of questions and answers.
impl<Q, A> Default for Remembered<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q, A> Default for Tree<Q, A> {
    fn default() -> Self {
        Self {
            further: 0,
            begins: HashMap::new(),
            points: Vec::new(),
            next_points: HashMap::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Candidate, Limits, Verdict};

    fn candidates(links: &[(&str, &str)]) -> Candidates {
        let candidate = |&(uri, hop_path): &(&str, &str)| Candidate {
            uri: uri.to_owned(),
            surt: String::new(),
            hop_path: hop_path.to_owned(),
            context: String::new(),
            via: None,
            via_surt: None,
            source: None,
            address: None,
            attributes: Vec::new(),
            seed: false,
        };
        links.iter().map(candidate).collect()
    }

    fn about<'a>(candidates: &'a Candidates, limits: &'a Limits) -> About<'a> {
        About {
            document: None,
            visit: None,
            candidates: Some(candidates),
            owner: Owner {
                plugin: "scope",
                keeps: &[],
                limits,
            },
        }
    }

    fn accepted() -> CachedAnswer<Vec<Ruling>> {
        let ruling = Ruling {
            verdict: Verdict::Accept,
            reason: String::new(),
        };
        CachedAnswer {
            answer: vec![ruling],
            counts: Vec::new(),
        }
    }

    /// Only columns that a filter has asked for must be equal.
    #[test]
    fn rulings_on_candidates_hold_for_those_that_look_the_same_to_the_filter() {
        let limits = Limits::default();
        let remembered = Remembered::default();
        let seen = candidates(&[("https://a.example/", "L")]);
        let mut trace = Trace::default();
        trace.of_candidates(CandidatesField::Length, &seen);
        trace.of_candidates(CandidatesField::Column(Column::Uris), &seen);
        remembered.remember(&(Stage::Scope, 1), trace, accepted(), 1);

        let recall = |stage: Stage, links: &[(&str, &str)]| {
            let candidates = candidates(links);
            let asked = (stage, candidates.len());
            let cached = remembered.recall(&asked, about(&candidates, &limits));
            cached.map(|cached| cached.answer.len())
        };
        assert_eq!(
            recall(Stage::Scope, &[("https://a.example/", "L")]),
            Some(1)
        );
        assert_eq!(
            recall(Stage::Scope, &[("https://a.example/", "LE")]),
            Some(1)
        );
        assert_eq!(recall(Stage::Scope, &[("https://b.example/", "L")]), None);
        assert_eq!(
            recall(Stage::PreFetch, &[("https://a.example/", "L")]),
            None
        );
        let two = [("https://a.example/", "L"), ("https://b.example/", "L")];
        assert_eq!(recall(Stage::Scope, &two), None);
    }

    /// Answers on many candidates take as much room as many answers.
    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let limits = Limits::default();
        let remembered = Remembered::default();
        let many = candidates(&[("https://a.example/", "L")]);
        let few = candidates(&[("https://b.example/", "L")]);
        let remember = |candidates: &Candidates, answers: usize| {
            let mut trace = Trace::default();
            trace.of_candidates(CandidatesField::Column(Column::Uris), candidates);
            remembered.remember(&(Stage::Scope, 1), trace, accepted(), answers);
        };
        let is_known = |candidates: &Candidates| {
            let asked = (Stage::Scope, 1);
            remembered
                .recall(&asked, about(candidates, &limits))
                .is_some()
        };
        remember(&many, HELD_MAX - 2);
        assert!(is_known(&many));
        remember(&few, 1);
        assert!(is_known(&few) && !is_known(&many));
    }
}
