//! Metrics of jobs in the text exposition format of Prometheus (version 0.0.4). Readers of OpenMetrics and textfile collectors
//! accept it as well. `docs/METRICS.md` explains every metric.
//!
//! Labels have few values: statuses, the 50 most frequent media types, states of queues, kinds of alerts, and the plugins of the
//! profile. A host or a URI is never a label.

use std::path::Path;

use opilio_frontier::Overdue;

use crate::{Answer, By, Command, ControlError, Fault, Request, Status, carry_out};
use opilio_job::alerts::{Alert, AlertKind};
use opilio_job::breakdown::Breakdown;
use opilio_job::exposition::{Exposition, MetricKind};
use opilio_job::plugin_report::PluginReport;

/// Answers of a job from which metrics are made.
#[derive(Clone, Debug)]
pub struct Figures {
    /// State of the job.
    pub status: Status,
    /// Amounts that the job has fetched.
    pub breakdown: Breakdown,
    /// Reports on the job's plugins.
    pub plugins: Vec<PluginReport>,
}

impl Figures {
    /// Queries a job. Opens a job that no process runs.
    ///
    /// # Errors
    /// [`ControlError`] if the job cannot be reached or does not answer.
    pub fn ask(job: &Path, by: &By) -> Result<Figures, ControlError> {
        let mut status = None;
        let mut breakdown = None;
        let mut plugins = Vec::new();
        for command in [Command::Status, Command::Breakdown, Command::Plugins] {
            // If no process has ever written plugin reports, there are no plugins to report.
            let may_fail = command == Command::Plugins;
            let request = Request {
                by: by.clone(),
                command,
            };
            let mut refused = None;
            carry_out(job, &request, &mut |answer| {
                match answer {
                    Answer::Status(it) => status = Some(*it),
                    Answer::Breakdown(it) => breakdown = Some(*it),
                    Answer::Plugins { plugins: it } => plugins = it,
                    Answer::Refused { fault, message } => {
                        refused = Some(ControlError { fault, message });
                    }
                    _ => {}
                }
                true
            })?;
            if let Some(refused) = refused.filter(|_| !may_fail) {
                return Err(refused);
            }
        }
        match (status, breakdown) {
            (Some(status), Some(breakdown)) => Ok(Figures {
                status,
                breakdown,
                plugins,
            }),
            _ => Err(ControlError {
                fault: Fault::Failure,
                message: format!("job {} returned no metrics", job.display()),
            }),
        }
    }
}

/// Formats the metrics of these jobs, each under its name.
pub fn metrics<'j>(jobs: impl IntoIterator<Item = (&'j str, &'j Figures)>) -> String {
    let mut text = Exposition::default();
    for (name, figures) in jobs {
        job(&mut text, name, figures);
    }
    text.finish()
}

