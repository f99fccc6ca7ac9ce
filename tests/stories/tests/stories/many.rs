//! Hosts of many pages, for stories about queues.

use std::time::Duration;

use opilio_stories::{Sites, html, site};
use opilio_test_web::{Reply, Web};

pub(crate) const A: &str = "a.localhost";
pub(crate) const B: &str = "b.localhost";
pub(crate) const C: &str = "c.localhost";

/// Returns hosts without robots.txt. Their front page links to `/1.html`, `/2.html` …; each of these is answered with `page`.
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

/// Returns `HOST TARGET` for every request so far except those for robots.txt, in the order of arrival.
pub(crate) fn in_order(web: &Web) -> Vec<String> {
    web.requests()
        .iter()
        .filter(|seen| seen.target != "/robots.txt")
        .map(|seen| format!("{} {}", seen.host, seen.target))
        .collect()
}

/// Returns the number of requests to a host so far, without those for robots.txt.
pub(crate) fn requests_to(web: &Web, host: &str) -> usize {
    web.requests()
        .iter()
        .filter(|seen| seen.host == host && seen.target != "/robots.txt")
        .count()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
