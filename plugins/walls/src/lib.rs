//! Filters that recognise responses other than the requested page: `bot-walls`, pages that keep bots out, `soft-404`, error pages
//! with a success status, and `needs-browser`, pages that show little until their scripts have run.
//!
//! The first two only annotate by default. A page wrongly called a wall misleads readers of the log; a missed one is merely
//! archived. So only signs count that ordinary pages hardly ever have.

mod bot_walls;
mod needles;
mod needs_browser;
mod page;
mod page_facts;
mod soft_404;
// The tokenizer of the html extractor, included as a file: a crate that exports a component cannot be part of another.
#[path = "../../html/src/tokenizer.rs"]
pub mod tokenizer;

use opilio_plugin::prelude::*;

pub use crate::bot_walls::BotWalls;
pub use crate::needs_browser::NeedsBrowser;
pub use crate::soft_404::Soft404;

/// Effect on a recognised page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// Only annotates the page in the crawl log.
    #[default]
    Annotate,
    /// Rejects the page. At `post-fetch` it is discarded; at `pre-extract` its links are not extracted; at `archive` it is not
    /// archived.
    Reject,
    /// Fetches the page again after `retry-after`, as often as the profile's `retry` allows. Only at `post-fetch`.
    Retry,
}

impl Then {
    fn ruling(self, stage: &Stage, retry_after: Period, reason: String) -> Ruling {
        match (self, stage) {
            (Self::Annotate, _) => Ruling::pass(),
            (Self::Retry, Stage::PostFetch) => Ruling {
                verdict: Verdict::Retry(retry_after.milliseconds()),
                reason,
            },
            (Self::Reject | Self::Retry, _) => Ruling::reject(reason),
        }
    }
}

opilio_plugin::export!(filters: [BotWalls, Soft404, NeedsBrowser]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
