//! Commands to a job, and the identity of the sender.

mod selection;

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use opilio_frontier::QueueState;
use opilio_profile::MatchFile;
use opilio_uri::{Uri, UriError};
use serde::{Deserialize, Serialize};

pub use selection::{HostSelection, HostSort, UriSelection};

use super::{ControlError, ErrorKind};
use opilio_job::alerts::AlertKind;
use opilio_job::share::Share;

/// One line of the control socket: a command and its sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// Sender of the command.
    #[serde(default)]
    pub by: Author,
    /// Command to carry out.
    pub command: Command,
    /// `true` if the command acts on this directory alone, even if several nodes share the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_here: bool,
}

/// Sender of a command, as reported by the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// User name; empty if unknown.
    #[serde(default)]
    pub user: String,
    /// Process ID of the sender; 0 if unknown.
    #[serde(default)]
    pub pid: u32,
}

/// Query or action that an operator requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Reports the state of the job.
    Status,
    /// Returns the time series of the crawl: its counters at moments since it began.
    Series {
        /// Earliest moment to return. None: the earliest one that is kept.
        #[serde(default)]
        since: Option<Timestamp>,
        /// Maximum number of moments. None: 300.
        #[serde(default)]
        points: Option<u64>,
    },
    /// Returns the amounts that the job has fetched, by status, media type and host.
    Breakdown,
    /// Lists hosts with their counts.
    Hosts {
        /// Hosts to list, and their order.
        #[serde(default)]
        which: HostSelection,
        /// Cursor after which the list begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Maximum number of hosts.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Returns a report.
    Report {
        /// Report to make.
        report: ReportKind,
        /// `true` if the report is text. Otherwise it is facts and rows.
        #[serde(default)]
        text: bool,
    },
    /// Returns the active alerts, and recent alerts that were cleared.
    Alerts,
    /// Acknowledges an active alert.
    Acknowledge {
        /// Kind of the alert.
        kind: AlertKind,
        /// Subject of the alert. None: all alerts of that kind.
        #[serde(default)]
        subject: Option<String>,
    },
    /// Continues every log in a new file.
    RotateLogs,
    /// Pauses the crawl: issues no new URIs; fetches in flight finish.
    Pause,
    /// Resumes a paused crawl.
    Resume,
    /// Stops politely, as the first Ctrl-C does.
    Stop,
    /// Stops politely on behalf of the system: the supervisor restarts the job.
    Terminate,
    /// Sets the crawl's share of the bandwidth and connections of the machine's crawls. Applies while this process runs.
    Share {
        /// Share from now on.
        share: Share,
    },
    /// Makes a checkpoint: a copy of the job's state.
    Checkpoint {
        /// Directory of the checkpoint; by default a new one below `checkpoints/` in the job.
        #[serde(default)]
        to: Option<PathBuf>,
    },
    /// Returns the statistics of the crawl.
    Statistics,
    /// Returns a report on each plugin's calls.
    Plugins,
    /// Returns the reports of observers.
    Observe {
        /// Name of one observer. None: all observers.
        #[serde(default)]
        observer: Option<String>,
    },
    /// Returns the tables of plugins.
    Tables {
        /// `true` if the files of the tables are read again first.
        #[serde(default)]
        reload: bool,
    },
    /// Replaces the component of a plugin.
    ReplacePlugin {
        /// The plugin's name in the profile.
        plugin: String,
        /// Component, as profiles name it; a path is absolute.
        component: String,
        /// Expected digest of the component file, in hexadecimal.
        #[serde(default)]
        sha256: Option<String>,
        /// Settings that replace the present ones.
        #[serde(default)]
        settings: Option<serde_json::Value>,
    },
    /// Lists queues by name.
    Queues {
        /// State of the queues to list. None: every state.
        #[serde(default)]
        state: Option<QueueState>,
        /// Order of the list. Every order except by name reads all queues and gives one page.
        #[serde(default)]
        sort: QueueSort,
        /// Name after which the list begins.
        #[serde(default)]
        after: Option<String>,
        /// Maximum number of queues.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Returns all facts about one queue.
    Queue {
        /// Name of the queue.
        queue: String,
    },
    /// Lists the URIs of a queue in the order in which they are due to be issued.
    Uris {
        /// Name of the queue.
        queue: String,
        /// Cursor after which the list begins.
        #[serde(default)]
        after: Option<String>,
        /// Maximum number of URIs.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Lists URIs.
    List {
        /// URIs to list.
        #[serde(default)]
        which: UriSelection,
        /// Cursor after which the list begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Maximum number of URIs.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Counts URIs.
    Count {
        /// URIs to count.
        #[serde(default)]
        which: UriSelection,
    },
    /// Deletes URIs: takes them out of their queues and keeps them known.
    Delete {
        /// URIs to delete.
        which: UriSelection,
    },
    /// Forgets URIs: removes their records, so that they may be found again.
    Forget {
        /// URIs to forget.
        which: UriSelection,
    },
    /// Removes a seed, its scope prefix, and queued URIs found only through it.
    RemoveSeed {
        /// The seed.
        uri: String,
    },
    /// Changes the state of a queue.
    ChangeQueue {
        /// Name of the queue.
        queue: String,
        /// Change to make.
        action: QueueAction,
    },
    /// Ends delays that are longer than politeness and back-off allow, for instance after the clock was ahead.
    WakeOverlong,
    /// Cancels the fetch of a URI.
    Cancel {
        /// The URI.
        uri: String,
    },
    /// Fetches a URI now, even if it is known, done or out of scope.
    Force {
        /// The URI.
        uri: String,
    },
    /// Changes the precedence of a URI; 0 comes first.
    UriPrecedence {
        /// The URI.
        uri: String,
        /// Precedence from now on.
        precedence: u8,
    },
    /// Changes the precedence of a queue; 0 comes first.
    QueuePrecedence {
        /// Name of the queue.
        queue: String,
        /// Precedence from now on. None: the precedence of the queue's settings.
        precedence: Option<u8>,
    },
    /// Sets the floor: queues of this precedence or a higher number issue nothing while this process runs.
    Floor {
        /// Floor from now on. None: all queues issue URIs.
        floor: Option<u8>,
    },
    /// Explains a URI's state: the reason why it was fetched or not.
    Why {
        /// The URI.
        uri: String,
    },
    /// Exports all URIs with their records.
    Export {
        /// Format of the export.
        #[serde(default)]
        format: ExportFormat,
        /// URIs to export.
        #[serde(default)]
        which: UriSelection,
    },
    /// Imports URIs of another crawl.
    Import {
        /// Journals, crawl logs or exports of the other crawl. Their order has no effect.
        files: Vec<PathBuf>,
        /// Treatment of URIs that the other crawl had finished.
        #[serde(default)]
        done: DoneElsewhere,
    },
    /// Checks the store of the frontier.
    Check {
        /// `true` if errors are repaired where possible.
        #[serde(default)]
        repair: bool,
    },
    /// Returns every setting of the job: its value, its source, and the time when a change takes effect.
    Settings,
    /// Changes settings.
    Set {
        /// Settings, each as `key = value` like in a profile: `politeness.min-delay = "10s"`.
        set: Vec<String>,
        /// Conditions under which the settings apply, as in `match` of an override. None: the settings apply everywhere except
        /// where an override sets them.
        #[serde(default)]
        matching: Option<MatchFile>,
        /// `true` if the command only reports the effects and changes nothing.
        #[serde(default)]
        only_check: bool,
        /// Reason for the change, for the history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Lists the overrides in the order in which they apply: first those of the profile, then live ones.
    Overrides,
    /// Changes a live override: one that [`Command::Set`] with conditions has made.
    ChangeOverride {
        /// Number of the override.
        id: u64,
        /// Change to make.
        change: OverrideChange,
        /// Reason for the change, for the history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// `true` if the command only reports the effects and changes nothing.
        #[serde(default)]
        only_check: bool,
    },
    /// Returns the changes since the job was made, with author and time.
    History {
        /// Number of the change after which the list begins.
        #[serde(default)]
        after: u64,
        /// Maximum number of changes.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Adds seeds. The SURT prefixes that they imply join the scope at once.
    AddSeeds {
        /// Lines in the format of a seeds file.
        seeds: Vec<String>,
    },
    /// Lists the seeds and the outcome of each.
    Seeds {
        /// Seed after which the list begins.
        #[serde(default)]
        after: Option<String>,
        /// Maximum number of seeds.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Explains a URI: its settings, and the answer of every filter.
    Explain {
        /// The URI.
        uri: String,
        /// Page on which the URI is found.
        #[serde(default)]
        via: Option<String>,
        /// Hop path from the seed, such as `LLE`.
        #[serde(default)]
        hops: Option<String>,
        /// Seed that the URI descends from.
        #[serde(default)]
        source: Option<String>,
        /// Media type of the URI's response.
        #[serde(default)]
        media_type: Option<String>,
        /// Time of the explanation. None: now.
        #[serde(default)]
        at: Option<Timestamp>,
    },
}

/// Change of a live override.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OverrideChange {
    /// Changes settings or conditions.
    Edit {
        /// Settings that it gets, each as `key = value`.
        #[serde(default)]
        set: Vec<String>,
        /// Names of settings and tables that it loses.
        #[serde(default)]
        unset: Vec<String>,
        /// Conditions in place of the present ones. None: the present ones stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matching: Option<Box<MatchFile>>,
    },
    /// Moves it to another place in the order.
    Move {
        /// Number of the live override before which it applies. None: it applies last, and so wins over all others.
        #[serde(default)]
        before: Option<u64>,
    },
    /// Removes it.
    Remove,
}

/// Kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportKind {
    /// Summary of the crawl.
    Crawl,
    /// Seeds, and whether each was crawled.
    Seeds,
    /// Visits and bytes of each host, busiest hosts first.
    Hosts,
    /// Visits of each seed by host.
    Source,
    /// Counts by media type.
    Mimetype,
    /// Counts by fetch status.
    Responsecode,
    /// Statistics of each plugin.
    Processors,
    /// Queues by state, and the longest queues.
    FrontierSummary,
    /// All queues that contain URIs.
    FrontierNonempty,
    /// URIs in process.
    Threads,
    /// Freshness of the pages of a continuous crawl.
    Freshness,
}

impl ReportKind {
    /// All reports, in the order in which people read them.
    pub const ALL: [ReportKind; 11] = [
        ReportKind::Crawl,
        ReportKind::Seeds,
        ReportKind::Hosts,
        ReportKind::Source,
        ReportKind::Mimetype,
        ReportKind::Responsecode,
        ReportKind::Processors,
        ReportKind::FrontierSummary,
        ReportKind::FrontierNonempty,
        ReportKind::Threads,
        ReportKind::Freshness,
    ];

    /// Returns the report's name. Its file is this name and `-report.txt`.
    pub fn name(self) -> &'static str {
        match self {
            ReportKind::Crawl => "crawl",
            ReportKind::Seeds => "seeds",
            ReportKind::Hosts => "hosts",
            ReportKind::Source => "source",
            ReportKind::Mimetype => "mimetype",
            ReportKind::Responsecode => "responsecode",
            ReportKind::Processors => "processors",
            ReportKind::FrontierSummary => "frontier-summary",
            ReportKind::FrontierNonempty => "frontier-nonempty",
            ReportKind::Threads => "threads",
            ReportKind::Freshness => "freshness",
        }
    }

    /// Returns the report of this name.
    pub fn named(name: &str) -> Option<ReportKind> {
        ReportKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Action on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueAction {
    /// The queue issues no URIs, but accepts new ones.
    Retire,
    /// The queue issues URIs again.
    Unretire,
    /// The queue issues no URIs until it is thawed.
    Freeze,
    /// The queue issues URIs again.
    Thaw,
    /// The politeness delay or back-off of the queue ends.
    Wake,
}

/// Format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// All known facts about each URI, as one JSON object a line.
    #[default]
    JsonLines,
    /// CDXJ index of the last archived version of each URI.
    Cdxj,
    /// Journal of finished and unfinished URIs, in the form from which Heritrix 3 recovers.
    Journal,
}

/// Treatment of URIs that the other crawl of an import had finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoneElsewhere {
    /// The URIs are recorded here as done.
    #[default]
    Known,
    /// The URIs are fetched here, too.
    Fetched,
    /// The URIs are left out.
    LeftOut,
}

fn page() -> u64 {
    100
}

impl Command {
    /// Returns `true` if the command adds URIs to queues. The crawl must not end for lack of URIs while the command runs.
    pub(super) fn queues_uris(&self) -> bool {
        matches!(
            self,
            Command::AddSeeds { .. }
                | Command::Import { .. }
                | Command::Force { .. }
                | Command::ChangeQueue {
                    action: QueueAction::Unretire,
                    ..
                }
        )
    }

    /// Returns `true` if the command acts on all nodes that share a job. Other commands are about the URIs and files of one node.
    pub(super) fn is_for_all_nodes(&self) -> bool {
        matches!(
            self,
            Command::Pause
                | Command::Resume
                | Command::Stop
                | Command::ReplacePlugin { .. }
                | Command::Set {
                    only_check: false,
                    ..
                }
                | Command::ChangeOverride {
                    only_check: false,
                    ..
                }
                | Command::AddSeeds { .. }
                | Command::RemoveSeed { .. }
        )
    }

    /// Returns `true` if the command acts on all nodes and may be carried out before earlier commands that fail, because it does
    /// not depend on them.
    pub(super) fn is_independent_of_order(&self) -> bool {
        matches!(self, Command::Pause | Command::Resume | Command::Stop)
    }

    /// Returns the URI of a command that only the node with its site can carry out.
    pub(super) fn uri_of_site(&self) -> Option<&str> {
        match self {
            Command::Why { uri }
            | Command::Cancel { uri }
            | Command::Force { uri }
            | Command::UriPrecedence { uri, .. } => Some(uri),
            _ => None,
        }
    }

    /// Returns the queue of a command that only a node with this queue can carry out.
    pub(super) fn queue_of_part(&self) -> Option<&str> {
        match self {
            Command::Queue { queue }
            | Command::ChangeQueue { queue, .. }
            | Command::QueuePrecedence { queue, .. } => Some(queue),
            _ => None,
        }
    }

    /// Returns the command for the job's log, as typed on the command line, always on a single line. Returns `None` if the command
    /// changes nothing, and for shares, which the daemon changes every few seconds.
    pub fn log_line(&self) -> Option<String> {
        let number = |number: &Option<u8>, none: &str| {
            number.map_or_else(|| none.to_owned(), |number| number.to_string())
        };
        Some(match self {
            Command::Status
            | Command::Series { .. }
            | Command::Share { .. }
            | Command::Breakdown
            | Command::Hosts { .. }
            | Command::Report { .. }
            | Command::Alerts
            | Command::Statistics
            | Command::Plugins
            | Command::Observe { .. }
            | Command::Tables { reload: false }
            | Command::Queues { .. }
            | Command::Queue { .. }
            | Command::Uris { .. }
            | Command::List { .. }
            | Command::Count { .. }
            | Command::Why { .. }
            | Command::Export { .. }
            | Command::Check { repair: false }
            | Command::Settings
            | Command::Overrides
            | Command::Set {
                only_check: true, ..
            }
            | Command::ChangeOverride {
                only_check: true, ..
            }
            | Command::History { .. }
            | Command::Seeds { .. }
            | Command::Explain { .. } => return None,
            Command::Acknowledge { kind, subject } => {
                let subject = subject.iter().map(|one| format!(" --subject {one:?}"));
                format!("alerts --acknowledge {}", kind.name()) + &subject.collect::<String>()
            }
            Command::RotateLogs => "logs --rotate".to_owned(),
            Command::Pause => "pause".to_owned(),
            Command::Resume => "resume".to_owned(),
            Command::Stop => "stop".to_owned(),
            Command::Terminate => "terminate".to_owned(),
            Command::Checkpoint { to: None } => "checkpoint".to_owned(),
            Command::Checkpoint { to: Some(to) } => format!("checkpoint --to {to:?}"),
            Command::Tables { reload: true } => "tables --reload".to_owned(),
            Command::ReplacePlugin {
                plugin,
                component,
                sha256,
                settings,
            } => {
                let mut line = format!("plugin replace {plugin:?} {component:?}");
                if let Some(sha256) = sha256 {
                    line += &format!(" --sha256 {sha256:?}");
                }
                if let Some(settings) = settings {
                    line += &format!(" --settings {settings}");
                }
                line
            }
            Command::Delete { which } => format!("delete{which}"),
            Command::Forget { which } => format!("forget{which}"),
            Command::RemoveSeed { uri } => format!("remove-seed {uri:?}"),
            Command::ChangeQueue { queue, action } => format!("{} {queue:?}", action.name()),
            Command::WakeOverlong => "wake --all".to_owned(),
            Command::Cancel { uri } => format!("cancel {uri:?}"),
            Command::Force { uri } => format!("force {uri:?}"),
            Command::UriPrecedence { uri, precedence } => {
                format!("precedence --uri {uri:?} {precedence}")
            }
            Command::QueuePrecedence { queue, precedence } => {
                let precedence = number(precedence, "default");
                format!("precedence --queue {queue:?} {precedence}")
            }
            Command::Floor { floor } => format!("floor {}", number(floor, "none")),
            Command::Import { files, done } => {
                let included = match done {
                    DoneElsewhere::Known => "",
                    DoneElsewhere::Fetched => " --include all",
                    DoneElsewhere::LeftOut => " --include pending",
                };
                let files = files.iter().map(|file| format!(" {file:?}"));
                format!("import{}{included}", files.collect::<String>())
            }
            Command::Check { repair: true } => "check --repair".to_owned(),
            Command::Set {
                set,
                matching,
                reason,
                ..
            } => {
                let what = set_words(set, matching.as_ref());
                format!("set{what}{}", reason_words(reason.as_deref()))
            }
            Command::ChangeOverride {
                id, change, reason, ..
            } => {
                let what = match change {
                    OverrideChange::Edit {
                        set,
                        unset,
                        matching: None,
                    } if set.is_empty() && !unset.is_empty() => {
                        let keys = unset.iter().map(|key| format!(" {key:?}"));
                        format!("unset --override {id}{}", keys.collect::<String>())
                    }
                    OverrideChange::Edit {
                        set,
                        unset,
                        matching,
                    } => {
                        let unset = unset.iter().map(|key| format!(" --unset {key:?}"));
                        let set = set_words(set, matching.as_deref());
                        format!("set --override {id}{set}{}", unset.collect::<String>())
                    }
                    OverrideChange::Move {
                        before: Some(before),
                    } => format!("overrides --move {id} --before {before}"),
                    OverrideChange::Move { before: None } => {
                        format!("overrides --move {id} --last")
                    }
                    OverrideChange::Remove => format!("unset --override {id}"),
                };
                what + &reason_words(reason.as_deref())
            }
            Command::AddSeeds { seeds } => format!("seeds --add ({} lines)", seeds.len()),
        })
    }
}

fn set_words(set: &[String], matching: Option<&MatchFile>) -> String {
    let matching = matching.iter().map(|one| format!(" {}", one.toml()));
    let set = set.iter().map(|one| format!(" {one:?}"));
    matching.collect::<String>() + &set.collect::<String>()
}

fn reason_words(reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(" --reason {reason:?}"));
    reason.unwrap_or_default()
}

impl QueueAction {
    /// Returns the action's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            QueueAction::Retire => "retire",
            QueueAction::Unretire => "unretire",
            QueueAction::Freeze => "freeze",
            QueueAction::Thaw => "thaw",
            QueueAction::Wake => "wake",
        }
    }
}

