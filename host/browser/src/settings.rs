//! Settings of the browsers of a job: checked values, not what an operator writes.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`BrowserPool`](crate::BrowserPool).
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserSettings {
    /// Path of Chromium. `None`: the first of [`EXECUTABLES`](crate::EXECUTABLES) in `PATH`.
    pub executable: Option<PathBuf>,
    /// `true` if Chromium isolates its renderers with its own sandbox. Off only where the machine allows no sandbox and something
    /// else isolates the crawl, such as a container.
    pub sandbox: bool,
    /// Browser processes, each with one page at a time. More pages wait.
    pub processes: usize,
    /// Bytes of memory of one browser with all its processes. A page that passes it is cut, and its browser is replaced.
    pub memory_max: u64,
    /// Time for one page, from its navigation to its last action. A page that passes it is cut. Extraction comes after it.
    pub page_time_max: Duration,
    /// Time for loading: until the load event and an idle network. A page that passes it goes on, marked as not idle.
    pub load_time_max: Duration,
    /// Time without a request in flight after which the network counts as idle.
    pub idle_time: Duration,
    /// Actions on one page. The action past it is refused, and the page is cut.
    pub steps_max: u32,
    /// Requests of one page. Requests past it fail in the browser, and the page is marked.
    pub requests_max: usize,
    /// Pages after which a browser is replaced by a new process.
    pub pages_max: u32,
    /// Time for a browser to start, and for each step of opening a page. Afterwards it counts as hung.
    pub start_time_max: Duration,
    /// Time for one DevTools command. Afterwards the browser is asked whether it still answers.
    pub command_time_max: Duration,
    /// Size of the page's window.
    pub viewport: Viewport,
    /// Text appended to Chromium's own user agent, such as a name with a contact address. Empty: nothing.
    pub user_agent_suffix: String,
    /// Preferred languages, such as `de-DE,de`. Empty: those of Chromium.
    pub languages: String,
    /// Maximum bytes of a page's visible text. Longer text is cut.
    pub text_bytes_max: usize,
    /// Maximum characters of the document that is compared with that of another visit. A longer one is not given.
    pub document_characters_max: usize,
}

/// Settings of one page in place of those of its pool: a site may have its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSettings {
    /// In place of [`BrowserSettings::memory_max`].
    pub memory_max: u64,
    /// In place of [`BrowserSettings::page_time_max`].
    pub page_time_max: Duration,
    /// In place of [`BrowserSettings::load_time_max`].
    pub load_time_max: Duration,
    /// In place of [`BrowserSettings::requests_max`].
    pub requests_max: usize,
    /// In place of [`BrowserSettings::viewport`].
    pub viewport: Viewport,
}

impl BrowserSettings {
    /// Returns these settings with those of a page.
    pub(crate) fn of_page(&self, page: PageSettings) -> BrowserSettings {
        let PageSettings {
            memory_max,
            page_time_max,
            load_time_max,
            requests_max,
            viewport,
        } = page;
        BrowserSettings {
            memory_max,
            page_time_max,
            load_time_max,
            requests_max,
            viewport,
            ..self.clone()
        }
    }
}

/// Size of a page's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Device pixels per CSS pixel.
    pub scale: f64,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        BrowserSettings {
            executable: None,
            sandbox: true,
            processes: 1,
            // A large page takes 500 MB to 1 GB; a page without end would take all there is.
            memory_max: 2 * 1024 * 1024 * 1024,
            page_time_max: Duration::from_secs(90),
            load_time_max: Duration::from_secs(30),
            // As Puppeteer and Playwright define an idle network.
            idle_time: Duration::from_millis(500),
            steps_max: 100,
            requests_max: 2000,
            // Chromium's memory grows slowly over its pages.
            pages_max: 100,
            start_time_max: Duration::from_secs(30),
            command_time_max: Duration::from_secs(15),
            viewport: Viewport::default(),
            user_agent_suffix: String::new(),
            languages: String::new(),
            text_bytes_max: 1024 * 1024,
            // Few pages have more without their scripts and styles. It is held in memory until the page is archived.
            document_characters_max: 2 * 1024 * 1024,
        }
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Viewport {
            width: 1280,
            height: 800,
            scale: 1.0,
        }
    }
}
