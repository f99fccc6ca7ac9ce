//! Counts of rendered pages of the last minutes, for the alert about cut pages.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Minimum number of pages. The share of cut pages among fewer pages depends on chance. A page that reaches its limits takes more
/// than a minute.
const PAGES_MIN: u64 = 5;

/// Pages that were to be rendered since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderedPages {
    /// All of them.
    pub all: u64,
    /// Of these, pages that reached a limit of time or memory, or that crashed.
    pub cut: u64,
}

/// Counts with their times, back to the start of a window. Counts that have not changed are not repeated.
#[derive(Default)]
pub(super) struct RenderedWindow {
    counts: VecDeque<(Instant, RenderedPages)>,
    began: Option<Instant>,
}

impl RenderedPages {
    /// Returns the share of cut pages, in percent, and `true` if there were enough pages.
    pub(super) fn cut_percent(self) -> (f64, bool) {
        let percent = self.cut as f64 * 100.0 / self.all.max(1) as f64;
        (percent, self.all >= PAGES_MIN)
    }
}

impl RenderedWindow {
    /// Adds the counts of this moment. Returns those of the window, and `true` if a whole window has been observed.
    pub(super) fn look(
        &mut self,
        now: RenderedPages,
        at: Instant,
        window: Duration,
    ) -> (RenderedPages, bool) {
        let began = *self.began.get_or_insert(at);
        let is_past = |then: Instant| at.saturating_duration_since(then) >= window;
        if self.counts.back().is_none_or(|(_, last)| *last != now) {
            self.counts.push_back((at, now));
        }
        // The first count is the last one before the window.
        while self.counts.get(1).is_some_and(|(then, _)| is_past(*then)) {
            self.counts.pop_front();
        }
        let then = self.counts.front().map_or(now, |(_, then)| *then);
        let pages = RenderedPages {
            all: now.all.saturating_sub(then.all),
            cut: now.cut.saturating_sub(then.cut),
        };
        (pages, is_past(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_window_count() {
        let (mut window, began) = (RenderedWindow::default(), Instant::now());
        let mut look = |second, all, cut| {
            let at = began + Duration::from_secs(second);
            let (pages, is_whole) =
                window.look(RenderedPages { all, cut }, at, Duration::from_secs(60));
            (pages.all, pages.cut, is_whole)
        };
        assert_eq!(look(0, 0, 0), (0, 0, false));
        assert_eq!(look(10, 4, 4), (4, 4, false));
        assert_eq!(look(30, 10, 5), (10, 5, false));
        assert_eq!(look(60, 10, 5), (10, 5, true));
        assert_eq!(look(70, 12, 5), (8, 1, true));
        assert_eq!(look(90, 12, 5), (2, 0, true));
        assert_eq!(look(500, 12, 5), (0, 0, true));
    }

    #[test]
    fn a_share_of_few_pages_does_not_count() {
        assert_eq!(
            RenderedPages { all: 4, cut: 4 }.cut_percent(),
            (100.0, false)
        );
        assert_eq!(RenderedPages { all: 8, cut: 2 }.cut_percent(), (25.0, true));
        assert_eq!(RenderedPages::default().cut_percent(), (0.0, false));
    }
}
