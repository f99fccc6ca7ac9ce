//! A page in a browser, as JSON under the names of the contract.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document::SOME_URI;
use crate::visit::millis;
use crate::{BehaviorResult, LoadedPage};

/// A page in a browser. A missing field has its default: an empty page in a window of 800 pixels, with a minute and 50 steps left.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PageFacts {
    uri: String,
    title: String,
    elements: u64,
    text_length: u64,
    scroll_height: u64,
    scroll_top: u64,
    window_height: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counts: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<BehaviorResult>,
    requests_in_flight: u32,
    time_used: u64,
    time_left: u64,
    step: u32,
    steps_left: u32,
}

impl Default for PageFacts {
    fn default() -> Self {
        Self {
            uri: SOME_URI.to_owned(),
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

impl PageFacts {
    /// Records a page.
    pub fn of(page: &LoadedPage) -> Self {
        Self {
            uri: page.uri.clone(),
            title: page.title.clone(),
            elements: page.elements,
            text_length: page.text_length,
            scroll_height: page.scroll_height,
            scroll_top: page.scroll_top,
            window_height: page.window_height,
            counts: page.counts.clone(),
            results: page.results.clone(),
            requests_in_flight: page.requests_in_flight,
            time_used: millis(page.time_used),
            time_left: millis(page.time_left),
            step: page.step,
            steps_left: page.steps_left,
        }
    }

    pub(super) fn page(&self) -> LoadedPage {
        LoadedPage {
            uri: self.uri.clone(),
            title: self.title.clone(),
            elements: self.elements,
            text_length: self.text_length,
            scroll_height: self.scroll_height,
            scroll_top: self.scroll_top,
            window_height: self.window_height,
            counts: self.counts.clone(),
            results: self.results.clone(),
            requests_in_flight: self.requests_in_flight,
            time_used: Duration::from_millis(self.time_used),
            time_left: Duration::from_millis(self.time_left),
            step: self.step,
            steps_left: self.steps_left,
        }
    }
}
