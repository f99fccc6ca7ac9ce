//! One page in a fresh browser context: load it, observe it, act on it, read its content.

mod actions;
mod extraction;
mod memory;
mod observer;
mod scripts;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

pub use actions::{ActionResult, PageAction, PageView, ScrollTarget};
pub use extraction::{PageContent, RenderedLink, ScreenshotArea};

use crate::devtools::{CommandFailure, DevTools};
use crate::error::{BrowserError, PageCut, PageError};
use crate::page_fetcher::PageFetcher;
use crate::pool::{BrowserLease, BrowserPool};
use crate::proxy::PageProxy;
use crate::settings::{BrowserSettings, PageSettings};
use crate::traffic::{PageResource, PageTraffic};

use memory::MemoryWatch;
use observer::{Observer, auto_attach};

/// Time limit of a command after a script that kept the page busy was stopped.
const SECOND_CHANCE: Duration = Duration::from_secs(3);

/// Time limit of extraction, after the page's own time.
const EXTRACTION_TIME_MAX: Duration = Duration::from_secs(30);

/// Time limit for closing a page. After it, the browser is ended.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// An open page. [`Self::close`] returns its browser to the pool. If it is dropped without, its browser is ended.
pub struct PageSession {
    /// `None` after the browser was returned.
    lease: Option<BrowserLease>,
    devtools: DevTools,
    context: String,
    session: String,
    observer: Observer,
    observing: JoinHandle<()>,
    memory: MemoryWatch,
    traffic: PageTraffic,
    /// `None` after the page's network was closed.
    proxy: Option<PageProxy>,
    settings: BrowserSettings,
    opened: Instant,
    /// End of the time for the current phase.
    deadline: Instant,
    steps: u32,
    /// The limit that ended the page's own time. Extraction is still possible.
    reached: Option<PageCut>,
    /// `true` if the browser can have another page.
    is_usable: bool,
}

/// Result of loading a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadResult {
    /// The load event has fired, and the network became idle.
    Idle,
    /// The time limit of loading was reached first. The page may be incomplete.
    NotIdle,
    /// The URI is a file to download, so there is no page.
    Download,
    /// There is no page, for this reason: in most cases the browser's name of the error, such as `net::ERR_EMPTY_RESPONSE`.
    Failed(String),
}

/// Report on a page after its end, as listed in `urn:pageinfo:` records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageReport {
    /// URI of the last document.
    pub uri: String,
    /// All requests, in the order in which they began.
    pub resources: Vec<PageResource>,
    /// Number of failed requests beyond `requests_max`, or with a URI of more than 16 KiB.
    pub requests_refused: u64,
    /// URIs of windows that the page tried to open.
    pub pop_ups: Vec<String>,
    /// URIs of files that the page tried to download.
    pub downloads: Vec<String>,
    /// URIs of documents to which the page tried to navigate.
    pub departures: Vec<String>,
    /// Number of dismissed dialogs.
    pub dialogs: u32,
    /// Number of actions that were carried out.
    pub steps: u32,
    /// Maximum memory of the browser with all its processes, in bytes, without mapped files.
    pub memory_peak: u64,
    /// Time since the page was opened.
    pub duration: Duration,
    /// The limit that ended the page.
    pub cut: Option<PageCut>,
}

impl PageSession {
    /// Opens an empty page whose requests go to `fetcher`. Waits until a browser of the pool is free.
    ///
    /// # Errors
    /// The browser does not start, or fails.
    pub async fn open(
        pool: &BrowserPool,
        fetcher: Arc<dyn PageFetcher>,
    ) -> Result<PageSession, BrowserError> {
        Self::open_with(pool, fetcher, None).await
    }

    /// Opens an empty page as [`PageSession::open`] does, with these settings instead of those of the pool.
    ///
    /// # Errors
    /// The browser does not start, or fails.
    pub async fn open_for(
        pool: &BrowserPool,
        fetcher: Arc<dyn PageFetcher>,
        page: PageSettings,
    ) -> Result<PageSession, BrowserError> {
        Self::open_with(pool, fetcher, Some(page)).await
    }

