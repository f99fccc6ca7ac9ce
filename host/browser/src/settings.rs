//! Settings of the browsers of a job, as checked values.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`BrowserPool`](crate::BrowserPool).
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserSettings {
    /// Path of Chromium. `None`: the first of [`EXECUTABLES`](crate::EXECUTABLES) in `PATH`.
    pub executable: Option<PathBuf>,
    /// `true` if Chromium isolates its renderers with its own sandbox. Set it to `false` only if the machine allows no sandbox and
    /// the crawl is isolated in another way, such as a container.
    pub sandbox: bool,
    /// Maximum browser processes, each with one page at a time. Further pages wait.
    pub processes: usize,
    /// Maximum bytes of memory of one browser with all its processes. A page that exceeds it is cut, and its browser is replaced.
    pub memory_max: u64,
    /// Time limit of one page, from its navigation to its last action. A page that reaches it is cut. Extraction follows after it.
    pub page_time_max: Duration,
    /// Time limit of loading: until the load event and an idle network. A page that reaches it continues, marked as not idle.
    pub load_time_max: Duration,
    /// Time without a request in flight after which the network counts as idle.
    pub idle_time: Duration,
    /// Maximum actions on one page. A further action is refused, and the page is cut.
    pub steps_max: u32,
    /// Maximum requests of one page. Further requests fail in the browser, and the page is marked.
    pub requests_max: usize,
    /// Number of pages after which a browser is replaced by a new process.
    pub pages_max: u32,
    /// Time limit of a browser's start, and of each step of opening a page. After it, the browser counts as hung.
    pub start_time_max: Duration,
    /// Time limit of one DevTools command. After it, Opilio checks whether the browser still answers.
    pub command_time_max: Duration,
    /// Size of the page's window.
    pub viewport: Viewport,
    /// Text appended to Chromium's own user agent, such as a name with a contact address. Empty: nothing.
    pub user_agent_suffix: String,
    /// Preferred languages, such as `de-DE,de`. Empty: those of Chromium.
    pub languages: String,
    /// Maximum bytes of a page's visible text. Longer text is cut.
    pub text_bytes_max: usize,
    /// Maximum characters of a document that is compared with another visit. Longer documents are not compared.
    pub document_characters_max: usize,
}

/// Settings of one page that replace those of its pool, for instance for one site.
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
    /// Returns these settings with the replacements of a page.
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
            // A large page takes 500 MB to 1 GB. An endless page would use all memory.
            memory_max: 2 * 1024 * 1024 * 1024,
            page_time_max: Duration::from_secs(90),
            load_time_max: Duration::from_secs(30),
            // As Puppeteer and Playwright define an idle network.
            idle_time: Duration::from_millis(500),
            steps_max: 100,
            requests_max: 2000,
            // Chromium's memory grows slowly from page to page.
            pages_max: 100,
            start_time_max: Duration::from_secs(30),
            command_time_max: Duration::from_secs(15),
            viewport: Viewport::default(),
            user_agent_suffix: String::new(),
            languages: String::new(),
            text_bytes_max: 1024 * 1024,
            // Without scripts and styles, few pages have more. The document is in memory until the page is archived.
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
