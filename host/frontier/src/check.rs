//! A consistency check of a store, and its repair. The store must not be open in any process. Everything is read in the order in
//! which it is stored, in memory that does not grow with the store.
//!
//! Derived data is rebuilt from its source. The records of URIs are taken as true. The orders of the queues, their counts, the
//! queue order, the index of canonical forms and the statistics follow from them.

mod embeds;
mod indexes;
mod queues;
mod records;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    path::Path,
};

use crate::{
    Frontier, FrontierConfig, FrontierError, Statistics,
    counters::Counters,
    store::{Store, encode},
};

/// Repairs that are gathered before they are written.
const PENDING_MAX: usize = 10_000;

/// An inconsistency in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    /// The kind of inconsistency.
    pub fault: InconsistencyKind,
    /// The object concerned: a record key ([`Uri::key`](opilio_uri::Uri::key)), a queue, or the name of a counter. Bytes that are
    /// not text are in hexadecimal.
    pub key: String,
    /// `true` if it has been repaired.
    pub is_repaired: bool,
}

/// Kinds of inconsistency in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InconsistencyKind {
    /// The value in this keyspace cannot be read. The repair removes it. A URI may then be found again; a queue is made anew with
    /// the settings of the profile.
    Malformed(&'static str),
    /// A queued URI is in neither order of its queue. The repair lets it wait for its due time there.
    NotInQueue,
    /// A URI is both among the ready and among the waiting ones. The repair lets it wait.
    InBothOrders,
    /// A queue lists a URI that does not belong there, or is unknown. The repair removes the entry.
    Stray,
    /// URIs are in a queue that has no record. The repair makes one.
    NoQueue,
    /// A queue's counts are wrong, or its first due time is too late. The repair counts its URIs and gives it a new place in the
    /// queue order.
    WrongQueueCounts,
    /// A queue has URIs to issue, but its record or the queue order has no place for it. The repair gives it one.
    NotInLine,
    /// A queue without URIs is in the queue order. The repair takes it out.
    NeedlessTurn,
    /// The queue order has a place that its queue does not have. The repair removes it.
    StrayTurn,
    /// The index of canonical forms lacks a URI, which would be found again in another form. The repair adds it.
    NoCanonical,
    /// The index of canonical forms has an entry without a record. Such a URI would never be found. The repair removes it. Among
    /// many tens of millions of URIs, some such entries may be missed.
    StrayCanonical,
    /// A page shows an embed that has no record. The repair removes the entry.
    StrayEmbed,
    /// A value is kept for a site without known URIs. The repair removes it.
    StraySite,
    /// A page lists an embed, but the embed does not list the page, or the other way round. The repair corrects the embed's list.
    OneSidedEmbed,
    /// A URI has a wrong count of the other pages that embed it. The repair counts them.
    WrongReferrers,
    /// A statistics counter is wrong. The repair counts anew.
    WrongStatistics,
}

/// Counts of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckSummary {
    /// URIs known.
    pub uris: u64,
    /// Of these, URIs in a queue.
    pub queued: u64,
    /// Queues.
    pub queues: u64,
    /// Inconsistencies found.
    pub findings: u64,
    /// Of these, repaired.
    pub repaired: u64,
}

impl Frontier {
    /// Checks whether the store in this folder is consistent, and reports each inconsistency as it is found. Changes nothing.
    /// `config` is the configuration of the crawl: it says which queues are retired.
    ///
    /// # Errors
    /// [`FrontierError::NoStore`] if there is no store, [`FrontierError::InUse`] if a process has it open,
    /// [`FrontierError::OtherVersion`] if it was written in another format. [`FrontierError::Torn`],
    /// [`FrontierError::Unopenable`] and [`FrontierError::Unreadable`] if its files are damaged, which no repair can fix.
    pub fn check(
        dir: &Path,
        config: &FrontierConfig,
        report: &mut dyn FnMut(Inconsistency),
    ) -> Result<CheckSummary, FrontierError> {
        Check::run(dir, config, report, false)
    }

