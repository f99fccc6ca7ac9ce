//! Browser settings: which pages are rendered in Chromium, and the limits of the browsers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, MEMORY_MAX, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// Rendering of pages in Chromium: which pages, what is archived of them, and the limits of the browsers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct BrowserFile {
    /// HTML pages that are rendered in a browser after their fetch. Overrides may set it for the sites that need it.
    /// Default `"never"`: a rendered page takes seconds of a processor, a plain one milliseconds.
    pub render: Render,

    /// Path of Chromium. No default: the first of `chromium`, `chromium-browser` and `google-chrome` in `PATH`.
    #[schemars(extend("examples" = ["/usr/bin/chromium"]))]
    pub executable: Option<String>,

    /// `true` if Chromium isolates pages with its own sandbox, which needs a user other than root and user namespaces.
    /// Default `true`: without it, a page that breaks out of its process has the rights of the crawl. Set `false` only in a
    /// container.
    pub sandbox: bool,

    /// Browsers at the same time, each with one page. Further pages wait. Default `1`: a browser takes up to one processor and
    /// 1 GB of memory.
    #[schemars(range(min = 1, max = 64))]
    pub processes: u32,

    /// Memory of one browser with all its processes. A page beyond it is cut. Default `"2GiB"`: large pages take up to 1 GB.
    pub memory: SizeWritten,

    /// Time for one page. A page beyond it is cut, and what it shows is kept. Default `"90s"`: few pages are still busy then.
    pub page_time: DurationWritten,

    /// Time for a page to load and to end its requests. It continues as it is after that. Default `"30s"`: pages that never end
    /// their requests are common, and show everything after some seconds.
    pub load_time: DurationWritten,

    /// Steps of each page behaviour on one page. A behaviour beyond it is ended, and the page is kept as it is. Default `100`: the
    /// shipped behaviours end themselves before that on most pages.
    #[schemars(range(min = 1, max = 10_000))]
    pub page_steps: u32,

    /// Requests of one page. Further ones fail in the page. Default `2000`: the largest pages of news sites make some hundred.
    #[schemars(range(min = 1, max = 100_000))]
    pub page_requests: u32,

    /// Requests of one page to one server at the same time. Default `6`: as many connections as browsers open.
    #[schemars(range(min = 1, max = 100))]
    pub requests_per_server: u32,

    /// Pages after which a browser is replaced by a new process. Default `100`: the memory of browsers grows slowly.
    #[schemars(range(min = 1, max = 100_000))]
    pub pages_per_process: u32,

    /// Width of the window in CSS pixels. Default `1280`: pages show the layout of desktops.
    #[schemars(range(min = 100, max = 10_000))]
    pub width: u32,

    /// Height of the window in CSS pixels. Default `800`: together with the width a common window.
    #[schemars(range(min = 100, max = 10_000))]
    pub height: u32,

    /// Device pixels for each CSS pixel, which decides between the images of a `srcset`. Default `1.0`: the smallest images.
    #[schemars(range(min = 0.5, max = 4.0))]
    pub device_scale: f64,

    /// `true` if a picture of the window (`urn:view:`) and a small one (`urn:thumbnail:`) are archived of each rendered page.
    /// Default `true`: they show what the page looked like, whatever replay makes of it.
    pub screenshots: bool,

    /// `true` if the visible text (`urn:text:`) is archived of each rendered page. Default `true`: full-text search reads it.
    pub text: bool,
}

/// Selection of the pages that are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Render {
    /// None.
    #[default]
    Never,
    /// Every HTML page that comes with status 200 and that filters of the stack `render` accept.
    Auto,
    /// Every HTML page that comes with status 200.
    Always,
}

/// Rendering of pages in Chromium.
#[derive(Debug, Clone, PartialEq)]
pub struct Browser {
    /// Selects the pages that are rendered.
    pub render: Render,
    /// Path of Chromium; `None`: it is looked for in `PATH`.
    pub executable: Option<PathBuf>,
    /// `true` if Chromium isolates pages with its own sandbox.
    pub sandbox: bool,
    /// Browsers at the same time; at least 1.
    pub processes: usize,
    /// Memory of one browser. A page beyond it is cut.
    pub memory: ByteSize,
    /// Time for one page. A page beyond it is cut.
    pub page_time: Duration,
    /// Time for loading; at most `page_time`.
    pub load_time: Duration,
    /// Steps of each behaviour on one page; at least 1.
    pub page_steps: u32,
    /// Requests of one page. Further ones fail in the page.
    pub page_requests: usize,
    /// Requests of one page to one server at the same time; at least 1. Further ones wait.
    pub requests_per_server: usize,
    /// Pages after which a browser is replaced.
    pub pages_per_process: u32,
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Height of the window in CSS pixels.
    pub height: u32,
    /// Device pixels for each CSS pixel.
    pub device_scale: f64,
    /// `true` if pictures of pages are archived.
    pub screenshots: bool,
    /// `true` if the text of pages is archived.
    pub text: bool,
}

impl Default for BrowserFile {
    fn default() -> Self {
        Self {
            render: Render::Never,
            executable: None,
            sandbox: true,
            processes: 1,
            memory: "2GiB".into(),
            page_time: "90s".into(),
            load_time: "30s".into(),
            page_steps: 100,
            page_requests: 2000,
            requests_per_server: 6,
            pages_per_process: 100,
            width: 1280,
            height: 800,
            device_scale: 1.0,
            screenshots: true,
            text: true,
        }
    }
}

impl BrowserFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>, folder: &Path) -> Browser {
        if self.executable.as_deref() == Some("") {
            let problem = "an empty path".to_owned();
            let remedy = "write the path of Chromium, or leave the key out";
            part.refuse("executable", problem, remedy);
        }
        Browser {
            render: self.render,
            executable: self.executable.as_ref().map(|path| folder.join(path)),
            sandbox: self.sandbox,
            processes: self.processes as usize,
            memory: part.positive_memory_size("memory", &self.memory, MEMORY_MAX),
            page_time: part.positive_duration("page-time", &self.page_time),
            load_time: part.positive_duration("load-time", &self.load_time),
            page_steps: self.page_steps,
            page_requests: self.page_requests as usize,
            requests_per_server: self.requests_per_server as usize,
            pages_per_process: self.pages_per_process,
            width: self.width,
            height: self.height,
            device_scale: self.device_scale,
            screenshots: self.screenshots,
            text: self.text,
        }
    }
}
