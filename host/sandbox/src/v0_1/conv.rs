//! Conversions from types of contract 0.1.0 to those of the current contract, and back for arguments of the host.

use super::bindings::exports::opilio::plugin::{
    digest_stripper, extractor, filter, setup, wait_evaluator,
};
use crate::bindings::exports::opilio::plugin::{
    digest_stripper as today_digest_stripper, extractor as today_extractor, filter as today_filter,
    setup as today_setup, wait_evaluator as today_wait_evaluator,
};

impl From<setup::Description> for today_setup::Description {
    fn from(description: setup::Description) -> Self {
        let setup::Description {
            name,
            version,
            summary,
            kinds,
            handles,
            settings_schema,
            attributes,
        } = description;
        let setup::Handles { media_types, uris } = handles;
        Self {
            name,
            version,
            summary,
            kinds: kinds.into_iter().map(Into::into).collect(),
            handles: today_setup::Handles { media_types, uris },
            settings_schema,
            // Kept values exist since 0.2.0.
            keeps: Vec::new(),
            attributes,
        }
    }
}

impl From<setup::Kind> for today_setup::Kind {
    fn from(kind: setup::Kind) -> Self {
        match kind {
            setup::Kind::Extractor => Self::Extractor,
            setup::Kind::Filter => Self::Filter,
            setup::Kind::DigestStripper => Self::DigestStripper,
            setup::Kind::ChangeEvaluator => Self::ChangeEvaluator,
            setup::Kind::WaitEvaluator => Self::WaitEvaluator,
            setup::Kind::Precedence => Self::Precedence,
            setup::Kind::Observer => Self::Observer,
            setup::Kind::Other(name) => Self::Other(name),
        }
    }
}

impl From<setup::SettingsFault> for today_setup::SettingsFault {
    fn from(fault: setup::SettingsFault) -> Self {
        let setup::SettingsFault { pointer, problem } = fault;
        Self { pointer, problem }
    }
}

impl From<extractor::Extraction> for today_extractor::Extraction {
    fn from(extraction: extractor::Extraction) -> Self {
        let extractor::Extraction {
            links,
            fragments,
            base,
            finished,
            problem,
        } = extraction;
        Self {
            links,
            fragments,
            base,
            finished,
            problem,
        }
    }
}

impl From<&today_filter::Stage> for filter::Stage {
    fn from(stage: &today_filter::Stage) -> Self {
        match stage {
            today_filter::Stage::Scope => Self::Scope,
            today_filter::Stage::PreFetch => Self::PreFetch,
            today_filter::Stage::MidFetch => Self::MidFetch,
            today_filter::Stage::PostFetch => Self::PostFetch,
            today_filter::Stage::Extract => Self::Extract,
            today_filter::Stage::Render => Self::Other("render".to_owned()),
            today_filter::Stage::Archive => Self::Archive,
            today_filter::Stage::Plugin => Self::Plugin,
            today_filter::Stage::Other(name) => Self::Other(name.clone()),
        }
    }
}

impl From<filter::Ruling> for today_filter::Ruling {
    fn from(ruling: filter::Ruling) -> Self {
        let filter::Ruling { verdict, reason } = ruling;
        Self {
            verdict: verdict.into(),
            reason,
        }
    }
}

impl From<filter::Verdict> for today_filter::Verdict {
    fn from(verdict: filter::Verdict) -> Self {
        match verdict {
            filter::Verdict::Accept => Self::Accept,
            filter::Verdict::Reject => Self::Reject,
            filter::Verdict::Pass => Self::Pass,
            filter::Verdict::Unchanged => Self::Unchanged,
            filter::Verdict::Retry(after) => Self::Retry(after),
            filter::Verdict::Other(name) => Self::Other(name),
        }
    }
}

impl From<digest_stripper::StripProblem> for today_digest_stripper::StripProblem {
    fn from(problem: digest_stripper::StripProblem) -> Self {
        match problem {
            digest_stripper::StripProblem::TooLarge(bytes) => Self::TooLarge(bytes),
            digest_stripper::StripProblem::Other(problem) => Self::Other(problem),
        }
    }
}

impl From<wait_evaluator::Wait> for today_wait_evaluator::Wait {
    fn from(wait: wait_evaluator::Wait) -> Self {
        let wait_evaluator::Wait {
            next_visit,
            ask_again,
        } = wait;
        Self {
            next_visit,
            ask_again,
        }
    }
}