fn job(text: &mut Exposition, name: &str, figures: &Figures) {
    let Figures {
        status,
        breakdown,
        plugins,
    } = figures;
    let job: &[(&str, &str)] = &[("job_name", name)];
    let with = |label: &'static str, value: &str| {
        vec![("job_name", name.to_owned()), (label, value.to_owned())]
    };
    let statistics = &status.statistics;
    let totals = &breakdown.totals;

    text.gauge(
        "opilio_job_up",
        "Whether a process runs the job.",
        job,
        f64::from(u8::from(status.pid.is_some())),
    );
    for (state, word) in [
        ("running", "running"),
        ("pausing", "pausing"),
        ("paused", "paused"),
        ("ending", "ending"),
        ("idle", "idle"),
    ] {
        let value = f64::from(u8::from(status.state.name() == word));
        let labels = with("state", state);
        text.sample(
            "opilio_job_state",
            MetricKind::Gauge,
            "1 for the current state of the job.",
            &labels,
            value,
        );
    }
    text.gauge(
        "opilio_job_elapsed_seconds",
        "Seconds since the process began to crawl.",
        job,
        status.elapsed_s.unwrap_or(0.0),
    );
    text.counter(
        "opilio_run_seconds_total",
        "Time spent crawling, over all processes of the job, to within half a minute.",
        job,
        statistics.run_time.as_secs_f64(),
    );
    for (name, help, value) in [
        ("opilio_uris_known", "URIs known.", statistics.discovered),
        (
            "opilio_uris_queued",
            "URIs in queues, without those in process.",
            statistics.queued,
        ),
        (
            "opilio_uris_in_process",
            "URIs in process.",
            statistics.in_process,
        ),
    ] {
        text.gauge(name, help, job, value as f64);
    }
    for (standing, value) in [
        ("succeeded", statistics.succeeded),
        ("failed", statistics.failed),
        ("disregarded", statistics.disregarded),
    ] {
        let labels = with("standing", standing);
        text.sample(
            "opilio_uris_finished",
            MetricKind::Gauge,
            "URIs by the outcome of their last visit.",
            &labels,
            value as f64,
        );
    }
    text.counter(
        "opilio_turns_total",
        "Finished visits: lines of crawl.log.",
        job,
        totals.all.uris as f64,
    );
    text.counter(
        "opilio_content_bytes_total",
        "Bytes of content received.",
        job,
        totals.all.bytes as f64,
    );
    for (novelty, amount) in [
        ("novel", totals.novel),
        ("duplicate", totals.duplicate),
        ("not-modified", totals.not_modified),
    ] {
        let labels = with("novelty", novelty);
        let help = "Responses by whether their payload was archived already.";
        text.sample(
            "opilio_responses_total",
            MetricKind::Counter,
            help,
            &labels,
            amount.uris as f64,
        );
    }
    for (novelty, amount) in [
        ("novel", totals.novel),
        ("duplicate", totals.duplicate),
        ("not-modified", totals.not_modified),
    ] {
        let labels = with("novelty", novelty);
        let help = "Bytes of content by whether the payload was archived already.";
        text.sample(
            "opilio_response_bytes_total",
            MetricKind::Counter,
            help,
            &labels,
            amount.bytes as f64,
        );
    }
    let revisits = statistics.revisits;
    let first = statistics.visits.saturating_sub(
        revisits.changed + revisits.unchanged + revisits.not_modified + revisits.unknown,
    );
    for (state, count) in [
        ("new", first),
        ("changed", revisits.changed),
        ("unchanged", revisits.unchanged),
        ("not-modified", revisits.not_modified),
        ("unknown", revisits.unknown),
    ] {
        let help = "Successful visits by the change since the last version.";
        text.sample(
            "opilio_visits_total",
            MetricKind::Counter,
            help,
            &with("state", state),
            count as f64,
        );
    }
    overdue(text, name, &statistics.overdue);
    for (name, help, value) in [
        ("opilio_retries_total", "Retries.", statistics.retries),
        (
            "opilio_links_refused_total",
            "Links that the scope rejected, counted each time they were found.",
            statistics.refused,
        ),
        (
            "opilio_walls_total",
            "Responses that a filter took for a bot wall.",
            totals.walls,
        ),
    ] {
        text.counter(name, help, job, value as f64);
    }
    text.gauge("opilio_hosts", "Hosts crawled.", job, totals.hosts as f64);
    for row in &breakdown.statuses {
        let labels = with("status", &row.status.to_string());
        let help = "Finished visits by fetch status.";
        text.sample(
            "opilio_turns_by_status_total",
            MetricKind::Counter,
            help,
            &labels,
            row.amount.uris as f64,
        );
    }
    for row in &breakdown.media_types {
        let labels = with("media_type", &row.media_type);
        let help = "Responses by media type; rare types are summed up.";
        text.sample(
            "opilio_responses_by_type_total",
            MetricKind::Counter,
            help,
            &labels,
            row.amount.uris as f64,
        );
    }
    for row in &breakdown.media_types {
        let labels = with("media_type", &row.media_type);
        let help = "Bytes of content by media type; rare types are summed up.";
        text.sample(
            "opilio_response_bytes_by_type_total",
            MetricKind::Counter,
            help,
            &labels,
            row.amount.bytes as f64,
        );
    }
    if let Some(queues) = &status.census.queues {
        for (state, count) in queues.states.named() {
            let help = "Queues by state, at the latest count.";
            text.sample(
                "opilio_queues",
                MetricKind::Gauge,
                help,
                &with("state", state),
                count as f64,
            );
        }
        text.gauge(
            "opilio_queues_failing",
            "Queues that back off after failures, at the latest count.",
            job,
            queues.failing as f64,
        );
    }
    if let Some(pages) = &status.census.pages {
        text.gauge(
            "opilio_pages_coverage_ratio",
            "Share of the pages to revisit that have been visited at least once, at the latest count.",
            job,
            pages.coverage,
        );
        if let Some(freshness) = pages.freshness {
            text.gauge(
                "opilio_pages_freshness_ratio",
                "Estimated share of pages that have not changed since their last visit, at the latest count.",
                job,
                freshness,
            );
        }
        text.gauge(
            "opilio_pages_due",
            "Pages whose next visit is due, at the latest count.",
            job,
            pages.due as f64,
        );
    }
    share(text, job, status);
    for kind in AlertKind::ALL {
        let holds = |alert: &&Alert| alert.kind == kind;
        let count = status.alerts.iter().filter(holds).count();
        let help = "Active alerts by kind.";
        text.sample(
            "opilio_alerts",
            MetricKind::Gauge,
            help,
            &with("kind", kind.name()),
            count as f64,
        );
    }
    opilio_job::plugin_report::expose(text, &[("job_name", name)], plugins);
}

