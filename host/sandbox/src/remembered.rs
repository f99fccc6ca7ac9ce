//! Answers that are remembered. A plugin has no state, no clock and no chance, so one that is told the same answers the same.
//! What it asked the host during a call, and what it was told, therefore says when its answer holds again: the host puts these
//! questions to the next document itself, and calls the plugin only where it would be told something that it has not been
//! told before. For simulations, which visit the same pages hundreds of times; a crawl calls, since what it fetches is new.
//!
//! Not remembered is a call that left anything behind but counts (notes, annotations, kept values, lines of a log), that
//! looked anything up in a table, or that asked for what is new at every visit, such as the time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use crate::document::Document;
use crate::kept::{Owner, Place};
use crate::plugin::Wait;
use crate::visit::{Visit, millis};
use crate::{Ruling, Stage};

/// Questions and answers of a plugin that are remembered, some hundred bytes each. Beyond, all are forgotten.
const POINTS_MAX: usize = 1 << 18;

/// What a plugin asks the host of the document that it is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OfDocument {
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

/// What a plugin asks the host of the visit, as far as it is not new each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OfVisit {
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    OfDocument(OfDocument),
    OfVisit(OfVisit),
}

/// What the host tells, in 128 bits: who would forge one cannot be met where pages are made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Told(u128);

/// What a plugin has asked and been told during a call.
#[derive(Debug, Default)]
pub(crate) struct Trace(Vec<(Question, Told)>);

/// What a plugin is asked about, and what is its own of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) document: Option<&'a Document>,
    pub(crate) visit: &'a Visit,
    pub(crate) owner: Owner<'a>,
}

/// An answer, and what the plugin counted with it.
#[derive(Debug)]
pub(crate) struct Said<A> {
    pub(crate) answer: A,
    pub(crate) counts: Vec<(String, u64)>,
}

/// The answers of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// On documents, by stage.
    pub(crate) rulings: Remembered<Stage, Ruling>,
    pub(crate) waits: Remembered<(), Option<Wait>>,
}

/// Its answers of one type, by what it was asked.
#[derive(Debug)]
pub(crate) struct Remembered<Q, A>(Mutex<Tree<Q, A>>);

/// At each point a question, and a way on for each thing that was told; at the end of all ways an answer.
#[derive(Debug)]
struct Tree<Q, A> {
    begins: HashMap<Q, usize>,
    points: Vec<Point<A>>,
    ways: HashMap<(usize, Told), usize>,
}

#[derive(Debug)]
enum Point<A> {
    Asks(Question),
    Says(Arc<Said<A>>),
}

impl Told {
    fn of(value: impl Hash) -> Self {
        let mut hash = Xxh3::new();
        value.hash(&mut hash);
        Self(hash.digest128())
    }
}

impl OfDocument {
    fn told(&self, document: &Document, owner: Owner<'_>) -> Told {
        match self {
            Self::Uri => Told::of(document.uri()),
            Self::Base => Told::of(document.base()),
            Self::Status => Told::of(document.status()),
            Self::Headers => Told::of(document.headers()),
            Self::Header(name) => {
                let mut hash = Xxh3::new();
                for value in document.values_of(name) {
                    value.hash(&mut hash);
                }
                Told(hash.digest128())
            }
            Self::MediaType => Told::of(document.media_type()),
            Self::Charset => Told::of(document.charset().map(encoding_rs::Encoding::name)),
            Self::Fragment => Told::of(document.fragment()),
            Self::Length => Told::of(document.content().len()),
            Self::Read { offset, length } => Told::of(document.part(*offset, *length)),
            Self::Text => Told::of(document.text()),
            Self::Note(name) => Told::of(document.notes().get(name)),
            Self::Attribute(name) => Told::of(document.kept().get(owner, Place::Uri, name)),
            Self::SiteValue(name) => Told::of(document.kept().get(owner, Place::Site, name)),
        }
    }
}

impl OfVisit {
    fn told(&self, visit: &Visit, owner: Owner<'_>) -> Told {
        match self {
            Self::Candidate => Told::of(&visit.candidate),
            Self::Status => Told::of(visit.status),
            Self::MediaType => Told::of(&visit.media_type),
            Self::State => Told::of(visit.state),
            Self::Size => Told::of(visit.size),
            Self::LastWait => Told::of(visit.last_wait.map(millis)),
            Self::Versions => Told::of(visit.versions),
            Self::Validator(name) => Told::of(visit.validator(name)),
            Self::Outlinks => Told::of(visit.outlinks),
            Self::Inlinks => Told::of(visit.inlinks),
            Self::Signals => Told::of(&visit.signals),
            Self::Note(name) => Told::of(visit.notes.get(name)),
            Self::Attribute(name) => Told::of(visit.kept.get(owner, Place::Uri, name)),
            Self::SiteValue(name) => Told::of(visit.kept.get(owner, Place::Site, name)),
        }
    }
}

impl Trace {
    pub(crate) fn of_document(
        &mut self,
        question: OfDocument,
        document: &Document,
        owner: Owner<'_>,
    ) {
        let told = question.told(document, owner);
        self.0.push((Question::OfDocument(question), told));
    }

    pub(crate) fn of_visit(&mut self, question: OfVisit, visit: &Visit, owner: Owner<'_>) {
        let told = question.told(visit, owner);
        self.0.push((Question::OfVisit(question), told));
    }
}

impl<Q: Clone + Eq + Hash, A> Remembered<Q, A> {
    /// What the plugin has answered when it was told what it would be told now.
    pub(crate) fn recall(&self, asked: &Q, about: About<'_>) -> Option<Arc<Said<A>>> {
        let tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = *tree.begins.get(asked)?;
        loop {
            let told = match &tree.points[at] {
                Point::Says(said) => return Some(said.clone()),
                Point::Asks(Question::OfDocument(question)) => {
                    question.told(about.document?, about.owner)
                }
                Point::Asks(Question::OfVisit(question)) => question.told(about.visit, about.owner),
            };
            at = *tree.ways.get(&(at, told))?;
        }
    }

    /// Takes note of an answer, with the questions that led to it.
    pub(crate) fn remember(&self, asked: &Q, trace: Trace, said: Said<A>) {
        let mut tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tree.points.len() + trace.0.len() > POINTS_MAX {
            *tree = Tree::default();
        }
        let mut way_here = None;
        for (question, told) in trace.0 {
            let at = tree.point(asked, way_here, || Point::Asks(question));
            way_here = Some((at, told));
        }
        tree.point(asked, way_here, || Point::Says(Arc::new(said)));
    }
}

impl<Q: Clone + Eq + Hash, A> Tree<Q, A> {
    /// Where a way leads to; a new point where it has not been gone.
    fn point(
        &mut self,
        asked: &Q,
        way_here: Option<(usize, Told)>,
        new: impl FnOnce() -> Point<A>,
    ) -> usize {
        let known = match &way_here {
            None => self.begins.get(asked),
            Some(way) => self.ways.get(way),
        };
        if let Some(known) = known {
            return *known;
        }
        self.points.push(new());
        let at = self.points.len() - 1;
        match way_here {
            None => self.begins.insert(asked.clone(), at),
            Some(way) => self.ways.insert(way, at),
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
            begins: HashMap::new(),
            points: Vec::new(),
            ways: HashMap::new(),
        }
    }
}
