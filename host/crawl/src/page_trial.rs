//! Trial of a page behaviour on a page in a browser, without a crawl. Nothing is archived. `opilio plugin run --page` uses it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_browser::{
    BrowserError, BrowserPool, BrowserSettings, FetchFuture, FetchRejection, LoadResult, PageBody,
    PageError, PageFetcher, PageSession,
};
use opilio_fetch::robots::Robots;
use opilio_fetch::{
    AddressPolicy, Exchange, Fetcher, FetcherBuildError, FetcherConfig, HeadVerdict, Request,
    ResponseHead,
};
use opilio_sandbox::{BehaviorResult, Candidate, Fault, LoadedPage, Plugin, StepPlan, Visit};
use opilio_stacks::{chain, on_plugin_thread};
use opilio_uri::Uri;
use tokio::sync::{Mutex, OnceCell};

use crate::behavior_steps::BehaviorSteps;
use crate::visit::{PageRequest, RequestMemory, plain_response};

/// Maximum bytes of one response. The rest of a larger response is dropped.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Settings of a trial.
#[derive(Clone, Debug)]
pub struct PageTrialSettings {
    /// User agent of requests for robots.txt. For other requests, a suffix with the crawler's name is added to Chromium's user
    /// agent.
    pub user_agent: String,
    /// Path of Chromium; `None`: it is searched in `PATH`.
    pub chromium: Option<PathBuf>,
    /// `true` if Chromium isolates pages with its own sandbox.
    pub sandbox: bool,
    /// `true` if this machine and private networks may be accessed.
    pub private: bool,
    /// Time for the page.
    pub page_time: Duration,
    /// Steps of the behaviour.
    pub page_steps: u32,
}

/// The reason why a trial cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageTrialError {
    /// The fetcher cannot be built.
    #[error(transparent)]
    Fetcher(#[from] FetcherBuildError),
    /// A folder for temporary files cannot be created.
    #[error("cannot create a temporary directory")]
    Folder(#[source] std::io::Error),
    /// No thread could be started for the behaviour, or the thread panicked.
    #[error("the behaviour cannot be called: {0}")]
    Thread(String),
    /// No browser is available, or the browser failed.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// The page reached a limit.
    #[error(transparent)]
    Page(PageError),
    /// The URI is not a page that a browser can show.
    #[error("the browser shows no page for {uri}: {reason}")]
    NoPage {
        /// The URI.
        uri: String,
        /// The reason, in most cases by the browser's own name.
        reason: String,
    },
}

impl From<PageError> for PageTrialError {
    fn from(error: PageError) -> PageTrialError {
        match error {
            PageError::Browser(error) => PageTrialError::Browser(error),
            error => PageTrialError::Page(error),
        }
    }
}

/// A loaded page, and the progress of a behaviour on it.
pub struct PageTrial {
    pool: BrowserPool,
    session: PageSession,
    steps: BehaviorSteps,
    visit: Visit,
    network: Arc<TrialNetwork>,
    /// Folder for temporary files, which is removed when the trial is dropped.
    _folder: tempfile::TempDir,
}

/// One step of a trial.
pub struct TrialStep {
    /// The page as the behaviour saw it.
    pub seen: LoadedPage,
    /// The behaviour's plan.
    pub plan: StepPlan,
    /// The results of the plan's actions; fewer than actions if the page reached a limit.
    pub results: Vec<BehaviorResult>,
    /// The limit that the page reached, if any.
    pub cut: Option<PageError>,
}

impl PageTrial {
    /// Loads a page.
    ///
    /// # Errors
    /// There is no browser, or it cannot show the page.
    pub async fn open(
        uri: &Uri,
        settings: &PageTrialSettings,
    ) -> Result<PageTrial, PageTrialError> {
        let folder = tempfile::tempdir().map_err(PageTrialError::Folder)?;
        let mut config = FetcherConfig::new(settings.user_agent.as_str(), folder.path());
        if settings.private {
            config.addresses = AddressPolicy {
                metadata: false,
                ..AddressPolicy::ALL
            };
        }
        config.body_bytes_max = Some(BODY_BYTES_MAX);
        let network = Arc::new(TrialNetwork {
            fetcher: Fetcher::new(config)?,
            user_agent: settings.user_agent.clone(),
            robots: Mutex::default(),
            refused: std::sync::Mutex::default(),
            room: RequestMemory::default(),
        });
        let browser = BrowserSettings {
            executable: settings.chromium.clone(),
            sandbox: settings.sandbox,
            page_time_max: settings.page_time,
            load_time_max: BrowserSettings::default()
                .load_time_max
                .min(settings.page_time),
            steps_max: u32::MAX,
            user_agent_suffix: settings.user_agent.clone(),
            ..BrowserSettings::default()
        };
        let pool = BrowserPool::new(browser, folder.path().join("browsers")).await?;
        let mut session = PageSession::open(&pool, network.clone()).await?;
        match session.load(uri.as_str()).await? {
            LoadResult::Idle | LoadResult::NotIdle => {}
            LoadResult::Download => return Err(no_page(uri, "it is a file to download", &network)),
            LoadResult::Failed(reason) => return Err(no_page(uri, &reason, &network)),
        }
        let candidate = Candidate::seed(uri.as_str().to_owned(), uri.surt());
        Ok(PageTrial {
            pool,
            session,
            steps: BehaviorSteps::new(settings.page_steps, true),
            visit: Visit::of(candidate, Timestamp::now()),
            network,
            _folder: folder,
        })
    }

    /// Makes the next step of a behaviour; `None` if it has finished or has no step left. The inner error is a plugin error of its
    /// call.
    ///
    /// # Errors
    /// The page or the browser has crashed or was closed.
    pub async fn step(
        &mut self,
        plugin: &Plugin,
    ) -> Result<Option<Result<TrialStep, Fault>>, PageTrialError> {
        if !self.steps.may_continue() {
            return Ok(None);
        }
        let seen = self.steps.view_page(&mut self.session).await?;
        let (behavior, visit) = (plugin.clone(), self.visit.clone());
        let memory = self.steps.memory().to_vec();
        let page = seen.clone();
        let step = move || behavior.step(&page, &visit, &memory);
        let planned = on_plugin_thread("behaviour", step);
        let plan = match planned.map_err(PageTrialError::Thread)? {
            Ok(plan) => plan,
            Err(fault) => return Ok(Some(Err(fault))),
        };
        let done = self.steps.carry_out(&mut self.session, plan.clone()).await;
        let cut = match done {
            Ok(()) => None,
            Err(cut @ PageError::Cut(_)) => Some(cut),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Ok(TrialStep {
            seen,
            plan,
            results: self.steps.results().to_vec(),
            cut,
        })))
    }

    /// Returns `true` if the behaviour has finished.
    pub fn has_finished(&self) -> bool {
        self.steps.has_finished()
    }

    /// Returns requests that were refused or failed, with the reasons.
    pub fn refused(&self) -> Vec<String> {
        self.network.refused()
    }

    /// Closes the page and the browser.
    pub async fn close(self) {
        self.session.close().await;
        self.pool.close().await;
    }
}

