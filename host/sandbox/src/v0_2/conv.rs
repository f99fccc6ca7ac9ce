//! Conversions from types of contract 0.2.0 to those of the current contract, and back for arguments of the host.

use super::bindings::exports::opilio::plugin::{filter, setup};
use crate::bindings::exports::opilio::plugin::{filter as today_filter, setup as today_setup};

impl From<setup::Description> for today_setup::Description {
    fn from(description: setup::Description) -> Self {
        let setup::Description {
            name,
            version,
            summary,
            kinds,
            handles,
            settings_schema,
            keeps,
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
            keeps: keeps.into_iter().map(Into::into).collect(),
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

impl From<setup::Keep> for today_setup::Keep {
    fn from(keep: setup::Keep) -> Self {
        let setup::Keep {
            name,
            keeper,
            version,
        } = keep;
        Self {
            name,
            keeper: match keeper {
                setup::Keeper::Uri => today_setup::Keeper::Uri,
                setup::Keeper::Site => today_setup::Keeper::Site,
                setup::Keeper::Other(name) => today_setup::Keeper::Other(name),
            },
            version,
        }
    }
}

impl From<setup::SettingsFault> for today_setup::SettingsFault {
    fn from(fault: setup::SettingsFault) -> Self {
        let setup::SettingsFault { pointer, problem } = fault;
        Self { pointer, problem }
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
            verdict: match verdict {
                filter::Verdict::Accept => today_filter::Verdict::Accept,
                filter::Verdict::Reject => today_filter::Verdict::Reject,
                filter::Verdict::Pass => today_filter::Verdict::Pass,
                filter::Verdict::Unchanged => today_filter::Verdict::Unchanged,
                filter::Verdict::Retry(after) => today_filter::Verdict::Retry(after),
                filter::Verdict::Other(name) => today_filter::Verdict::Other(name),
            },
            reason,
        }
    }
}