    async fn open_with(
        pool: &BrowserPool,
        fetcher: Arc<dyn PageFetcher>,
        page: Option<PageSettings>,
    ) -> Result<PageSession, BrowserError> {
        let mut lease = pool.lease().await?;
        let of_pool = &lease.pool.settings;
        let settings = match page {
            Some(page) => of_pool.of_page(page),
            None => of_pool.clone(),
        };
        match Self::set_up(&mut lease, fetcher, settings).await {
            Ok(parts) => Ok(parts.into_session(lease)),
            Err(error) => {
                lease.fail().await;
                Err(error)
            }
        }
    }

    async fn set_up(
        lease: &mut BrowserLease,
        fetcher: Arc<dyn PageFetcher>,
        settings: BrowserSettings,
    ) -> Result<Parts, BrowserError> {
        let (pool, browser) = (lease.pool.clone(), &mut lease.browser);
        // The page starts in a new process, as in a new browser.
        let time_max = settings.start_time_max;
        let events = browser.devtools.observe();
        let traffic = PageTraffic::new(settings.requests_max);
        let proxy = PageProxy::open(fetcher, pool.authority.clone(), traffic.clone()).await?;
        let method = "Target.createBrowserContext";
        let params = json!({
            "disposeOnDetach": true,
            "proxyServer": format!("http://{}", proxy.address()),
            "proxyBypassList": "<-loopback>",
        });
        let answer = browser.call(method, params, time_max).await?;
        let context = field(method, &answer, "browserContextId")?;
        let params =
            json!({"behavior": "deny", "browserContextId": context, "eventsEnabled": true});
        browser
            .call("Browser.setDownloadBehavior", params, time_max)
            .await?;
        let method = "Target.createTarget";
        let params = json!({"url": "about:blank", "browserContextId": context});
        let answer = browser.call(method, params, time_max).await?;
        let target = field(method, &answer, "targetId")?;
        let method = "Target.attachToTarget";
        let params = json!({"targetId": target, "flatten": true});
        let answer = browser.call(method, params, time_max).await?;
        let session = field(method, &answer, "sessionId")?;
        let observer = Observer::new(&session, &target);
        let observing = tokio::spawn(observer.clone().observe(browser.devtools.clone(), events));
        let group = browser.group();
        let memory = MemoryWatch::start(group, settings.memory_max, observer.clone());
        Ok(Parts {
            context,
            session,
            observer,
            observing,
            memory,
            traffic,
            proxy,
            settings,
        })
    }

    /// Loads a URI of scheme `http` or `https`, and waits for its load event and an idle network.
    ///
    /// # Errors
    /// The page reached a limit, or the browser failed.
    pub async fn load(&mut self, uri: &str) -> Result<LoadResult, PageError> {
        if !uri.starts_with("http://") && !uri.starts_with("https://") {
            return Ok(LoadResult::Failed(format!(
                "{uri} is not a page of http or https"
            )));
        }
        self.prepare().await?;
        let load_end = Instant::now() + self.settings.load_time_max;
        let page_end = self.deadline;
        self.deadline = load_end.min(page_end);
        let loaded = self.load_until_idle(uri).await;
        self.deadline = page_end;
        match loaded {
            Err(PageError::Cut(PageCut::Time)) if Instant::now() < page_end => {
                Ok(LoadResult::NotIdle)
            }
            other => other,
        }
    }

    /// Configures the page before its first document.
    async fn prepare(&mut self) -> Result<(), PageError> {
        let viewport = self.settings.viewport;
        let documents = json!({"patterns": [{"resourceType": "Document"}]});
        let metrics = json!({
            "width": viewport.width,
            "height": viewport.height,
            "deviceScaleFactor": viewport.scale,
            "mobile": false,
        });
        let commands = [
            ("Page.enable", json!({})),
            ("Inspector.enable", json!({})),
            ("Fetch.enable", documents),
            ("Target.setAutoAttach", auto_attach()),
            ("Emulation.setDeviceMetricsOverride", metrics),
            (
                "Emulation.setFocusEmulationEnabled",
                json!({"enabled": true}),
            ),
        ];
        let session = self.session.clone();
        for (method, params) in commands {
            self.call(&session, method, params).await?;
        }
        Ok(())
    }

