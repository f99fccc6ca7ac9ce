//! Counts of browsers, of the pages that they render, and of the requests of these pages. Consoles and metrics show them.

use opilio_browser::PageReport;
use opilio_job::alerts::RenderedPages;
use opilio_visit::{LogEntry, ROBOTS_ADDRESS_REFUSED, status};
use serde::{Deserialize, Serialize};

/// Counts of pages and requests of browsers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RenderFigures {
    /// Pages that a browser showed.
    pub rendered: u64,
    /// Of these, pages whose links and text were taken before the page was idle, or that reached `browser.page-time`.
    pub cut_by_time: u64,
    /// Of these, other pages on which a behaviour reached `browser.page-steps`.
    pub cut_by_steps: u64,
    /// Of these, other pages with requests beyond `browser.page-requests`, or with URIs that are too long.
    pub cut_by_requests: u64,
    /// Of these, pages that crashed, stopped responding or exceeded `browser.memory` after their links had been taken.
    pub cut_by_crash: u64,
    /// Pages that were to be rendered and were not.
    pub not_rendered: u64,
    /// These pages by reason.
    pub not_rendered_by: NotRenderedPages,
    /// Crashes of browsers and of pages, including hangs and pages beyond the limit of memory.
    pub crashes: u64,
    /// Time for which pages occupied a browser, in seconds. It is added when the browser is free again.
    pub rendering_s: f64,
    /// Requests of pages, without that for the page itself.
    pub requests: u64,
    /// Requests that were not refused, by outcome.
    pub requests_by: PageRequestEnds,
    /// Requests that were refused by scope, robots.txt, filters, quotas, addresses or the limit of the page, and WebSockets.
    pub refused: u64,
    /// These requests by the rule that refused them.
    pub refused_by: PageRequestRefusals,
}

/// Pages that were to be rendered and were not, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NotRenderedPages {
    /// There is no Chromium, it does not start, or it crashed or hung with two browsers.
    pub browser: u64,
    /// The browser showed no page: a download or a failed load.
    pub no_page: u64,
    /// The page exceeded `browser.memory`.
    pub memory: u64,
    /// The page's own process crashed.
    pub page_crashed: u64,
    /// A script kept the page busy.
    pub unresponsive: u64,
    /// Its links and text could not be taken in time.
    pub time: u64,
}

/// Requests of pages that were not refused, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PageRequestEnds {
    /// The response is archived with its payload.
    pub archived: u64,
    /// The payload was stored before: the response is archived as a revisit record.
    pub duplicate: u64,
    /// Answered, and not archived: `HEAD` and `OPTIONS`.
    pub unarchived: u64,
    /// There is no response.
    pub failed: u64,
    /// The browser dropped the request before the response began.
    pub abandoned: u64,
}

/// Refused requests of pages, by the rule that refused them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PageRequestRefusals {
    /// Scope.
    pub scope: u64,
    /// robots.txt.
    pub robots: u64,
    /// Pre-fetch and mid-fetch filters.
    pub filters: u64,
    /// Quotas of the host, the domain or the seed, and limits of the crawl.
    pub quotas: u64,
    /// `fetch.allow-addresses` and `fetch.allow-ports`.
    pub addresses: u64,
    /// A prerequisite that was not available: an address, a robots.txt or a login.
    pub prerequisites: u64,
    /// `browser.page-requests`, and URIs of more than 16 KiB.
    pub page_requests: u64,
    /// WebSockets, which are always refused.
    pub web_sockets: u64,
}

/// Browser processes of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BrowserProcesses {
    /// Browsers that run now, including those without a page.
    pub running: u64,
    /// Browsers that were started.
    pub started: u64,
    /// Browsers that did not start.
    pub failed_starts: u64,
}

