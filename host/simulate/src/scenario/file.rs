//! A scenario as written, before it is checked.

use opilio_profile::DurationWritten;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Lists, SIZE_MAX};
use crate::process::RATE_MAX;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScenarioFile {
    /// Name of the scenario. Default: the file's name.
    pub(super) name: Option<String>,
    /// Description in a sentence.
    #[serde(default)]
    pub(super) description: String,
    /// Whole time, such as `"360d"`.
    pub(super) days: DurationWritten,
    /// Time at the beginning that is not measured. Default: `"30d"`.
    pub(super) warm_up: Option<DurationWritten>,
    /// Start time. Default: a Monday.
    pub(super) start: Option<String>,
    /// Requests that the crawl may make.
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
    /// Period for which visits that were not made are saved up. Default: `"1d"`.
    pub(super) burst: Option<DurationWritten>,
    /// Maximum number of simultaneous requests. Default: 50.
    pub(super) workers: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SiteFile {
    /// First part of the host names: `news` makes `news-1.example`.
    pub(super) name: String,
    /// Number of such sites. Default: 1.
    pub(super) count: Option<u32>,
    /// Number of pages of each site.
    pub(super) pages: u32,
    /// Number of folders of each site. Default: 1.
    pub(super) sections: Option<u32>,
    /// `true` if all pages, the feed and the sitemap are seeds of the crawl. It then finds no page by links.
    #[serde(default)]
    pub(super) known: bool,
    /// New pages of each site per day.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) growth: f64,
    /// Mean life of a page, such as `"90d"`; an hour or more. Default: pages stay for ever.
    pub(super) life: Option<DurationWritten>,
    /// Duration of a response, at most a day. Default: `"200ms"`.
    pub(super) response: Option<DurationWritten>,
    /// Share of responses with status 503.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) failures: f64,
    /// Times at which robots.txt disallows a part of the site. Default: never.
    pub(super) closed: Option<ClosedFile>,
    /// Times at which robots.txt has a `Crawl-delay`. Default: never.
    pub(super) slowed: Option<SlowedFile>,
    /// Feed of the site.
    #[serde(default)]
    pub(super) feed: Lists,
    /// Sitemap of the site.
    #[serde(default)]
    pub(super) sitemap: Lists,
    /// Kinds of pages.
    pub(super) page: Vec<KindFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClosedFile {
    /// Number of times a year, at most once an hour.
    #[schemars(range(min = 0))]
    pub(super) per_year: f64,
    /// Duration of each time, such as `"3d"`.
    pub(super) length: DurationWritten,
    /// Beginning of the disallowed paths. Default: `"/"`, the whole site.
    #[schemars(regex(pattern = "^/[!-~]*$"), example = &"/s0/")]
    pub(super) path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SlowedFile {
    /// Number of times a year, at most once an hour.
    #[schemars(range(min = 0))]
    pub(super) per_year: f64,
    /// Duration of each time, such as `"3d"`.
    pub(super) length: DurationWritten,
    /// `Crawl-delay`, in whole seconds, such as `"30s"`.
    pub(super) crawl_delay: DurationWritten,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct KindFile {
    /// First part of the pages' names, of lower-case letters, digits and hyphens. Overrides of a profile can match it. `story`
    /// makes `/s0/story-17`; without a name the path is `/s0/p17`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,39}$"), example = &"story")]
    pub(super) name: Option<String>,
    /// Share of the site's pages, relative to other kinds. Default: 1.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) share: Option<f64>,
    /// Media type. Default: `text/html`.
    pub(super) media_type: Option<String>,
    /// Mean size in bytes. Default: 20000.
    #[schemars(range(max = SIZE_MAX))]
    pub(super) size: Option<u64>,
    /// Importance of a page: 0, or from a millionth to a million. Default: 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) importance: Option<f64>,
    /// Changes of the pages.
    pub(super) change: ChangeFile,
    /// Share of HTML pages that show the time, in a comment and in plain text.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) clock: f64,
    /// Share of HTML pages with a box of random words.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub(super) noise: f64,
    /// Entity tags (`ETag`) of the pages.
    #[serde(default)]
    pub(super) etag: HeaderAccuracyFile,
    /// `Last-Modified` of the pages.
    #[serde(default)]
    pub(super) last_modified: HeaderAccuracyFile,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct HeaderAccuracyFile {
    /// Share of pages where the value changes with the content.
    #[schemars(range(min = 0, max = 1))]
    pub(super) honest: f64,
    /// Share of pages where the value never changes.
    #[schemars(range(min = 0, max = 1))]
    pub(super) stuck: f64,
    /// Share of pages where the value changes with every response.
    #[schemars(range(min = 0, max = 1))]
    pub(super) restless: f64,
}

/// Random process of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProcessName {
    /// Random, at a constant rate.
    Poisson,
    /// At equal intervals.
    Periodic,
    /// Random, mostly by day and on working days.
    Rhythm,
    /// Random, at times with a much higher rate.
    Bursts,
    /// No changes.
    Never,
}

/// Distribution of rates over pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Spread {
    /// The same rate for all pages.
    #[default]
    Fixed,
    /// Lognormal distribution.
    Lognormal,
    /// Gamma distribution.
    Gamma,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ChangeFile {
    /// Random process of the changes.
    pub(super) process: ProcessName,
    /// Changes per day: the median of a lognormal distribution, the mean of others. No page changes more than once a second.
    #[schemars(range(min = 0, max = RATE_MAX))]
    pub(super) per_day: Option<f64>,
    /// Distribution of rates over pages.
    #[serde(default)]
    pub(super) rates: Spread,
    /// For `lognormal`, the standard deviation of the logarithm, up to 10; for `gamma`, the shape, up to 1000.
    #[schemars(range(min = 0, max = 1000))]
    pub(super) spread: Option<f64>,
    /// For `rhythm`, the share of changes outside Monday to Friday, 8 to 20 o'clock UTC, from 0 to 1. Default: 0.1.
    #[schemars(range(min = 0, max = 1))]
    pub(super) quiet: Option<f64>,
    /// For `bursts`, their number per year. Default: 4.
    #[schemars(range(min = 0, max = 8760))]
    pub(super) bursts_per_year: Option<f64>,
    /// For `bursts`, their duration. Default: `"7d"`.
    pub(super) burst_length: Option<DurationWritten>,
    /// For `bursts`, the factor by which the rate rises. Default: 20.
    #[schemars(range(min = 1, max = RATE_MAX))]
    pub(super) burst_factor: Option<f64>,
}