/// Adds the job's share of the machine's bandwidth and its use. A job without a share has no limit, and so no figure for it.
fn share(text: &mut Exposition, job: &[(&str, &str)], status: &Status) {
    let (share, taken) = (status.share, status.taken);
    let given = [
        (
            "opilio_share_bytes_per_second",
            "Share of the bandwidth for the job, in bytes per second; absent without a limit.",
            share.bytes_per_second,
        ),
        (
            "opilio_share_connections",
            "Share of the connections for the job; absent without a limit.",
            share.connections,
        ),
    ];
    for (name, help, given) in given {
        if let Some(given) = given {
            text.gauge(name, help, job, given as f64);
        }
    }
    text.counter(
        "opilio_received_bytes_total",
        "Bytes received since the process started, including bodies that were not kept.",
        job,
        taken.bytes as f64,
    );
    text.gauge(
        "opilio_connections",
        "URIs in process, or open connections if there are more.",
        job,
        taken.connections as f64,
    );
    let waits = [
        ("bytes", taken.waited_for_bytes),
        ("connections", taken.waited_for_connections),
    ];
    for (wanted, waits) in waits {
        let labels = [job, &[("wanted", wanted)]].concat();
        let help =
            "Number of times since the process started that the job had to wait for its share.";
        text.counter("opilio_share_waits_total", help, &labels, waits as f64);
    }
}