impl RenderFigures {
    /// Returns the pages that were to be rendered, by outcome. Each page is counted once.
    pub fn outcomes(&self) -> [(&'static str, u64); 11] {
        let not = &self.not_rendered_by;
        [
            ("complete", self.rendered.saturating_sub(self.cut_pages())),
            ("cut-by-time", self.cut_by_time),
            ("cut-by-steps", self.cut_by_steps),
            ("cut-by-requests", self.cut_by_requests),
            ("cut-by-crash", self.cut_by_crash),
            ("no-browser", not.browser),
            ("no-page", not.no_page),
            ("memory", not.memory),
            ("page-crashed", not.page_crashed),
            ("unresponsive", not.unresponsive),
            ("time", not.time),
        ]
    }

    /// Returns the number of pages that a browser showed, and that reached a limit or crashed.
    pub fn cut_pages(&self) -> u64 {
        self.cut_by_time + self.cut_by_steps + self.cut_by_requests + self.cut_by_crash
    }

    /// Returns the requests of pages by outcome. Requests in flight are not included.
    pub fn request_outcomes(&self) -> [(&'static str, u64); 6] {
        let ended = &self.requests_by;
        [
            ("archived", ended.archived),
            ("duplicate", ended.duplicate),
            ("unarchived", ended.unarchived),
            ("failed", ended.failed),
            ("abandoned", ended.abandoned),
            ("refused", self.refused),
        ]
    }

    /// Returns the counts of pages that were to be rendered, and of pages that reached a limit of time or memory or crashed. Pages
    /// without a browser are not counted here, because a missing browser has its own alert.
    pub(crate) fn rendered_pages(&self) -> RenderedPages {
        let not = &self.not_rendered_by;
        let shown = self.cut_by_time + self.cut_by_crash;
        let not_shown = not.memory + not.page_crashed + not.unresponsive + not.time;
        RenderedPages {
            all: self.rendered + self.not_rendered,
            cut: shown + not_shown,
        }
    }

    /// Counts a page that was not rendered, for the reason that `reason` selects.
    pub(crate) fn count_not_rendered(
        &mut self,
        reason: impl FnOnce(&mut NotRenderedPages) -> &mut u64,
    ) {
        self.not_rendered += 1;
        *reason(&mut self.not_rendered_by) += 1;
    }

    /// Counts a refused request, by the rule that `rule` selects.
    pub(crate) fn count_refused(
        &mut self,
        rule: impl FnOnce(&mut PageRequestRefusals) -> &mut u64,
    ) {
        self.refused += 1;
        *rule(&mut self.refused_by) += 1;
    }

    /// Counts a page that has been closed: its time, and requests beyond its limit, which were refused without a call of the
    /// fetcher.
    pub(crate) fn count_closed(&mut self, report: &PageReport) {
        self.rendering_s += report.duration.as_secs_f64();
        self.requests += report.requests_refused;
        self.refused += report.requests_refused;
        self.refused_by.page_requests += report.requests_refused;
    }
}

impl PageRequestRefusals {
    /// Returns each count with the name of its rule.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("scope", self.scope),
            ("robots", self.robots),
            ("filters", self.filters),
            ("quotas", self.quotas),
            ("addresses", self.addresses),
            ("prerequisites", self.prerequisites),
            ("page-requests", self.page_requests),
            ("web-sockets", self.web_sockets),
        ]
    }

    /// Returns the count of the rule that refused a request with this entry before its fetch.
    pub(crate) fn of_entry(&mut self, entry: &LogEntry) -> &mut u64 {
        let is_about_address = |it: &String| it == ROBOTS_ADDRESS_REFUSED;
        match entry.status {
            status::OUT_OF_SCOPE => &mut self.scope,
            status::ROBOTS => &mut self.robots,
            // The robots.txt is requested first, so refused addresses and ports mostly appear there.
            status::BLOCKED if entry.annotations.iter().any(is_about_address) => {
                &mut self.addresses
            }
            // After a plugin error of a filter, the request is refused.
            status::BLOCKED | status::BLOCKED_BY_CUSTOM_FILTER | status::RUNTIME => {
                &mut self.filters
            }
            status::QUOTA => &mut self.quotas,
            _ => &mut self.prerequisites,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_page_has_one_outcome() {
        let mut figures = RenderFigures {
            rendered: 9,
            cut_by_time: 1,
            cut_by_steps: 2,
            cut_by_requests: 1,
            cut_by_crash: 1,
            ..RenderFigures::default()
        };
        figures.count_not_rendered(|by| &mut by.memory);
        figures.count_not_rendered(|by| &mut by.browser);
        let outcomes = figures.outcomes();
        assert_eq!(outcomes[0], ("complete", 4));
        let all: u64 = outcomes.iter().map(|(_, count)| count).sum();
        assert_eq!(all, figures.rendered + figures.not_rendered);
        assert_eq!(figures.cut_pages(), 5);
        let expected = RenderedPages { all: 11, cut: 3 };
        assert_eq!(figures.rendered_pages(), expected);
    }

    #[test]
    fn refused_requests_are_counted_by_rule() {
        let mut figures = RenderFigures::default();
        for status in [
            status::OUT_OF_SCOPE,
            status::ROBOTS,
            status::BLOCKED,
            status::BLOCKED_BY_CUSTOM_FILTER,
            status::RUNTIME,
            status::QUOTA,
            status::ROBOTS_FAILED,
            status::PREREQUISITE_FAILED,
        ] {
            let entry = LogEntry::of(status, "some-filter:a reason".to_owned());
            figures.count_refused(|by| by.of_entry(&entry));
        }
        let of_robots = LogEntry::of(status::BLOCKED, ROBOTS_ADDRESS_REFUSED.to_owned());
        figures.count_refused(|by| by.of_entry(&of_robots));
        figures.count_closed(&PageReport {
            requests_refused: 3,
            duration: Duration::from_millis(1500),
            ..PageReport::default()
        });
        let expected = PageRequestRefusals {
            scope: 1,
            robots: 1,
            filters: 3,
            quotas: 1,
            addresses: 1,
            prerequisites: 2,
            page_requests: 3,
            ..PageRequestRefusals::default()
        };
        assert_eq!(figures.refused_by, expected);
        let named = figures.refused_by.named();
        let by_rule: u64 = named.iter().map(|(_, count)| count).sum();
        assert_eq!((figures.refused, by_rule), (12, 12));
        assert_eq!((figures.requests, figures.rendering_s), (3, 1.5));
    }
}
