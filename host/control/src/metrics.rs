//! Metrics of jobs in the text exposition format of Prometheus (version 0.0.4). Readers of OpenMetrics and textfile collectors
//! accept it as well. `docs/METRICS.md` explains every metric.
//!
//! Labels have few values: statuses, the 50 most frequent media types, states of queues, kinds of alerts, plugins of the profile,
//! and names of parts. A host or a URI is never a label.

mod browsers;
mod parts;

use std::path::Path;

use opilio_frontier::Overdue;

use crate::{
    Author, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, JobState, Status,
    carry_out,
};
use opilio_job::alerts::AlertKind;
use opilio_job::breakdown::Breakdown;
use opilio_job::census::PageCensus;
use opilio_job::exposition::{Exposition, Metric, MetricKind, MetricSample};
use opilio_job::figures;
use opilio_job::ledger::Amount;
use opilio_job::plugin_report::{PluginReport, expose};

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
    pub fn query(job: &Path, by: &Author) -> Result<Figures, ControlError> {
        let mut status = None;
        let mut breakdown = None;
        let mut plugins = Vec::new();
        for command in [Command::Status, Command::Breakdown, Command::Plugins] {
            // If no process has ever written plugin reports, there are no plugins to report.
            let may_fail = command == Command::Plugins;
            let request = CommandRequest {
                by: by.clone(),
                command,
                only_here: true,
            };
            let mut refused = None;
            carry_out(job, &request, &mut |answer| {
                match answer {
                    CommandResponse::Status(it) => status = Some(*it),
                    CommandResponse::Breakdown(it) => breakdown = Some(*it),
                    CommandResponse::Plugins { plugins: it } => plugins = it,
                    CommandResponse::Refused { kind, message } => {
                        refused = Some(ControlError { kind, message });
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
                kind: ErrorKind::Failure,
                message: format!("job {} returned no metrics", job.display()),
            }),
        }
    }
}

/// Formats the metrics of these jobs, each under its name.
pub fn metrics<'j>(jobs: impl IntoIterator<Item = (&'j str, &'j Figures)>) -> String {
    let mut text = Exposition::default();
    for (name, figures) in jobs {
        let labels = [("job_name", name)];
        text.add(&METRICS, &labels, figures);
        text.add(&browsers::BROWSER_METRICS, &labels, figures);
        text.add(&parts::PART_METRICS, &labels, figures);
        expose(&mut text, &labels, &figures.plugins);
    }
    text.finish()
}

