//! Remembered answers of plugins. A plugin has no state, clock or randomness, so its answer depends only on the values that it
//! reads from the host during the call. The host reads the same values of the next document itself, and calls the plugin only if a
//! value is new. Simulations use this, because they visit the same pages hundreds of times. A crawl does not, because its documents
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

/// Most reads and answers that are remembered of a plugin, by kind, each of some hundred bytes. One answer on many candidates
/// counts as many answers. When the limit is exceeded, all are dropped.
const REMEMBERED_MAX: usize = 1 << 18;

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

/// Hash of a value that the host returned, in 128 bits. Simulated pages are not hostile, so forged collisions are not a concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostAnswerHash(u128);

/// The values that a plugin has read during a call.
#[derive(Debug, Default)]
pub(crate) struct Trace(Vec<(Question, HostAnswerHash)>);

/// Subject of a call, and the owner of its kept values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInputs<'a> {
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
    pub(crate) on_documents: AnswerCache<Stage, Ruling>,
    /// On candidates, by stage and number.
    pub(crate) on_candidates: AnswerCache<(Stage, usize), Vec<Ruling>>,
    pub(crate) waits: AnswerCache<(), Option<Wait>>,
}

/// Answers of one type, by the values that the plugin has read.
#[derive(Debug)]
pub(crate) struct AnswerCache<Q, A>(Mutex<Tree<Q, A>>);

/// A decision tree: each inner node is a value that the plugin reads, with a child for each content of it. Its leaves are answers
/// of the plugin.
#[derive(Debug)]
struct Tree<Q, A> {
    /// Answers on further candidates: each leaf counts one of its answers already.
    extra_answers: usize,
    roots: HashMap<Q, usize>,
    nodes: Vec<Node<A>>,
    children: HashMap<(usize, HostAnswerHash), usize, foldhash::fast::RandomState>,
}

#[derive(Debug)]
enum Node<A> {
    Read(Question),
    Answer(Arc<CachedAnswer<A>>),
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

impl<Q: Clone + Eq + Hash, A> AnswerCache<Q, A> {
    /// Returns the plugin's earlier answer for which all reads gave the same values as now.
    pub(crate) fn recall(&self, key: &Q, about: CallInputs<'_>) -> Option<Arc<CachedAnswer<A>>> {
        let tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = *tree.roots.get(key)?;
        loop {
            let hash = match &tree.nodes[at] {
                Node::Answer(cached) => return Some(cached.clone()),
                Node::Read(Question::Document(question)) => {
                    question.answer_hash(about.document?, about.owner)
                }
                Node::Read(Question::Visit(question)) => {
                    question.answer_hash(about.visit?, about.owner)
                }
                Node::Read(Question::Candidates(question)) => {
                    question.answer_hash(about.candidates?)
                }
            };
            at = *tree.children.get(&(at, hash))?;
        }
    }

    /// Stores an answer with the reads that led to it. It counts as so many `answers`.
    pub(crate) fn remember(&self, key: &Q, trace: Trace, cached: CachedAnswer<A>, answers: usize) {
        let mut tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tree.nodes.len() + tree.extra_answers + trace.0.len() + answers > REMEMBERED_MAX {
            *tree = Tree::default();
        }
        tree.extra_answers += answers.saturating_sub(1);
        let mut previous = None;
        for (question, hash) in trace.0 {
            let at = tree.node(key, previous, || Node::Read(question));
            previous = Some((at, hash));
        }
        tree.node(key, previous, || Node::Answer(Arc::new(cached)));
    }
}

impl<Q: Clone + Eq + Hash, A> Tree<Q, A> {
    /// Returns the child for a value. Makes a new one if the value is new.
    fn node(
        &mut self,
        key: &Q,
        previous: Option<(usize, HostAnswerHash)>,
        new: impl FnOnce() -> Node<A>,
    ) -> usize {
        let known = match &previous {
            None => self.roots.get(key),
            Some(edge) => self.children.get(edge),
        };
        if let Some(known) = known {
            return *known;
        }
        self.nodes.push(new());
        let at = self.nodes.len() - 1;
        match previous {
            None => self.roots.insert(key.clone(), at),
            Some(edge) => self.children.insert(edge, at),
        };
        at
    }
}

// A derived implementation would require `Default` of reads and answers.
impl<Q, A> Default for AnswerCache<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q, A> Default for Tree<Q, A> {
    fn default() -> Self {
        Self {
            extra_answers: 0,
            roots: HashMap::new(),
            nodes: Vec::new(),
            children: HashMap::default(),
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

    fn about<'a>(candidates: &'a Candidates, limits: &'a Limits) -> CallInputs<'a> {
        CallInputs {
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

    /// Only columns that a filter has read must be equal.
    #[test]
    fn rulings_apply_to_candidates_with_equal_columns() {
        let limits = Limits::default();
        let cache = AnswerCache::default();
        let seen = candidates(&[("https://a.example/", "L")]);
        let mut trace = Trace::default();
        trace.of_candidates(CandidatesField::Length, &seen);
        trace.of_candidates(CandidatesField::Column(Column::Uris), &seen);
        cache.remember(&(Stage::Scope, 1), trace, accepted(), 1);

        let recall = |stage: Stage, links: &[(&str, &str)]| {
            let candidates = candidates(links);
            let key = (stage, candidates.len());
            let cached = cache.recall(&key, about(&candidates, &limits));
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

    /// An answer on many candidates counts as many answers towards the limit.
    #[test]
    fn remembered_answers_stay_within_the_limit() {
        let limits = Limits::default();
        let cache = AnswerCache::default();
        let many = candidates(&[("https://a.example/", "L")]);
        let few = candidates(&[("https://b.example/", "L")]);
        let remember = |candidates: &Candidates, answers: usize| {
            let mut trace = Trace::default();
            trace.of_candidates(CandidatesField::Column(Column::Uris), candidates);
            cache.remember(&(Stage::Scope, 1), trace, accepted(), answers);
        };
        let is_known = |candidates: &Candidates| {
            let key = (Stage::Scope, 1);
            cache.recall(&key, about(candidates, &limits)).is_some()
        };
        remember(&many, REMEMBERED_MAX - 2);
        assert!(is_known(&many));
        remember(&few, 1);
        assert!(is_known(&few) && !is_known(&many));
    }
}
