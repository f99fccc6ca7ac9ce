//! Figures of a crawl for people: counts, each followed by its name.

use indicatif::HumanCount;
use opilio_control::{Statistics, figures};

/// Returns the URIs that are known, queued and in process.
pub(crate) fn uris(statistics: &Statistics) -> String {
    counts(&[
        ("discovered", statistics.discovered),
        ("queued", statistics.queued),
        ("in process", statistics.in_process),
    ])
}

/// Returns the URIs by the outcome of their last visit.
pub(crate) fn outcomes(statistics: &Statistics) -> String {
    counts(&figures::outcomes(statistics))
}

/// Returns the revisits by the change that they found.
pub(crate) fn revisits(statistics: &Statistics) -> String {
    counts(&figures::revisits(statistics))
}

fn counts(named: &[(&str, u64)]) -> String {
    let named = named.iter();
    let named =
        named.map(|(name, count)| format!("{} {}", HumanCount(*count), name.replace('-', " ")));
    named.collect::<Vec<_>>().join(", ")
}
