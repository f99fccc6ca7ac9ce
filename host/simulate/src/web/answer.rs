//! The answers of servers: pages with their links and text that is not content, lists of changed pages, robots.txt, errors.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_uri::Uri;
use opilio_visit::RequestHeaders;
use rand::Rng;

use super::{Header, PageId, UriTarget, Web, purpose};
use crate::process::{DAY, is_burst, stream, uniform};
use crate::scenario::{Lists, Recurrence};
use crate::server_answer::ServerAnswer;

/// The words of pages.
const WORDS: [&str; 16] = [
    "archive", "harvest", "river", "council", "letter", "bridge", "winter", "market", "garden",
    "harbour", "school", "engine", "island", "mirror", "record", "signal",
];

/// Most items of a feed.
const FEED_ITEMS: usize = 50;

/// Days between two updates of stale lists.
const STALE_DAYS: f64 = 7.0;

/// A server's answer to one request.
pub(crate) struct Served {
    pub(crate) answer: ServerAnswer,
    pub(crate) took: Duration,
    /// The version that was sent, or that a 304 refers to.
    pub(crate) version: u64,
    pub(crate) page_answer: PageAnswer,
}

/// The form in which a page was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageAnswer {
    /// With a body, or the target is not a page.
    Whole,
    /// 304: it has not been modified.
    NotModified,
    /// 404: it has disappeared, or has not appeared yet.
    Gone,
}

impl Web {
    /// Returns a server's answer to a request at this time.
    pub(crate) fn serve(
        &mut self,
        uri: &Uri,
        request_headers: &RequestHeaders,
        now: i64,
    ) -> Served {
        let (site, target) = self.target_of(uri);
        let Some(site) = site else {
            return Served {
                answer: ServerAnswer::Failure,
                took: Duration::from_secs(20),
                version: 0,
                page_answer: PageAnswer::Whole,
            };
        };
        self.sites[site].requests += 1;
        let requests = self.sites[site].requests;
        let group = &self.groups[self.sites[site].group];
        let mut random = stream(&[self.seed, site as u64, requests, purpose::SERVER]);
        // Between half and one and a half times the mean.
        let took = group.response.mul_f64(0.5 + uniform(&mut random));
        let fails = uniform(&mut random) < group.failures;
        if let UriTarget::Page(id) = target {
            self.visited(id, now);
        }
        let response = |status, media_type: &str, content: String| {
            let size = content.len() as u64;
            Served {
                answer: ServerAnswer::Response {
                    status,
                    headers: vec![("Content-Type".to_owned(), media_type.to_owned())],
                    content: content.into(),
                    size,
                },
                took,
                version: 0,
                page_answer: PageAnswer::Whole,
            }
        };
        if fails {
            return response(503, "text/plain", String::new());
        }
        match target {
            UriTarget::Page(id) => self.serve_page(id, request_headers, now, took, &mut random),
            UriTarget::Robots => {
                let rules = self.robots(site, now);
                response(200, "text/plain", rules)
            }
            UriTarget::Feed if self.groups[self.sites[site].group].feed != Lists::None => {
                let feed = self.feed(site, now);
                response(200, "application/rss+xml", feed)
            }
            UriTarget::Sitemap if self.groups[self.sites[site].group].sitemap != Lists::None => {
                let map = self.sitemap(site, now);
                response(200, "application/xml", map)
            }
            _ => response(404, "text/plain", "not found".to_owned()),
        }
    }

    /// Returns a site's robots.txt.
    fn robots(&self, site: usize, now: i64) -> String {
        let group = &self.groups[self.sites[site].group];
        let is_now = |times: Recurrence, purpose| {
            let of_site = stream(&[self.seed, site as u64, purpose]).next_u64();
            is_burst(now as f64 / DAY, times.every, times.length, of_site)
        };
        let closed = group.closed.as_ref();
        let closed = closed.filter(|closed| is_now(closed.times, purpose::CLOSED));
        let path = closed.map_or(String::new(), |closed| format!(" {}", closed.path));
        let mut rules = format!("User-agent: *\nDisallow:{path}\n");
        let slowed = group.slowed.as_ref();
        if let Some(slowed) = slowed.filter(|slowed| is_now(slowed.times, purpose::SLOWED)) {
            let _ = writeln!(rules, "Crawl-delay: {}", slowed.crawl_delay.as_secs());
        }
        rules
    }

