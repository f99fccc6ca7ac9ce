//! The two settings that the filters of this component share: what is decided on what a filter is about (`then`), and on
//! what it is not about (`otherwise`).

use std::borrow::Cow;

use opilio_plugin::prelude::*;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Yes.
    Accept,
    /// No.
    Reject,
    /// Nothing: what was decided before stands.
    Pass,
}

/// The settings `then` and `otherwise` of a filter.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    /// On what the filter is about.
    pub then: Decision,
    /// On the rest.
    pub otherwise: Decision,
}

/// What a filter finds of one candidate or response. The texts are the reasons that operators read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It is what the filter is about.
    Is(Cow<'static, str>),
    /// It is not.
    IsNot(Cow<'static, str>),
    /// There is nothing to go by, at this stage or for this URI: the filter has no opinion.
    Unknown,
}

impl Finding {
    /// It is what the filter is about, and why.
    pub fn is(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Is(reason.into())
    }

    /// It is not, and why.
    pub fn is_not(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::IsNot(reason.into())
    }

    /// It is if there is a reason, and else it is not.
    pub fn by(reason: Option<String>, otherwise: &'static str) -> Self {
        reason.map_or(Self::IsNot(Cow::Borrowed(otherwise)), |reason| {
            Self::Is(Cow::Owned(reason))
        })
    }
}

impl Decisions {
    /// The answer to what was found.
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
