//! The board: pages that browsers have at this moment, with the counts of rendered pages. Console and metrics show them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::render_figures::{
    BrowserProcesses, PageRequestEnds, PageRequestRefusals, RenderFigures,
};

/// Maximum of pages that are listed. Further pages wait for a browser.
const PAGES_MAX: usize = 100;

/// Maximum of rendered pages that are listed.
const LAST_MAX: usize = 12;

/// Browsers of a running crawl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BrowsersStatus {
    /// Browser processes, since the process of the crawl began.
    pub processes: BrowserProcesses,
    /// Counts since the process of the crawl began.
    pub figures: RenderFigures,
    /// Number of all pages that have a browser or wait for one, by activity.
    pub activities: PagesByActivity,
    /// Pages that have a browser or wait for one, longest first; at most 100.
    pub pages: Vec<PageInBrowser>,
    /// URIs of the pages that were rendered last and whose pictures are archived, newest first; at most 12.
    #[serde(default)]
    pub last: Vec<String>,
}

/// Page that has a browser or waits for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PageInBrowser {
    /// The URI.
    pub uri: String,
    /// Time from which it has waited for a browser.
    pub since: Timestamp,
    /// Current activity.
    pub activity: PageActivity,
    /// Time at which the activity began; for a behaviour, at which it began its first step.
    pub activity_since: Timestamp,
    /// Name of the behaviour that operates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<String>,
    /// Number of the behaviour's current step, from 1 on; 0 without a behaviour.
    pub step: u32,
    /// Requests so far, without the request for the page itself.
    pub requests: u64,
    /// Of these, requests that were refused.
    pub refused: u64,
}

/// Activity of a page that is being rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageActivity {
    /// The page waits for a browser.
    Waiting,
    /// A browser loads it.
    Loading,
    /// A behaviour operates it.
    Behavior,
    /// Its links, text and pictures are taken.
    Extraction,
    /// The browser has finished, and the page's requests are being archived.
    Archiving,
}

/// Pages that have a browser or wait for one, by activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PagesByActivity {
    /// They wait for a browser.
    pub waiting: u64,
    /// A browser loads them.
    pub loading: u64,
    /// A behaviour operates them.
    pub behavior: u64,
    /// Their links, text and pictures are taken.
    pub extraction: u64,
    /// The browser has finished, and the pages' requests are being archived.
    pub archiving: u64,
}

/// The board of a crawl. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct RenderBoard(Arc<Mutex<Board>>);

#[derive(Default)]
struct Board {
    figures: RenderFigures,
    /// Pages in the order in which they were added.
    pages: BTreeMap<u64, PageInBrowser>,
    came: u64,
    /// URIs of the last rendered pages, the newest first.
    last: VecDeque<String>,
}

/// A page on the board. Dropping it removes the page.
pub(crate) struct PageOnBoard {
    board: RenderBoard,
    number: u64,
}

impl RenderBoard {
    /// Adds a page, which waits for a browser.
    pub(crate) fn add(&self, uri: &str) -> PageOnBoard {
        let now = Timestamp::now();
        let mut board = self.lock();
        board.came += 1;
        let number = board.came;
        let page = PageInBrowser {
            uri: uri.to_owned(),
            since: now,
            activity: PageActivity::Waiting,
            activity_since: now,
            behavior: None,
            step: 0,
            requests: 0,
            refused: 0,
        };
        board.pages.insert(number, page);
        PageOnBoard {
            board: self.clone(),
            number,
        }
    }

    /// Changes the counts.
    pub(crate) fn count(&self, change: impl FnOnce(&mut RenderFigures)) {
        change(&mut self.lock().figures);
    }

    /// Records that the records about a rendered page are archived.
    pub(crate) fn archived(&self, uri: &str) {
        let last = &mut self.lock().last;
        last.retain(|known| known != uri);
        last.push_front(uri.to_owned());
        last.truncate(LAST_MAX);
    }

    /// Returns the counts.
    pub(crate) fn figures(&self) -> RenderFigures {
        self.lock().figures
    }