    fn serve_page(
        &mut self,
        id: PageId,
        request_headers: &RequestHeaders,
        now: i64,
        took: Duration,
        random: &mut impl Rng,
    ) -> Served {
        self.advance(id, now);
        let page = &self.pages[id];
        let gone = |status: u16| Served {
            answer: ServerAnswer::Response {
                status,
                headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
                content: Bytes::from_static(b"gone"),
                size: 4,
            },
            took,
            version: u64::MAX,
            page_answer: PageAnswer::Gone,
        };
        if now < page.born || now >= page.dies {
            return gone(404);
        }
        let version = page.version;
        let tag = |header: Header| match header {
            Header::Absent => None,
            Header::Honest => Some(version),
            Header::Stuck => Some(0),
            Header::Restless => Some(now as u64),
        };
        let etag = tag(page.traits.etag).map(|tag| format!("\"{tag:x}\""));
        let since = match page.traits.last_modified {
            Header::Absent => None,
            Header::Honest => Some(page.copy.changed_at()),
            Header::Stuck => Some(page.born),
            Header::Restless => Some(now),
        };
        let last_modified = since.map(|at| http_date(self.at(at)));
        let mut headers = Vec::new();
        if let Some(etag) = &etag {
            headers.push(("ETag".to_owned(), etag.clone()));
        }
        if let Some(date) = &last_modified {
            headers.push(("Last-Modified".to_owned(), date.clone()));
        }
        // An entity tag goes before a date (RFC 9110 §13.2.2).
        let not_modified = match (
            &request_headers.if_none_match,
            &request_headers.if_modified_since,
        ) {
            (Some(known), _) => etag.as_ref() == Some(known),
            (None, Some(known)) => last_modified.as_ref() == Some(known),
            (None, None) => false,
        };
        if not_modified {
            return Served {
                answer: ServerAnswer::Response {
                    status: 304,
                    headers,
                    content: Bytes::new(),
                    size: 0,
                },
                took,
                version,
                page_answer: PageAnswer::NotModified,
            };
        }
        let media_type = match page.kind {
            None => "text/html",
            Some(kind) => &self.groups[self.sites[page.site].group].kinds[kind].media_type,
        };
        headers.push(("Content-Type".to_owned(), media_type.to_owned()));
        let content = if media_type == "text/html" {
            self.html(id, now, random)
        } else {
            format!("{} {version}", self.uri(id))
        };
        Served {
            answer: ServerAnswer::Response {
                status: 200,
                headers,
                size: page.traits.size.max(content.len() as u64),
                content: content.into(),
            },
            took,
            version,
            page_answer: PageAnswer::Whole,
        }
    }

    /// Returns a page's HTML: its version, which changes, and text around it that is not content.
    fn html(&self, id: PageId, now: i64, random: &mut impl Rng) -> String {
        let page = &self.pages[id];
        let site = &self.sites[page.site];
        let mut text = String::with_capacity(512);
        let uri = self.uri(id);
        let _ = write!(
            text,
            "<!DOCTYPE html><html><head><title>{uri}</title></head><body><h1>{}</h1><p>",
            word(page.number.into())
        );
        let mut words = stream(&[self.seed, id as u64, page.version]);
        for _ in 0..6 {
            let _ = write!(text, "{} ", word(words.next_u64()));
        }
        let _ = write!(text, "{}</p>", page.version);
        if page.traits.clock {
            let at = self.at(now).strftime("%a, %d %b %Y %H:%M:%S GMT");
            let _ = write!(text, "<!-- made {now} --><p>{at}</p>");
        }
        if page.traits.noise {
            let (one, other) = (random.next_u64(), random.next_u64());
            let _ = write!(
                text,
                "<div class=\"box\">{} {}{other:x}</div>",
                word(one),
                word(other)
            );
        }
        if !site.hubs.is_empty() {
            self.links(id, now, &mut text);
        }
        text.push_str("</body></html>");
        text
    }

