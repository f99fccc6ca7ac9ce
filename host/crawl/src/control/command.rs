//! What may be asked of a job, and by whom.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use opilio_profile::MatchFile;
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{ControlError, Fault, ReportKind};
use crate::alerts::AlertKind;
use crate::share::Share;
use opilio_job::transfer::Selection;

/// One line of the control socket: a command and who gives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Who.
    #[serde(default)]
    pub by: By,
    /// What.
    pub command: Command,
}

/// Who gives a command, as far as they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// The user's name; empty where unknown.
    #[serde(default)]
    pub user: String,
    /// The process that asks; 0 where unknown.
    #[serde(default)]
    pub pid: u32,
}

/// Something an operator wants to know or done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// What the job is doing.
    Status,
    /// The course of the crawl: its counters at moments since it began.
    Series {
        /// From then on; none: from the beginning, as far as it is kept.
        #[serde(default)]
        since: Option<Timestamp>,
        /// So many moments at most; none: 300.
        #[serde(default)]
        points: Option<u64>,
    },
    /// What the job has brought in, by status, media type and host.
    Breakdown,
    /// A report.
    Report {
        /// Which.
        report: ReportKind,
        /// As text; otherwise as facts and rows.
        #[serde(default)]
        text: bool,
    },
    /// What the operator should know, and lately should have known.
    Alerts,
    /// Somebody knows of an alert that holds.
    Acknowledge {
        /// What it is about.
        kind: AlertKind,
        /// Which one; none: all of that kind.
        #[serde(default)]
        subject: Option<String>,
    },
    /// Have every log go on in a new file.
    RotateLogs,
    /// Begin nothing new; what is in flight finishes.
    Pause,
    /// Go on after a pause.
    Resume,
    /// End politely, as the first Ctrl-C does.
    Stop,
    /// End politely, as the system would have it: whoever looks after the job begins it again.
    Terminate,
    /// Take so much at most of what all crawls of the machine have together, while this process runs.
    Share {
        /// From now on.
        share: Share,
    },
    /// Keep a copy of the job's state.
    Checkpoint {
        /// Where; by default below `checkpoints/` in the job.
        #[serde(default)]
        to: Option<PathBuf>,
    },
    /// The crawl in numbers.
    Statistics,
    /// What was seen of each plugin.
    Plugins,
    /// What observers report.
    Observe {
        /// One of them; none: all.
        #[serde(default)]
        observer: Option<String>,
    },
    /// The lists that plugins look things up in.
    Tables {
        /// Read their files again first.
        #[serde(default)]
        reload: bool,
    },
    /// Put a component in the place of a plugin.
    ReplacePlugin {
        /// The plugin's name in the profile.
        plugin: String,
        /// The component, as profiles name it; a path is absolute.
        component: String,
        /// What the digest of its file must be, in hexadecimal.
        #[serde(default)]
        sha256: Option<String>,
        /// Settings in place of those in force.
        #[serde(default)]
        settings: Option<serde_json::Value>,
    },
    /// List queues by name.
    Queues {
        /// Only those in this state.
        #[serde(default)]
        state: Option<QueueStateFilter>,
        /// In this order; any but that of names reads all queues and gives one page.
        #[serde(default)]
        sort: QueueSort,
        /// From the one behind this on.
        #[serde(default)]
        after: Option<String>,
        /// So many at most.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Everything about one queue.
    Queue {
        /// Its name.
        queue: String,
    },
    /// The URIs of a queue in the order in which they would go.
    Uris {
        /// Its name.
        queue: String,
        /// From the one behind this cursor on.
        #[serde(default)]
        after: Option<String>,
        /// So many at most.
        #[serde(default = "page")]
        limit: u64,
    },
    /// List URIs.
    List {
        /// Which.
        #[serde(default)]
        which: Which,
        /// From the one behind this cursor on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// So many at most.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Count URIs.
    Count {
        /// Which.
        #[serde(default)]
        which: Which,
    },
    /// Take URIs out of their queues and keep them known.
    Delete {
        /// Which.
        which: Which,
    },
    /// Remove URIs, so that they may be found again.
    Forget {
        /// Which.
        which: Which,
    },
    /// Remove a seed, its prefix from the scope, and what waits that it alone brought in.
    RemoveSeed {
        /// The seed.
        uri: String,
    },
    /// A queue gives no URI any more, but takes them.
    Retire {
        /// Its name.
        queue: String,
    },
    /// A retired queue gives URIs again.
    Unretire {
        /// Its name.
        queue: String,
    },
    /// A queue gives no URI for a while.
    Freeze {
        /// Its name.
        queue: String,
    },
    /// A frozen queue gives URIs again.
    Thaw {
        /// Its name.
        queue: String,
    },
    /// End a queue's rest or back-off.
    Wake {
        /// Its name.
        queue: String,
    },
    /// End the rests that are longer than any queue should have, as after a clock that was ahead.
    WakeOverlong,
    /// Break off the fetch of a URI.
    Cancel {
        /// The URI.
        uri: String,
    },
    /// Fetch a URI now, whatever is known of it.
    Force {
        /// The URI.
        uri: String,
    },
    /// Change the precedence of a URI, 0 first.
    UriPrecedence {
        /// The URI.
        uri: String,
        /// From now on.
        precedence: u8,
    },
    /// Change the precedence of a queue, 0 first.
    QueuePrecedence {
        /// Its name.
        queue: String,
        /// From now on; none: what its settings say.
        precedence: Option<u8>,
    },
    /// Queues of this precedence or a higher number give no URI while this process runs.
    Floor {
        /// From now on; none: all queues give.
        floor: Option<u8>,
    },
    /// Why a URI was, or was not, fetched.
    Why {
        /// The URI.
        uri: String,
    },
    /// All URIs with what is known of them.
    Export {
        /// In which form.
        #[serde(default)]
        format: ExportFormat,
        /// Which.
        #[serde(default)]
        which: Which,
    },
    /// Take over URIs of another crawl.
    Import {
        /// Its journal, crawl log or export.
        file: PathBuf,
        /// What is done with those it had finished.
        #[serde(default)]
        done: DoneElsewhere,
    },
    /// Verify the store.
    Check {
        /// And repair what can be.
        #[serde(default)]
        repair: bool,
    },
    /// Every setting of the job: its value, where that comes from, and when a change of it takes effect.
    Settings,
    /// Change settings.
    Set {
        /// `key = value` each, as a profile has it: `politeness.min-delay = "10s"`.
        set: Vec<String>,
        /// What they are for, as `match` of an override says it; none: wherever no override says otherwise.
        #[serde(default)]
        matching: Option<MatchFile>,
        /// Only say what would come of it.
        #[serde(default)]
        only_check: bool,
    },
    /// What was changed since the job was made, by whom, when.
    History {
        /// From the one behind this number on.
        #[serde(default)]
        after: u64,
        /// So many at most.
        #[serde(default = "page")]
        limit: u64,
    },
    /// Add seeds; what they imply belongs to the scope at once.
    AddSeeds {
        /// Lines as a file of seeds has them.
        seeds: Vec<String>,
    },
    /// The seeds, and what became of each.
    Seeds {
        /// From the one behind this seed on.
        #[serde(default)]
        after: Option<String>,
        /// So many at most.
        #[serde(default = "page")]
        limit: u64,
    },
    /// What the job makes of a URI: its settings, and the answer of every filter.
    Explain {
        /// The URI.
        uri: String,
        /// The page it is found on.
        #[serde(default)]
        via: Option<String>,
        /// The hops from the seed, such as `LLE`.
        #[serde(default)]
        hops: Option<String>,
        /// The seed it descends from.
        #[serde(default)]
        source: Option<String>,
        /// The media type of its response.
        #[serde(default)]
        media_type: Option<String>,
        /// When; now, where nobody says.
        #[serde(default)]
        at: Option<Timestamp>,
    },
}

/// Which URIs are meant: those of which both hold. Neither means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// They begin with this SURT prefix, such as `http://(org,example,`.
    #[serde(default)]
    #[schema(value_type = String, required = false)]
    pub surt: Option<String>,
    /// This is found in them.
    #[serde(default)]
    #[schema(value_type = String, required = false, format = "regex")]
    pub regex: Option<String>,
}

