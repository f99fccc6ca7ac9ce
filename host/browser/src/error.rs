//! Errors of browsers, with the place, and with the remedy if there is one for operators.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// Reason for which a browser cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Chromium was not found. Remedy: install it, or correct the setting.
    #[error(
        "no Chromium found ({looked}): install it, for example `apt-get install chromium`, or set its path (executable)"
    )]
    NotFound {
        /// The places that were searched.
        looked: String,
    },
    /// The file is not Chromium, or libraries are missing.
    #[error(
        "{path}: `--version` names no version of Chromium ({answer}): install the libraries that it misses, \
         or set the path of Chromium (executable)"
    )]
    NotChromium {
        /// The executable.
        path: PathBuf,
        /// Its output or its exit status.
        answer: String,
    },
    /// Chromium is too old. Remedy: install a newer version.
    #[error("{path} is version {version}; install {version_min} or later")]
    TooOld {
        /// The executable.
        path: PathBuf,
        /// Version as reported by Chromium.
        version: String,
        /// Oldest supported major version.
        version_min: u32,
    },
    /// Chromium does not start. Its messages may have the cause, such as a missing library.
    #[error(
        "{path} does not start ({status}): {stderr}; install the libraries that it misses, \
         and try `{path} --headless --dump-dom about:blank`"
    )]
    DoesNotStart {
        /// The executable.
        path: PathBuf,
        /// Exit status, or the reason for which the system could not start it.
        status: String,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The sandbox cannot be set up. Remedy: run the crawl as another user, allow user namespaces, or switch the sandbox off.
    #[error(
        "{path} refuses to run with its sandbox: run the crawl as a user other than root and allow user namespaces, \
         or set sandbox = false where a container isolates the crawl; its output: {stderr}"
    )]
    SandboxRefused {
        /// The executable.
        path: PathBuf,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The browser ended unexpectedly. The visit may be repeated with another browser.
    #[error(
        "the browser crashed during {during} ({status}): {stderr}; if many pages have this, look at the memory of the machine \
         and the limit of processes, or lower the number of browsers (processes)"
    )]
    Crashed {
        /// The DevTools command or the wait that it interrupted.
        during: String,
        /// Its exit status.
        status: String,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The browser does not answer, and is ended. The visit may be repeated with another browser.
    #[error(
        "the browser gave no answer to {during} after {after:?}; if many pages have this, lower the number of browsers (processes)"
    )]
    Hung {
        /// The DevTools command.
        during: String,
        /// The time limit.
        after: Duration,
    },
    /// The browser refuses a command that tested versions accept. Remedy: try another version.
    #[error(
        "the browser refuses {method}: {message}; if all pages have this, try another version of Chromium"
    )]
    Refused {
        /// The DevTools command.
        method: String,
        /// The browser's answer.
        message: String,
    },
    /// The answer to a command lacks a field. Remedy: try another version.
    #[error(
        "the browser's answer to {method} has no {field}; if all pages have this, try another version of Chromium"
    )]
    Answer {
        /// The DevTools command.
        method: String,
        /// Path of the field.
        field: String,
    },
    /// The folder of profiles cannot be used. Remedy: free disk space, or make the folder writable.
    #[error(
        "folder of browser profiles {folder} cannot be used: make room on its disk, or let the user of the crawl write to it"
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No port on loopback could be opened. Remedy: raise the limit of open files, or widen the range of ports.
    #[error(
        "no port on 127.0.0.1 for the recording proxy: look at the limit of open files (`ulimit -n`) and at \
         net.ipv4.ip_local_port_range"
    )]
    ProxyPort {
        /// The cause.
        source: io::Error,
    },
    /// The browser refuses the recording proxy or its certificates, for instance because of a policy of the machine.
    #[error(
        "the browser does not use the recording proxy ({error}): \
         look for policies of proxies and certificates in /etc/chromium/policies and /etc/opt/chrome/policies"
    )]
    ProxyNotUsed {
        /// The browser's own name of the error.
        error: String,
    },
    /// The certificate authority of the job could not be created.
    #[error("no certificate authority for the recording proxy: {reason}")]
    Authority {
        /// The cause.
        reason: String,
    },
    /// The pool was closed.
    #[error("the browsers of this crawl have been closed")]
    Closed,
}

/// Reason for which an operation on a page failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The page reached a limit. This is an outcome of the page, to be recorded.
    #[error("page cut: {0}")]
    Cut(PageCut),
    /// The browser failed. The visit may be repeated.
    #[error(transparent)]
    Browser(#[from] BrowserError),
}

/// The limit that a page reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum PageCut {
    /// `page_time_max` was reached.
    #[error("time limit reached")]
    Time,
    /// `memory_max` was exceeded. The browser was killed.
    #[error("memory limit reached")]
    Memory,
    /// `steps_max` was reached.
    #[error("limit of actions reached")]
    Steps,
    /// The page's process crashed, often for lack of memory.
    #[error("its process crashed")]
    Crashed,
    /// A script keeps the page busy, so that it does not answer.
    #[error("it does not answer")]
    Unresponsive,
}
