//! Findings, and the needs against which the machine is judged.

use opilio_console::DaemonConfig;
use opilio_profile::Profile;

/// Files that the frontier's store keeps open at most (fjall).
const STORE_FILES: u64 = 900;
/// Connections that wait for the next request to their server, at most.
const IDLE_CONNECTIONS: u64 = 256;
/// Files of one fetch: its connection, and two spool files.
const FILES_OF_FETCH: u64 = 3;
/// Logs, sockets, libraries and components.
const OTHER_FILES: u64 = 100;
/// Memory of a crawl besides that of its limits: frontier, compiled plugins, links.
const OTHER_MEMORY: u64 = 256 << 20;

/// The needs of concurrent crawls with one profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Crawls at the same time.
    pub(super) crawls: u64,
    /// Open files of a crawl: the least with which it works, and the most that it uses.
    pub(super) open_files: (u64, u64),
    /// Memory of a crawl.
    pub(super) memory: u64,
    /// Free space below which crawls pause or do not start.
    pub(super) disk_pause: u64,
    /// Free space below which a crawl raises an alert.
    pub(super) disk_warn: u64,
}

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// A crawl works, but something is missing, or soon will be.
    Warning,
    /// A crawl or the daemon does not work.
    Error,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) state: State,
    pub(super) found: String,
    pub(super) remedy: Option<String>,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Error => "error",
        }
    }
}

impl Needs {
    pub(super) fn of(profile: &Profile, config: &DaemonConfig, crawls: usize) -> Needs {
        let fetches = (profile.workers + profile.settings().fetch.slow_fetches) as u64;
        let least = profile.workers as u64 * FILES_OF_FETCH + OTHER_FILES;
        let most = fetches * FILES_OF_FETCH + IDLE_CONNECTIONS + STORE_FILES + OTHER_FILES;
        let size = |size: Option<opilio_profile::ByteSize>| size.map_or(0, |size| size.bytes());
        let pause = size(profile.alerts.disk_pause).max(config.limits.disk_free.unwrap_or(0));
        Needs {
            crawls: crawls as u64,
            open_files: (least, most),
            memory: profile.limits.memory.bytes() + profile.frontier.cache.bytes() + OTHER_MEMORY,
            disk_pause: pause,
            disk_warn: size(profile.alerts.disk_warn).max(pause),
        }
    }
}

/// Returns a finding without a remedy.
pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        check,
        state: State::Ok,
        found: found.into(),
        remedy: None,
    }
}

/// Returns a finding whose remedy is recommended. A crawl works without it.
pub(super) fn warning(
    check: &'static str,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        check,
        state: State::Warning,
        found: found.into(),
        remedy: Some(remedy.into()),
    }
}

/// Returns a finding whose remedy a crawl or the daemon needs.
pub(super) fn error(
    check: &'static str,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        state: State::Error,
        ..warning(check, found, remedy)
    }
}

/// Returns the subject of a sentence about the needs of all concurrent crawls.
pub(super) fn crawls(needs: &Needs) -> String {
    match needs.crawls {
        1 => "a crawl may".to_owned(),
        count => format!("{count} concurrent crawls may"),
    }
}