/// A state of queues, to list those in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in opilio_frontier::QueueState")]
pub enum QueueStateFilter {
    Ready,
    InProcess,
    Snoozed,
    Inactive,
    Ineligible,
    Retired,
    Frozen,
    Exhausted,
}

/// What an export looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Everything known of each URI.
    #[default]
    JsonLines,
    /// An index of the last archived version of each.
    Cdxj,
    /// What was done and what was not, as Heritrix 3 recovers from it.
    Journal,
}

/// What an import does with URIs that the other crawl had finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoneElsewhere {
    /// They are known here as done.
    #[default]
    Known,
    /// They are fetched here, too.
    Fetched,
    /// They are left out.
    LeftOut,
}

fn page() -> u64 {
    100
}

impl Command {
    /// Whether it changes anything, and so belongs in the job's log. Shares do not: they change every few seconds, and
    /// nobody's mind with them.
    pub(crate) fn changes(&self) -> bool {
        !matches!(
            self,
            Command::Status
                | Command::Series { .. }
                | Command::Share { .. }
                | Command::Breakdown
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
                | Command::Set {
                    only_check: true,
                    ..
                }
                | Command::History { .. }
                | Command::Seeds { .. }
                | Command::Explain { .. }
        )
    }

    /// Brings URIs into the queues, so that a crawl does not end for want of them meanwhile.
    pub(super) fn queues_uris(&self) -> bool {
        matches!(
            self,
            Command::AddSeeds { .. }
                | Command::Import { .. }
                | Command::Force { .. }
                | Command::Unretire { .. }
        )
    }
}

