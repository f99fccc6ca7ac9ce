//! The changing web: sites, pages, what servers answer. Nothing is kept of a page but where it is in its life; its bytes are
//! made of its place and version when they are asked for.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_crawl::rehearsal::{Answer, Asked};
use opilio_uri::Uri;
use rand::Rng;

use crate::measure::{Copy, Sums, Window};
use crate::oracle::Known;
use crate::process::{Changes, DAY, is_burst, stream, uniform};
use crate::scenario::{Honesty, Kind, Lists, Scenario, Sites};

/// Words that pages are made of.
const WORDS: [&str; 16] = [
    "archive", "harvest", "river", "council", "letter", "bridge", "winter", "market", "garden",
    "harbour", "school", "engine", "island", "mirror", "record", "signal",
];

/// Most items of a feed.
const FEED_ITEMS: usize = 50;

/// How often lists that are stale are made.
const STALE_DAYS: f64 = 7.0;

/// What a stream of random numbers is for.
mod purpose {
    pub(super) const RATE: u64 = 1;
    pub(super) const TRAITS: u64 = 2;
    pub(super) const LIFE: u64 = 3;
    pub(super) const SERVER: u64 = 4;
    pub(super) const BURSTS: u64 = 5;
    pub(super) const GROWTH: u64 = 6;
    pub(super) const CLOSED: u64 = 7;
}

/// A page, by its place in [`Web::pages`].
pub(crate) type PageId = usize;

/// The web of a scenario.
pub(crate) struct Web {
    pub(crate) pages: Vec<Page>,
    sites: Vec<Site>,
    hosts: HashMap<String, usize>,
    groups: Vec<Sites>,
    start: Timestamp,
    window: Window,
    seed: u64,
    pub(crate) sums: Sums,
}

/// One page.
pub(crate) struct Page {
    pub(crate) site: usize,
    /// What kind it is; none for a hub.
    kind: Option<usize>,
    section: u32,
    number: u32,
    born: i64,
    dies: i64,
    changes: Changes,
    next: i64,
    version: u64,
    pub(crate) copy: Copy,
    pub(crate) weight: f64,
    traits: Traits,
    /// Requests that it has had.
    pub(crate) visits: u64,
    pub(crate) last_visit: Option<i64>,
    /// The longest time between two visits, within the window.
    pub(crate) longest: i64,
}

/// What holds for a page all its life.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    clock: bool,
    noise: bool,
    etag: Header,
    last_modified: Header,
    size: u64,
}

/// What a header is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Header {
    #[default]
    Absent,
    Honest,
    Stuck,
    Restless,
}

struct Site {
    group: usize,
    host: String,
    /// Its hub of each section, the home page first.
    hubs: Vec<PageId>,
    pages: Vec<PageId>,
    requests: u64,
}

/// What a URI leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Page(PageId),
    Robots,
    Feed,
    Sitemap,
    Nothing,
}

/// A server's answer to one request.
pub(crate) struct Served {
    pub(crate) answer: Answer,
    pub(crate) took: Duration,
    /// The version that came, or that a 304 spoke of.
    pub(crate) version: u64,
    pub(crate) not_modified: bool,
}

impl Web {
    /// The web of a scenario, with everything that will ever be in it.
    pub(crate) fn new(scenario: &Scenario, seed: u64, parts: usize) -> Self {
        let millis = |days: f64| (days * DAY).round() as i64;
        let window = Window {
            from: millis(scenario.warm_up),
            to: millis(scenario.days),
        };
        let mut web = Self {
            pages: Vec::new(),
            sites: Vec::new(),
            hosts: HashMap::new(),
            groups: scenario.sites.clone(),
            start: scenario.start,
            window,
            seed,
            sums: Sums::new(parts),
        };
        for (group, sites) in scenario.sites.iter().enumerate() {
            for number in 0..sites.count {
                web.add_site(group, sites, number, scenario.days);
            }
        }
        web
    }

