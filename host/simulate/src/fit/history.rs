//! The visits of a crawl by host and page, from all its logs, and the data of each page's visits in the order of time.
//!
//! Lines are only nearly in that order: a log has them in the order in which visits ended, and rotated logs are given in any
//! order. All visits are therefore kept until the last log is read.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::rc::Rc;

use super::FitError;
use super::log::{LoggedVisit, Outcome, read};
use super::spread::Interval;

/// Longest time between the first visit and the last: that of the longest scenario. A longer one comes from a wrong clock.
const SPAN_DAYS_MAX: f64 = 36_525.0;

/// The visits read so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By host, then by URI.
    visits: BTreeMap<String, BTreeMap<String, Visits>>,
    files: Vec<String>,
    /// The earliest and the latest line.
    ends: Option<(Line, Line)>,
    /// Digests and media types, shared: most visits find those of the previous one.
    words: HashSet<Rc<str>>,
}

/// The place of a visit in the logs.
#[derive(Clone, Copy, Debug)]
struct Line {
    at: i64,
    /// Index of the file.
    file: usize,
    number: usize,
}

/// A URI's visits, in the order of lines.
#[derive(Debug)]
struct Visits {
    section: String,
    visits: Vec<Visit>,
}

/// A visit, ordered by time. The other fields decide between equal times, so that the order of lines does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    at: i64,
    outcome: Outcome,
    digest: Option<Rc<str>>,
    media_type: Rc<str>,
    size: u64,
    took: Option<u64>,
}

/// A host in the logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) pages: Vec<Page>,
    pub(super) requests: u64,
    pub(super) failures: u64,
    /// Duration of each answer in milliseconds.
    pub(super) took: Vec<u64>,
}

/// A page in the logs; times are days since 1970.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    pub(super) media_type: String,
    pub(super) section: String,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) visits: usize,
    pub(super) intervals: Vec<Interval>,
    digest: Option<Rc<str>>,
    pub(super) bytes: u64,
    pub(super) bodies: u64,
    /// `true` if the page was gone at the last visit.
    pub(super) gone: bool,
    /// `true` if the server has answered that it had not changed.
    pub(super) conditional: bool,
    /// `true` if its bytes changed while its content did not.
    pub(super) trivial: bool,
}

/// The time that the logs cover, in days since 1970.
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
        read(file, log, |number, logged| {
            let line = Line {
                at: logged.at,
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
            self.take(logged);
        })
    }

    fn take(&mut self, logged: LoggedVisit) {
        let visit = Visit {
            at: logged.at,
            outcome: logged.outcome,
            digest: logged.digest.map(|digest| self.word(&digest)),
            media_type: self.word(&logged.media_type),
            size: logged.size,
            took: logged.took,
        };
        let section = logged.section;
        let of_host = self.visits.entry(logged.host).or_default();
        let of_page = of_host.entry(logged.uri).or_insert_with(|| Visits {
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

    /// Returns a name for the logs that fits into a sentence.
    pub(super) fn name(&self) -> String {
        let first = self.files.first().map_or("", String::as_str);
        let first = first.replace(char::is_control, "\u{fffd}");
        match self.files.len() {
            0 | 1 => first,
            2 => format!("{first} and another log"),
            count => format!("{first} and {} other logs", count - 1),
        }
    }

    /// Returns the time that the logs cover; none if no page was visited.
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

    /// Returns the hosts by their names.
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
            // A visit that is in two logs counts once.
            visits.dedup();
            host.requests += visits.len() as u64;
            host.took.extend(visits.iter().filter_map(|one| one.took));
            let failed = visits.extract_if(.., |one| one.outcome == Outcome::Failed);
            host.failures += failed.count() as u64;
            // A page cannot be gone before it has been there.
            let exists = |one: &Visit| one.outcome != Outcome::Gone;
            let Some(first) = visits.iter().position(exists) else {
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
        self.visits += 1;
        if self.visits == 1 {
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
            && self.visits > 1
            && before < at
        {
            let days = at - before;
            self.intervals.push(Interval { days, is_changed });
        }
    }
}

/// Converts milliseconds to days.
fn days(milliseconds: i64) -> f64 {
    milliseconds as f64 / 86_400_000.0
}
