//! The daemon's own metrics for Prometheus. Those of the running jobs follow them.

use opilio_cluster::MemberStatus;
use opilio_control::JobState;
use opilio_control::exposition::{Exposition, Metric, MetricSample};

use crate::config::CommonLimits;
use crate::node::{AVAILABILITIES, NodeState};

/// Media type of the text exposition format, which needs no end mark, unlike OpenMetrics.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Figures of the daemon.
pub(crate) struct DaemonFigures {
    /// State of each job.
    pub(crate) jobs: Vec<JobState>,
    /// Common limits of the jobs.
    pub(crate) limits: CommonLimits,
    /// The membership in a cluster.
    pub(crate) node: Option<NodeFigures>,
}

/// Figures of a daemon's membership in a cluster.
pub(crate) struct NodeFigures {
    pub(crate) status: MemberStatus,
    /// State of each node of the cluster; empty if NATS does not answer.
    pub(crate) nodes: Vec<NodeState>,
}

const METRICS: [Metric<DaemonFigures>; 9] = [
    Metric::gauge(
        "opilio_build_info",
        "The daemon's version; always 1.",
        |_| MetricSample::by("version", [(env!("CARGO_PKG_VERSION"), 1)]),
    ),
    Metric::gauge("opilio_jobs", "Jobs of the daemon by state.", |daemon| {
        let count = |state| daemon.jobs.iter().filter(|job| **job == state).count() as u64;
        MetricSample::by(
            "state",
            JobState::ALL.map(|state| (state.name(), count(state))),
        )
    }),
    Metric::gauge(
        "opilio_limit_bytes_per_second",
        "Maximum bytes per second that all jobs receive.",
        |daemon| MetricSample::optional(daemon.limits.bandwidth.map(|most| most as f64)),
    ),
    Metric::gauge(
        "opilio_limit_connections",
        "Maximum number of open connections of all jobs.",
        |daemon| MetricSample::optional(daemon.limits.connections.map(|most| most as f64)),
    ),
    Metric::gauge(
        "opilio_node_state",
        "State of this node's connection to NATS: 1 for the present one.",
        |daemon| {
            let states = daemon.node.iter().flat_map(|node| {
                let present = node.status.availability;
                AVAILABILITIES.map(|(state, name)| (name, u64::from(state == present)))
            });
            MetricSample::by("state", states)
        },
    ),
    Metric::gauge(
        "opilio_node_leads",
        "1 if this node leads its cluster.",
        |daemon| of_node(daemon, |status| f64::from(u8::from(status.is_leading))),
    ),
    Metric::gauge(
        "opilio_node_drained",
        "1 if this node is drained: the daemon starts no crawls.",
        |daemon| of_node(daemon, |status| f64::from(u8::from(status.is_drained))),
    ),
    Metric::gauge(
        "opilio_node_renewal_seconds",
        "Time of the last renewal of this node's session.",
        |daemon| {
            let status = daemon.node.as_ref().map(|node| &node.status);
            let took = status.and_then(|status| status.renewal_took);
            MetricSample::optional(took.map(|took| took.as_secs_f64()))
        },
    ),
    Metric::gauge("opilio_nodes", "Nodes of the cluster by state.", |daemon| {
        let nodes = daemon.node.as_ref().map(|node| &node.nodes);
        let nodes = nodes.filter(|nodes| !nodes.is_empty());
        let counts = nodes.into_iter().flat_map(|nodes| {
            NODE_STATES.map(|state| {
                let count = nodes.iter().filter(|node| **node == state).count();
                (state.name(), count as u64)
            })
        });
        MetricSample::by("state", counts)
    }),
];

const NODE_STATES: [NodeState; 3] = [NodeState::Live, NodeState::Gone, NodeState::Left];

fn of_node(daemon: &DaemonFigures, figure: impl Fn(&MemberStatus) -> f64) -> Vec<MetricSample> {
    let status = daemon.node.as_ref().map(|node| &node.status);
    MetricSample::optional(status.map(figure))
}

impl DaemonFigures {
    /// Formats the version, the number of jobs in each state, and the common limits if they are set.
    pub(crate) fn metrics(&self) -> String {
        let mut text = Exposition::default();
        text.add(&METRICS, &[], self);
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(jobs: Vec<JobState>, limits: CommonLimits) -> DaemonFigures {
        let node = None;
        DaemonFigures { jobs, limits, node }
    }

    #[test]
    fn jobs_are_counted_by_state() {
        let jobs = vec![JobState::Failed, JobState::New, JobState::Failed];
        let limits = CommonLimits::default();
        let text = figures(jobs, limits).metrics();
        let figures: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(figures.len(), 13);
        for figure in [
            "opilio_jobs{state=\"failed\"} 2",
            "opilio_jobs{state=\"new\"} 1",
            "opilio_jobs{state=\"running\"} 0",
        ] {
            assert!(figures.contains(&figure), "{figure}: {text}");
        }
    }

    #[test]
    fn common_limits_have_metrics_if_they_are_set() {
        let limits = CommonLimits {
            bandwidth: Some(125_000),
            ..CommonLimits::default()
        };
        let jobs = Vec::new();
        let text = figures(jobs, limits).metrics();
        let gauge =
            "# TYPE opilio_limit_bytes_per_second gauge\nopilio_limit_bytes_per_second 125000\n";
        assert!(text.ends_with(gauge), "{text}");
    }
}
