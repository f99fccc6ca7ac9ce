//! `content-length`: decides by the size of a response.
//!
//! At mid-fetch only the header `Content-Length` is known, and many responses have none. Later the size is the number of bytes
//! received, with codings, as in `crawl.log`.

use opilio_plugin::prelude::*;

use crate::byte_size::ByteSize;
use crate::decision::{Decision, Decisions, Finding};

/// Decides on responses by their size.
pub struct ContentLength {
    min: u64,
    max: u64,
    decisions: Decisions,
}

/// Settings of `content-length`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Smallest size that matches: `"10MiB"`, or a number of bytes.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub min: ByteSize,
    /// Largest size that matches. Left out: no limit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max: Option<ByteSize>,
    /// The decision on responses from `min` to `max`. If neither is set, the filter decides nothing.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other responses. Responses of unknown size get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            min: ByteSize(0),
            max: None,
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for ContentLength {
    const NAME: &'static str = "content-length";
    const SUMMARY: &'static str = "Rejects or accepts responses by size.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let min = settings.min.0;
        let max = settings.max.map_or(u64::MAX, |max| max.0);
        if min > max {
            let problem = format!("{} is less than min; no size would match", ByteSize(max));
            return Err(vec![SettingsFault::new("/max", problem)]);
        }
        Ok(Self {
            min,
            max,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for ContentLength {
    fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        if self.min == 0 && self.max == u64::MAX {
            return Ruling::pass();
        }
        let finding = match size_of(stage, document, visit) {
            None => Finding::Unknown,
            Some(size) if (self.min..=self.max).contains(&size) => {
                Finding::matching(format!("{size} bytes"))
            }
            Some(size) => Finding::not_matching(format!("{size} bytes")),
        };
        self.decisions.rule(finding)
    }
}

fn size_of(stage: &Stage, document: &Document, visit: &Visit) -> Option<u64> {
    let headers = document.header("content-length");
    let announced = || headers.first().and_then(|text| text.trim().parse().ok());
    match stage {
        Stage::MidFetch => announced(),
        _ => visit
            .size()
            .or_else(announced)
            .or_else(|| Some(document.length())),
    }
}
