//! The changing web: sites, pages, and the times at which pages appear, change and disappear. Only the state of each page's life is
//! kept. `answer.rs` makes its bytes on request, from its site, its number and its version.

mod answer;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::Uri;
use rand::Rng;

use crate::measure::{Copy, Sums, Window};
use crate::oracle::OraclePage;
use crate::process::{ChangeContext, Changes, DAY, since_monday, stream, uniform};
use crate::scenario::{HeaderAccuracy, Lists, PageKind, Scenario, SiteGroup};

pub(crate) use answer::{PageAnswer, Served};

/// Purposes of streams of random numbers.
mod purpose {
    pub(super) const RATE: u64 = 1;
    pub(super) const TRAITS: u64 = 2;
    pub(super) const LIFE: u64 = 3;
    pub(super) const SERVER: u64 = 4;
    pub(super) const BURSTS: u64 = 5;
    pub(super) const GROWTH: u64 = 6;
    pub(super) const CLOSED: u64 = 7;
    pub(super) const SLOWED: u64 = 8;
}

/// A page, as an index into [`Web::pages`].
pub(crate) type PageId = usize;

/// The web of a scenario.
pub(crate) struct Web {
    pub(crate) pages: Vec<Page>,
    sites: Vec<Site>,
    hosts: HashMap<String, usize>,
    groups: Vec<SiteGroup>,
    start: Timestamp,
    /// Days from the beginning of the last Monday to the start.
    since_monday: f64,
    window: Window,
    seed: u64,
    pub(crate) sums: Sums,
}

/// One page.
pub(crate) struct Page {
    pub(crate) site: usize,
    /// The index of its kind; none for a hub.
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
    /// Requests that it has received.
    pub(crate) visits: u64,
    pub(crate) last_visit: Option<i64>,
    /// The longest time between two visits, within the window.
    pub(crate) longest: i64,
}

/// Properties that a page keeps all its life.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    clock: bool,
    noise: bool,
    etag: Header,
    last_modified: Header,
    size: u64,
}

/// The reliability of a header.
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
    /// Its hubs, one for each section, the home page first.
    hubs: Vec<PageId>,
    pages: Vec<PageId>,
    requests: u64,
}

/// The target of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UriTarget {
    Page(PageId),
    Robots,
    Feed,
    Sitemap,
    Nothing,
}

impl Web {
    /// Creates the web of a scenario, with all pages that it will ever have.
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
            since_monday: since_monday(scenario.start),
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

