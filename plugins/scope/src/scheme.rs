//! `scheme`: limits a crawl to schemes that have a fetcher.

use opilio_plugin::prelude::*;

/// Rejects URIs with a scheme that is not listed.
pub struct Scheme {
    settings: Settings,
}

/// Settings of `scheme`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Allowed schemes, lower-case, without colon. Any other is rejected.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub schemes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schemes: ["http", "https", "ftp", "ftps", "dns", "whois"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

impl Plugin for Scheme {
    const NAME: &'static str = "scheme";
    const SUMMARY: &'static str = "Rejects URIs whose scheme is not in a list.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let faults = settings.schemes.iter().enumerate().filter(|(_, scheme)| !is_scheme(scheme)).map(|(at, scheme)| {
            SettingsFault::new(format!("/schemes/{at}"), format!("`{scheme}` is not a scheme; write it like `https`, lower-case and without colon"))
        });
        none_or(faults.collect(), ()).map(|()| Self { settings })
    }
}

/// Returns true if the text is a scheme (RFC 3986 §3.1) in lower case.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
}

impl Filter for Scheme {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let scheme = candidate.uri().split(':').next().unwrap_or_default();
        if self
            .settings
            .schemes
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
        {
            Ruling::pass()
        } else {
            Ruling::reject(format!("scheme {scheme}"))
        }
    }
}
