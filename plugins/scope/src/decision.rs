//! The settings that the filters of this component share: the decision on a match (`then`) and on anything else (`otherwise`).

use std::borrow::Cow;

use opilio_plugin::prelude::*;

/// The decision of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Accepts the URI or response.
    Accept,
    /// Rejects the URI or response.
    Reject,
    /// Leaves the earlier decision of the stack.
    Pass,
}

/// The settings `then` and `otherwise` of a filter.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    /// The decision on a match.
    pub then: Decision,
    /// The decision on anything else.
    pub otherwise: Decision,
}

/// A filter's finding about one candidate or response, with the reason shown to operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A match, with the reason.
    Match(Cow<'static, str>),
    /// Not a match, with the reason.
    NoMatch(Cow<'static, str>),
    /// Not decidable at this stage or for this URI: the filter has no opinion.
    Unknown,
}

impl Finding {
    /// Returns a match.
    pub fn matching(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Match(reason.into())
    }

    /// Returns a finding without a match.
    pub fn not_matching(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::NoMatch(reason.into())
    }

    /// Returns a match if there is a reason, otherwise no match with the reason `otherwise`.
    pub fn from_match(reason: Option<String>, otherwise: &'static str) -> Self {
        reason.map_or(Self::NoMatch(Cow::Borrowed(otherwise)), |reason| {
            Self::Match(Cow::Owned(reason))
        })
    }
}

impl Decisions {
    /// Returns the ruling on a finding.
    #[must_use]
    pub fn rule(self, finding: Finding) -> Ruling {
        let (decision, reason) = match finding {
            Finding::Match(reason) => (self.then, reason),
            Finding::NoMatch(reason) => (self.otherwise, reason),
            Finding::Unknown => return Ruling::pass(),
        };
        match decision {
            Decision::Accept => Ruling::accept(reason),
            Decision::Reject => Ruling::reject(reason),
            Decision::Pass => Ruling::pass(),
        }
    }
}
