//! Plugins that schedule visits. They share one component because they share most of their code.
//!
//! - Waits: `adaptive`, `poisson`, `budgeted`, `fixed`, `feed-trigger`.
//! - Change detection: `unchanged-headers` compares headers. `strict` and `similar` decide when the bytes differ.
//! - Precedence of links: `keyword-precedence`, `link-precedence`.
//!
//! README.md describes each. docs/CHANGE.md explains how the revisit plugins work together.

pub mod adaptive;
pub mod budgeted;
mod experience;
pub mod feed_trigger;
mod finds;
pub mod fixed;
mod index;
pub mod keyword_precedence;
pub mod link_precedence;
mod list_reliability;
mod media_types;
mod numbers;
pub mod poisson;
mod promise;
mod rate;
mod rhythm;
pub mod similar;
mod spread;
pub mod strict;
pub mod unchanged_headers;
mod words;

use adaptive::Adaptive;
use budgeted::Budgeted;
use feed_trigger::FeedTrigger;
use fixed::Fixed;
use keyword_precedence::KeywordPrecedence;
use link_precedence::LinkPrecedence;
use poisson::Poisson;
use similar::Similar;
use strict::Strict;
use unchanged_headers::UnchangedHeaders;

opilio_plugin::export!(
    wait_evaluators: [Adaptive, Poisson, Budgeted, Fixed, FeedTrigger],
    filters: [UnchangedHeaders],
    change_evaluators: [Strict, Similar],
    precedences: [KeywordPrecedence, LinkPrecedence],
);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
