//! When a document is visited again, and what becomes of one that has not really changed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// When a document is visited again under `strategy = "revisit"` or `"fixed"`, and what becomes of one that has not really
/// changed.
/// Wait evaluators say how long to wait; what they say is kept within these limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RevisitFile {
    /// The wait where no evaluator answers or where it is not known whether the content has changed.
    /// Default `"3d"`: between the shortest and the longest wait, as in earlier adaptive crawls.
    pub default_wait: DurationWritten,

    /// The shortest wait between two visits of one URI. Default `"1h"`: a news page's changes within the hour are
    /// seldom worth the load.
    pub min_wait: DurationWritten,

    /// The longest wait between two visits of one URI. A URI that failed is probed after `min-wait`, and after twice as long
    /// with each further failure, up to this; one that was visited before a step later. What a filter refused is looked at
    /// again after this. Default `"4w"`: whatever has never changed is still looked at every month.
    pub max_wait: DurationWritten,

    /// What becomes of a capture that differs in bytes but not in content once the strippers have removed what does not
    /// count. Default `"archive"`: nothing that came over the wire is thrown away unless the profile says so.
    pub stripped_equal: StrippedEqual,

    /// What is written of a capture where a mid-fetch filter took the headers as proof that nothing has changed, and the
    /// body was not fetched. Default `"revisit"`: the visit is on record, and no auditor takes it for a 304.
    pub unchanged_headers: UnchangedHeaders,

    /// Visits a day that documents are to be visited again by, among which evaluators that heed prices (`budgeted`) share
    /// them out. Default `"none"`: as many as politeness and the crawler allow.
    pub budget: CountWritten,

    /// How many earlier visits are kept for each URI, with the beginning of the digest of what they brought and the wait
    /// decided after them, for wait evaluators and people to look at. Default `20`: enough to estimate a rate of change;
    /// each takes some 20 bytes of store.
    #[schemars(range(max = 1000))]
    pub history: u32,

    /// The wait between two visits under `strategy = "fixed"`, whatever wait evaluators say. Default `"1d"`: a page a day,
    /// at about the same hour.
    pub fixed_wait: DurationWritten,

    /// When a page is found changed, visit what it embeds now instead of when it is due. Default `false`: style sheets and
    /// logos seldom change with the page, and wait evaluators watch them as well.
    pub refresh_embeds: bool,

    /// An embed on another site that the pages it was found on have no longer named for so many of their visits fades: it
    /// is not visited again. 0 for never. Default `3`: a page that is broken for one visit or two loses nothing.
    #[schemars(range(max = 1000))]
    pub fade_after: u32,

    /// What a feed or a sitemap says has changed since its last visit is due at once, though not before `min-wait`. Of
    /// the lists, not of what they name: an override for a site says whether its lists are believed. Default `true`: most
    /// lists tell the truth, and one that calls everything new costs no more than `min-wait` allows.
    pub signals: bool,
}

/// What becomes of a capture that differs in bytes but not in content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrippedEqual {
    /// Write it as a full response.
    Archive,
    /// Write only that it was visited, with the headers that came.
    Note,
    /// Write nothing but the line in the crawl log.
    Drop,
}

/// What is written of a capture whose headers alone say that nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnchangedHeaders {
    /// Write a revisit record with a profile of its own, `urn:opilio:revisit:headers-unchanged`.
    Revisit,
    /// Write only that it was visited, with the headers that came.
    Note,
    /// Write nothing but the line in the crawl log.
    Drop,
    /// Write a revisit record with the standard's profile for a 304, over a block that says 200: for tools that know no
    /// other profile.
    ServerNotModified,
}

/// When a document is visited again, and what becomes of one that has not really changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisit {
    /// The wait where nobody knows better; within the two limits.
    pub default_wait: Duration,
    /// The shortest wait; longer than zero.
    pub min_wait: Duration,
    /// The longest wait; not less than `min_wait`.
    pub max_wait: Duration,
    /// What becomes of a capture that differs in bytes but not in content.
    pub stripped_equal: StrippedEqual,
    /// What is written of a capture whose body was not fetched because of its headers.
    pub unchanged_headers: UnchangedHeaders,
    /// Visits a day to be shared out; none: as many as can be.
    pub budget: Option<u64>,
    /// Earlier visits kept for each URI; at most 1,000.
    pub history: usize,
    /// The wait under the strategy `Fixed`; longer than zero.
    pub fixed_wait: Duration,
    /// When a page is found changed, what it embeds is due at once.
    pub refresh_embeds: bool,
    /// Visits of its referrers without a link after which an off-site embed is not visited again; 0: never.
    pub fade_after: u32,
    /// What lists say has changed is due at once.
    pub signals: bool,
}

impl Default for RevisitFile {
    fn default() -> Self {
        Self {
            default_wait: "3d".into(),
            min_wait: "1h".into(),
            max_wait: "4w".into(),
            stripped_equal: StrippedEqual::Archive,
            unchanged_headers: UnchangedHeaders::Revisit,
            budget: "none".into(),
            history: 20,
            fixed_wait: "1d".into(),
            refresh_embeds: false,
            fade_after: 3,
            signals: true,
        }
    }
}

impl RevisitFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Revisit {
        Revisit {
            default_wait: part.positive_duration("default-wait", &self.default_wait),
            min_wait: part.positive_duration("min-wait", &self.min_wait),
            max_wait: part.positive_duration("max-wait", &self.max_wait),
            stripped_equal: self.stripped_equal,
            unchanged_headers: self.unchanged_headers,
            budget: part.count_limit("budget", &self.budget),
            history: self.history as usize,
            fixed_wait: part.positive_duration("fixed-wait", &self.fixed_wait),
            refresh_embeds: self.refresh_embeds,
            fade_after: self.fade_after,
            signals: self.signals,
        }
    }
}
