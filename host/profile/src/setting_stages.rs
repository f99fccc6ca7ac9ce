//! Stages at which settings are needed. The stage of a setting decides by what an override of it may match.

use std::fmt;

/// The stage of a crawl at which a setting is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SettingStage {
    /// Once, for the job as a whole: it cannot be overridden.
    Job,
    /// For a queue as a whole. Only its name is known.
    Queue,
    /// For a URI, before it is fetched.
    Uri,
    /// After the response has come.
    Response,
}

/// Settings that can be overridden. A table stands for all its keys that are not named before it. A setting that is not named
/// belongs to the job.
const SETTING_STAGES: &[(&str, SettingStage)] = &[
    ("/strategy", SettingStage::Uri),
    ("/stacks/scope", SettingStage::Uri),
    ("/stacks/precedence", SettingStage::Uri),
    ("/stacks/pre-fetch", SettingStage::Uri),
    ("/stacks/mid-fetch", SettingStage::Uri),
    ("/stacks/observe", SettingStage::Job),
    ("/stacks", SettingStage::Response),
    ("/politeness", SettingStage::Queue),
    ("/robots", SettingStage::Uri),
    // Settings of all exchanges together.
    ("/fetch/spool-memory-total", SettingStage::Job),
    ("/fetch/scratch-max", SettingStage::Job),
    ("/fetch/stop-grace", SettingStage::Job),
    ("/fetch/slow-fetches", SettingStage::Job),
    ("/fetch", SettingStage::Uri),
    ("/cookies/accept", SettingStage::Uri),
    // Settings of all browsers together.
    ("/browser/executable", SettingStage::Job),
    ("/browser/sandbox", SettingStage::Job),
    ("/browser/processes", SettingStage::Job),
    ("/browser/pages-per-process", SettingStage::Job),
    ("/browser", SettingStage::Response),
    ("/retry/statuses", SettingStage::Uri),
    ("/retry/errors", SettingStage::Uri),
    ("/retry", SettingStage::Queue),
    // The others belong to the frontier, which has one of each for all queues.
    ("/revisit/history", SettingStage::Job),
    ("/revisit/budget", SettingStage::Job),
    ("/revisit/fade-after", SettingStage::Job),
    ("/revisit", SettingStage::Response),
    ("/canonicalization", SettingStage::Uri),
    ("/queue/name", SettingStage::Uri),
    ("/queue", SettingStage::Queue),
    ("/uri", SettingStage::Uri),
    ("/quotas/queue", SettingStage::Queue),
    ("/quotas/host", SettingStage::Queue),
    ("/quotas/domain", SettingStage::Queue),
    // Only their settings; the stage is earlier if the plugin is in the stack of an earlier one.
    ("/plugins", SettingStage::Response),
];

/// Returns the stage of the setting at this pointer.
pub(crate) fn setting_stage(pointer: &str) -> SettingStage {
    let found = SETTING_STAGES
        .iter()
        .find(|(setting, _)| is_at_or_below(pointer, setting));
    found.map_or(SettingStage::Job, |(_, stage)| *stage)
}

/// Returns `true` if the setting, or one within it, can be overridden.
pub(crate) fn is_overridable(pointer: &str) -> bool {
    let within = SETTING_STAGES
        .iter()
        .any(|(setting, stage)| *stage != SettingStage::Job && is_at_or_below(setting, pointer));
    within || setting_stage(pointer) != SettingStage::Job
}

fn is_at_or_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for SettingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Job => "once for the whole job",
            Self::Queue => "for a queue as a whole",
            Self::Uri => "before the URI is fetched",
            Self::Response => "when the response has come",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_name_applies() {
        for (pointer, expected) in [
            ("/politeness/min-delay", SettingStage::Queue),
            ("/politeness", SettingStage::Queue),
            ("/fetch/referer", SettingStage::Uri),
            ("/fetch/body-max", SettingStage::Uri),
            ("/fetch/scratch-max", SettingStage::Job),
            ("/stacks/scope", SettingStage::Uri),
            ("/stacks/extract", SettingStage::Response),
            ("/stacks/observe", SettingStage::Job),
            ("/revisit/history", SettingStage::Job),
            ("/revisit/max-wait", SettingStage::Response),
            ("/queue/name", SettingStage::Uri),
            ("/queue/valence", SettingStage::Queue),
            ("/quotas/source/bytes", SettingStage::Job),
            ("/quotas/host/bytes", SettingStage::Queue),
            ("/archive/prefix", SettingStage::Job),
            ("/browser/render", SettingStage::Response),
            ("/browser/memory", SettingStage::Response),
            ("/browser/sandbox", SettingStage::Job),
            ("/uris", SettingStage::Job),
        ] {
            assert_eq!(setting_stage(pointer), expected, "{pointer}");
        }
        assert!(is_overridable("/fetch") && is_overridable("/quotas"));
        assert!(!is_overridable("/archive") && !is_overridable("/fetch/scratch-max"));
        assert!(is_overridable("/browser/width") && !is_overridable("/browser/executable"));
    }
}
