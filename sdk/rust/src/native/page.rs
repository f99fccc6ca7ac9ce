//! Test double of a page in a browser.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ActionResult;

/// A page for tests. In cases: JSON under these names. Missing fields have their defaults: an empty page in a window of 800
/// pixels, with a minute and 50 steps left.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PageFacts {
    /// URI in the browser.
    pub uri: String,
    /// Title.
    pub title: String,
    /// Number of elements.
    pub elements: u64,
    /// Length of the visible text in UTF-16 code units.
    pub text_length: u64,
    /// Height of the document in CSS pixels.
    pub scroll_height: u64,
    /// Height of the part above the window in CSS pixels.
    pub scroll_top: u64,
    /// Height of the window in CSS pixels.
    pub window_height: u64,
    /// Number of elements for each valid selector that the last step named.
    pub counts: BTreeMap<String, u64>,
    /// Results of the last step's actions.
    pub results: Vec<ActionResult>,
    /// Number of requests in flight.
    pub requests_in_flight: u32,
    /// Time since the page was opened, in milliseconds.
    pub time_used: u64,
    /// Time until the host ends the behaviours, in milliseconds.
    pub time_left: u64,
    /// Number of the step, from 0.
    pub step: u32,
    /// Number of steps that may follow.
    pub steps_left: u32,
}

impl Default for PageFacts {
    fn default() -> Self {
        Self {
            uri: "http://example.com/".to_owned(),
            title: String::new(),
            elements: 0,
            text_length: 0,
            scroll_height: 0,
            scroll_top: 0,
            window_height: 800,
            counts: BTreeMap::new(),
            results: Vec::new(),
            requests_in_flight: 0,
            time_used: 0,
            time_left: 60_000,
            step: 0,
            steps_left: 50,
        }
    }
}

/// A test double of a page, made by [`testing::page`](crate::testing::page). Its methods are those of the contract's resource
/// `page`.
#[derive(Debug)]
pub struct Page {
    facts: PageFacts,
}

impl From<PageFacts> for Page {
    fn from(facts: PageFacts) -> Self {
        Self { facts }
    }
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl Page {
            $($(#[$doc])* #[must_use] pub fn $name(&self) -> $type {
                self.facts.$name.clone()
            })+
        }
    };
}

answers! {
    /// URI in the browser, with changes by scripts. It may have a fragment.
    uri: String;
    /// Title; empty if the page has no title.
    title: String;
    /// Number of elements.
    elements: u64;
    /// Length of the visible text in UTF-16 code units.
    text_length: u64;
    /// Height of the document in CSS pixels.
    scroll_height: u64;
    /// Height of the part above the window in CSS pixels.
    scroll_top: u64;
    /// Height of the window in CSS pixels.
    window_height: u64;
    /// Results of the last step's actions, in the same order; empty at the first step.
    results: Vec<ActionResult>;
    /// Number of requests in flight.
    requests_in_flight: u32;
    /// Time since the page was opened, in milliseconds.
    time_used: u64;
    /// Time until the host ends the behaviours and takes the page as it is, in milliseconds.
    time_left: u64;
    /// Number of this step; 0 is the one after loading.
    step: u32;
    /// Number of steps that may follow. At 0 the actions of this step are the last.
    steps_left: u32;
}

impl Page {
    /// Number of elements that match a selector of the last step's `count`; `None` if that step did not name the selector, or if
    /// it is invalid.
    #[must_use]
    pub fn count(&self, selector: &str) -> Option<u64> {
        self.facts.counts.get(selector).copied()
    }
}
