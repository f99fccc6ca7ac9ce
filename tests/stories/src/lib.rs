//! A harness for end-to-end tests (stories): serves a small web, crawls it, and reads archive and logs.
//!
//! ```no_run
//! # async fn story() {
//! use opilio_stories::{html, site, crawl};
//! let web = site("www.story.localhost").page("/", html("<a href='/a.html'>A</a>")).serve().await;
//! let result = crawl().seed(web.url("www.story.localhost", "/")).run().await;
//! assert_eq!(result.statuses(), ["200 http://www.story.localhost/ -"]);
//! # }
//! ```
//! Every story uses real sockets and real files. [`Story::run`] asserts that all WARC files are sound and closed. The tests of the
//! command line use this harness, too.

#![allow(
    clippy::unwrap_used,
    reason = "a harness of tests: what goes wrong here fails the test that asked"
)]

mod captures;
mod crawl_log;
mod guests;
mod raw;
mod rogue;
mod site;
mod story;
mod timing;

pub use captures::{Capture, captures, sound};
pub use crawl_log::{LoggedUri, lines};
pub use guests::{
    Misdeed, asks_for_the_network, change_evaluator, counter, extractor, html_extractor, keeper,
    last_goes_first, never_changes, never_content, never_waits, observer, page_behavior,
    precedence, ranks_extreme_queues, ranks_queues, refuser, restless_behavior, scope_filter,
    stripper, wait_evaluator,
};
pub use raw::{Exchanged, Raw, raw};
pub use rogue::{Certificate, ReceivedRequest, Rogue, RogueStep, Rogues};
pub use site::{Sites, html, site};
pub use story::{CLOSED_PORT, FinishedCrawl, Story, asked, component_cache, crawl, until};
pub use timing::{at_once, pauses};
