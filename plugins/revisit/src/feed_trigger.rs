//! `feed-trigger`: visits feeds and sitemaps often, and rarely the documents whose changes they report.
//!
//! Opilio makes a document due at once when a list reports a change (`revisit.signals` of the profile). This evaluator chooses
//! matching waits:
//!
//! - Lists get short waits: the larger the share of the site's changes that they report, the shorter.
//! - Documents whose change a list has just correctly reported get long waits.
//! - Other documents, changed without a report or reported without a change, are left to the next evaluator of the stack.

use std::time::Duration;

use opilio_plugin::prelude::*;

use crate::experience;
use crate::list_reliability::{ListReliability, RELIABILITY, RELIABILITY_VERSION};
use crate::media_types;

/// Relies on feeds and sitemaps.
pub struct FeedTrigger {
    settings: Settings,
}

/// Settings of `feed-trigger`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Media types of lists.
    pub media_types: Vec<String>,
    /// Ends of paths of lists with an unspecific media type, such as `sitemap.xml` sent as `text/xml`.
    pub paths: Vec<String>,
    /// Wait between two visits of a list that reports all changes of its site. A list waits longer in proportion if it reports
    /// fewer changes, or names unchanged documents.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub list_wait: Period,
    /// Wait of a document whose change a list has just reported, because the list will report the next one too. It is also the
    /// longest wait of lists, even those that report nothing.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub announced_wait: Period,
    /// Whether such documents get that wait at all. Set it to false before an evaluator that weighs lists itself, such as
    /// `budgeted`: it must see these documents to learn from them.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub announced: bool,
}

impl Default for Settings {
    /// Half an hour is the interval that most feeds suggest (`ttl`). A week limits the delay of changes that lists omit.
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            media_types: texts(&[
                "application/rss+xml",
                "application/atom+xml",
                "application/feed+json",
            ]),
            paths: texts(&[
                "sitemap.xml",
                "sitemap_index.xml",
                "sitemap-index.xml",
                "rss.xml",
                "atom.xml",
                "feed.xml",
                "feed.json",
                "/feed",
                "/feed/",
                "/rss",
                "/rss/",
            ]),
            list_wait: Period::seconds(30 * 60),
            announced_wait: Period::seconds(7 * 24 * 60 * 60),
            announced: true,
        }
    }
}

impl Plugin for FeedTrigger {
    const NAME: &'static str = "feed-trigger";
    const SUMMARY: &'static str =
        "Visits feeds and sitemaps often, and rarely the documents whose changes they report.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults: Vec<_> =
            media_types::faults("/media-types", &settings.media_types).collect();
        for (at, path) in settings.paths.iter().enumerate() {
            if path.is_empty() {
                let problem = "an empty end matches every path";
                faults.push(SettingsFault::new(format!("/paths/{at}"), problem));
            }
        }
        for (pointer, wait) in [
            ("/list-wait", settings.list_wait),
            ("/announced-wait", settings.announced_wait),
        ] {
            if wait.milliseconds() == 0 {
                let problem = "a wait of 0 would visit without a pause; write a time such as `30m`";
                faults.push(SettingsFault::new(pointer, problem));
            }
        }
        none_or(faults, Self { settings })
    }

    fn keeps() -> Vec<Keep> {
        vec![Keep::with_site(RELIABILITY, RELIABILITY_VERSION)]
    }
}

impl WaitEvaluator for FeedTrigger {
    fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        let settings = &self.settings;
        let (list, announced) = (
            settings.list_wait.milliseconds(),
            settings.announced_wait.milliseconds(),
        );
        let wait = if self.is_list(visit) {
            let reliability = ListReliability::of(visit);
            // Marks the site as one with lists. Without this value, visits of the site's documents are not counted.
            visit.set_site_value(RELIABILITY, &reliability.encode());
            let wait = (list as f64 / reliability.usefulness()) as u64;
            wait.min(announced.max(list))
        } else {
            if visit.site_value(RELIABILITY).is_some()
                && experience::is_visit(visit)
                && let Some(interval) = experience::interval(visit)
            {
                let mut reliability = ListReliability::of(visit);
                reliability.learn(!visit.signals().is_empty(), interval.has_changed);
                visit.set_site_value(RELIABILITY, &reliability.encode());
            }
            let is_reported = visit.state() == ContentState::Changed && !visit.signals().is_empty();
            if !settings.announced || !is_reported {
                return None;
            }
            count("announced", 1);
            announced
        };
        Some(Wait::after(Duration::from_millis(wait)))
    }
}

impl FeedTrigger {
    fn is_list(&self, visit: &Visit) -> bool {
        let types = &self.settings.media_types;
        if !types.is_empty() && media_types::is_among(types, &visit.media_type()) {
            return true;
        }
        let uri = visit.candidate().uri;
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        // Large sitemaps are often compressed, as `.gz`.
        let path = path.strip_suffix(".gz").unwrap_or(path);
        self.settings
            .paths
            .iter()
            .any(|end| path.ends_with(end.as_str()))
    }
}