/// Adds a histogram without its sum, which is not known.
fn overdue(text: &mut Exposition, name: &str, overdue: &Overdue) {
    const NAME: &str = "opilio_overdue_seconds";
    const HELP: &str = "Delay of revisits after their due time, in seconds.";
    let bounds = Overdue::BOUNDS
        .iter()
        .map(|bound| bound.as_secs().to_string());
    let mut count = 0;
    for (bound, more) in bounds.chain(["+Inf".to_owned()]).zip(overdue.counts) {
        count += more;
        let labels = [("job_name", name.to_owned()), ("le", bound)];
        text.part(
            NAME,
            "_bucket",
            MetricKind::Histogram,
            HELP,
            &labels,
            count as f64,
        );
    }
    let labels = [("job_name", name)];
    text.part(
        NAME,
        "_count",
        MetricKind::Histogram,
        HELP,
        &labels,
        count as f64,
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use jiff::Timestamp;

    use super::*;
    use crate::Standing;
    use opilio_job::alerts::Severity;
    use opilio_job::breakdown::{StatusAmount, TypeAmount};
    use opilio_job::census::{Census, PageCensus, QueueCensus, QueueStates};
    use opilio_job::ledger::{Amount, Totals};
    use opilio_job::plugin_report::CallTimes;
    use opilio_job::share::{Share, ShareTaken};
    use opilio_sandbox::FaultKind;

    /// Returns the figures of a job with all optional parts.
    fn figures() -> Figures {
        let at = Timestamp::UNIX_EPOCH;
        let amount = Amount { uris: 3, bytes: 40 };
        let status = Status {
            job: PathBuf::from("jobs/a"),
            state: Standing::Running,
            pid: Some(7),
            elapsed_s: Some(1.5),
            uris: 3,
            bytes: 40,
            statistics: opilio_frontier::Statistics::default(),
            in_flight: Vec::new(),
            share: Share {
                bytes_per_second: Some(1000),
                connections: Some(6),
            },
            taken: ShareTaken {
                waited_for_connections: 2,
                ..ShareTaken::default()
            },
            alerts: vec![Alert {
                kind: AlertKind::DiskLow,
                subject: "/".to_owned(),
                severity: Severity::Warning,
                message: String::new(),
                since: at,
                until: None,
                acknowledged: None,
            }],
            census: Census {
                queues: Some(QueueCensus {
                    at,
                    states: QueueStates::default(),
                    failing: 0,
                    failing_named: Vec::new(),
                    deepest: 0,
                    deepest_queue: String::new(),
                    uris: 0,
                }),
                pages: Some(PageCensus {
                    at,
                    visited: 2,
                    unvisited: 2,
                    coverage: 0.5,
                    freshness: Some(0.25),
                    estimated: 2,
                    due: 1,
                    due_by_lateness: Vec::new(),
                    by_age: Vec::new(),
                }),
            },
        };
        Figures {
            status,
            breakdown: Breakdown {
                totals: Totals {
                    all: amount,
                    ..Totals::default()
                },
                statuses: vec![StatusAmount {
                    status: 200,
                    amount,
                }],
                media_types: vec![TypeAmount {
                    media_type: "text/html".to_owned(),
                    amount,
                }],
                hosts: Vec::new(),
            },
            plugins: vec![busy()],
        }
    }

    /// A plugin report with figures of every kind.
    fn busy() -> PluginReport {
        PluginReport {
            name: "html".to_owned(),
            variant: None,
            version: "1.0.0".to_owned(),
            component: String::new(),
            calls: 4,
            faults: BTreeMap::from([(FaultKind::Trap, 3)]),
            times: CallTimes::default(),
            memory_max: 1,
            outputs: BTreeMap::from([("links".to_owned(), 7)]),
            odd_waits: BTreeMap::from([("too-long".to_owned(), 2)]),
            counters: BTreeMap::from([("pages".to_owned(), 2)]),
            log_bytes_dropped: 0,
            kept_dropped: 0,
            left_out_s: None,
            trips: 1,
            lost_events: 0,
        }
    }

    /// Returns the names of the samples, and the names in the headings.
    fn names(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let headings = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let headings = headings.map(|line| line.split(' ').next().unwrap().to_owned());
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| line.split(['{', ' ']).next().unwrap().to_owned());
        (headings.collect(), samples.collect())
    }

    #[test]
    fn two_jobs_share_headings_and_have_names_of_their_own() {
        let figures = figures();
        let text = metrics([("a", &figures), ("b\"c", &figures)]);
        let heading = "# TYPE opilio_turns_total counter\n";
        assert_eq!(text.matches(heading).count(), 1, "{text}");
        let samples =
            "opilio_turns_total{job_name=\"a\"} 3\nopilio_turns_total{job_name=\"b\\\"c\"} 3\n";
        assert!(text.contains(&format!("{heading}{samples}")), "{text}");
        assert!(text.contains("opilio_alerts{job_name=\"a\",kind=\"disk-low\"} 1\n"));
        assert!(text.contains("opilio_pages_freshness_ratio{job_name=\"a\"} 0.25\n"));
        for share in [
            "opilio_share_bytes_per_second{job_name=\"a\"} 1000\n",
            "opilio_share_connections{job_name=\"a\"} 6\n",
            "opilio_share_waits_total{job_name=\"a\",wanted=\"connections\"} 2\n",
        ] {
            assert!(text.contains(share), "{share} in {text}");
        }
        assert!(text.contains("opilio_plugin_calls_total{job_name=\"a\",plugin=\"html\""));
    }

    #[test]
    fn the_documentation_has_every_metric_and_no_other() {
        let (headings, _) = names(&metrics([("a", &figures())]));
        let page = include_str!("../../../docs/METRICS.md");
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `opilio_"));
        let documented: BTreeSet<String> = rows
            .map(|row| format!("opilio_{}", row.split('`').next().unwrap()))
            .collect();
        assert_eq!(headings, documented);
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let (_, samples) = names(&metrics([("a", &figures())]));
        let dashboard = include_str!("../../../docs/grafana.json");
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
        let word = regex::Regex::new("opilio_[a-z_]+").unwrap();
        let asked: BTreeSet<&str> = word.find_iter(dashboard).map(|it| it.as_str()).collect();
        assert!(asked.len() > 15, "{asked:?}");
        let missing: Vec<_> = asked
            .iter()
            .filter(|name| !samples.contains(**name))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
