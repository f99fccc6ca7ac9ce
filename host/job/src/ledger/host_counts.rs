//! Counts of one host, as the ledger keeps them in the store.

use jiff::Timestamp;
use opilio_frontier::LastOutcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Amount;
use super::line::{CountedLine, ResponseContent};

/// Counts of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostCounts {
    /// Visits with a response: documents, error responses and prerequisites.
    pub responses: Amount,
    /// Of these, new or changed ones.
    pub novel: Amount,
    /// Of these, those whose payload was archived already.
    pub duplicate: Amount,
    /// Of these, those that the server answered with 304.
    pub not_modified: Amount,
    /// Visits that failed without a response.
    pub no_response: u64,
    /// Disregarded URIs.
    pub disregarded: u64,
    /// Of these, URIs disallowed by robots.txt.
    pub robots: u64,
    /// Status of the last visit.
    pub last_status: i32,
    /// Of the visits with a response: robots.txt files, logins and look-ups.
    #[serde(default)]
    pub prerequisites: u64,
    /// Of the visits with a response: error responses (status 4xx and 5xx) to requests for documents.
    #[serde(default)]
    pub error_responses: u64,
    /// Time of the last visit.
    #[serde(default)]
    pub last_visit: Option<Timestamp>,
}

impl HostCounts {
    /// Returns the number of responses to requests for documents, without error responses.
    pub fn documents(&self) -> u64 {
        let others = self.prerequisites + self.error_responses;
        self.responses.uris.saturating_sub(others)
    }

    /// Returns the number of error responses and failed visits.
    pub fn errors(&self) -> u64 {
        self.error_responses + self.no_response
    }

    /// Counts a line of the log.
    pub(super) fn count(&mut self, line: &CountedLine<'_>) {
        let amount = Amount {
            uris: 1,
            bytes: line.bytes,
        };
        self.last_status = line.status;
        self.last_visit = line.logged.parse().ok().or(self.last_visit);
        match line.outcome() {
            LastOutcome::Disregarded => {
                self.disregarded += 1;
                self.robots += u64::from(line.status == -9998);
            }
            LastOutcome::Prerequisite => self.prerequisites += 1,
            LastOutcome::Failed if line.is_response() => self.error_responses += 1,
            LastOutcome::Open | LastOutcome::Failed => self.no_response += 1,
            LastOutcome::Succeeded => {}
        }
        if line.is_response() {
            self.responses.add(amount);
            match line.content {
                ResponseContent::Novel => self.novel.add(amount),
                ResponseContent::Duplicate => self.duplicate.add(amount),
                ResponseContent::NotModified => self.not_modified.add(amount),
            }
        }
    }

    /// Adds later counts.
    pub(super) fn add(&mut self, later: &HostCounts) {
        self.responses.add(later.responses);
        self.novel.add(later.novel);
        self.duplicate.add(later.duplicate);
        self.not_modified.add(later.not_modified);
        self.no_response += later.no_response;
        self.disregarded += later.disregarded;
        self.robots += later.robots;
        self.last_status = later.last_status;
        self.prerequisites += later.prerequisites;
        self.error_responses += later.error_responses;
        self.last_visit = later.last_visit.or(self.last_visit);
    }
}
