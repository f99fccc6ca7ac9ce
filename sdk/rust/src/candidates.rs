//! Views of candidates, for filters and precedence plugins. The host passes candidates by column, each column when one of its
//! values is first read.

use std::cell::{OnceCell, RefCell};

use crate::{Candidate, CandidatesHandle, Visit, table};

/// All candidates of a call, in the order found.
pub struct Candidates<'a> {
    handle: &'a CandidatesHandle,
    length: usize,
    uris: OnceCell<Lines>,
    surts: OnceCell<Lines>,
    hop_paths: OnceCell<Lines>,
    contexts: OnceCell<Lines>,
    vias: OnceCell<Lines>,
    via_surts: OnceCell<Lines>,
    sources: OnceCell<Lines>,
    addresses: OnceCell<Lines>,
    seeds: OnceCell<Vec<bool>>,
    /// Results of table look-ups for all candidates, by name of the table.
    lookups: RefCell<Vec<(String, Vec<bool>)>>,
}

/// A column: a line for each candidate.
struct Lines {
    text: String,
    /// End of each line, without its line feed.
    ends: Vec<u32>,
}

impl Lines {
    fn new(text: String, lines: usize) -> Self {
        let feeds = memchr::memchr_iter(b'\n', text.as_bytes());
        let mut ends = Vec::with_capacity(lines);
        ends.extend(feeds.map(|at| at as u32));
        Self { text, ends }
    }

    fn get(&self, index: usize) -> &str {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize + 1,
        };
        &self.text[start..self.ends[index] as usize]
    }
}

impl<'a> Candidates<'a> {
    /// Wraps the candidates of a call.
    #[doc(hidden)]
    #[must_use]
    pub fn new(handle: &'a CandidatesHandle) -> Self {
        Self {
            length: handle.length() as usize,
            handle,
            uris: OnceCell::new(),
            surts: OnceCell::new(),
            hop_paths: OnceCell::new(),
            contexts: OnceCell::new(),
            vias: OnceCell::new(),
            via_surts: OnceCell::new(),
            sources: OnceCell::new(),
            addresses: OnceCell::new(),
            seeds: OnceCell::new(),
            lookups: RefCell::default(),
        }
    }

    /// The number of candidates; at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there are no candidates. The host never makes such a call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Iterates over the candidates, in the order found.
    pub fn iter(&self) -> impl Iterator<Item = CandidateView<'_>> {
        (0..self.length).map(|index| CandidateView(View::Row(self, index)))
    }

    /// Looks up each candidate in a table. All results are `false` if the table does not exist.
    #[must_use]
    pub fn in_table(&self, name: &str) -> Vec<bool> {
        table(name).find_candidates(self.handle)
    }

    fn is_in_table(&self, name: &str, index: usize) -> bool {
        let mut lookups = self.lookups.borrow_mut();
        if let Some((_, answers)) = lookups.iter().find(|(known, _)| known == name) {
            return answers[index];
        }
        let answers = self.in_table(name);
        let answer = answers[index];
        lookups.push((name.to_owned(), answers));
        answer
    }
}

/// One candidate. Its values come from the host when they are first read for any candidate of the call.
#[derive(Clone, Copy)]
pub struct CandidateView<'a>(View<'a>);

#[derive(Clone, Copy)]
enum View<'a> {
    Row(&'a Candidates<'a>, usize),
    /// The candidate of a visit. The host passes all its values at once.
    Whole(&'a Candidate),
}

impl<'a> From<&'a Candidate> for CandidateView<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self(View::Whole(candidate))
    }
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident in $column:ident;)+) => {
        impl<'a> CandidateView<'a> {
            $($(#[$doc])* #[must_use] pub fn $name(&self) -> &'a str {
                match self.0 {
                    View::Row(all, index) => all
                        .$column
                        .get_or_init(|| Lines::new(all.handle.$column(), all.length))
                        .get(index),
                    View::Whole(candidate) => &candidate.$name,
                }
            })+
        }
    };
}

texts! {
    /// Normalised URI, as it would be fetched.
    uri in uris;
    /// SURT form, for comparison with scope prefixes: `http://(org,example,www,)/path`. Its scheme is http for https URIs too.
    surt in surts;
    /// Hop path from the seed, including the hop that found the URI; empty for a seed. A path of more than 50 hops is written
    /// as `N+` and its last 50 hops.
    hop_path in hop_paths;
    /// Position on the page, such as `a/@href`; empty for a seed.
    context in contexts;
}

macro_rules! optional_texts {
    ($($(#[$doc:meta])* $name:ident in $column:ident;)+) => {
        impl<'a> CandidateView<'a> {
            $($(#[$doc])* #[must_use] pub fn $name(&self) -> Option<&'a str> {
                match self.0 {
                    View::Row(all, index) => Some(all
                        .$column
                        .get_or_init(|| Lines::new(all.handle.$column(), all.length))
                        .get(index))
                        .filter(|text| !text.is_empty()),
                    View::Whole(candidate) => candidate.$name.as_deref(),
                }
            })+
        }
    };
}

optional_texts! {
    /// URI of the page on which it was found; `None` for a seed.
    via in vias;
    /// SURT form of `via`.
    via_surt in via_surts;
    /// The seed from which it descends, if known.
    source in sources;
    /// IP address of the server, if it is known at this stage.
    address in addresses;
}

impl CandidateView<'_> {
    /// Returns `true` for a seed, and for a URI to which a seed redirects.
    #[must_use]
    pub fn seed(&self) -> bool {
        match self.0 {
            View::Row(all, index) => all.seeds.get_or_init(|| all.handle.seeds())[index],
            View::Whole(candidate) => candidate.seed,
        }
    }

    /// Looks up the candidate in this table: by its SURT form in a table of SURT prefixes, by its URI in others. All candidates
    /// of the call are looked up at once.
    #[must_use]
    pub fn is_in_table(&self, name: &str) -> bool {
        match self.0 {
            View::Row(all, index) => all.is_in_table(name, index),
            View::Whole(candidate) => table(name).find_candidate(candidate).is_some(),
        }
    }

    /// The whole candidate, including its attributes.
    #[must_use]
    pub fn whole(&self) -> Candidate {
        match self.0 {
            View::Row(all, index) => all.handle.get(index as u32),
            View::Whole(candidate) => candidate.clone(),
        }
    }
}

/// Calls `work` with the candidate of a visit, so that filters of URIs can judge a response.
pub(crate) fn with_candidate<T>(visit: &Visit, work: impl FnOnce(CandidateView<'_>) -> T) -> T {
    work(CandidateView::from(&visit.candidate()))
}
