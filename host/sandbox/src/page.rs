//! A page in a browser as page behaviours see it. The host fills it in; plugins only read it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::BehaviorResult;

/// A page in a browser, just before a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedPage {
    /// URI in the browser.
    pub uri: String,
    /// Title; empty if it has none.
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
    /// Number of elements for each valid selector of the last step.
    pub counts: BTreeMap<String, u64>,
    /// Results of the last step's actions.
    pub results: Vec<BehaviorResult>,
    /// Number of requests in flight.
    pub requests_in_flight: u32,
    /// Time since the page was opened.
    pub time_used: Duration,
    /// Time until the page is taken as it is.
    pub time_left: Duration,
    /// Number of the step, from 0.
    pub step: u32,
    /// Number of steps that may follow.
    pub steps_left: u32,
}
