//! `status`: decides by the status code of a response.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;

/// Decides on responses with one of its status codes.
pub struct Status {
    ranges: Vec<(i32, i32)>,
    decisions: Decisions,
}

/// Settings of `status`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Status codes (`"404"`) and ranges (`"500-599"`), the last one included.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub statuses: Vec<String>,
    /// The decision on responses with such a status code.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other responses. Stages before a response get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            statuses: Vec::new(),
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

/// Parses `404` or `500-599`.
fn parse_range(text: &str) -> Option<(i32, i32)> {
    let number = |text: &str| text.trim().parse::<u16>().ok().map(i32::from);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

impl Plugin for Status {
    const NAME: &'static str = "status";
    const SUMMARY: &'static str = "Rejects or accepts responses with listed status codes.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            ranges: list::parse_each("statuses", &settings.statuses, |text| {
                parse_range(text).ok_or_else(|| {
                    format!("`{text}` is not a status code; write it like `404` or `500-599`")
                })
            })?,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for Status {
    fn judge_document(&self, _: &Stage, document: &Document, _: &Visit) -> Ruling {
        if self.ranges.is_empty() {
            return Ruling::pass();
        }
        let status = document.status();
        let mut ranges = self.ranges.iter();
        let is_match = ranges.any(|&(first, last)| (first..=last).contains(&status));
        let reason = format!("status {status}");
        self.decisions.rule(match is_match {
            true => Finding::matching(reason),
            false => Finding::not_matching(reason),
        })
    }
}
