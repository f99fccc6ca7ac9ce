//! Hosts of a job with their counts and the freshness of their pages, in any order.
//!
//! The counts are rows of the ledger. They are read in parts, and only the requested page is kept in memory, even if a million
//! hosts are sorted.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use opilio_job::census::{self, HostPages};
use opilio_job::ledger::{self, HostCounts};

use super::admin::{PART, PART_PAUSE};
use super::answer::{Respond, listened};
use super::{
    CommandResponse, ControlError, ErrorKind, HostReport, HostSelection, HostSort, HostTotals,
    JobAdmin,
};

/// Maximum hosts of one answer.
const HOSTS_MAX: usize = 1_000_000;

/// Position of a host in an order. Hosts with equal values are in the order of names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    /// Greater values come first; 0 in the order by name.
    value: u64,
    host: String,
    is_reverse: bool,
}

impl Ord for Position {
    fn cmp(&self, other: &Position) -> Ordering {
        let order = other
            .value
            .cmp(&self.value)
            .then_with(|| self.host.cmp(&other.host));
        if self.is_reverse {
            order.reverse()
        } else {
            order
        }
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Position) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.value, self.host)
    }
}

impl FromStr for Position {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Position, ControlError> {
        let read = text
            .split_once('/')
            .and_then(|(value, host)| Some((value.parse().ok()?, host.to_owned())));
        let (value, host) = read.ok_or_else(|| {
            ControlError::new(
                ErrorKind::Unknown,
                format!("invalid cursor {text:?}; pass the cursor that an earlier page ended with"),
            )
        })?;
        Ok(Position {
            value,
            host,
            is_reverse: false,
        })
    }
}

/// Host that is a candidate for the page.
#[derive(Clone, Debug)]
struct Ranked {
    position: Position,
    counts: HostCounts,
    pages: Option<HostPages>,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.position == other.position
    }
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.position.cmp(&other.position)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl HostSelection {
    fn takes(&self, host: &str, counts: &HostCounts) -> bool {
        let search = self.search.as_deref().unwrap_or_default();
        // Names of hosts are in lower case.
        host.contains(&search.to_lowercase()) && (!self.with_errors || counts.errors() > 0)
    }

    fn value(&self, counts: &HostCounts, pages: Option<&HostPages>) -> u64 {
        let milliseconds = |at: Timestamp| u64::try_from(at.as_millisecond()).unwrap_or(0);
        match self.sort {
            HostSort::Bytes => counts.responses.bytes,
            HostSort::Documents => counts.documents(),
            HostSort::Errors => counts.errors(),
            HostSort::LastVisit => counts.last_visit.map_or(0, milliseconds),
            // Hosts without an estimate come last.
            HostSort::Freshness => pages
                .and_then(|pages| pages.freshness)
                .map_or(0, |share| 1 + (share * 1e9) as u64),
            HostSort::Name => 0,
        }
    }
}

impl JobAdmin<'_> {
    /// Lists hosts, then sends the sums over all that match.
    pub(super) fn hosts(
        &self,
        which: &HostSelection,
        after: Option<&str>,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        self.counted()?;
        let limit = usize::try_from(limit).map_or(HOSTS_MAX, |limit| limit.min(HOSTS_MAX));
        let after = after.map(str::parse::<Position>).transpose()?;
        let after = after.map(|place| Position {
            is_reverse: which.reverse,
            ..place
        });
        let mut totals = HostTotals::default();
        // One more host than the page has shows that there is another page.
        let mut page: BinaryHeap<Ranked> = BinaryHeap::new();
        let mut read: Option<String> = None;
        loop {
            let part = ledger::hosts(&self.frontier(), read.as_deref(), PART)?;
            let is_last = part.len() < PART;
            for (host, counts) in part {
                read = Some(host.clone());
                if !which.takes(&host, &counts) {
                    continue;
                }
                totals.hosts += 1;
                totals.documents += counts.documents();
                totals.bytes += counts.responses.bytes;
                totals.errors += counts.errors();
                let pages = match which.sort {
                    HostSort::Freshness => self.pages_of(&host)?,
                    _ => None,
                };
                let position = Position {
                    value: which.value(&counts, pages.as_ref()),
                    host,
                    is_reverse: which.reverse,
                };
                if after.as_ref().is_some_and(|after| position <= *after) {
                    continue;
                }
                page.push(Ranked {
                    position,
                    counts,
                    pages,
                });
                if page.len() > limit + 1 {
                    page.pop();
                }
            }
            if is_last {
                break;
            }
            std::thread::sleep(PART_PAUSE);
        }
        let mut page = page.into_sorted_vec();
        let has_more = page.len() > limit;
        page.truncate(limit);
        let last = page.last().map(|last| last.position.to_string());
        for ranked in page {
            let host = ranked.position.host;
            let pages = match ranked.pages {
                Some(pages) => Some(pages),
                None => self.pages_of(&host)?,
            };
            let counts = ranked.counts;
            listened(respond(CommandResponse::Host(Box::new(HostReport {
                documents: counts.documents(),
                bytes: counts.responses.bytes,
                errors: counts.errors(),
                host,
                counts,
                pages,
            }))))?;
        }
        listened(respond(CommandResponse::HostTotals(totals)))?;
        if let Some(after) = last.filter(|_| has_more) {
            respond(CommandResponse::More { after });
        }
        Ok(String::new())
    }

    /// Counts the pages of a host; `None` for look-ups.
    fn pages_of(&self, host: &str) -> Result<Option<HostPages>, ControlError> {
        match host.ends_with(':') {
            true => Ok(None),
            false => Ok(Some(census::host_pages(self.store(), host)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn positions_are_in_the_order_of_values_and_then_of_names() {
        let order = |is_reverse| {
            let texts = ["5/b", "7/z", "5/a", "0/c"];
            let mut all: Vec<Position> = texts.iter().map(|text| text.parse().unwrap()).collect();
            for position in &mut all {
                position.is_reverse = is_reverse;
            }
            all.sort();
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(order(false), ["7/z", "5/a", "5/b", "0/c"]);
        assert_eq!(order(true), ["0/c", "5/b", "5/a", "7/z"]);
        assert!("x/y".parse::<Position>().is_err());
    }
}
