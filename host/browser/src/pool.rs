//! The browsers of one job. Each has one page at a time, so that its memory, crashes and requests can be attributed to the page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::authority::JobAuthority;
use crate::browser::{Browser, PROFILE_PREFIX};
use crate::error::BrowserError;
use crate::executable::BrowserExecutable;
use crate::settings::BrowserSettings;

/// Maximum refused requests of all browsers that are kept.
const REFUSED_MAX: usize = 1000;

/// Starts browsers when pages need them, and reuses them. Cheap to clone; clones share the browsers.
#[derive(Clone)]
pub struct BrowserPool {
    shared: Arc<PoolShared>,
}

/// Counts of a pool since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// Number of running browser processes, including those without a page.
    pub running: u64,
    /// Number of browser processes that were started.
    pub started: u64,
    /// Number of browser processes that failed to start.
    pub failed_starts: u64,
    /// Number of pages that were opened.
    pub pages: u64,
    /// Number of browsers that ended by themselves, hung, or were killed because of their page.
    pub failed: u64,
    /// Refused requests of the browsers themselves, not of pages: method and target.
    pub refused: Vec<String>,
}

pub(crate) struct PoolShared {
    pub settings: BrowserSettings,
    pub authority: Arc<JobAuthority>,
    executable: BrowserExecutable,
    folder: PathBuf,
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Browser>>,
    /// Each running browser has a clone.
    running: Arc<()>,
    started: AtomicU64,
    failed_starts: AtomicU64,
    pages: AtomicU64,
    failed: AtomicU64,
    refused: Mutex<Vec<String>>,
}

/// A browser with the right to use it.
pub(crate) struct BrowserLease {
    pub browser: Browser,
    pub pool: Arc<PoolShared>,
    _slot: OwnedSemaphorePermit,
}

impl BrowserPool {
    /// Finds Chromium, checks its version, and creates the job's certificate authority. Starts no browser yet. `folder` is for the
    /// browsers' profiles and is used by this pool only; profiles that a killed process left there are removed.
    ///
    /// # Errors
    /// Chromium is missing or too old, or the folder cannot be used.
    pub async fn new(
        settings: BrowserSettings,
        folder: impl Into<PathBuf>,
    ) -> Result<BrowserPool, BrowserError> {
        let executable = BrowserExecutable::find(&settings).await?;
        let folder = folder.into();
        // The path is made absolute, because browsers run in their profile folders.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        remove_profiles(&folder).map_err(|source| BrowserError::Folder {
            folder: folder.clone(),
            source,
        })?;
        Ok(BrowserPool {
            shared: Arc::new(PoolShared {
                authority: Arc::new(JobAuthority::create()?),
                executable,
                folder,
                slots: Arc::new(Semaphore::new(settings.processes.max(1))),
                idle: Mutex::default(),
                running: Arc::new(()),
                started: AtomicU64::new(0),
                failed_starts: AtomicU64::new(0),
                pages: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                refused: Mutex::default(),
                settings,
            }),
        })
    }

    /// Returns the Chromium of this pool.
    pub fn executable(&self) -> &BrowserExecutable {
        &self.shared.executable
    }

    /// Waits for a free browser, and starts one if none is running.
    pub(crate) async fn lease(&self) -> Result<BrowserLease, BrowserError> {
        let lease = self.shared.lease().await?;
        self.shared.pages.fetch_add(1, Ordering::Relaxed);
        Ok(lease)
    }

    /// Counts since the start.
    pub fn figures(&self) -> PoolFigures {
        let shared = &self.shared;
        let mut refused = lock(&shared.refused).clone();
        refused.extend(lock(&shared.idle).iter().flat_map(Browser::refused));
        PoolFigures {
            // One of the clones belongs to the pool.
            running: Arc::strong_count(&shared.running) as u64 - 1,
            started: shared.started.load(Ordering::Relaxed),
            failed_starts: shared.failed_starts.load(Ordering::Relaxed),
            pages: shared.pages.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
            refused,
        }
    }

    /// Ends all browsers. Opens no further pages, and waits for open ones.
    pub async fn close(&self) {
        let all = u32::try_from(self.shared.settings.processes.max(1)).unwrap_or(u32::MAX);
        let all = self.shared.slots.acquire_many(all).await;
        self.shared.slots.close();
        drop(all);
        let browsers = std::mem::take(&mut *lock(&self.shared.idle));
        for browser in browsers {
            self.shared.retire(browser).await;
        }
    }
}

impl PoolShared {
    async fn lease(self: &Arc<Self>) -> Result<BrowserLease, BrowserError> {
        let slot = self.slots.clone().acquire_owned().await;
        let slot = slot.map_err(|_| BrowserError::Closed)?;
        loop {
            let idle = lock(&self.idle).pop();
            let mut browser = match idle {
                Some(browser) if browser.devtools.is_closed() => {
                    self.fail(browser).await;
                    continue;
                }
                Some(browser) => browser,
                None => {
                    let start = Browser::start(
                        &self.executable,
                        &self.settings,
                        &self.folder,
                        &self.authority,
                        &self.running,
                    );
                    let started = start.await;
                    let count = match &started {
                        Ok(_) => &self.started,
                        Err(_) => &self.failed_starts,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    started?
                }
            };
            browser.pages += 1;
            return Ok(BrowserLease {
                browser,
                pool: self.clone(),
                _slot: slot,
            });
        }
    }

    /// Ends a browser that failed.
    async fn fail(&self, browser: Browser) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.retire(browser).await;
    }

    async fn retire(&self, browser: Browser) {
        {
            let mut refused = lock(&self.refused);
            let room = REFUSED_MAX.saturating_sub(refused.len());
            refused.extend(browser.refused().into_iter().take(room));
        }
        browser.end().await;
    }
}

impl BrowserLease {
    /// Returns a browser to the pool after its page was closed.
    pub(crate) async fn give_back(self) {
        match self.browser.pages >= self.pool.settings.pages_max {
            true => self.pool.retire(self.browser).await,
            false => lock(&self.pool.idle).push(self.browser),
        }
    }

    /// Ends a browser that failed.
    pub(crate) async fn fail(self) {
        self.pool.fail(self.browser).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the folder of profiles, or removes those that are left in it.
fn remove_profiles(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(PROFILE_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