    fn add_site(&mut self, group: usize, sites: &Sites, number: u32, days: f64) {
        let index = self.sites.len();
        let host = format!("{}-{}.example", sites.name, number + 1);
        self.hosts.insert(host.clone(), index);
        self.sites.push(Site {
            group,
            host,
            hubs: Vec::new(),
            pages: Vec::new(),
            requests: 0,
        });
        let mut births = vec![0.0; sites.pages as usize];
        if sites.growth > 0.0 {
            let mut random = stream(&[self.seed, index as u64, purpose::GROWTH]);
            let mut time = -uniform(&mut random).ln() / sites.growth;
            while time < days {
                births.push(time);
                time -= uniform(&mut random).ln() / sites.growth;
            }
        }
        let end = (days * DAY) as i64;
        let mut shown: Vec<Vec<i64>> = vec![Vec::new(); sites.sections as usize + 1];
        for (number, born) in births.into_iter().enumerate() {
            let section = number as u32 % sites.sections;
            let id = self.add_page(index, sites, section, number as u32, born);
            let page = &self.pages[id];
            for hub in [0, section as usize + 1] {
                let times = [page.born, page.dies].into_iter();
                shown[hub].extend(times.filter(|at| (1..=end).contains(at)));
            }
        }
        if sites.known {
            return;
        }
        for (section, mut times) in shown.into_iter().enumerate() {
            times.sort_unstable();
            times.dedup();
            let id = self.add_hub(index, section as u32, times, days);
            self.sites[index].hubs.push(id);
        }
    }

    fn add_page(
        &mut self,
        site: usize,
        sites: &Sites,
        section: u32,
        number: u32,
        born: f64,
    ) -> PageId {
        let place = |purpose| stream(&[self.seed, site as u64, number.into(), purpose]);
        let mut random = place(purpose::TRAITS);
        let (kind_index, kind) = choose(&sites.kinds, &mut random);
        let traits = Traits {
            clock: uniform(&mut random) < kind.clock,
            noise: uniform(&mut random) < kind.noise,
            etag: header(kind.etag, &mut random),
            last_modified: header(kind.last_modified, &mut random),
            // From half to one and a half times the mean.
            size: (kind.size as f64 * (0.5 + uniform(&mut random))) as u64,
        };
        let shared = stream(&[self.seed, site as u64, purpose::BURSTS]).next_u64();
        let mut changes = Changes::new(&kind.process, place(purpose::RATE), shared);
        let life = -uniform(&mut place(purpose::LIFE)).ln() * sites.life;
        let next = to_millis(changes.after(born, true));
        let born_at = (born * DAY) as i64;
        let window = self.window;
        let is_born_in_it = window.from.max(0) < born_at && born_at < window.to;
        self.sums.born += u64::from(is_born_in_it);
        let dies = to_millis(born + life);
        self.pages.push(Page {
            site,
            kind: Some(kind_index),
            section,
            number,
            born: born_at,
            dies,
            changes,
            next,
            version: 0,
            copy: Copy::new(born_at),
            weight: kind.importance,
            traits,
            visits: 0,
            last_visit: None,
            longest: 0,
        });
        let id = self.pages.len() - 1;
        self.sites[site].pages.push(id);
        id
    }

    /// A page that links to others and changes when these come and go.
    fn add_hub(&mut self, site: usize, section: u32, times: Vec<i64>, days: f64) -> PageId {
        let rate = times.len() as f64 / days;
        let changes = Changes::at(times, rate);
        let mut page = Page {
            site,
            kind: None,
            section,
            number: 0,
            born: 0,
            dies: i64::MAX,
            changes,
            next: 0,
            version: 0,
            copy: Copy::new(0),
            weight: 1.0,
            traits: Traits {
                etag: Header::Honest,
                size: 20_000,
                ..Traits::default()
            },
            visits: 0,
            last_visit: None,
            longest: 0,
        };
        page.next = to_millis(page.changes.after(0.0, true));
        self.pages.push(page);
        self.pages.len() - 1
    }

