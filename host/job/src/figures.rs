//! Groups of figures that several outputs show: metrics, the time series, the console and the lines for people. Each group names
//! its figures and computes them in one place.

use opilio_frontier::Statistics;

use crate::ledger::{Amount, Totals};

/// URIs by the outcome of their last visit.
pub fn outcomes(statistics: &Statistics) -> [(&'static str, u64); 4] {
    [
        ("succeeded", statistics.succeeded),
        ("failed", statistics.failed),
        ("disregarded", statistics.disregarded),
        ("prerequisites", statistics.prerequisites),
    ]
}

/// Successful visits to URIs that had been visited before, by the change since the last version.
pub fn revisits(statistics: &Statistics) -> [(&'static str, u64); 4] {
    let revisits = &statistics.revisits;
    [
        ("changed", revisits.changed),
        ("unchanged", revisits.unchanged),
        ("not-modified", revisits.not_modified),
        ("unknown", revisits.unknown),
    ]
}

/// Successful visits to URIs that had been visited before.
pub fn revisit_count(statistics: &Statistics) -> u64 {
    revisits(statistics).iter().map(|(_, count)| count).sum()
}

/// Successful first visits.
pub fn first_visits(statistics: &Statistics) -> u64 {
    let again = revisit_count(statistics);
    statistics.visits.saturating_sub(again)
}

/// Bytes of content that successful visits received.
pub fn content_bytes(statistics: &Statistics) -> u64 {
    let bytes = &statistics.bytes;
    bytes.novel + bytes.unchanged + bytes.unknown
}

/// Responses by whether their payload was archived already.
pub fn responses(totals: &Totals) -> [(&'static str, Amount); 3] {
    [
        ("novel", totals.novel),
        ("duplicate", totals.duplicate),
        ("not-modified", totals.not_modified),
    ]
}
