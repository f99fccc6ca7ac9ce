//! `content-type`: decides by the media type that the server sent.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::media_types::MediaTypes;
use crate::patterns::Patterns;

/// Decides on responses by their media type.
pub struct ContentType {
    types: MediaTypes,
    patterns: Patterns,
    decisions: Decisions,
}

/// Settings of `content-type`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Media types without parameters: `text/html`, `video/*`, `*+json`. If the server sends none, the type is
    /// `application/octet-stream`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub types: Vec<String>,
    /// Regular expressions to find in the whole header `Content-Type`, parameters included.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// The decision on responses of these types.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other responses. Stages before a response get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            types: Vec::new(),
            patterns: Vec::new(),
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for ContentType {
    const NAME: &'static str = "content-type";
    const SUMMARY: &'static str = "Rejects or accepts responses of listed media types.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let (types, patterns) = list::both(
            MediaTypes::new("types", &settings.types),
            Patterns::new("patterns", &settings.patterns),
        )?;
        Ok(Self {
            types,
            patterns,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for ContentType {
    fn judge_document(&self, _: &Stage, document: &Document, _: &Visit) -> Ruling {
        if self.types.is_empty() && self.patterns.is_empty() {
            return Ruling::pass();
        }
        let media_type = document.media_type();
        let mut headers = document.header("content-type").into_iter();
        let is_match = self.types.first_match(&media_type).is_some()
            || headers.any(|header| self.patterns.first_match(&header).is_some());
        self.decisions.rule(match is_match {
            true => Finding::matching(media_type),
            false => Finding::not_matching(media_type),
        })
    }
}
