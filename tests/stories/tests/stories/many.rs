//! Hosts of many pages, for stories about queues.

use std::time::Duration;

use opilio_stories::{Sites, html, site};
use opilio_test_web::{Reply, Web};

pub(crate) const A: &str = "a.localhost";
pub(crate) const B: &str = "b.localhost";
pub(crate) const C: &str = "c.localhost";

/// Hosts whose front page links to `/1.html` and so on, each answered with `page`. None has a robots.txt.
pub(crate) fn hosts(names: &[&str], pages: usize, page: &Reply) -> Sites {
    let links: String = (1..=pages)
        .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
        .collect();
    names.iter().fold(site(names[0]), |sites, name| {
        let page = page.clone();
        sites
            .and(name)
            .page("/robots.txt", Reply::status(404))
            .page("/", html(&links))
            .rest(move |_| page.clone())
    })
}

/// `HOST TARGET` of every request so far that is not for robots.txt, in the order in which they came.
pub(crate) fn in_order(web: &Web) -> Vec<String> {
    web.requests()
        .iter()
        .filter(|seen| seen.target != "/robots.txt")
        .map(|seen| format!("{} {}", seen.host, seen.target))
        .collect()
}

/// Requests to a host so far that were not for robots.txt.
pub(crate) fn asked_of(web: &Web, host: &str) -> usize {
    web.requests()
        .iter()
        .filter(|seen| seen.host == host && seen.target != "/robots.txt")
        .count()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