    /// Where the crawl begins: home pages, or every page where all are known.
    pub(crate) fn seeds(&self) -> Vec<Uri> {
        let mut seeds = Vec::new();
        for site in &self.sites {
            let known = if site.hubs.is_empty() {
                &site.pages
            } else {
                &site.hubs[..1]
            };
            let uris = known.iter().map(|page| self.uri(*page));
            seeds.extend(uris.filter_map(|uri| Uri::parse(&uri).ok()));
        }
        seeds
    }

    /// SURT prefixes of all sites.
    pub(crate) fn prefixes(&self) -> Vec<String> {
        let uris = self
            .sites
            .iter()
            .map(|site| format!("http://{}/", site.host));
        uris.filter_map(|uri| opilio_uri::implied_surt_prefix(&uri).ok())
            .collect()
    }

    fn uri(&self, id: PageId) -> String {
        let page = &self.pages[id];
        let host = &self.sites[page.site].host;
        match (page.kind, page.section) {
            (None, 0) => format!("http://{host}/"),
            (None, section) => format!("http://{host}/s{}/", section - 1),
            (Some(_), section) => format!("http://{host}/s{section}/p{}", page.number),
        }
    }

    /// What a URI leads to.
    pub(crate) fn place(&self, uri: &Uri) -> (Option<usize>, Place) {
        let Some(site) = uri.host().and_then(|host| self.hosts.get(host)).copied() else {
            return (None, Place::Nothing);
        };
        let known = &self.sites[site];
        let page = |list: &[PageId], index: Option<usize>| {
            let id = index.and_then(|index| list.get(index));
            id.map_or(Place::Nothing, |id| Place::Page(*id))
        };
        let place = match uri.path() {
            "/robots.txt" => Place::Robots,
            "/feed.xml" => Place::Feed,
            "/sitemap.xml" => Place::Sitemap,
            "/" => page(&known.hubs, Some(0)),
            path => match path.trim_start_matches("/s").split_once('/') {
                Some((section, "")) => page(
                    &known.hubs,
                    section.parse().ok().map(|section: usize| section + 1),
                ),
                Some((_, name)) => page(&known.pages, name[1..].parse().ok()),
                None => Place::Nothing,
            },
        };
        (Some(site), place)
    }

    /// Lets a page live until now.
    fn advance(&mut self, id: PageId, now: i64) {
        let page = &mut self.pages[id];
        let (weight, window) = (page.weight, self.window);
        while page.next <= now.min(page.dies) {
            let at = page.next;
            page.copy.change(at, weight, window, &mut self.sums);
            page.version += 1;
            let after = page.changes.after(at as f64 / DAY, false);
            page.next = to_millis(after).max(at + 1);
        }
        page.copy
            .count(now.min(page.dies), weight, window, &mut self.sums);
    }

    /// Lets all pages live until the end.
    pub(crate) fn finish(&mut self) {
        let (from, to) = (self.window.from, self.window.to);
        for id in 0..self.pages.len() {
            self.advance(id, to);
            let page = &mut self.pages[id];
            let last = page.last_visit.unwrap_or(page.born).max(from);
            page.longest = page.longest.max(to.min(page.dies) - last);
        }
    }

    /// A visit has come to an end: what the archive has of the page now.
    pub(crate) fn captured(&mut self, id: PageId, now: i64, version: u64) -> bool {
        self.advance(id, now);
        let page = &mut self.pages[id];
        if page.version != version || now >= page.dies {
            // It has changed since it was sent; that version was seen for no time at all.
            return false;
        }
        let (weight, window) = (page.weight, self.window);
        let delay = page.copy.capture(now, weight, window, &mut self.sums);
        delay.is_some()
    }

    /// A request has been sent.
    fn visited(&mut self, id: PageId, now: i64) {
        let from = self.window.from;
        let page = &mut self.pages[id];
        page.visits += u64::from(now >= from);
        let last = page.last_visit.unwrap_or(page.born).max(from);
        if now > from {
            page.longest = page.longest.max(now - last);
        }
        page.last_visit = Some(now);
    }

