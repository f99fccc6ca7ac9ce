//! Load on a server: requests at the same time, and pauses between requests.

use std::time::{Duration, Instant};

use opilio_test_web::{SeenRequest, Web};

/// Returns the largest number of these requests that the server had at the same time.
pub fn at_once(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> usize {
    let intervals = intervals(web, of);
    let in_flight_at = |came: Instant| {
        intervals
            .iter()
            .filter(move |interval| interval.0 <= came && came < interval.1)
    };
    intervals
        .iter()
        .map(|(came, _)| in_flight_at(*came).count())
        .max()
        .unwrap_or(0)
}

/// Returns the pause before each of these requests except the first, in the order of arrival. The pause is zero if another request
/// was still in flight.
pub fn pauses(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> Vec<Duration> {
    let intervals = intervals(web, of);
    let mut pauses = Vec::new();
    let mut busy_until = None;
    for (came, left) in intervals {
        if let Some(until) = busy_until {
            pauses.push(came.saturating_duration_since(until));
        }
        busy_until = busy_until.max(Some(left));
    }
    pauses
}

/// Returns the times of arrival and answer of each request, in the order of arrival. The end of a request without an answer is now.
fn intervals(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> Vec<(Instant, Instant)> {
    let now = Instant::now();
    let mut intervals: Vec<_> = web
        .requests()
        .iter()
        .filter(|seen| of(seen))
        .map(|seen| (seen.came, seen.left.unwrap_or(now)))
        .collect();
    intervals.sort();
    intervals
}
