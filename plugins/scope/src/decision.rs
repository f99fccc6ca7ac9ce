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

/// A filter's finding about one candidate or response. Its texts are the reasons that operators read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A match, with the reason.
    Is(Cow<'static, str>),
    /// Not a match, with the reason.
    IsNot(Cow<'static, str>),
    /// Not decidable at this stage or for this URI: the filter has no opinion.
    Unknown,
}

impl Finding {
    /// A match, with its reason.
    pub fn is(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Is(reason.into())
    }

    /// Not a match, with its reason.
    pub fn is_not(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::IsNot(reason.into())
    }

    /// A match if there is a reason, otherwise not a match.
    pub fn by(reason: Option<String>, otherwise: &'static str) -> Self {
        reason.map_or(Self::IsNot(Cow::Borrowed(otherwise)), |reason| {
            Self::Is(Cow::Owned(reason))
        })
    }
}

impl Decisions {
    /// Returns the ruling on a finding.
    #[must_use]
    pub fn rule(self, finding: Finding) -> Ruling {
        let (decision, reason) = match finding {
            Finding::Is(reason) => (self.then, reason),
            Finding::IsNot(reason) => (self.otherwise, reason),
            Finding::Unknown => return Ruling::pass(),
        };
        match decision {
            Decision::Accept => Ruling::accept(reason),
            Decision::Reject => Ruling::reject(reason),
            Decision::Pass => Ruling::pass(),
        }
    }
}
