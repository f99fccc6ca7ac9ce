//! Whether robots.txt is obeyed, and how long one is good for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;
use crate::fault::Level;

/// Whether robots.txt is obeyed (RFC 9309), and how long one is good for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RobotsFile {
    /// What to do with robots.txt. Default `"obey"`: it is what a site has said; laws on legal deposit may say otherwise.
    pub policy: RobotsPolicy,

    /// After this long a robots.txt is fetched again before the next URI of its site. Default `"24h"`: RFC 9309 §2.4
    /// asks not to use a copy for longer.
    pub expires: DurationWritten,
}

/// What to do with robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsPolicy {
    /// Fetch it, archive it, and do what it says.
    Obey,
    /// Fetch it and archive it, but fetch also what it forbids.
    Ignore,
}

/// Whether robots.txt is obeyed, and how long one is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robots {
    /// What to do with it.
    pub policy: RobotsPolicy,
    /// How long a copy is used; longer than zero.
    pub expires: Duration,
}

impl Default for RobotsFile {
    fn default() -> Self {
        Self {
            policy: RobotsPolicy::Obey,
            expires: "24h".into(),
        }
    }
}

impl RobotsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Robots {
        if self.policy == RobotsPolicy::Ignore {
            part.note(
                "policy",
                Level::Info,
                "robots.txt is archived but not obeyed".to_owned(),
                "",
            );
        }
        Robots {
            policy: self.policy,
            expires: part.positive_duration("expires", &self.expires),
        }
    }
}
