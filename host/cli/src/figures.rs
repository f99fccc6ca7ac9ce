//! Figures of a crawl for people: counts, each followed by its name.

use indicatif::HumanCount;
use opilio_control::{Statistics, figures};
use opilio_crawl::{HandoverTotals, VisitCounts};

/// Returns the URIs that are known, queued and in process.
pub(crate) fn uris(statistics: &Statistics) -> String {
    counts(&[
        ("discovered", statistics.discovered),
        ("queued", statistics.queued),
        ("in process", statistics.in_process),
    ])
}

/// Returns the finished visits by outcome. Outcomes that did not occur are left out.
pub(crate) fn visits(visits: &VisitCounts) -> String {
    let mut words = vec![numbered(visits.documents, "document")];
    words.extend(failed(visits));
    if visits.disregarded > 0 {
        words.push(format!("{} disregarded", HumanCount(visits.disregarded)));
    }
    if visits.prerequisites > 0 {
        words.push(numbered(visits.prerequisites, "prerequisite"));
    }
    words.join(", ")
}

/// Returns the failed visits, and the error responses among them; `None` without any.
pub(crate) fn failed(visits: &VisitCounts) -> Option<String> {
    let failed = HumanCount(visits.failed());
    match (failed.0, visits.error_responses) {
        (0, _) => None,
        (_, 0) => Some(format!("{failed} failed")),
        (_, errors) => Some(format!(
            "{failed} failed ({})",
            numbered(errors, "error response")
        )),
    }
}

/// Returns a count with its noun, in singular or plural.
pub(crate) fn numbered(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", HumanCount(count))
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

/// Returns the totals of a receiver of files as one line.
pub(crate) fn handover(total: &HandoverTotals) -> String {
    let files = numbered(total.files, "file");
    let (to, left) = (&total.to, HumanCount(total.left));
    match &total.problem {
        _ if total.left == 0 => format!("{to}: {files} handed over, none left"),
        Some(problem) => format!("{to}: {files} handed over, {left} left: {problem}"),
        None => format!("{to}: {files} handed over, {left} left"),
    }
}