/// Metrics of a job besides those of its browsers and plugins, in the order of `docs/METRICS.md`.
const METRICS: [Metric<Figures>; 32] = [
    Metric::gauge("opilio_job_up", "Whether a process runs the job.", |job| {
        count(u64::from(job.status.pid.is_some()))
    }),
    Metric::gauge(
        "opilio_job_state",
        "1 for the current state of the job.",
        |job| {
            let state = job.status.state;
            let states = JobState::ALL.map(|one| (one.name(), u64::from(one == state)));
            MetricSample::by("state", states)
        },
    ),
    Metric::gauge(
        "opilio_job_elapsed_seconds",
        "Seconds since the process began to crawl.",
        |job| MetricSample::sole(job.status.elapsed_s.unwrap_or(0.0)),
    ),
    Metric::counter(
        "opilio_run_seconds_total",
        "Time spent crawling, over all processes of the job, to within half a minute.",
        |job| MetricSample::sole(job.status.statistics.run_time.as_secs_f64()),
    ),
    Metric::gauge("opilio_uris_known", "URIs known.", |job| {
        count(job.status.statistics.discovered)
    }),
    Metric::gauge(
        "opilio_uris_queued",
        "URIs in queues, without those in process.",
        |job| count(job.status.statistics.queued),
    ),
    Metric::gauge("opilio_uris_in_process", "URIs in process.", |job| {
        count(job.status.statistics.in_process)
    }),
    Metric::gauge(
        "opilio_uris_finished",
        "URIs by the outcome of their last visit.",
        |job| MetricSample::by("outcome", figures::outcomes(&job.status.statistics)),
    ),
    Metric::counter(
        "opilio_visits_finished_total",
        "Finished visits: lines of crawl.log.",
        |job| count(job.breakdown.totals.all.uris),
    ),
    Metric::counter(
        "opilio_content_bytes_total",
        "Bytes of content received.",
        |job| count(job.breakdown.totals.all.bytes),
    ),
    Metric::counter(
        "opilio_responses_total",
        "Responses by whether their payload was archived already.",
        |job| {
            MetricSample::by(
                "content",
                responses(job).map(|(content, amount)| (content, amount.uris)),
            )
        },
    ),
    Metric::counter(
        "opilio_response_bytes_total",
        "Bytes of content by whether the payload was archived already.",
        |job| {
            MetricSample::by(
                "content",
                responses(job).map(|(content, amount)| (content, amount.bytes)),
            )
        },
    ),
    Metric::counter(
        "opilio_visits_total",
        "Successful visits by the change since the last version.",
        |job| {
            let statistics = &job.status.statistics;
            let first = [("new", figures::first_visits(statistics))];
            MetricSample::by(
                "state",
                first.into_iter().chain(figures::revisits(statistics)),
            )
        },
    ),
    Metric {
        name: "opilio_overdue_seconds",
        kind: MetricKind::Histogram,
        help: "Delay of revisits after their due time, in seconds.",
        samples: |job| overdue(&job.status.statistics.overdue),
    },
    Metric::counter("opilio_retries_total", "Retries.", |job| {
        count(job.status.statistics.retries)
    }),
    Metric::counter(
        "opilio_links_refused_total",
        "Links to URIs not known yet that the scope rejected, counted each time they were found.",
        |job| count(job.status.statistics.refused),
    ),
    Metric::counter(
        "opilio_walls_total",
        "Responses that a filter took for a bot wall.",
        |job| count(job.breakdown.totals.walls),
    ),
    Metric::gauge("opilio_hosts", "Hosts crawled.", |job| {
        count(job.breakdown.totals.hosts)
    }),
    Metric::counter(
        "opilio_visits_finished_by_status_total",
        "Finished visits by fetch status.",
        |job| {
            let rows = job.breakdown.statuses.iter();
            MetricSample::by("status", rows.map(|row| (row.status, row.amount.uris)))
        },
    ),
    Metric::counter(
        "opilio_responses_by_type_total",
        "Responses by media type; rare types are summed up.",
        |job| {
            let rows = job.breakdown.media_types.iter();
            MetricSample::by(
                "media_type",
                rows.map(|row| (&row.media_type, row.amount.uris)),
            )
        },
    ),
    Metric::counter(
        "opilio_response_bytes_by_type_total",
        "Bytes of content by media type; rare types are summed up.",
        |job| {
            let rows = job.breakdown.media_types.iter();
            MetricSample::by(
                "media_type",
                rows.map(|row| (&row.media_type, row.amount.bytes)),
            )
        },
    ),
    Metric::gauge(
        "opilio_queues",
        "Queues by state, at the latest count.",
        |job| {
            let queues = job.status.census.queues.iter();
            MetricSample::by("state", queues.flat_map(|queues| queues.states.named()))
        },
    ),
    Metric::gauge(
        "opilio_queues_failing",
        "Queues that back off after failures, at the latest count.",
        |job| {
            let queues = job.status.census.queues.as_ref();
            MetricSample::optional(queues.map(|queues| queues.failing as f64))
        },
    ),
    Metric::gauge(
        "opilio_pages_coverage_ratio",
        "Share of the pages to revisit that have been visited at least once, at the latest count.",
        |job| pages(job, |pages| Some(pages.coverage)),
    ),
    Metric::gauge(
        "opilio_pages_freshness_ratio",
        "Estimated share of pages that have not changed since their last visit, at the latest count.",
        |job| pages(job, |pages| pages.freshness),
    ),
    Metric::gauge(
        "opilio_pages_due",
        "Pages whose next visit is due, at the latest count.",
        |job| pages(job, |pages| Some(pages.due as f64)),
    ),
    Metric::gauge(
        "opilio_share_bytes_per_second",
        "Share of the bandwidth for the job, in bytes per second; absent without a limit.",
        |job| MetricSample::optional(job.status.share.bytes_per_second.map(|share| share as f64)),
    ),
    Metric::gauge(
        "opilio_share_connections",
        "Share of the connections for the job; absent without a limit.",
        |job| MetricSample::optional(job.status.share.connections.map(|share| share as f64)),
    ),
    Metric::counter(
        "opilio_received_bytes_total",
        "Bytes received since the process started, including bodies that were not kept.",
        |job| count(job.status.taken.bytes),
    ),
    Metric::gauge(
        "opilio_connections",
        "URIs in process, or open connections if there are more.",
        |job| count(job.status.taken.connections),
    ),
    Metric::counter(
        "opilio_share_waits_total",
        "Number of times since the process started that the job had to wait for its share.",
        |job| {
            let taken = &job.status.taken;
            let waits = [
                ("bytes", taken.waited_for_bytes),
                ("connections", taken.waited_for_connections),
            ];
            MetricSample::by("wanted", waits)
        },
    ),
    Metric::gauge("opilio_alerts", "Active alerts by kind.", |job| {
        MetricSample::by(
            "kind",
            AlertKind::ALL.map(|kind| (kind.name(), alerts(job, kind))),
        )
    }),
];