    /// What a server answers to a request now.
    pub(crate) fn serve(&mut self, uri: &Uri, asked: &Asked, now: i64) -> Served {
        let (site, place) = self.place(uri);
        let Some(site) = site else {
            return Served {
                answer: Answer::Failure,
                took: Duration::from_secs(20),
                version: 0,
                not_modified: false,
            };
        };
        self.sites[site].requests += 1;
        let requests = self.sites[site].requests;
        let group = &self.groups[self.sites[site].group];
        let mut random = stream(&[self.seed, site as u64, requests, purpose::SERVER]);
        // Between half and one and a half times as long.
        let took = group.response.mul_f64(0.5 + uniform(&mut random));
        let fails = uniform(&mut random) < group.failures;
        if let Place::Page(id) = place {
            self.visited(id, now);
        }
        let response = |status, media_type: &str, content: String| {
            let size = content.len() as u64;
            Served {
                answer: Answer::Response {
                    status,
                    headers: vec![("Content-Type".to_owned(), media_type.to_owned())],
                    content: content.into(),
                    size,
                },
                took,
                version: 0,
                not_modified: false,
            }
        };
        if fails {
            return response(503, "text/plain", String::new());
        }
        match place {
            Place::Page(id) => self.serve_page(id, asked, now, took, &mut random),
            Place::Robots => {
                let path = if self.is_closed(site, now) { " /" } else { "" };
                let rules = format!("User-agent: *\nDisallow:{path}\n");
                response(200, "text/plain", rules)
            }
            Place::Feed if self.groups[self.sites[site].group].feed != Lists::None => {
                let feed = self.feed(site, now);
                response(200, "application/rss+xml", feed)
            }
            Place::Sitemap if self.groups[self.sites[site].group].sitemap != Lists::None => {
                let map = self.sitemap(site, now);
                response(200, "application/xml", map)
            }
            _ => response(404, "text/plain", "not found".to_owned()),
        }
    }

    /// Whether a site's robots.txt forbids everything now.
    fn is_closed(&self, site: usize, now: i64) -> bool {
        let Some(closed) = self.groups[self.sites[site].group].closed else {
            return false;
        };
        let of_site = stream(&[self.seed, site as u64, purpose::CLOSED]).next_u64();
        is_burst(now as f64 / DAY, closed.every, closed.length, of_site)
    }

    fn serve_page(
        &mut self,
        id: PageId,
        asked: &Asked,
        now: i64,
        took: Duration,
        random: &mut impl Rng,
    ) -> Served {
        self.advance(id, now);
        let page = &self.pages[id];
        let gone = |status: u16| Served {
            answer: Answer::Response {
                status,
                headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
                content: Bytes::from_static(b"gone"),
                size: 4,
            },
            took,
            version: u64::MAX,
            not_modified: false,
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
        let not_modified = match (&asked.if_none_match, &asked.if_modified_since) {
            (Some(known), _) => etag.as_ref() == Some(known),
            (None, Some(known)) => last_modified.as_ref() == Some(known),
            (None, None) => false,
        };
        if not_modified {
            return Served {
                answer: Answer::Response {
                    status: 304,
                    headers,
                    content: Bytes::new(),
                    size: 0,
                },
                took,
                version,
                not_modified,
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
            answer: Answer::Response {
                status: 200,
                headers,
                size: page.traits.size.max(content.len() as u64),
                content: content.into(),
            },
            took,
            version,
            not_modified,
        }
    }

    /// What a page says: its version, where it changes, and around it what is not content.
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

    /// Hubs link to their pages that are there, newest first; pages link to their hub and to the home page.
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
            let shown = &self.pages[*id];
            link(&format!("/s{}/p{}", shown.section, shown.number));
        }
    }

    /// The pages of a site that are there, each with the time of its last change, latest first.
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