impl Which {
    /// As the frontier's records are selected.
    pub(super) fn selection(&self) -> Result<Selection, ControlError> {
        let expression = self.regex.as_deref().map(Regex::new).transpose();
        let expression = expression.map_err(|problem| {
            let text = problem.to_string();
            let last = text.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            ControlError::new(
                Fault::Request,
                format!("the regular expression cannot be used: {reason}"),
            )
        })?;
        Ok(Selection::new(
            self.surt.as_deref().unwrap_or_default(),
            expression,
        ))
    }
}

/// As the log of the job has it.
impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user: String = self
            .user
            .chars()
            .filter(|c| !c.is_control() && !c.is_whitespace())
            .take(64)
            .collect();
        let user = if user.is_empty() { "unknown" } else { &user };
        match self.pid {
            0 => f.write_str(user),
            pid => write!(f, "{user}:{pid}"),
        }
    }
}

/// As the command line has it; one line, whatever is in it.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: &Option<u8>, none: &str| {
            number.map_or_else(|| none.to_owned(), |number| number.to_string())
        };
        match self {
            Command::Status => f.write_str("status"),
            Command::Series { .. } => f.write_str("series"),
            Command::Breakdown => f.write_str("breakdown"),
            Command::Report { report, .. } => write!(f, "report {}", report.name()),
            Command::Alerts => f.write_str("alerts"),
            Command::Acknowledge { kind, subject } => {
                write!(f, "alerts --acknowledge {}", kind.name())?;
                let mut subject = subject.iter();
                subject.try_for_each(|one| write!(f, " --subject {one:?}"))
            }
            Command::RotateLogs => f.write_str("logs --rotate"),
            Command::Pause => f.write_str("pause"),
            Command::Resume => f.write_str("resume"),
            Command::Stop => f.write_str("stop"),
            Command::Terminate => f.write_str("terminate"),
            Command::Share { share } => write!(f, "share {share}"),
            Command::Checkpoint { to: None } => f.write_str("checkpoint"),
            Command::Checkpoint { to: Some(to) } => write!(f, "checkpoint --to {to:?}"),
            Command::Statistics => f.write_str("statistics"),
            Command::Plugins => f.write_str("plugins"),
            Command::Observe { observer: None } => f.write_str("observe"),
            Command::Observe {
                observer: Some(name),
            } => write!(f, "observe {name:?}"),
            Command::Tables { reload } => {
                f.write_str(if *reload { "tables --reload" } else { "tables" })
            }
            Command::ReplacePlugin {
                plugin,
                component,
                sha256,
                settings,
            } => {
                write!(f, "plugin replace {plugin:?} {component:?}")?;
                if let Some(sha256) = sha256 {
                    write!(f, " --sha256 {sha256:?}")?;
                }
                match settings {
                    Some(settings) => write!(f, " --settings {settings}"),
                    None => Ok(()),
                }
            }
            Command::Queues { .. } => f.write_str("queues"),
            Command::Queue { queue } => write!(f, "queue {queue:?}"),
            Command::Uris { queue, .. } => write!(f, "uris {queue:?}"),
            Command::List { which, .. } => write!(f, "list{which}"),
            Command::Count { which } => write!(f, "count{which}"),
            Command::Delete { which } => write!(f, "delete{which}"),
            Command::Forget { which } => write!(f, "forget{which}"),
            Command::RemoveSeed { uri } => write!(f, "remove-seed {uri:?}"),
            Command::Retire { queue } => write!(f, "retire {queue:?}"),
            Command::Unretire { queue } => write!(f, "unretire {queue:?}"),
            Command::Freeze { queue } => write!(f, "freeze {queue:?}"),
            Command::Thaw { queue } => write!(f, "thaw {queue:?}"),
            Command::Wake { queue } => write!(f, "wake {queue:?}"),
            Command::WakeOverlong => write!(f, "wake --all"),
            Command::Cancel { uri } => write!(f, "cancel {uri:?}"),
            Command::Force { uri } => write!(f, "force {uri:?}"),
            Command::UriPrecedence { uri, precedence } => {
                write!(f, "precedence --uri {uri:?} {precedence}")
            }
            Command::QueuePrecedence { queue, precedence } => write!(
                f,
                "precedence --queue {queue:?} {}",
                number(precedence, "default")
            ),
            Command::Floor { floor } => write!(f, "floor {}", number(floor, "none")),
            Command::Why { uri } => write!(f, "why {uri:?}"),
            Command::Export { which, .. } => write!(f, "export{which}"),
            Command::Import { file, done } => {
                let included = match done {
                    DoneElsewhere::Known => "",
                    DoneElsewhere::Fetched => " --include all",
                    DoneElsewhere::LeftOut => " --include pending",
                };
                write!(f, "import {file:?}{included}")
            }
            Command::Check { repair } => {
                f.write_str(if *repair { "check --repair" } else { "check" })
            }
            Command::Settings => f.write_str("settings"),
            Command::Set { set, matching, .. } => {
                f.write_str("set")?;
                if let Some(matching) = matching {
                    write!(f, " {}", matching.toml())?;
                }
                set.iter().try_for_each(|one| write!(f, " {one:?}"))
            }
            Command::History { .. } => f.write_str("history"),
            Command::AddSeeds { seeds } => write!(f, "seeds --add ({} lines)", seeds.len()),
            Command::Seeds { .. } => f.write_str("seeds"),
            Command::Explain { uri, .. } => write!(f, "explain {uri:?}"),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(surt) = &self.surt {
            write!(f, " --surt {surt:?}")?;
        }
        if let Some(regex) = &self.regex {
            write!(f, " --regex {regex:?}")?;
        }
        Ok(())
    }
}

