//! A running browser: its process, its DevTools connection, and the proxy that refuses its own requests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::authority::JobAuthority;
use crate::devtools::{CommandFailure, DevTools};
use crate::error::BrowserError;
use crate::executable::{self, BrowserExecutable};
use crate::flags::CommandLine;
use crate::process::BrowserProcess;
use crate::proxy::RefusingProxy;
use crate::settings::BrowserSettings;

/// Time limit of the check whether a browser still answers.
const PING_TIME_MAX: Duration = Duration::from_secs(5);

/// Parts of Chromium's messages if its sandbox cannot be set up. They differ by the cause: the user, the kernel, a missing or
/// unprivileged setuid helper, or the system call filter of a container.
const SANDBOX_MESSAGES: [&str; 6] = [
    "without --no-sandbox",
    "No usable sandbox",
    "setuid sandbox",
    "SUID sandbox",
    "Failed to move to new namespace",
    "credentials.cc",
];

/// Prefix of profile folders.
pub(crate) const PROFILE_PREFIX: &str = "profile-";

/// A running browser that answers.
pub(crate) struct Browser {
    pub devtools: DevTools,
    process: BrowserProcess,
    proxy: RefusingProxy,
    /// Number of pages that the browser has had.
    pub pages: u32,
    /// Counts this browser as running.
    _running: Arc<()>,
}

impl Browser {
    /// Starts a browser with a fresh profile in `folder`, and waits until it answers. The browser has a clone of `running` until
    /// its end.
    pub(crate) async fn start(
        executable: &BrowserExecutable,
        settings: &BrowserSettings,
        folder: &Path,
        authority: &Arc<JobAuthority>,
        running: &Arc<()>,
    ) -> Result<Browser, BrowserError> {
        let profile = tempfile::Builder::new()
            .prefix(PROFILE_PREFIX)
            .tempdir_in(folder)
            .map_err(|source| BrowserError::Folder {
                folder: folder.to_owned(),
                source,
            })?;
        let proxy = RefusingProxy::open().await?;
        let profile_path = profile.path().to_owned();
        let line = CommandLine {
            settings,
            major: executable.major,
            profile: &profile_path,
            refusing_proxy: proxy.address(),
            authority_spki: authority.spki(),
        };
        let (process, devtools) = BrowserProcess::start(executable, profile, &line)?;
        let mut browser = Browser {
            devtools,
            process,
            proxy,
            pages: 0,
            _running: running.clone(),
        };
        let method = "Browser.getVersion";
        let answer = browser.devtools.call(None, method, json!({}));
        match tokio::time::timeout(settings.start_time_max, answer).await {
            Ok(Ok(_)) => {
                // Windows that pages open wait until the page's observer pauses their requests.
                let params = json!({
                    "autoAttach": true,
                    "waitForDebuggerOnStart": true,
                    "flatten": true,
                    "filter": [{"type": "page", "exclude": false}, {"exclude": true}],
                });
                let time_max = settings.command_time_max;
                browser
                    .call("Target.setAutoAttach", params, time_max)
                    .await?;
                Ok(browser)
            }
            Ok(Err(CommandFailure::Closed)) => {
                let error = browser.start_error(executable).await;
                browser.end().await;
                Err(error)
            }
            Ok(Err(CommandFailure::Refused(message))) => Err(BrowserError::Refused {
                method: method.to_owned(),
                message,
            }),
            Err(_) => {
                browser.end().await;
                Err(BrowserError::Hung {
                    during: "its start".to_owned(),
                    after: settings.start_time_max,
                })
            }
        }
    }

    async fn start_error(&mut self, executable: &BrowserExecutable) -> BrowserError {
        let path = match executable::existing_file(&executable.path) {
            Ok(path) => path,
            Err(missing) => return missing,
        };
        let status = self.process.status().await;
        let stderr = self.process.stderr();
        match SANDBOX_MESSAGES
            .iter()
            .any(|message| stderr.contains(message))
        {
            true => BrowserError::SandboxRefused { path, stderr },
            false => BrowserError::DoesNotStart {
                path,
                status,
                stderr,
            },
        }
    }

    /// Calls a command of the browser itself, with this time limit.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: Value,
        time_max: Duration,
    ) -> Result<Value, BrowserError> {
        let answer = self.devtools.call(None, method, params);
        match tokio::time::timeout(time_max, answer).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(CommandFailure::Refused(message))) => Err(BrowserError::Refused {
                method: method.to_owned(),
                message,
            }),
            Ok(Err(CommandFailure::Closed)) => Err(self.crash(method).await),
            Err(_) => Err(BrowserError::Hung {
                during: method.to_owned(),
                after: time_max,
            }),
        }
    }

    /// Returns the error of a browser that has closed its pipe.
    pub(crate) async fn crash(&mut self, during: &str) -> BrowserError {
        BrowserError::Crashed {
            during: during.to_owned(),
            status: self.process.status().await,
            stderr: self.process.stderr(),
        }
    }

    /// Returns `true` if the browser still answers.
    pub(crate) async fn answers(&self) -> bool {
        let answer = self.devtools.call(None, "Browser.getVersion", json!({}));
        matches!(tokio::time::timeout(PING_TIME_MAX, answer).await, Ok(Ok(_)))
    }

    /// Returns the ID of the browser's process group.
    pub(crate) fn group(&self) -> u32 {
        self.process.group()
    }

    /// Returns the refused requests of the browser itself.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.proxy.refused()
    }

    /// Kills the browser with all its processes, and removes its profile.
    pub(crate) async fn end(self) {
        self.process.end().await;
    }
}