    /// What lists of this kind say a page's last change is; none where they do not know it yet.
    fn said(lists: Lists, changed: i64, now: i64) -> Option<i64> {
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
        let items = items.filter_map(|(changed, id)| Some((Self::said(lists, changed, now)?, id)));
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
            if let Some(at) = Self::said(lists, changed, now) {
                let (uri, date) = (self.uri(id), self.at(at));
                let _ = write!(text, "<url><loc>{uri}</loc><lastmod>{date}</lastmod></url>");
            }
        }
        text.push_str("</urlset>");
        text
    }

    /// A time of the simulation as one of the calendar.
    pub(crate) fn at(&self, millis: i64) -> Timestamp {
        let at = self.start.as_millisecond().saturating_add(millis);
        Timestamp::from_millisecond(at).unwrap_or(Timestamp::MAX)
    }

    /// What an oracle knows: pages that are there within the window, with their hosts.
    pub(crate) fn known(&self) -> Vec<(PageId, Known)> {
        let pages = self.pages.iter().enumerate();
        let there =
            pages.filter(|(_, page)| page.born < self.window.to && page.dies > self.window.from);
        there
            .map(|(id, page)| {
                let known = Known {
                    rate: page.changes.rate,
                    weight: page.weight,
                    host: page.site,
                };
                (id, known)
            })
            .collect()
    }

    /// How many hosts there are.
    pub(crate) fn hosts(&self) -> usize {
        self.sites.len()
    }

    /// Changes a day of a page, in the long run.
    pub(crate) fn rate(&self, id: PageId) -> f64 {
        self.pages[id].changes.rate
    }

    /// When a page comes to be.
    pub(crate) fn born(&self, id: PageId) -> i64 {
        self.pages[id].born
    }

    /// How long a host takes to answer, on average.
    pub(crate) fn response(&self, host: usize) -> Duration {
        self.groups[self.sites[host].group].response
    }

    /// The stretch of time that counts.
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// Whether a page is there.
    pub(crate) fn is_there(&self, id: PageId, now: i64) -> bool {
        let page = &self.pages[id];
        page.born <= now && now < page.dies
    }

    /// Somebody takes a copy, without a crawl.
    pub(crate) fn look(&mut self, id: PageId, now: i64) {
        if self.is_there(id, now) {
            self.advance(id, now);
            let version = self.pages[id].version;
            self.captured(id, now, version);
        }
    }

    /// Pages that are there at a time, on average.
    pub(crate) fn average_pages(&self, days: f64) -> f64 {
        let end = (days * DAY) as i64;
        let lives = self.pages.iter().map(|page| {
            let life = page.dies.min(end) - page.born.min(end);
            life.max(0) as f64
        });
        lives.sum::<f64>() / end as f64
    }
}

fn to_millis(days: f64) -> i64 {
    if days.is_finite() {
        (days * DAY).ceil() as i64
    } else {
        i64::MAX
    }
}

fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn word(number: u64) -> &'static str {
    WORDS[(number % WORDS.len() as u64) as usize]
}

fn choose<'k>(kinds: &'k [Kind], random: &mut rand_pcg::Pcg64Mcg) -> (usize, &'k Kind) {
    let total: f64 = kinds.iter().map(|kind| kind.share).sum();
    let mut left = uniform(random) * total;
    for (index, kind) in kinds.iter().enumerate() {
        if left < kind.share || index + 1 == kinds.len() {
            return (index, kind);
        }
        left -= kind.share;
    }
    (0, &kinds[0])
}

fn header(honesty: Honesty, random: &mut rand_pcg::Pcg64Mcg) -> Header {
    let place = uniform(random);
    let Honesty {
        honest,
        stuck,
        restless,
    } = honesty;
    if place < honest {
        Header::Honest
    } else if place < honest + stuck {
        Header::Stuck
    } else if place < honest + stuck + restless {
        Header::Restless
    } else {
        Header::Absent
    }
}
