//! Whether robots.txt is obeyed, and how long one is good for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::DurationWritten;
use crate::fault::Level;

/// Whether robots.txt is obeyed (RFC 9309), whose rules count, and how long one is good for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RobotsFile {
    /// What to do with robots.txt. Default `"obey"`: it is what a site has said; laws on legal deposit may say otherwise.
    pub policy: RobotsPolicy,

    /// After this long a robots.txt is fetched again before the next URI of its site, and what it closed is looked at again
    /// where the crawl revisits. Default `"24h"`: RFC 9309 §2.4 asks not to use a copy for longer.
    pub expires: DurationWritten,

    /// With policy `custom`, the robots.txt that holds in place of the site's. Default `""`: there is none.
    #[schemars(extend("examples" = ["User-agent: *\nDisallow: /search\n"]))]
    pub text: String,

    /// With policies `first-named` and `most-favoured`, the names of other robots whose rules may count, without version.
    /// Default `[]`: nobody stands in for us.
    #[schemars(extend("examples" = [["archive.org_bot", "googlebot"]]))]
    pub agents: Vec<String>,

    /// Send the name of the robot whose rules counted as the User-Agent. Default `false`: who crawls should say so.
    pub masquerade: bool,

    /// Leave out of the archive what says `noarchive`, in `X-Robots-Tag` or a page's meta tag; with policies that heed what
    /// a page says. Default `false`: it asks search engines not to show copies; it is noted in `crawl.log` either way.
    pub noarchive: bool,
}

/// What to do with robots.txt. Whatever it is, robots.txt is fetched and archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsPolicy {
    /// Do what it says, and what pages say of themselves: links of a page that says `nofollow` are not followed.
    Obey,
    /// Do what it says, and not what pages say of themselves.
    ObeyTxtOnly,
    /// Fetch also what it forbids.
    Ignore,
    /// Fetch also what it forbids, and note in `crawl.log` that it was forbidden, and by which line.
    Audit,
    /// Go by `text` in its place, and by what pages say of themselves.
    Custom,
    /// Go by what it says to the first of `agents` that it names, or to us where it names none of them.
    FirstNamed,
    /// Fetch what it allows to us or to any of `agents`.
    MostFavoured,
}

/// Whether robots.txt is obeyed, whose rules count, and how long one is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robots {
    /// What to do with it.
    pub policy: RobotsPolicy,
    /// How long a copy is used; longer than zero.
    pub expires: Duration,
    /// What holds in place of a site's own, by [`RobotsPolicy::Custom`].
    pub text: String,
    /// Product tokens of other robots.
    pub agents: Vec<String>,
    /// Send the name of the robot whose rules counted.
    pub masquerade: bool,
    /// Leave out of the archive what says so.
    pub noarchive: bool,
}

impl RobotsPolicy {
    /// Whether what robots.txt forbids is not fetched.
    pub fn obeys(self) -> bool {
        !matches!(self, Self::Ignore | Self::Audit)
    }

    /// Whether what pages say of themselves is heeded.
    pub fn heeds_pages(self) -> bool {
        self.obeys() && self != Self::ObeyTxtOnly
    }

    /// Whether the site's own robots.txt has to be known before anything else is fetched.
    pub fn needs_robots_txt(self) -> bool {
        self.obeys() && self != Self::Custom
    }

    /// As profiles write it.
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
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Robots {
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
        Robots {
            policy: self.policy,
            expires: part.positive_duration("expires", &self.expires),
            text: self.text.clone(),
            agents: self.agents.clone(),
            masquerade: self.masquerade,
            noarchive: self.noarchive,
        }
    }
}