fn count(count: u64) -> Vec<MetricSample> {
    MetricSample::sole(count as f64)
}

fn responses(job: &Figures) -> [(&'static str, Amount); 3] {
    figures::responses(&job.breakdown.totals)
}

fn pages(job: &Figures, figure: fn(&PageCensus) -> Option<f64>) -> Vec<MetricSample> {
    MetricSample::optional(job.status.census.pages.as_ref().and_then(figure))
}

fn alerts(job: &Figures, kind: AlertKind) -> u64 {
    let alerts = job.status.alerts.iter();
    alerts.filter(|alert| alert.kind == kind).count() as u64
}

/// Returns a histogram without its sum, which is not known.
fn overdue(overdue: &Overdue) -> Vec<MetricSample> {
    let bounds = Overdue::BOUNDS.iter();
    let bounds = bounds.map(|bound| bound.as_secs().to_string());
    let mut all = 0;
    let up_to = bounds.chain(["+Inf".to_owned()]).zip(overdue.counts);
    let up_to = up_to.map(|(bound, more)| {
        all += more;
        (bound, all)
    });
    let mut samples = MetricSample::by("le", up_to);
    for sample in &mut samples {
        sample.suffix = "_bucket";
    }
    samples.extend(count(all).into_iter().map(|count| MetricSample {
        suffix: "_count",
        ..count
    }));
    samples
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use jiff::Timestamp;

    use super::*;
    use crate::BrowsersStatus;
    use opilio_job::alerts::{Alert, Severity};
    use opilio_job::breakdown::{StatusAmount, TypeAmount};
    use opilio_job::census::{Census, QueueCensus, QueueStates};
    use opilio_job::ledger::Totals;
    use opilio_job::part_status::{JetStreamUse, PartStatus};
    use opilio_job::plugin_report::CallTimes;
    use opilio_job::share::{Share, ShareTaken};
    use opilio_sandbox::FaultKind;

    /// Returns the figures of a job with all optional parts.
    pub(super) fn figures() -> Figures {
        let at = Timestamp::UNIX_EPOCH;
        let amount = Amount { uris: 3, bytes: 40 };
        let status = Status {
            job: PathBuf::from("jobs/a"),
            state: JobState::Running,
            last_end: None,
            pid: Some(7),
            elapsed_s: Some(1.5),
            uris: 3,
            bytes: 40,
            statistics: opilio_frontier::Statistics::default(),
            visits: None,
            in_flight: Vec::new(),
            browsers: Some(BrowsersStatus::default()),
            part: Some(part()),
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

    /// A part of a shared crawl that observes the others.
    fn part() -> PartStatus {
        PartStatus {
            takeovers: Some(0),
            jetstream: Some(JetStreamUse {
                bytes: 1,
                limit: Some(2),
            }),
            others: Some(Vec::new()),
            ..PartStatus::default()
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
        let heading = "# TYPE opilio_visits_finished_total counter\n";
        assert_eq!(text.matches(heading).count(), 1, "{text}");
        let samples = "opilio_visits_finished_total{job_name=\"a\"} 3\nopilio_visits_finished_total{job_name=\"b\\\"c\"} 3\n";
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
    fn the_dashboard_queries_only_documented_metrics() {
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