impl QueueSort {
    /// All orders.
    pub const ALL: [QueueSort; 3] = [QueueSort::Name, QueueSort::Size, QueueSort::Due];

    /// Returns the order's name.
    pub fn name(self) -> &'static str {
        match self {
            QueueSort::Name => "name",
            QueueSort::Size => "size",
            QueueSort::Due => "due",
        }
    }
}

impl Author {
    /// Returns the user's name on one line, for histories; `unknown` if it is empty.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.user.chars();
        let name = name.filter(|c| !c.is_control() && !c.is_whitespace());
        let name: String = name.take(64).collect();
        match name.is_empty() {
            true => "unknown".to_owned(),
            false => name,
        }
    }
}

/// Formats the sender as the job's log does: the name and the process.
impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.name();
        match self.pid {
            0 => f.write_str(&user),
            pid => write!(f, "{user}:{pid}"),
        }
    }
}

/// Parses a URI as an operator types it.
pub(super) fn read_uri(text: &str) -> Result<Uri, ControlError> {
    Uri::parse_seed(text)
        .map_err(|problem| ControlError::new(ErrorKind::Request, no_uri(text, &problem)))
}

/// Formats the error of an invalid URI that an operator typed.
pub fn no_uri(text: &str, problem: &UriError) -> String {
    let reason = opilio_stacks::chain(problem);
    match problem {
        // The text of a syntax error contains the URI.
        UriError::Syntax { .. } => reason,
        _ => format!("invalid URI {text:?}: {reason}"),
    }
}

