//! The browsers of a crawl: found and started when the first page needs one.

use std::path::{Path, PathBuf};

use opilio_browser::{
    BrowserError, BrowserExecutable, BrowserPool, BrowserSettings, PageSettings, Viewport,
};
use opilio_profile::{Browser, Diagnostic, Profile};
use tokio::sync::OnceCell;

use crate::render_board::{BrowsersStatus, RenderBoard};
use crate::render_figures::BrowserProcesses;
use crate::rendered_captures::RenderedCaptures;

/// Name of the folder in a job that has the profiles of its browsers.
const FOLDER: &str = "browsers";

/// Maximum of actions on one page. The limits on steps of behaviours and on the page's time are reached earlier, unless the actions
/// take no time.
const ACTIONS_MAX: u32 = 10_000;

/// The browsers of a crawl.
pub(crate) struct Browsers {
    settings: BrowserSettings,
    folder: PathBuf,
    pool: OnceCell<BrowserPool>,
    /// Captures of requests of rendered pages.
    pub(crate) captures: RenderedCaptures,
    /// Pages that are being rendered, and counts.
    pub(crate) board: RenderBoard,
}

impl Browsers {
    /// Prepares the browsers of a job. No browser is started.
    pub(crate) fn new(profile: &Profile, job: &Path) -> Browsers {
        Browsers {
            settings: settings(profile),
            folder: job.join(FOLDER),
            pool: OnceCell::new(),
            captures: RenderedCaptures::default(),
            board: RenderBoard::default(),
        }
    }

    /// Returns the pool of browsers. An error is tried again with the next page.
    pub(crate) async fn pool(&self) -> Result<BrowserPool, BrowserError> {
        let open = || BrowserPool::new(self.settings.clone(), &self.folder);
        let pool = self.pool.get_or_try_init(open).await?;
        Ok(pool.clone())
    }

    /// Returns the pages that browsers have now, and counts; `None` if no page was to be rendered so far.
    pub(crate) fn status(&self) -> Option<BrowsersStatus> {
        let processes = self.pool.get().map(|pool| {
            let figures = pool.figures();
            BrowserProcesses {
                running: figures.running,
                started: figures.started,
                failed_starts: figures.failed_starts,
            }
        });
        self.board.status(processes.unwrap_or_default())
    }

    /// Ends all browsers, and removes their folder. No page is rendered afterwards.
    pub(crate) async fn close(&self) {
        let Some(pool) = self.pool.get() else {
            return;
        };
        pool.close().await;
        let refused = pool.figures().refused;
        if !refused.is_empty() {
            tracing::debug!(
                ?refused,
                "refused requests that browsers made by themselves"
            );
        }
        // The folder is empty, unless another program put files there.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Looks for Chromium if the profile enables rendering. The error names the setting that enables it. Blocks.
pub fn check_browser(profile: &Profile) -> Option<Diagnostic> {
    let pointer = profile.renders_by()?;
    let settings = settings(profile);
    let find = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build();
        let runtime = runtime.map_err(|problem| problem.to_string())?;
        let found = runtime.block_on(BrowserExecutable::find(&settings));
        found.map(drop).map_err(|problem| problem.to_string())
    };
    // A runtime cannot be started on a thread of another runtime.
    let found = std::thread::scope(|scope| scope.spawn(find).join());
    let problem = match found {
        Ok(found) => found.err()?,
        Err(_) => "the search for Chromium panicked".to_owned(),
    };
    let mut fault = profile.fault_at(&pointer, problem);
    let remedy = "install Chromium, set browser.executable, or set browser.render to \"never\"";
    fault.suggestion = Some(remedy.to_owned());
    Some(fault)
}

/// Returns the settings of a page. They may differ by site.
pub(crate) fn page_settings(browser: &Browser) -> PageSettings {
    PageSettings {
        memory_max: browser.memory.bytes(),
        page_time_max: browser.page_time,
        load_time_max: browser.load_time,
        requests_max: browser.page_requests,
        viewport: viewport(browser),
    }
}

fn viewport(browser: &Browser) -> Viewport {
    Viewport {
        width: browser.width,
        height: browser.height,
        scale: browser.device_scale,
    }
}

/// Returns the settings of the browsers of the job. Pages have separate settings.
fn settings(profile: &Profile) -> BrowserSettings {
    let browser = &profile.settings().browser;
    BrowserSettings {
        executable: browser.executable.clone(),
        sandbox: browser.sandbox,
        processes: browser.processes,
        memory_max: browser.memory.bytes(),
        page_time_max: browser.page_time,
        load_time_max: browser.load_time,
        steps_max: ACTIONS_MAX,
        requests_max: browser.page_requests,
        pages_max: browser.pages_per_process,
        viewport: viewport(browser),
        user_agent_suffix: suffix(&profile.user_agent),
        ..BrowserSettings::default()
    }
}

/// Returns the part of the user agent that names the crawler. It is appended to the user agent of Chromium.
fn suffix(user_agent: &str) -> String {
    let own = user_agent.strip_prefix("Mozilla/5.0").unwrap_or(user_agent);
    own.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_suffix_names_the_crawler_once() {
        let default = "Mozilla/5.0 (compatible; opilio/1.0 +https://a.org/)";
        assert_eq!(suffix(default), "(compatible; opilio/1.0 +https://a.org/)");
        assert_eq!(suffix("archive-bot/2"), "archive-bot/2");
    }
}
