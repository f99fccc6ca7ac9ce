//! A scenario as written, before it is checked.

use opilio_profile::DurationWritten;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Lists, SIZE_MAX};
use crate::process::RATE_MAX;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScenarioFile {
    /// What it is called; otherwise as its file is.
    pub(super) name: Option<String>,
    /// A sentence about it.
    #[serde(default)]
    pub(super) description: String,
    /// The whole time, such as `"360d"`.
    pub(super) days: DurationWritten,
    /// What is left out of the measures at the beginning; `"30d"` where nothing is said.
    pub(super) warm_up: Option<DurationWritten>,
    /// When it begins; a Monday where nothing is said.
    pub(super) start: Option<String>,
    /// What the crawl may fetch.
    pub(super) budget: BudgetFile,
    /// Groups of sites.
    #[serde(default)]
    pub(super) site: Vec<SiteFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BudgetFile {
    /// Visits per page and day.
    #[schemars(range(min = 0))]
    pub(super) visits: f64,
    /// How long visits that were not made may be saved up; `"1d"` where nothing is said.
    pub(super) burst: Option<DurationWritten>,
    /// Requests at a time; 50 where nothing is said.
    pub(super) workers: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SiteFile {
    /// First part of the host names: `news` makes `news-1.example`.
    pub(super) name: String,
    /// How many such sites; 1 where nothing is said.
    pub(super) count: Option<u32>,
    /// Pages of each.
    pub(super) pages: u32,
    /// Folders of each; 1 where nothing is said.
    pub(super) sections: Option<u32>,
    /// The crawl knows all pages when it begins, and the feed and the sitemap, and finds none by links.
    #[serde(default)]
    pub(super) known: bool,
    /// Pages of each that appear in a day.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) growth: f64,
    /// Mean life of a page, such as `"90d"`, an hour or more; for ever where nothing is said.
    pub(super) life: Option<DurationWritten>,
    /// How long an answer takes, a day at most; `"200ms"` where nothing is said.
    pub(super) response: Option<DurationWritten>,
    /// Share of answers that are errors of the server (503).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) failures: f64,
    /// When robots.txt forbids what; never where nothing is said.
    pub(super) closed: Option<ClosedFile>,
    /// When robots.txt asks for rests; never where nothing is said.
    pub(super) slowed: Option<SlowedFile>,
    /// A feed.
    #[serde(default)]
    pub(super) feed: Lists,
    /// A sitemap.
    #[serde(default)]
    pub(super) sitemap: Lists,
    /// Kinds of pages.
    pub(super) page: Vec<KindFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClosedFile {
    /// How often in a year, once an hour at most.
    #[schemars(range(min = 0))]
    pub(super) per_year: f64,
    /// For how long, such as `"3d"`.
    pub(super) length: DurationWritten,
    /// What of the site: all that begins so; `"/"`, everything, where nothing is said.
    #[schemars(regex(pattern = "^/[!-~]*$"), example = &"/s0/")]
    pub(super) path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SlowedFile {
    /// How often in a year, once an hour at most.
    #[schemars(range(min = 0))]
    pub(super) per_year: f64,
    /// For how long, such as `"3d"`.
    pub(super) length: DurationWritten,
    /// `Crawl-delay`, in whole seconds, such as `"30s"`.
    pub(super) crawl_delay: DurationWritten,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct KindFile {
    /// First part of their names, of small letters, digits and hyphens, so that overrides of a profile can tell them: `story` makes
    /// `/s0/story-17`, where it is `/s0/p17` otherwise.
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,39}$"), example = &"story")]
    pub(super) name: Option<String>,
    /// Part of the site's pages, relative to other kinds; 1 where nothing is said.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) share: Option<f64>,
    /// Media type; `text/html` where nothing is said.
    pub(super) media_type: Option<String>,
    /// Mean size in bytes; 20000 where nothing is said.
    #[schemars(range(max = SIZE_MAX))]
    pub(super) size: Option<u64>,
    /// What such a page is worth: nothing, or from a millionth to a million; 1 where nothing is said.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) importance: Option<f64>,
    /// How they change.
    pub(super) change: ChangeFile,
    /// Share that shows the time, in a comment and in plain text; of HTML alone.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) clock: f64,
    /// Share with a box of random words; of HTML alone.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) noise: f64,
    /// Entity tags.
    #[serde(default)]
    pub(super) etag: HonestyFile,
    /// Dates of change.
    #[serde(default)]
    pub(super) last_modified: HonestyFile,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct HonestyFile {
    /// Share of pages where it changes with the content.
    #[schemars(range(min = 0, max = 1))]
    pub(super) honest: f64,
    /// Share where it never changes.
    #[schemars(range(min = 0, max = 1))]
    pub(super) stuck: f64,
    /// Share where it changes with every answer.
    #[schemars(range(min = 0, max = 1))]
    pub(super) restless: f64,
}

/// How pages change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProcessName {
    /// At random, at a constant rate.
    Poisson,
    /// After the same time each.
    Periodic,
    /// At random, most by day and on working days.
    Rhythm,
    /// At random, and at times much more often.
    Bursts,
    /// Not at all.
    Never,
}

/// How rates are spread over pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Spread {
    /// All the same.
    #[default]
    Fixed,
    /// The logarithm is normal.
    Lognormal,
    /// Gamma.
    Gamma,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ChangeFile {
    /// Which process.
    pub(super) process: ProcessName,
    /// Changes a day: the median of a lognormal distribution, the mean of others. No page changes more than once a second.
    #[schemars(range(min = 0, max = RATE_MAX))]
    pub(super) per_day: Option<f64>,
    /// How rates are spread over pages.
    #[serde(default)]
    pub(super) rates: Spread,
    /// Of a lognormal distribution, the standard deviation of the logarithm, up to 10; of a gamma, its shape, up to 1000.
    #[schemars(range(min = 0, max = 1000))]
    pub(super) spread: Option<f64>,
    /// Of a rhythm: how many of the changes do not come on Monday to Friday from 8 to 20 o'clock UTC, 0 to 1; 0.1 where nothing is said.
    #[schemars(range(min = 0, max = 1))]
    pub(super) quiet: Option<f64>,
    /// Of bursts: how often they come in a year; 4 where nothing is said.
    #[schemars(range(min = 0, max = 8760))]
    pub(super) bursts_per_year: Option<f64>,
    /// Of bursts: how long they last; `"7d"` where nothing is said.
    pub(super) burst_length: Option<DurationWritten>,
    /// Of bursts: how much more often pages change meanwhile; 20 where nothing is said.
    #[schemars(range(min = 1, max = RATE_MAX))]
    pub(super) burst_factor: Option<f64>,
}