    async fn load_until_idle(&mut self, uri: &str) -> Result<LoadResult, PageError> {
        let session = self.session.clone();
        let params = json!({"url": uri});
        // A slow server may delay the navigation up to the time limit of loading.
        let answer = self.call_until(&session, "Page.navigate", params, self.deadline);
        let answer = answer.await?;
        if let Some(error) = answer["errorText"].as_str().filter(|it| !it.is_empty()) {
            let error = error.to_owned();
            if is_proxy_problem(&error) {
                return Err(BrowserError::ProxyNotUsed { error }.into());
            }
            return Ok(match answer["isDownload"] == true {
                true => {
                    self.observer.facts().note_download();
                    LoadResult::Download
                }
                false => LoadResult::Failed(error),
            });
        }
        let (observer, traffic) = (self.observer.clone(), self.traffic.clone());
        let idle_time = self.settings.idle_time;
        // A page that reloads has to become idle again.
        let idle = async {
            loop {
                observer.until(|facts| facts.is_loaded.then_some(())).await;
                traffic.idle(idle_time).await;
                if observer.facts().is_loaded {
                    return;
                }
            }
        };
        self.wait(idle, self.deadline).await?;
        Ok(LoadResult::Idle)
    }

    /// Waits for an event of the page, at most until `end`.
    async fn wait<T>(
        &mut self,
        event: impl Future<Output = T>,
        end: Instant,
    ) -> Result<T, PageError> {
        let observer = self.observer.clone();
        let closed = self.devtools.clone();
        let waited = tokio::select! {
            biased;
            cut = observer.until(|facts| facts.cut) => return Err(self.cut_page(cut)),
            () = closed.closed() => None,
            waited = timeout_at(end, event) => Some(waited),
        };
        match waited {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) => Err(self.timeout_error()),
            None => Err(self.crash("a wait").await),
        }
    }

    /// Calls a command in a session of the page.
    async fn call(
        &mut self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, PageError> {
        let end = Instant::now() + self.settings.command_time_max;
        self.call_until(session, method, params, end).await
    }

    /// Calls a command in a session of the page, which may take until `end`.
    async fn call_until(
        &mut self,
        session: &str,
        method: &str,
        params: Value,
        end: Instant,
    ) -> Result<Value, PageError> {
        if self.deadline <= Instant::now() {
            return Err(self.timeout_error());
        }
        let end = end.min(self.deadline);
        let (devtools, observer) = (self.devtools.clone(), self.observer.clone());
        let mut answer = std::pin::pin!(devtools.call(Some(session), method, params));
        let answered = tokio::select! {
            biased;
            cut = observer.until(|facts| facts.cut) => return Err(self.cut_page(cut)),
            answered = timeout_at(end, &mut answer) => answered,
        };
        let answered = match answered {
            Ok(answered) => answered,
            Err(_) => {
                // An endless script may keep the page busy.
                devtools.send(Some(session), "Runtime.terminateExecution", json!({}));
                match timeout(SECOND_CHANCE, &mut answer).await {
                    Ok(answered) if Instant::now() < self.deadline => answered,
                    Ok(_) => return Err(self.timeout_error()),
                    Err(_) => return Err(self.unanswered(method).await),
                }
            }
        };
        match answered {
            Ok(value) => Ok(value),
            Err(CommandFailure::Refused(message)) => {
                let method = method.to_owned();
                Err(BrowserError::Refused { method, message }.into())
            }
            Err(CommandFailure::Closed) => Err(self.crash(method).await),
        }
    }

    /// Returns the error of a command without an answer.
    async fn unanswered(&mut self, method: &str) -> PageError {
        if self.deadline <= Instant::now() {
            return self.timeout_error();
        }
        let answers = match &self.lease {
            Some(lease) => lease.browser.answers().await,
            None => false,
        };
        if answers {
            return self.cut_page(PageCut::Unresponsive);
        }
        self.is_usable = false;
        PageError::Browser(BrowserError::Hung {
            during: method.to_owned(),
            after: self.settings.command_time_max,
        })
    }

    /// Returns the error of a browser that has ended: the limit of its page, or a crash.
    async fn crash(&mut self, during: &str) -> PageError {
        self.is_usable = false;
        let cut = self.observer.facts().cut;
        if let Some(cut) = cut {
            return PageError::Cut(cut);
        }
        match &mut self.lease {
            Some(lease) => PageError::Browser(lease.browser.crash(during).await),
            None => PageError::Browser(BrowserError::Closed),
        }
    }

    /// Returns the error of a wait that has timed out. It is recorded as a limit of the page only if the page's own time is over.
    fn timeout_error(&mut self) -> PageError {
        match self.opened.elapsed() >= self.settings.page_time_max {
            true => self.record_limit(PageCut::Time),
            false => PageError::Cut(PageCut::Time),
        }
    }

    /// Records a limit that ends the page's own time.
    fn record_limit(&mut self, cut: PageCut) -> PageError {
        self.reached.get_or_insert(cut);
        PageError::Cut(cut)
    }

    /// Ends the page for this reason. Its browser is not used for other pages afterwards.
    fn cut_page(&mut self, cut: PageCut) -> PageError {
        self.is_usable = false;
        self.observer.cut(cut);
        PageError::Cut(cut)
    }

    /// Ends the page's own time, and begins the time for extraction.
    fn begin_extraction(&mut self) {
        self.deadline = Instant::now() + EXTRACTION_TIME_MAX;
    }

    /// Returns the time until the page is cut.
    pub fn time_left(&self) -> Duration {
        let used = self.opened.elapsed();
        self.settings.page_time_max.saturating_sub(used)
    }

    /// Returns the number of the page's requests in flight.
    pub fn requests_in_flight(&self) -> usize {
        self.traffic.in_flight()
    }

    /// Closes the page with its cookies and storage, and returns its browser to the pool.
    pub async fn close(mut self) -> PageReport {
        let report = self.report();
        // Paused requests end with the page.
        self.proxy = None;
        self.observing.abort();
        self.memory.stop();
        let Some(mut lease) = self.lease.take() else {
            return report;
        };
        let params = json!({"browserContextId": self.context});
        let is_disposed = self.is_usable
            && lease
                .browser
                .call("Target.disposeBrowserContext", params, CLOSE_TIME_MAX)
                .await
                .is_ok();
        match is_disposed {
            true => lease.give_back().await,
            false => lease.fail().await,
        }
        report
    }

    fn report(&self) -> PageReport {
        let facts = self.observer.facts();
        PageReport {
            uri: facts.uri.clone(),
            resources: self.traffic.resources(),
            requests_refused: self.traffic.refused(),
            pop_ups: facts.pop_ups.clone(),
            downloads: facts.downloads.clone(),
            departures: facts.departures.clone(),
            dialogs: facts.dialogs,
            steps: self.steps,
            memory_peak: self.memory.peak(),
            duration: self.opened.elapsed(),
            cut: facts.cut.or(self.reached),
        }
    }
}

