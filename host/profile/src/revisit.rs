//! Revisit settings: the wait before the next visit, and the treatment of documents that have not really changed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Waits between visits under `strategy = "revisit"` or `"fixed"`, and treatment of documents that have not really changed. Waits
/// from wait evaluators are kept within these limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RevisitFile {
    /// Wait if no wait evaluator answers for a document, or if one fails at its first visit. An evaluator that answers for
    /// every document has waits of its own: those of `adaptive` are `initial-wait` after the first visit and `default-wait` if
    /// the content state is unknown. Default `"3d"`: between the shortest and the longest wait, as in earlier adaptive
    /// crawls.
    pub default_wait: DurationWritten,

    /// Shortest wait between two visits of one URI, whatever an evaluator answers. Shorter waits in the settings of an
    /// evaluator have no effect. Default `"1h"`: more frequent visits of a news page are seldom worth the
    /// load.
    pub min_wait: DurationWritten,

    /// Longest wait between two visits of one URI. A URI that failed is probed after `min-wait`, and after twice as long with
    /// each further failure, up to this. A URI that was visited before is probed a step later. A URI that a filter refused is
    /// considered again after this wait. Default `"4w"`: even a page that has never changed is visited every month.
    pub max_wait: DurationWritten,

    /// Treatment of a capture that differs in bytes but not in content, after the strippers have removed the parts that do not
    /// count. Default `"archive"`: received content is discarded only if the profile requests it.
    pub stripped_equal: StrippedEqual,

    /// Record of a capture whose body was not fetched, because a mid-fetch filter took the headers as proof that nothing has
    /// changed. Default `"revisit"`: the visit is on record, and differs from a 304.
    pub unchanged_headers: UnchangedHeaders,

    /// Revisits a day, which evaluators that use prices (`budgeted`) distribute among documents. Default `"none"`: as many as
    /// politeness and the crawler allow.
    pub budget: CountWritten,

    /// Earlier visits that are kept for each URI, for wait evaluators and operators. Each has the beginning of its version's
    /// digest and the wait decided after it. Default `20`: enough to estimate a rate of change; each takes about 20 bytes in
    /// the store.
    #[schemars(range(max = 1000))]
    pub history: u32,

    /// Wait between two visits under `strategy = "fixed"`, whatever wait evaluators answer. Default `"1d"`: one visit a day, at
    /// about the same hour.
    pub fixed_wait: DurationWritten,

    /// `true` if the embeds of a page that has changed are visited now instead of when they are due. Default `false`: style sheets
    /// and logos seldom change with the page, and wait evaluators handle them as well.
    pub refresh_embeds: bool,

    /// Visits of its pages after which an embed on another site fades, if these pages have not named it any more. A faded embed
    /// is not visited again. 0 for never. Default `3`: an embed survives one or two visits in which its page is broken.
    #[schemars(range(max = 1000))]
    pub fade_after: u32,

    /// `true` if a document is due at once when a feed or a sitemap reports that it has changed since its last visit. It is never
    /// due before `min-wait`. The setting of the list's site counts, not that of the documents: an override for a site decides
    /// whether its lists are believed. Default `true`: most lists are correct, and a list that reports everything as new costs no
    /// more visits than `min-wait` allows.
    pub signals: bool,
}

/// Treatment of a capture that differs in bytes but not in content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrippedEqual {
    /// Write it as a full response.
    Archive,
    /// Write only a note of the visit, with the headers received.
    Note,
    /// Write only the line in the crawl log.
    Drop,
}

/// Record of a capture whose body was not fetched, because its headers say that nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnchangedHeaders {
    /// Write a revisit record with Opilio's own profile, `urn:opilio:revisit:headers-unchanged`.
    Revisit,
    /// Write only a note of the visit, with the headers received.
    Note,
    /// Write only the line in the crawl log.
    Drop,
    /// Write a revisit record with the standard's profile for a 304, over a block with status 200: for tools that know no other
    /// profile.
    ServerNotModified,
}

/// Waits between visits, and treatment of documents that have not really changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisit {
    /// Wait if no evaluator answers; within the two limits.
    pub default_wait: Duration,
    /// Shortest wait; longer than zero.
    pub min_wait: Duration,
    /// Longest wait; not less than `min_wait`.
    pub max_wait: Duration,
    /// Treatment of a capture that differs in bytes but not in content.
    pub stripped_equal: StrippedEqual,
    /// Record of a capture whose body was not fetched because of its headers.
    pub unchanged_headers: UnchangedHeaders,
    /// Revisits a day to be distributed; `None`: as many as possible.
    pub budget: Option<u64>,
    /// Earlier visits kept for each URI; at most 1,000.
    pub history: usize,
    /// The wait under the strategy `Fixed`; longer than zero.
    pub fixed_wait: Duration,
    /// `true` if the embeds of a page that has changed are due at once.
    pub refresh_embeds: bool,
    /// Visits of its referrers without a link after which an off-site embed is not visited again; 0: never.
    pub fade_after: u32,
    /// `true` if documents are due at once when lists report a change.
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
