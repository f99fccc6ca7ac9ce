//! Robots settings: whether robots.txt is obeyed, and for how long a copy is used.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::diagnostic::Level;
use crate::duration::DurationWritten;

/// Whether robots.txt is obeyed (RFC 9309), the robots whose rules count, and the lifetime of a copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RobotsFile {
    /// Policy for robots.txt. Default `"obey"`: it states the site's wishes; laws on legal deposit may override them.
    pub policy: RobotsPolicy,

    /// Lifetime of a robots.txt. After it the file is fetched again before the next URI of its site. URIs that it disallowed
    /// are considered again if the crawl revisits. Default `"24h"`: RFC 9309 §2.4 advises against longer use of a copy.
    pub expires: DurationWritten,

    /// With policy `custom`, the robots.txt that applies in place of the site's. Default `""`: other policies do not use it.
    #[schemars(extend("examples" = ["User-agent: *\nDisallow: /search\n"]))]
    pub text: String,

    /// With policies `first-named` and `most-favoured`, the names of other robots whose rules may count, without version.
    /// Default `[]`: other policies do not use them.
    #[schemars(extend("examples" = [["archive.org_bot", "googlebot"]]))]
    pub agents: Vec<String>,

    /// `true` if the name of the robot whose rules counted is sent as the User-Agent. Default `false`: a crawler should identify
    /// itself.
    pub masquerade: bool,

    /// `true` if documents with `noarchive`, in `X-Robots-Tag` or a page's meta tag, are left out of the archive. It applies only
    /// with policies that obey directives in pages. Default `false`: the directive is meant for search engines; `crawl.log` notes
    /// it either way.
    pub noarchive: bool,
}

/// Policy for robots.txt. With every policy, robots.txt is fetched and archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsPolicy {
    /// Obey it, and directives in pages: links of a page with `nofollow` are not followed.
    Obey,
    /// Obey it, but not directives in pages.
    ObeyTxtOnly,
    /// Also fetch URIs that it disallows.
    Ignore,
    /// Also fetch URIs that it disallows, and note in `crawl.log` that they are disallowed, and by which line.
    Audit,
    /// Obey `text` in its place, and directives in pages.
    Custom,
    /// Obey its rules for the first of `agents` that it names, or for us if it names none of them.
    FirstNamed,
    /// Fetch URIs that it allows to us or to any of `agents`.
    MostFavoured,
}

/// Whether robots.txt is obeyed, the robots whose rules count, and the lifetime of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsSettings {
    /// Policy for robots.txt.
    pub policy: RobotsPolicy,
    /// Lifetime of a copy; longer than zero.
    pub expires: Duration,
    /// Text in place of a site's own robots.txt, with [`RobotsPolicy::Custom`].
    pub text: String,
    /// Product tokens of other robots.
    pub agents: Vec<String>,
    /// `true` if the name of the robot whose rules counted is sent.
    pub masquerade: bool,
    /// `true` if documents with `noarchive` are left out of the archive.
    pub noarchive: bool,
}

impl RobotsPolicy {
    /// Returns `true` if URIs that robots.txt disallows are not fetched.
    pub fn obeys(self) -> bool {
        !matches!(self, Self::Ignore | Self::Audit)
    }

    /// Returns `true` if directives in pages are obeyed.
    pub fn obeys_pages(self) -> bool {
        self.obeys() && self != Self::ObeyTxtOnly
    }

    /// Returns `true` if the site's own robots.txt must be known before anything else is fetched.
    pub fn needs_robots_txt(self) -> bool {
        self.obeys() && self != Self::Custom
    }

    /// Its name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Obey => "obey",
            Self::ObeyTxtOnly => "obey-txt-only",
            Self::Ignore => "ignore",
            Self::Audit => "audit",
            Self::Custom => "custom",
            Self::FirstNamed => "first-named",
            Self::MostFavoured => "most-favoured",
        }
    }
}

impl Default for RobotsFile {
    fn default() -> Self {
        Self {
            policy: RobotsPolicy::Obey,
            expires: "24h".into(),
            text: String::new(),
            agents: Vec::new(),
            masquerade: false,
            noarchive: false,
        }
    }
}

impl RobotsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> RobotsSettings {
        if !self.policy.obeys() {
            part.note(
                "policy",
                Level::Info,
                "robots.txt is archived but not obeyed".to_owned(),
                "",
            );
        }
        for (place, agent) in self.agents.iter().enumerate() {
            let token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if agent.is_empty() || !agent.chars().all(token) {
                let problem = format!("not the name of a robot: {}", quote(agent));
                let suggestion = "write it as robots.txt files do, without version: \"googlebot\"";
                part.part("agents")
                    .refuse(&place.to_string(), problem, suggestion);
            }
        }
        RobotsSettings {
            policy: self.policy,
            expires: part.positive_duration("expires", &self.expires),
            text: self.text.clone(),
            agents: self.agents.clone(),
            masquerade: self.masquerade,
            noarchive: self.noarchive,
        }
    }
}