/// The order in which queues are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueSort {
    /// By name.
    #[default]
    Name,
    /// Those that hold most URIs first.
    Size,
    /// Those first that can give a URI first; at last those that have none to give.
    Due,
}

impl QueueStateFilter {
    /// The word for it, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            QueueStateFilter::Ready => "ready",
            QueueStateFilter::InProcess => "in-process",
            QueueStateFilter::Snoozed => "snoozed",
            QueueStateFilter::Inactive => "inactive",
            QueueStateFilter::Ineligible => "ineligible",
            QueueStateFilter::Retired => "retired",
            QueueStateFilter::Frozen => "frozen",
            QueueStateFilter::Exhausted => "exhausted",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(json: &str, shown: &str) {
        let request: Request = serde_json::from_str(json).unwrap();
        assert_eq!(format!("{} {}", request.by, request.command), shown);
        let again = serde_json::to_string(&request).unwrap();
        let again: Request = serde_json::from_str(&again).unwrap();
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
            r#"{"command":{"do":"why","uri":"http://a.org/\n2026 forged"}}"#,
            r#"unknown why "http://a.org/\n2026 forged""#,
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
    }

    #[test]
    fn what_is_no_command_is_refused() {
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
            assert!(serde_json::from_str::<Request>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_bad_expression_is_refused_in_one_sentence() {
        let which = Which {
            surt: None,
            regex: Some("a(b".to_owned()),
        };
        let problem = which.selection().unwrap_err().to_string();
        assert_eq!(
            problem,
            "the regular expression cannot be used: unclosed group"
        );
    }
}
