//! The Chromium of this machine, in a pool for one test.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use opilio_browser::{BrowserError, BrowserPool, BrowserSettings};
use tempfile::TempDir;

/// Environment variable with which a missing Chromium fails the tests. CI sets it.
const REQUIRED: &str = "OPILIO_TEST_CHROMIUM";

/// A pool with the folder of its profiles.
pub(crate) struct TestPool {
    pub(crate) pool: BrowserPool,
    pub(crate) folder: TempDir,
}

/// Settings for tests: time limits for a busy machine, and no sandbox for root, because Chromium does not support it.
pub(crate) fn settings() -> BrowserSettings {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    BrowserSettings {
        sandbox: !is_root,
        idle_time: Duration::from_secs(1),
        page_time_max: Duration::from_secs(600),
        load_time_max: Duration::from_secs(120),
        start_time_max: Duration::from_secs(120),
        command_time_max: Duration::from_secs(120),
        ..BrowserSettings::default()
    }
}

impl TestPool {
    /// Creates a pool with changed settings; `None` if Chromium is missing.
    pub(crate) async fn with(change: impl FnOnce(&mut BrowserSettings)) -> Option<TestPool> {
        let mut settings = settings();
        change(&mut settings);
        let folder = TempDir::new().expect("a folder");
        match BrowserPool::new(settings, folder.path()).await {
            Ok(pool) => Some(TestPool { pool, folder }),
            Err(BrowserError::NotFound { looked }) if std::env::var_os(REQUIRED).is_none() => {
                #[expect(
                    clippy::print_stderr,
                    reason = "the reason for skipped tests must be shown"
                )]
                {
                    eprintln!("SKIPPED: no Chromium ({looked}); {REQUIRED}=1 makes this a failure");
                }
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Ends the browsers, and checks that they sent no requests of their own and left no files.
    pub(crate) async fn close(self) {
        self.pool.close().await;
        assert_eq!(self.pool.figures().refused, Vec::<String>::new());
        let left = std::fs::read_dir(self.folder.path()).expect("the folder is ours");
        let left: Vec<_> = left.flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