    fn add_site(&mut self, group: usize, sites: &SiteGroup, number: u32, days: f64) {
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
        sites: &SiteGroup,
        section: u32,
        number: u32,
        born: f64,
    ) -> PageId {
        let random_stream = |purpose| stream(&[self.seed, site as u64, number.into(), purpose]);
        let mut random = random_stream(purpose::TRAITS);
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
        let context = ChangeContext {
            site: shared,
            since_monday: self.since_monday,
        };
        let mut changes = Changes::new(&kind.process, random_stream(purpose::RATE), context);
        let life = -uniform(&mut random_stream(purpose::LIFE)).ln() * sites.life;
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

    /// Adds a page that links to others and changes when these appear and disappear.
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

    /// Returns the seeds: home pages, or every page and its published lists if all pages are known.
    pub(crate) fn seeds(&self) -> Vec<Uri> {
        let mut seeds = Vec::new();
        for site in &self.sites {
            let known = if site.hubs.is_empty() {
                &site.pages
            } else {
                &site.hubs[..1]
            };
            let mut uris: Vec<String> = known.iter().map(|page| self.uri(*page)).collect();
            if site.hubs.is_empty() {
                // No page of such a site links to its lists.
                let group = &self.groups[site.group];
                let lists = [(group.feed, "feed.xml"), (group.sitemap, "sitemap.xml")];
                let published = lists.iter().filter(|(kind, _)| *kind != Lists::None);
                uris.extend(published.map(|(_, name)| format!("http://{}/{name}", site.host)));
            }
            seeds.extend(uris.iter().filter_map(|uri| Uri::parse(uri).ok()));
        }
        seeds
    }

    /// Returns the SURT prefixes of all sites.
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
            (Some(_), _) => format!("http://{host}{}", self.path(id)),
        }
    }

    /// Returns the path of a page that is not a hub.
    fn path(&self, id: PageId) -> String {
        let page = &self.pages[id];
        let kinds = &self.groups[self.sites[page.site].group].kinds;
        let name = page.kind.and_then(|kind| kinds[kind].name.as_deref());
        let (section, number) = (page.section, page.number);
        match name {
            Some(name) => format!("/s{section}/{name}-{number}"),
            None => format!("/s{section}/p{number}"),
        }
    }

    /// Returns the target of a URI.
    pub(crate) fn target_of(&self, uri: &Uri) -> (Option<usize>, UriTarget) {
        let Some(site) = uri.host().and_then(|host| self.hosts.get(host)).copied() else {
            return (None, UriTarget::Nothing);
        };
        let known = &self.sites[site];
        let page = |list: &[PageId], index: Option<usize>| {
            let id = index.and_then(|index| list.get(index));
            id.map_or(UriTarget::Nothing, |id| UriTarget::Page(*id))
        };
        let target = match uri.path() {
            "/robots.txt" => UriTarget::Robots,
            "/feed.xml" => UriTarget::Feed,
            "/sitemap.xml" => UriTarget::Sitemap,
            "/" => page(&known.hubs, Some(0)),
            path => match path.trim_start_matches("/s").split_once('/') {
                Some((section, "")) => page(
                    &known.hubs,
                    section.parse().ok().map(|section: usize| section + 1),
                ),
                Some((_, name)) => {
                    let number = name.rsplit(|letter: char| !letter.is_ascii_digit()).next();
                    page(&known.pages, number.and_then(|number| number.parse().ok()))
                }
                None => UriTarget::Nothing,
            },
        };
        (Some(site), target)
    }

    /// Advances a page to the present.
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

    /// Advances all pages to the end.
    pub(crate) fn finish(&mut self) {
        let (from, to) = (self.window.from, self.window.to);
        for id in 0..self.pages.len() {
            self.advance(id, to);
            let page = &mut self.pages[id];
            page.copy.end(page.dies, self.window, &mut self.sums);
            let last = page.last_visit.unwrap_or(page.born).max(from);
            page.longest = page.longest.max(to.min(page.dies) - last);
        }
    }

    /// Records the end of a visit, with the version that the archive has now. Returns whether the version is new.
    pub(crate) fn captured(&mut self, id: PageId, now: i64, version: u64) -> bool {
        self.advance(id, now);
        let page = &mut self.pages[id];
        if page.version != version || now >= page.dies {
            // The page has changed since it was sent; the copy was never current.
            return false;
        }
        let (weight, window) = (page.weight, self.window);
        let delay = page.copy.capture(now, weight, window, &mut self.sums);
        delay.is_some()
    }

    /// Records a request.
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

    /// Converts a time of the simulation into one of the calendar.
    pub(crate) fn at(&self, millis: i64) -> Timestamp {
        let at = self.start.as_millisecond().saturating_add(millis);
        Timestamp::from_millisecond(at).unwrap_or(Timestamp::MAX)
    }

    /// Returns the facts for an oracle: pages that exist within the window, with their hosts.
    pub(crate) fn known(&self) -> Vec<(PageId, OraclePage)> {
        let Window { from, to } = self.window;
        let pages = self.pages.iter().enumerate();
        let existing = pages.filter(|(_, page)| page.born < to && page.dies > from);
        existing
            .map(|(id, page)| {
                let life = page.dies.min(to) - page.born.max(from);
                let known = OraclePage {
                    rate: page.changes.rate,
                    weight: page.weight,
                    share: life as f64 / (to - from) as f64,
                    host: page.site,
                };
                (id, known)
            })
            .collect()
    }

    /// Returns the name of a host.
    pub(crate) fn host(&self, host: usize) -> &str {
        &self.sites[host].host
    }

    /// Returns the number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.sites.len()
    }

    /// Returns the long-term changes a day of a page.
    pub(crate) fn rate(&self, id: PageId) -> f64 {
        self.pages[id].changes.rate
    }

    /// Returns the time at which a page appears.
    pub(crate) fn born(&self, id: PageId) -> i64 {
        self.pages[id].born
    }

    /// Returns the mean duration of a host's answers.
    pub(crate) fn response(&self, host: usize) -> Duration {
        self.groups[self.sites[host].group].response
    }

    /// Returns the measured time.
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// Returns `true` if a page exists at this time.
    pub(crate) fn exists(&self, id: PageId, now: i64) -> bool {
        let page = &self.pages[id];
        page.born <= now && now < page.dies
    }

    /// Copies the current version of a page, without a crawl. Returns whether the version is new; `None` if the page does not
    /// exist.
    pub(crate) fn copy_page(&mut self, id: PageId, now: i64) -> Option<bool> {
        self.exists(id, now).then(|| {
            self.advance(id, now);
            let version = self.pages[id].version;
            self.captured(id, now, version)
        })
    }

    /// Returns the mean number of existing pages.
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