fn no_page(uri: &Uri, reason: &str, network: &TrialNetwork) -> PageTrialError {
    // The browser reports only that the network failed, so the reason is taken from the request.
    let refused = network.refused();
    let reason = refused.first().map_or(reason, String::as_str);
    PageTrialError::NoPage {
        uri: uri.as_str().to_owned(),
        reason: reason.to_owned(),
    }
}

/// The network of the page. It obeys the robots.txt of every server.
struct TrialNetwork {
    fetcher: Fetcher,
    user_agent: String,
    robots: Mutex<HashMap<String, Arc<OnceCell<Arc<Robots>>>>>,
    refused: std::sync::Mutex<Vec<String>>,
    room: RequestMemory,
}

impl PageFetcher for TrialNetwork {
    fn fetch(&self, request: http::Request<PageBody>) -> FetchFuture<'_, http::Response<PageBody>> {
        Box::pin(async move {
            let uri = request.uri().to_string();
            let answer = self.answer(request).await;
            if let Err(rejection) = &answer {
                let mut refused = self.lock_refused();
                refused.push(format!("{uri}: {rejection}"));
            }
            answer
        })
    }
}

impl TrialNetwork {
    async fn answer(
        &self,
        request: http::Request<PageBody>,
    ) -> Result<http::Response<PageBody>, FetchRejection> {
        let request = PageRequest::read(request, &self.room).await?;
        if let Some(robots_txt) = request.uri.robots_txt() {
            let robots = self.robots(&robots_txt).await?;
            if !robots
                .verdict(&self.user_agent, request.uri.path_and_query())
                .is_allowed()
            {
                return Err(FetchRejection::refused(format!(
                    "forbidden by {robots_txt}"
                )));
            }
        }
        let server_request = Request::new(request.uri.clone(), Vec::new());
        let exchange = self.exchange(request.for_server(server_request)).await?;
        plain_response(&exchange)
    }

    /// Returns the rules of a server. They are fetched once.
    async fn robots(&self, robots_txt: &Uri) -> Result<Arc<Robots>, FetchRejection> {
        let cell = {
            let mut known = self.robots.lock().await;
            known
                .entry(robots_txt.as_str().to_owned())
                .or_default()
                .clone()
        };
        let fetch = || async {
            let request = Request::new(robots_txt.clone(), Vec::new());
            let exchange = self.exchange(request).await?;
            let body = exchange.content(BODY_BYTES_MAX).content;
            let robots = Robots::from_response(exchange.status(), &body);
            Ok::<_, FetchRejection>(Arc::new(robots))
        };
        cell.get_or_try_init(fetch).await.cloned()
    }

    /// Makes an exchange. An exchange without a response is a rejection.
    async fn exchange(&self, request: Request) -> Result<Exchange, FetchRejection> {
        let uri = request.uri.clone();
        let host = uri.host().unwrap_or_default();
        let found = self.fetcher.resolve(host, Timestamp::now()).await;
        let found = found.map_err(|problem| FetchRejection::failed(chain(&problem)))?;
        let request = Request {
            addresses: found.addresses,
            ..request
        };
        let exchange = self
            .fetcher
            .http(request, async |_: &ResponseHead| HeadVerdict::Continue)
            .await;
        match (&exchange.failure, &exchange.head) {
            (Some(failure), None) => Err(FetchRejection::failed(chain(failure))),
            _ => Ok(exchange),
        }
    }

    fn refused(&self) -> Vec<String> {
        self.lock_refused().clone()
    }

    fn lock_refused(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
