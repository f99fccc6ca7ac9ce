//! Stages at which settings are needed. The stage of a setting decides by what an override of it may match.

use std::fmt;

/// The stage at which a setting is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Needed {
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
const NEEDED: &[(&str, Needed)] = &[
    ("/strategy", Needed::Uri),
    ("/stacks/scope", Needed::Uri),
    ("/stacks/precedence", Needed::Uri),
    ("/stacks/pre-fetch", Needed::Uri),
    ("/stacks/mid-fetch", Needed::Uri),
    ("/stacks/observe", Needed::Job),
    ("/stacks", Needed::Response),
    ("/politeness", Needed::Queue),
    ("/robots", Needed::Uri),
    // Settings of all exchanges together.
    ("/fetch/spool-memory-total", Needed::Job),
    ("/fetch/scratch-max", Needed::Job),
    ("/fetch/stop-grace", Needed::Job),
    ("/fetch/slow-fetches", Needed::Job),
    ("/fetch", Needed::Uri),
    ("/cookies/accept", Needed::Uri),
    // Settings of all browsers together.
    ("/browser/executable", Needed::Job),
    ("/browser/sandbox", Needed::Job),
    ("/browser/processes", Needed::Job),
    ("/browser/pages-per-process", Needed::Job),
    ("/browser", Needed::Response),
    ("/retry/statuses", Needed::Uri),
    ("/retry/errors", Needed::Uri),
    ("/retry", Needed::Queue),
    // The others belong to the frontier, which has one of each for all queues.
    ("/revisit/history", Needed::Job),
    ("/revisit/budget", Needed::Job),
    ("/revisit/fade-after", Needed::Job),
    ("/revisit", Needed::Response),
    ("/canonicalization", Needed::Uri),
    ("/queue/name", Needed::Uri),
    ("/queue", Needed::Queue),
    ("/uri", Needed::Uri),
    ("/quotas/queue", Needed::Queue),
    ("/quotas/host", Needed::Queue),
    ("/quotas/domain", Needed::Queue),
    // Only their settings; the stage is earlier if the plugin is in the stack of an earlier one.
    ("/plugins", Needed::Response),
];

/// The stage at which the setting at this pointer is needed.
pub(crate) fn needed(pointer: &str) -> Needed {
    let found = NEEDED
        .iter()
        .find(|(setting, _)| is_at_or_below(pointer, setting));
    found.map_or(Needed::Job, |(_, needed)| *needed)
}

/// Returns `true` if the setting, or one within it, can be overridden.
pub(crate) fn is_overridable(pointer: &str) -> bool {
    let within = NEEDED
        .iter()
        .any(|(setting, needed)| *needed != Needed::Job && is_at_or_below(setting, pointer));
    within || needed(pointer) != Needed::Job
}

fn is_at_or_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for Needed {
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
            ("/politeness/min-delay", Needed::Queue),
            ("/politeness", Needed::Queue),
            ("/fetch/referer", Needed::Uri),
            ("/fetch/body-max", Needed::Uri),
            ("/fetch/scratch-max", Needed::Job),
            ("/stacks/scope", Needed::Uri),
            ("/stacks/extract", Needed::Response),
            ("/stacks/observe", Needed::Job),
            ("/revisit/history", Needed::Job),
            ("/revisit/max-wait", Needed::Response),
            ("/queue/name", Needed::Uri),
            ("/queue/valence", Needed::Queue),
            ("/quotas/source/bytes", Needed::Job),
            ("/quotas/host/bytes", Needed::Queue),
            ("/archive/prefix", Needed::Job),
            ("/browser/render", Needed::Response),
            ("/browser/memory", Needed::Response),
            ("/browser/sandbox", Needed::Job),
            ("/uris", Needed::Job),
        ] {
            assert_eq!(needed(pointer), expected, "{pointer}");
        }
        assert!(is_overridable("/fetch") && is_overridable("/quotas"));
        assert!(!is_overridable("/archive") && !is_overridable("/fetch/scratch-max"));
        assert!(is_overridable("/browser/width") && !is_overridable("/browser/executable"));
    }
}