impl Drop for PageSession {
    fn drop(&mut self) {
        self.observing.abort();
        self.memory.stop();
    }
}

/// The parts of a page session besides its browser.
struct Parts {
    context: String,
    session: String,
    observer: Observer,
    observing: JoinHandle<()>,
    memory: MemoryWatch,
    traffic: PageTraffic,
    proxy: PageProxy,
    settings: BrowserSettings,
}

impl Parts {
    fn into_session(self, lease: BrowserLease) -> PageSession {
        let opened = Instant::now();
        PageSession {
            devtools: lease.browser.devtools.clone(),
            lease: Some(lease),
            context: self.context,
            session: self.session,
            observer: self.observer,
            observing: self.observing,
            memory: self.memory,
            traffic: self.traffic,
            proxy: Some(self.proxy),
            opened,
            deadline: opened + self.settings.page_time_max,
            settings: self.settings,
            steps: 0,
            reached: None,
            is_usable: true,
        }
    }
}

/// Returns `true` if an error of the browser is about the recording proxy or its certificates, not about the site. Certificates of
/// the site are checked by the fetcher.
fn is_proxy_problem(error: &str) -> bool {
    let about_proxy = [
        "net::ERR_CERT_",
        "net::ERR_PROXY_",
        "net::ERR_NAME_NOT_RESOLVED",
    ];
    about_proxy.iter().any(|prefix| error.starts_with(prefix))
}

/// Returns a text field of a command's answer.
fn field(method: &str, answer: &Value, field: &str) -> Result<String, BrowserError> {
    let text = answer[field].as_str();
    text.map(str::to_owned).ok_or_else(|| BrowserError::Answer {
        method: method.to_owned(),
        field: field.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_proxy_are_distinguished_from_errors_of_sites() {
        assert!(is_proxy_problem("net::ERR_CERT_AUTHORITY_INVALID"));
        assert!(is_proxy_problem("net::ERR_PROXY_CONNECTION_FAILED"));
        assert!(!is_proxy_problem("net::ERR_EMPTY_RESPONSE"));
    }
}
