//! Filters that recognise what a server sends in place of what was asked for: `bot-walls`, pages that keep robots out, and
//! `soft-404`, pages that say with a success that there is nothing.
//!
//! Both annotate and pass unless a profile wants more. A page wrongly called a wall misleads whoever reads the log, one that
//! was missed is merely archived; so signs count only where they hardly mean anything else.

mod bot_walls;
mod needles;
mod page;
mod soft_404;

use opilio_plugin::prelude::*;

pub use crate::bot_walls::BotWalls;
pub use crate::soft_404::Soft404;

/// What becomes of a page that has been recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// The crawl log says so, and nothing else.
    #[default]
    Annotate,
    /// The filter rejects it: at `post-fetch` nothing is made of it, at `pre-extract` no links are taken, at `archive` it is not
    /// archived.
    Reject,
    /// Fetched again after `retry-after`, as often as the profile's `retry` says; at `post-fetch` alone.
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

opilio_plugin::export!(filters: [BotWalls, Soft404]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
