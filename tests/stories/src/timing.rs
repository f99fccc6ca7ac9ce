//! Load on a server: requests at the same time, and pauses between requests.

use std::time::{Duration, Instant};

use opilio_test_web::{SeenRequest, Web};

/// The most of these requests that were at the server at the same time.
pub fn at_once(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> usize {
    let stays = stays(web, of);
    let there_with = |came: Instant| {
        stays
            .iter()
            .filter(move |stay| stay.0 <= came && came < stay.1)
    };
    stays
        .iter()
        .map(|(came, _)| there_with(*came).count())
        .max()
        .unwrap_or(0)
}

/// Pauses before each of these requests but the first, in the order in which they came; zero if another request had not
/// ended.
pub fn rests(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> Vec<Duration> {
    let stays = stays(web, of);
    let mut rests = Vec::new();
    let mut busy_until = None;
    for (came, left) in stays {
        if let Some(until) = busy_until {
            rests.push(came.saturating_duration_since(until));
        }
        busy_until = busy_until.max(Some(left));
    }
    rests
}

/// Times at which each request came and was answered, in the order in which they came. One without an answer has not ended.
fn stays(web: &Web, of: impl Fn(&SeenRequest) -> bool) -> Vec<(Instant, Instant)> {
    let now = Instant::now();
    let mut stays: Vec<_> = web
        .requests()
        .iter()
        .filter(|seen| of(seen))
        .map(|seen| (seen.came, seen.left.unwrap_or(now)))
        .collect();
    stays.sort();
    stays
}