fn choose<'k>(kinds: &'k [PageKind], random: &mut rand_pcg::Pcg64Mcg) -> (usize, &'k PageKind) {
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

fn header(accuracy: HeaderAccuracy, random: &mut rand_pcg::Pcg64Mcg) -> Header {
    let drawn = uniform(random);
    let HeaderAccuracy {
        honest,
        stuck,
        restless,
    } = accuracy;
    if drawn < honest {
        Header::Honest
    } else if drawn < honest + stuck {
        Header::Stuck
    } else if drawn < honest + stuck + restless {
        Header::Restless
    } else {
        Header::Absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_answer::ServerAnswer;
    use opilio_visit::RequestHeaders;

    const DAY: i64 = 86_400_000;

    fn web(site: &str) -> Web {
        let text = format!(
            "days = \"100d\"\nwarm-up = \"10d\"\nbudget = {{ visits = 1 }}\n[[site]]\nname = \"a\"\npages = 50\n{site}\n\
             [[site.page]]\nchange = {{ process = \"never\" }}\n"
        );
        let scenario = Scenario::parse("web.toml", &text).unwrap();
        Web::new(&scenario, 3, 1)
    }

    fn content(web: &mut Web, uri: &str, day: i64) -> (u16, String) {
        let uri = Uri::parse(uri).unwrap();
        let served = web.serve(&uri, &RequestHeaders::default(), day * DAY);
        match served.answer {
            ServerAnswer::Response {
                status, content, ..
            } => (status, String::from_utf8(content.to_vec()).unwrap()),
            ServerAnswer::Failure => panic!("no answer"),
        }
    }

    /// A site is closed ten times in a hundred days for two days each, in the mean of many years.
    #[test]
    fn a_site_is_closed_as_often_as_configured() {
        let mut web = web("closed = { per-year = 36.5, length = \"2d\" }");
        let is_closed = |day: &i64| {
            let (status, rules) = content(&mut web, "http://a-1.example/robots.txt", *day);
            assert_eq!(status, 200);
            rules.contains("Disallow: /\n")
        };
        let closed = (0..10_000).filter(is_closed).count();
        assert_eq!(closed, 2000);
    }

    #[test]
    fn robots_txt_changes_as_configured() {
        let mut web = web(
            "closed = { per-year = 36.5, length = \"2d\", path = \"/s0/\" }\n\
             slowed = { per-year = 36.5, length = \"4d\", crawl-delay = \"30s\" }",
        );
        let (mut closed, mut slowed) = (0, 0);
        for day in 0..10_000 {
            let (_, rules) = content(&mut web, "http://a-1.example/robots.txt", day);
            let is_closed = rules.contains("Disallow: /s0/\n");
            assert!(is_closed || rules.contains("Disallow:\n"), "{rules}");
            closed += u32::from(is_closed);
            slowed += u32::from(rules.contains("Crawl-delay: 30\n"));
        }
        assert_eq!((closed, slowed), (2000, 4000));
    }

    #[test]
    fn the_name_of_a_kind_is_in_its_paths() {
        let text = "days = \"100d\"\nwarm-up = \"10d\"\nbudget = { visits = 1 }\n[[site]]\nname = \"a\"\npages = 50\n\
             [[site.page]]\nchange = { process = \"never\" }\n\
             [[site.page]]\nname = \"story-2\"\nchange = { process = \"never\" }\n";
        let scenario = Scenario::parse("web.toml", text).unwrap();
        let mut web = Web::new(&scenario, 3, 1);
        let (_, hub) = content(&mut web, "http://a-1.example/s0/", 1);
        let mut stories = 0;
        for id in 0..50 {
            let uri = Uri::parse(&web.uri(id)).unwrap();
            assert_eq!(web.target_of(&uri).1, UriTarget::Page(id), "{uri}");
            assert!(hub.contains(&format!("\"{}\"", uri.path())), "{uri}");
            stories += usize::from(uri.path() == format!("/s0/story-2-{id}"));
        }
        assert!((10..40).contains(&stories), "{stories}");
    }

    /// The home page changes whenever a link on it appears or disappears. Pages outside the simulated time do not count.
    #[test]
    fn hubs_change_with_their_pages() {
        let web = web("growth = 0.5\nlife = \"200d\"");
        let end = 100 * DAY;
        let pages = web.pages.iter().filter(|page| page.kind.is_some());
        let times = pages.flat_map(|page| [page.born, page.dies]);
        let events = times.filter(|at| (1..=end).contains(at)).count();
        let home = &web.pages[web.sites[0].hubs[0]];
        assert!(events > 50, "{events}");
        assert!(
            (home.changes.rate - events as f64 / 100.0).abs() < 0.03,
            "{events}"
        );
    }

    #[test]
    fn lists_are_seeds_if_all_pages_are_known() {
        let seeds = |site: &str| {
            let seeds = web(site).seeds().into_iter();
            let lists = seeds.filter(|uri| uri.path().ends_with(".xml"));
            lists.map(|uri| uri.to_string()).collect::<Vec<_>>()
        };
        let feed = "http://a-1.example/feed.xml";
        let both = [feed, "http://a-1.example/sitemap.xml"];
        assert_eq!(seeds("known = true\nfeed = \"honest\""), [feed]);
        let lists = "known = true\nfeed = \"stale\"\nsitemap = \"honest\"";
        assert_eq!(seeds(lists), both);
        assert!(seeds("known = true").is_empty());
        assert!(seeds("feed = \"honest\"").is_empty());
    }

    #[test]
    fn a_page_exists_between_its_birth_and_its_death() {
        let mut web = web("growth = 0.5\nlife = \"30d\"");
        let of_life = |page: &&Page| {
            page.born > 20 * DAY && page.dies < 90 * DAY && page.dies - page.born > 3 * DAY
        };
        let page = web.pages.iter().find(of_life).unwrap();
        let day = |at: i64| at / DAY;
        let (born, dies) = (day(page.born), day(page.dies));
        let id = web.pages.iter().position(|other| std::ptr::eq(other, page));
        let uri = web.uri(id.unwrap());
        assert_eq!(content(&mut web, &uri, born - 1).0, 404);
        assert_eq!(content(&mut web, &uri, dies + 1).0, 404);
        let home = |web: &mut Web, day| content(web, "http://a-1.example/s0/", day).1;
        let path = uri.trim_start_matches("http://a-1.example").to_owned();
        let link = format!("\"{path}\"");
        assert!(!home(&mut web, born - 1).contains(&link));
        assert!(home(&mut web, born + 1).contains(&link));
        assert!(!home(&mut web, dies + 1).contains(&link));
    }
}