    /// Returns the pages and counts, with the counts of browser processes; `None` if no page was to be rendered so far.
    pub(crate) fn status(&self, processes: BrowserProcesses) -> Option<BrowsersStatus> {
        let board = self.lock();
        if board.came == 0 {
            return None;
        }
        let mut activities = PagesByActivity::default();
        for page in board.pages.values() {
            activities.count(page.activity);
        }
        Some(BrowsersStatus {
            processes,
            figures: board.figures,
            activities,
            pages: board.pages.values().take(PAGES_MAX).cloned().collect(),
            last: board.last.iter().cloned().collect(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PagesByActivity {
    /// Returns each count with the name of its activity.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("waiting", self.waiting),
            ("loading", self.loading),
            ("behavior", self.behavior),
            ("extraction", self.extraction),
            ("archiving", self.archiving),
        ]
    }

    /// Counts a page with this activity.
    pub(crate) fn count(&mut self, activity: PageActivity) {
        let count = match activity {
            PageActivity::Waiting => &mut self.waiting,
            PageActivity::Loading => &mut self.loading,
            PageActivity::Behavior => &mut self.behavior,
            PageActivity::Extraction => &mut self.extraction,
            PageActivity::Archiving => &mut self.archiving,
        };
        *count += 1;
    }
}

impl PageOnBoard {
    /// Records that the page begins with this activity.
    pub(crate) fn begins(&self, activity: PageActivity) {
        self.change(|page, _| {
            page.activity = activity;
            page.activity_since = Timestamp::now();
            page.behavior = None;
            page.step = 0;
        });
    }

    /// Records that a behaviour makes its next step. Step numbers begin with 1.
    pub(crate) fn step(&self, behavior: &str, step: u32) {
        if step == 1 {
            self.begins(PageActivity::Behavior);
        }
        self.change(|page, _| {
            page.behavior = Some(behavior.to_owned());
            page.step = step;
        });
    }

    /// Counts a request of the page.
    pub(crate) fn requested(&self) {
        self.change(|page, figures| {
            page.requests += 1;
            figures.requests += 1;
        });
    }

    /// Counts a request of the page that was refused by the rule that `rule` selects.
    pub(crate) fn refused(&self, rule: impl FnOnce(&mut PageRequestRefusals) -> &mut u64) {
        self.change(|page, figures| {
            page.refused += 1;
            figures.count_refused(rule);
        });
    }

    /// Counts a finished request of the page, with the outcome that `end` selects.
    pub(crate) fn ended(&self, end: impl FnOnce(&mut PageRequestEnds) -> &mut u64) {
        self.change(|_, figures| *end(&mut figures.requests_by) += 1);
    }

    fn change(&self, change: impl FnOnce(&mut PageInBrowser, &mut RenderFigures)) {
        let mut board = self.board.lock();
        let Board { figures, pages, .. } = &mut *board;
        if let Some(page) = pages.get_mut(&self.number) {
            change(page, figures);
        }
    }
}

impl Drop for PageOnBoard {
    fn drop(&mut self) {
        self.board.lock().pages.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_on_the_board_while_it_is_rendered_and_is_counted_afterwards() {
        let board = RenderBoard::default();
        let status = || board.status(BrowserProcesses::default());
        assert_eq!(status(), None);
        let first = board.add("http://a.org/");
        let second = board.add("http://b.org/");
        second.begins(PageActivity::Loading);
        second.requested();
        second.requested();
        second.refused(|by| &mut by.robots);
        second.ended(|by| &mut by.archived);
        second.step("autoscroll", 1);
        second.step("autoscroll", 2);
        let BrowsersStatus {
            pages, activities, ..
        } = status().unwrap();
        assert_eq!((activities.waiting, activities.behavior), (1, 1));
        let uris: Vec<&str> = pages.iter().map(|page| page.uri.as_str()).collect();
        assert_eq!(uris, ["http://a.org/", "http://b.org/"]);
        assert_eq!(pages[0].activity, PageActivity::Waiting);
        let page = &pages[1];
        assert_eq!(page.activity, PageActivity::Behavior);
        assert_eq!(page.behavior.as_deref(), Some("autoscroll"));
        assert_eq!((page.step, page.requests, page.refused), (2, 2, 1));
        second.begins(PageActivity::Extraction);
        let page = &status().unwrap().pages[1];
        assert_eq!((&page.behavior, page.step), (&None, 0));
        drop((first, second));
        let BrowsersStatus { pages, figures, .. } = status().unwrap();
        assert_eq!(pages, []);
        for uri in ["http://a.org/", "http://b.org/", "http://a.org/"] {
            board.archived(uri);
        }
        assert_eq!(status().unwrap().last, ["http://a.org/", "http://b.org/"]);
        assert_eq!((figures.requests, figures.requests_by.archived), (2, 1));
        assert_eq!((figures.refused, figures.refused_by.robots), (1, 1));
    }
}
