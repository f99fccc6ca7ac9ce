//! Every visit of a crawl by host and page, from as many logs as it has, and what a page's visits come to in the order of time.
//!
//! Lines are only nearly in that order: a log has them as visits ended, rotated logs come as somebody named them. So all visits
//! are kept until the last log is read.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::rc::Rc;

use super::FitError;
use super::log::{Look, Outcome, read};
use super::spread::Interval;

/// Longest time between the first visit and the last: that of the longest scenario. Who was away for longer had a wrong clock.
const SPAN_DAYS_MAX: f64 = 36_525.0;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By host, then by URI.
    visits: BTreeMap<String, BTreeMap<String, Visits>>,
    files: Vec<String>,
    /// The earliest and the latest line.
    ends: Option<(Line, Line)>,
    /// Digests and media types: most visits find those of the one before.
    words: HashSet<Rc<str>>,
}

/// Where a visit stands.
#[derive(Clone, Copy, Debug)]
struct Line {
    at: i64,
    /// Of the files.
    file: usize,
    number: usize,
}

/// A URI's visits, in the order of lines.
#[derive(Debug)]
struct Visits {
    section: String,
    visits: Vec<Visit>,
}

/// Its order is that of time; the rest decides where times are the same, so that no order of lines does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    at: i64,
    outcome: Outcome,
    digest: Option<Rc<str>>,
    media_type: Rc<str>,
    size: u64,
    took: Option<u64>,
}

/// A host as the logs know it.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) pages: Vec<Page>,
    pub(super) requests: u64,
    pub(super) failures: u64,
    /// Milliseconds of each answer.
    pub(super) took: Vec<u64>,
}

/// A page as the logs know it; times are days since 1970.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    pub(super) media_type: String,
    pub(super) section: String,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) looks: usize,
    pub(super) intervals: Vec<Interval>,
    digest: Option<Rc<str>>,
    pub(super) bytes: u64,
    pub(super) bodies: u64,
    /// It was gone at the last visit.
    pub(super) gone: bool,
    /// The server has said that it had not changed.
    pub(super) conditional: bool,
    /// Its bytes changed and its content did not.
    pub(super) trivial: bool,
}

/// What the logs cover, in days since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) begin: f64,
    pub(super) end: f64,
}

impl History {
    /// Reads one more log.
    pub(super) fn read(&mut self, file: &str, log: impl Read) -> Result<(), FitError> {
        let index = self.files.len();
        self.files.push(file.to_owned());
        read(file, log, |number, look| {
            let line = Line {
                at: look.at,
                file: index,
                number,
            };
            let (first, last) = self.ends.get_or_insert((line, line));
            if line.at < first.at {
                *first = line;
            }
            if line.at > last.at {
                *last = line;
            }
            self.take(look);
        })
    }

    fn take(&mut self, look: Look) {
        let visit = Visit {
            at: look.at,
            outcome: look.outcome,
            digest: look.digest.map(|digest| self.word(&digest)),
            media_type: self.word(&look.media_type),
            size: look.size,
            took: look.took,
        };
        let section = look.section;
        let of_host = self.visits.entry(look.host).or_default();
        let of_page = of_host.entry(look.uri).or_insert_with(|| Visits {
            section,
            visits: Vec::new(),
        });
        of_page.visits.push(visit);
    }

    fn word(&mut self, text: &str) -> Rc<str> {
        if let Some(word) = self.words.get(text) {
            return Rc::clone(word);
        }
        let word: Rc<str> = text.into();
        self.words.insert(Rc::clone(&word));
        word
    }

    /// What the logs are called in a sentence.
    pub(super) fn name(&self) -> String {
        let first = self.files.first().map_or("", String::as_str);
        let first = first.replace(char::is_control, "\u{fffd}");
        match self.files.len() {
            0 | 1 => first,
            2 => format!("{first} and another log"),
            count => format!("{first} and {} other logs", count - 1),
        }
    }

    /// What the logs cover; none where no page was visited.
    pub(super) fn time(&self) -> Result<Option<Time>, FitError> {
        let Some((first, last)) = self.ends else {
            return Ok(None);
        };
        let days = days(last.at - first.at);
        if days > SPAN_DAYS_MAX {
            let place = |line: Line| format!("{}:{}", self.files[line.file], line.number);
            return Err(FitError::Span {
                first: place(first),
                last: place(last),
                days,
            });
        }
        Ok(Some(Time {
            begin: self::days(first.at),
            end: self::days(last.at),
        }))
    }

    /// The hosts by their names.
    pub(super) fn hosts(self) -> BTreeMap<String, Host> {
        let hosts = self.visits.into_iter();
        hosts
            .map(|(name, pages)| (name, Host::of(pages.into_values())))
            .collect()
    }
}

impl Host {
    fn of(uris: impl Iterator<Item = Visits>) -> Self {
        let mut host = Self::default();
        for Visits {
            section,
            mut visits,
        } in uris
        {
            visits.sort_unstable();
            // A visit that two logs tell of was one.
            visits.dedup();
            host.requests += visits.len() as u64;
            host.took.extend(visits.iter().filter_map(|one| one.took));
            let failed = visits.extract_if(.., |one| one.outcome == Outcome::Failed);
            host.failures += failed.count() as u64;
            // Until it has been there, nothing is gone.
            let is_there = |one: &Visit| one.outcome != Outcome::Gone;
            let Some(first) = visits.iter().position(is_there) else {
                continue;
            };
            host.pages.push(Page::of(section, &visits[first..]));
        }
        host
    }

    pub(super) fn revisited(&self) -> usize {
        let pages = self.pages.iter();
        pages.filter(|page| !page.intervals.is_empty()).count()
    }
}

impl Page {
    fn of(section: String, visits: &[Visit]) -> Self {
        let mut page = Self {
            section,
            ..Self::default()
        };
        for visit in visits {
            page.take(visit);
        }
        page
    }

    fn take(&mut self, visit: &Visit) {
        let at = days(visit.at);
        self.looks += 1;
        if self.looks == 1 {
            self.first = at;
            self.media_type = visit.media_type.to_string();
        }
        let before = std::mem::replace(&mut self.last, at);
        let is_back = std::mem::replace(&mut self.gone, visit.outcome == Outcome::Gone);
        if visit.outcome == Outcome::Gone {
            return;
        }
        self.conditional |= visit.outcome == Outcome::NotModified;
        let is_same = match (&self.digest, &visit.digest) {
            (Some(known), Some(digest)) => Some(known == digest),
            _ => None,
        };
        let is_changed = match visit.outcome {
            Outcome::NotModified => Some(false),
            Outcome::Unchanged => {
                self.trivial |= is_same == Some(false);
                Some(false)
            }
            _ => is_same.map(|is_same| !is_same),
        };
        if visit.outcome != Outcome::NotModified {
            self.bytes += visit.size;
            self.bodies += 1;
            self.digest.clone_from(&visit.digest);
        }
        if let Some(is_changed) = is_changed
            && !is_back
            && self.looks > 1
            && before < at
        {
            let days = at - before;
            self.intervals.push(Interval { days, is_changed });
        }
    }
}

/// Of milliseconds.
fn days(milliseconds: i64) -> f64 {
    milliseconds as f64 / 86_400_000.0
}