    /// Adds links. Hubs link to their existing pages, newest first; pages link to their hub and to the home page.
    fn links(&self, id: PageId, now: i64, text: &mut String) {
        let page = &self.pages[id];
        let site = &self.sites[page.site];
        let group = &self.groups[site.group];
        let mut link = |target: &str| {
            let _ = write!(text, "<a href=\"{target}\">{target}</a> ");
        };
        link("/");
        if page.kind.is_some() {
            link(&format!("/s{}/", page.section));
            return;
        }
        for section in 0..group.sections {
            link(&format!("/s{section}/"));
        }
        if group.feed != Lists::None {
            link("/feed.xml");
        }
        if group.sitemap != Lists::None {
            link("/sitemap.xml");
        }
        let is_home = page.section == 0;
        let is_shown = |id: &&PageId| {
            let page = &self.pages[**id];
            page.born <= now && now < page.dies
        };
        let shown = site.pages.iter().rev().filter(is_shown);
        let of_section = |id: &&PageId| is_home || self.pages[**id].section + 1 == page.section;
        let most = if is_home { 20 } else { usize::MAX };
        for id in shown.filter(of_section).take(most) {
            let shown = self.path(*id);
            link(&shown);
        }
    }

    /// Returns the existing pages of a site, each with the time of its last change, latest first.
    fn changed(&mut self, site: usize, now: i64) -> Vec<(i64, PageId)> {
        let pages = self.sites[site].pages.clone();
        let mut changed = Vec::new();
        for id in pages {
            if self.pages[id].born > now || now >= self.pages[id].dies {
                continue;
            }
            self.advance(id, now);
            changed.push((self.pages[id].copy.changed_at(), id));
        }
        changed.sort_unstable_by(|one, other| other.cmp(one));
        changed
    }

    /// Returns the time of a page's last change as lists of this kind state it; none if they do not know the page yet.
    fn stated_time(lists: Lists, changed: i64, now: i64) -> Option<i64> {
        let made = ((now as f64 / DAY / STALE_DAYS).floor() * STALE_DAYS * DAY) as i64;
        match lists {
            Lists::None => None,
            Lists::Honest => Some(changed),
            Lists::Stale => (changed <= made).then_some(changed),
            Lists::Boastful => Some(now),
        }
    }

    fn feed(&mut self, site: usize, now: i64) -> String {
        let lists = self.groups[self.sites[site].group].feed;
        let mut text = "<rss version=\"2.0\"><channel><title>news</title>".to_owned();
        let items = self.changed(site, now).into_iter();
        let items =
            items.filter_map(|(changed, id)| Some((Self::stated_time(lists, changed, now)?, id)));
        for (at, id) in items.take(FEED_ITEMS) {
            let (uri, date) = (self.uri(id), http_date(self.at(at)));
            let _ = write!(
                text,
                "<item><title>{id}</title><link>{uri}</link><pubDate>{date}</pubDate></item>"
            );
        }
        text.push_str("</channel></rss>");
        text
    }

    fn sitemap(&mut self, site: usize, now: i64) -> String {
        let lists = self.groups[self.sites[site].group].sitemap;
        let mut text = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">".to_owned();
        for (changed, id) in self.changed(site, now) {
            if let Some(at) = Self::stated_time(lists, changed, now) {
                let (uri, date) = (self.uri(id), self.at(at));
                let _ = write!(text, "<url><loc>{uri}</loc><lastmod>{date}</lastmod></url>");
            }
        }
        text.push_str("</urlset>");
        text
    }
}

fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn word(number: u64) -> &'static str {
    WORDS[(number % WORDS.len() as u64) as usize]
}