    /// Checks the store as [`Frontier::check`] does, and repairs what it finds. A repair that was cut short is completed by the
    /// next one.
    ///
    /// # Errors
    /// The errors of [`Frontier::check`]. Also fails if the store cannot be written.
    pub fn repair(
        dir: &Path,
        config: &FrontierConfig,
        report: &mut dyn FnMut(Inconsistency),
    ) -> Result<CheckSummary, FrontierError> {
        Check::run(dir, config, report, true)
    }
}

/// A running check.
struct Check<'c> {
    store: Store,
    config: &'c FrontierConfig,
    report: &'c mut dyn FnMut(Inconsistency),
    repairs: bool,
    /// Repairs by keyspace and key, so that a batch names nothing twice.
    pending: BTreeMap<(String, Vec<u8>), Option<Vec<u8>>>,
    summary: CheckSummary,
    counters: Counters,
    /// Statistics as counted from the records.
    counted: Statistics,
    /// `true` if arrival numbers are in use that are higher than the stored counter.
    are_arrivals_behind: bool,
    /// Queues with a URI in process when the store was closed.
    busy: HashSet<String>,
}

impl<'c> Check<'c> {
    fn run(
        dir: &Path,
        config: &'c FrontierConfig,
        report: &'c mut dyn FnMut(Inconsistency),
        repairs: bool,
    ) -> Result<CheckSummary, FrontierError> {
        let mut check = Self {
            store: Store::open_existing(dir, config)?,
            config,
            report,
            repairs,
            pending: BTreeMap::new(),
            summary: CheckSummary::default(),
            counters: Counters::default(),
            counted: Statistics::default(),
            are_arrivals_behind: false,
            busy: HashSet::new(),
        };
        check.read_counters()?;
        let seen = check.records()?;
        check.stray_entries(seen.in_order)?;
        check.in_process()?;
        check.queues()?;
        check.stray_places()?;
        check.canonicals(&seen.canonicals)?;
        check.embeds(seen.referrers)?;
        check.tallies()?;
        check.statistics()?;
        if repairs {
            check.store.persist()?;
        }
        Ok(check.summary)
    }

    /// Records an inconsistency.
    fn report(&mut self, fault: InconsistencyKind, key: &[u8]) {
        self.summary.findings += 1;
        self.summary.repaired += u64::from(self.repairs);
        (self.report)(Inconsistency {
            fault,
            key: readable(key),
            is_repaired: self.repairs,
        });
    }

