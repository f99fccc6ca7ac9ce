//! A page in a browser as page behaviours see it. The host fills it in; plugins only read it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// The result of an action on a page. In JSON it has the names of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BehaviorResult {
    /// The action was carried out.
    Done,
    /// This number of elements was clicked.
    Clicked(u32),
    /// The result of a script as JSON. It comes from the page, so it can be anything.
    Value(String),
    /// No element matches, or none matched in time.
    NoElement,
    /// The network did not become idle in time.
    NotIdle,
    /// A selector or regular expression is invalid, for this reason.
    Invalid(String),
    /// The script threw this exception, or took too long.
    Exception(String),
    /// The host did not carry out the action, for this reason.
    Refused(String),
    /// A result of a later contract version.
    Other(String),
}
