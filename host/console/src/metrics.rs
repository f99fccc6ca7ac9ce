//! The daemon's own metrics for Prometheus. Those of the running jobs follow them.

use std::fmt::Write as _;

use crate::config::Limits;
use crate::overview::JobState;

/// Media type of the text exposition format, which needs no end mark, unlike OpenMetrics.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const STATES: [(JobState, &str); 12] = [
    (JobState::New, "new"),
    (JobState::Waiting, "waiting"),
    (JobState::Starting, "starting"),
    (JobState::Running, "running"),
    (JobState::Pausing, "pausing"),
    (JobState::Paused, "paused"),
    (JobState::Ending, "ending"),
    (JobState::Stopped, "stopped"),
    (JobState::Finished, "finished"),
    (JobState::Failed, "failed"),
    (JobState::Crashed, "crashed"),
    (JobState::Damaged, "damaged"),
];

/// The daemon's version, the number of jobs in each state, and the common limits if they are set.
pub(crate) fn of_daemon(jobs: &[JobState], limits: &Limits) -> String {
    let mut text = format!(
        "# HELP opilio_build_info The daemon's version; always 1.\n\
         # TYPE opilio_build_info gauge\n\
         opilio_build_info{{version=\"{}\"}} 1\n\
         # HELP opilio_jobs Jobs of the daemon by state.\n\
         # TYPE opilio_jobs gauge\n",
        env!("CARGO_PKG_VERSION")
    );
    for (state, name) in STATES {
        let count = jobs.iter().filter(|job| **job == state).count();
        // Writing to a text does not fail.
        let _ = writeln!(text, "opilio_jobs{{state=\"{name}\"}} {count}");
    }
    let connections = limits.connections.map(|most| most as u64);
    for (name, help, limit) in [
        (
            "opilio_limit_bytes_per_second",
            "Maximum bytes per second that all jobs receive.",
            limits.bandwidth,
        ),
        (
            "opilio_limit_connections",
            "Maximum number of open connections of all jobs.",
            connections,
        ),
    ] {
        if let Some(limit) = limit {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {limit}\n"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_counted_under_the_name_that_the_api_has_for_it() {
        for (state, name) in STATES {
            assert_eq!(serde_json::json!(state), name);
        }
        let jobs = [JobState::Failed, JobState::New, JobState::Failed];
        let text = of_daemon(&jobs, &Limits::default());
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
    fn what_all_jobs_may_take_is_told_where_it_is_limited() {
        let limits = Limits {
            bandwidth: Some(125_000),
            ..Limits::default()
        };
        let text = of_daemon(&[], &limits);
        let gauge =
            "# TYPE opilio_limit_bytes_per_second gauge\nopilio_limit_bytes_per_second 125000\n";
        assert!(text.ends_with(gauge), "{text}");
    }
}
