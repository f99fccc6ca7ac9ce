//! `path-depth`: paths with more segments than people write.

use opilio_plugin::prelude::*;

/// Rejects URIs with too many path segments.
pub struct PathDepth {
    settings: Settings,
}

/// Settings of `path-depth`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most segments of the path, including the empty one after a final slash. A URI with more is rejected.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max: 20 }
    }
}

impl Plugin for PathDepth {
    const NAME: &'static str = "path-depth";
    const SUMMARY: &'static str = "Rejects URIs whose path has too many segments.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Filter for PathDepth {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        if count_segments(candidate.uri()) > u64::from(self.settings.max) {
            Ruling::reject(format!("more than {} path segments", self.settings.max))
        } else {
            Ruling::pass()
        }
    }
}

/// Counts the segments of a URI's path (RFC 3986 §3.3). Each slash begins a segment.
fn count_segments(uri: &str) -> u64 {
    let hierarchical = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let after_authority = match hierarchical.strip_prefix("//") {
        Some(rest) => rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]),
        None => hierarchical,
    };
    let path = after_authority.split(['?', '#']).next().unwrap_or_default();
    path.bytes().filter(|&byte| byte == b'/').count() as u64
}