    /// Puts or removes an entry, if repairs are made.
    fn put_repair(
        &mut self,
        keyspace: &str,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) -> Result<(), FrontierError> {
        if self.repairs {
            self.pending
                .insert((keyspace.to_owned(), key.to_vec()), value);
            if self.pending.len() >= PENDING_MAX {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes the repairs so far, so that the next part of the check reads them.
    fn write(&mut self) -> Result<(), FrontierError> {
        let mut batch = self.store.database.batch();
        for ((name, key), value) in std::mem::take(&mut self.pending) {
            let keyspaces = self.store.keyspaces();
            let Some(keyspace) = keyspaces
                .into_iter()
                .find(|keyspace| **keyspace.name() == *name)
            else {
                continue;
            };
            match value {
                Some(value) => batch.insert(keyspace, key, value),
                None => batch.remove(keyspace, key),
            }
        }
        Ok(batch.commit()?)
    }

    fn read_counters(&mut self) -> Result<(), FrontierError> {
        if let Some(bytes) = self.store.meta.get("counters")? {
            match Counters::stored(&bytes) {
                Ok(counters) => self.counters = counters,
                Err(_) => {
                    self.report(InconsistencyKind::Malformed("meta"), b"counters");
                    // Their true number is unknown.
                    self.counters.withdrawn = 1;
                }
            }
        }
        Ok(())
    }

    /// Compares the statistics with the counts.
    fn statistics(&mut self) -> Result<(), FrontierError> {
        let counted = self.counted;
        let stored = &mut self.counters.statistics;
        let mut wrong = Vec::new();
        if self.are_arrivals_behind {
            wrong.push("arrivals");
        }
        for (name, stored, counted) in [
            ("discovered", &mut stored.discovered, counted.discovered),
            ("queued", &mut stored.queued, counted.queued),
            ("succeeded", &mut stored.succeeded, counted.succeeded),
            ("failed", &mut stored.failed, counted.failed),
            ("disregarded", &mut stored.disregarded, counted.disregarded),
            (
                "prerequisites",
                &mut stored.prerequisites,
                counted.prerequisites,
            ),
            ("refusals", &mut self.counters.refusals, counted.refused),
        ] {
            if *stored != counted {
                *stored = counted;
                wrong.push(name);
            }
        }
        for name in wrong {
            self.report(InconsistencyKind::WrongStatistics, name.as_bytes());
        }
        if self.repairs && self.summary.findings > 0 {
            let counters = encode(&self.counters)?;
            self.put_repair("meta", b"counters", Some(counters))?;
        }
        self.write()
    }

    /// Records an arrival number in use: later ones must be higher.
    fn arrived(&mut self, arrival: u64) {
        if arrival > self.counters.arrivals {
            self.counters.arrivals = arrival;
            self.are_arrivals_behind = true;
        }
    }
}

impl InconsistencyKind {
    /// A short description of the inconsistency.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Malformed(_) => "cannot be read",
            Self::NotInQueue => "is queued, but not listed in its queue",
            Self::InBothOrders => "is both ready and waiting",
            Self::Stray => "is listed in a queue that it is not in",
            Self::NoQueue => "has URIs, but no record",
            Self::WrongQueueCounts => "has wrong counts of its URIs",
            Self::NotInLine => "has URIs to issue, but no place in the queue order",
            Self::NeedlessTurn => "has no URIs, but a place in the queue order",
            Self::StrayTurn => "has a second place in the queue order",
            Self::NoCanonical => "is missing in the index of canonical forms",
            Self::StrayCanonical => "is in the index of canonical forms, but has no record",
            Self::StrayEmbed => "is embedded by a page, but has no record",
            Self::OneSidedEmbed => "is recorded as an embed in one direction only",
            Self::StraySite => "is kept for a site without known URIs",
            Self::WrongReferrers => "has a wrong count of the pages that embed it",
            Self::WrongStatistics => "has a wrong value",
        }
    }

    /// A short description of its repair.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::StraySite => "removed",
            Self::NotInQueue => "put back into its queue",
            Self::InBothOrders => "left waiting",
            Self::Stray | Self::StrayEmbed => "entry removed",
            Self::NoQueue => "record created",
            Self::WrongQueueCounts | Self::WrongReferrers | Self::WrongStatistics => "recounted",
            Self::OneSidedEmbed => "list corrected",
            Self::NotInLine => "added to the queue order",
            Self::NeedlessTurn | Self::StrayTurn => "removed from the queue order",
            Self::NoCanonical => "added",
            Self::StrayCanonical => "removed, so that it may be found again",
        }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let InconsistencyKind::Malformed(keyspace) = self.fault {
            write!(formatter, "{keyspace}: ")?;
        }
        write!(formatter, "{} {}", self.key, self.fault.description())?;
        if self.is_repaired {
            write!(formatter, ": {}", self.fault.remedy())?;
        }
        Ok(())
    }
}

/// A key as text, or its bytes in hexadecimal.
fn readable(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => key.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// The queue in a key of `ready` or `waiting`; `None` if the key is malformed.
fn queue_of(key: &[u8]) -> Option<&str> {
    let end = key.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&key[..end]).ok()
}

#[cfg(test)]
mod tests;