/// Order in which queues are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueSort {
    /// By name.
    #[default]
    Name,
    /// By number of URIs, most first.
    Size,
    /// By the time of the next URI, earliest first; queues without a URI to issue come last.
    Due,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, shown: &str) {
        let request: CommandRequest = serde_json::from_str(json).unwrap();
        let line = request.command.log_line().unwrap();
        assert_eq!(format!("{} {line}", request.by), shown);
        let again = serde_json::to_string(&request).unwrap();
        let again: CommandRequest = serde_json::from_str(&again).unwrap();
        assert_eq!(again.command, request.command);
        assert_eq!(again.by, request.by);
    }

    #[test]
    fn commands_are_read_and_shown_as_they_are_typed() {
        check(r#"{"command":{"do":"pause"}}"#, "unknown pause");
        check(
            r#"{"by":{"user":"lena","pid":7},"command":{"do":"delete","which":{"surt":"http://(org,"}}}"#,
            r#"lena:7 delete --surt "http://(org,""#,
        );
        check(
            r#"{"by":{"user":"a\nb c"},"command":{"do":"queue-precedence","queue":"org,a,","precedence":null}}"#,
            r#"abc precedence --queue "org,a," default"#,
        );
        check(
            r#"{"command":{"do":"force","uri":"http://a.org/\n2026 forged"}}"#,
            r#"unknown force "http://a.org/\n2026 forged""#,
        );
        check(
            r#"{"command":{"do":"replace-plugin","plugin":"html","component":"/a b.wasm","settings":{"x":["\n"]}}}"#,
            r#"unknown plugin replace "html" "/a b.wasm" --settings {"x":["\n"]}"#,
        );
        check(
            r#"{"command":{"do":"tables","reload":true}}"#,
            "unknown tables --reload",
        );
        check(r#"{"command":{"do":"floor","floor":3}}"#, "unknown floor 3");
        check(
            r#"{"command":{"do":"change-override","id":3,"change":{"action":"move","before":2},"reason":"first\nthese"}}"#,
            r#"unknown overrides --move 3 --before 2 --reason "first\nthese""#,
        );
        check(
            r#"{"command":{"do":"change-override","id":3,"change":{"action":"edit","set":["workers=3"],"unset":["retry"]}}}"#,
            r#"unknown set --override 3 "workers=3" --unset "retry""#,
        );
        check(
            r#"{"command":{"do":"change-override","id":3,"change":{"action":"edit","unset":["retry","workers"]}}}"#,
            r#"unknown unset --override 3 "retry" "workers""#,
        );
        check(
            r#"{"command":{"do":"change-queue","queue":"org,a,","action":"thaw"}}"#,
            r#"unknown thaw "org,a,""#,
        );
    }

    #[test]
    fn requests_in_the_documentation_are_valid() {
        let page = include_str!("../../../docs/FRONTIER.md");
        let mut requests = 0;
        for block in page.split("```json\n").skip(1) {
            let (lines, _) = block.split_once("```").unwrap();
            for line in lines.lines() {
                let request: Result<CommandRequest, _> = serde_json::from_str(line);
                assert!(request.is_ok(), "{line}: {request:?}");
                requests += 1;
            }
        }
        assert!(requests > 0);
    }

    #[test]
    fn invalid_commands_are_refused() {
        for json in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"command":"pause"}"#,
            r#"{"command":{"do":"explode"}}"#,
            r#"{"command":{"do":"delete"}}"#,
            r#"{"command":{"do":"delete","which":{"prefix":"http://(org,"}}}"#,
            r#"{"command":{"do":"queue","queue":"a","quiet":true}}"#,
            r#"{"command":{"do":"uri-precedence","uri":"http://a.org/","precedence":256}}"#,
            r#"{"command":{"do":"pause"},"sudo":true}"#,
        ] {
            assert!(
                serde_json::from_str::<CommandRequest>(json).is_err(),
                "{json}"
            );
        }
    }
}
