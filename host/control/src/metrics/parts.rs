//! Metrics of a part of a shared crawl. A job on one machine has none of them.

use opilio_job::exposition::{Metric, MetricSample};
use opilio_job::part_status::{JetStreamUse, PartState, PartStatus};

use super::Figures;

/// Metrics of a job's part, in the order of `docs/METRICS.md`.
pub(super) const PART_METRICS: [Metric<Figures>; 9] = [
    Metric::gauge(
        "opilio_part_info",
        "Always 1, with the names of the shared crawl and of the job's part.",
        |job| {
            let info = |part: &PartStatus| MetricSample {
                suffix: "",
                labels: vec![("crawl", part.crawl.clone()), ("part", part.name.clone())],
                value: 1.0,
            };
            job.status.part.iter().map(info).collect()
        },
    ),
    Metric::gauge(
        "opilio_parts",
        "Parts of the shared crawl by state; absent on all parts but one.",
        parts,
    ),
    Metric::gauge(
        "opilio_inbox_messages",
        "Messages with links that the part has not taken, or that no snapshot covers.",
        |job| sole(job, |part| Some(part.inbox)),
    ),
    Metric::gauge(
        "opilio_links_waiting_seconds",
        "Time for which the oldest link from or to another part has waited, in seconds.",
        |job| {
            let waits =
                |part: &PartStatus| [("inbox", part.inbox_wait_s), ("outbox", part.outbox_wait_s)];
            MetricSample::by("place", job.status.part.iter().flat_map(waits))
        },
    ),
    Metric::gauge(
        "opilio_part_commands_waiting",
        "Commands for all nodes that the part has not carried out.",
        |job| sole(job, |part| Some(part.commands)),
    ),
    Metric::counter(
        "opilio_part_takeovers_total",
        "Takeovers of the part; absent if it cannot be taken over.",
        |job| sole(job, |part| part.takeovers),
    ),
    Metric::counter(
        "opilio_part_sessions_lost_total",
        "Sessions of the process that others have ended, since it began.",
        |job| sole(job, |part| Some(part.sessions_lost)),
    ),
    Metric::gauge(
        "opilio_jetstream_bytes",
        "Bytes that the account stores in JetStream.",
        |job| jetstream(job, |storage| Some(storage.bytes)),
    ),
    Metric::gauge(
        "opilio_jetstream_limit_bytes",
        "Bytes that the account may store in JetStream; absent without a limit of the account.",
        |job| jetstream(job, |storage| storage.limit),
    ),
];

fn sole(job: &Figures, figure: fn(&PartStatus) -> Option<u64>) -> Vec<MetricSample> {
    let figure = job.status.part.as_ref().and_then(figure);
    MetricSample::optional(figure.map(|figure| figure as f64))
}

fn jetstream(job: &Figures, figure: fn(&JetStreamUse) -> Option<u64>) -> Vec<MetricSample> {
    let storage = job.status.part.as_ref().and_then(|part| part.jetstream);
    let figure = storage.as_ref().and_then(figure);
    MetricSample::optional(figure.map(|figure| figure as f64))
}

fn parts(job: &Figures) -> Vec<MetricSample> {
    let others = job.status.part.as_ref().and_then(|it| it.others.as_ref());
    let Some(others) = others else {
        return Vec::new();
    };
    let count = |state: PartState| {
        let count = others.iter().filter(|other| other.state == state).count();
        // This part is running.
        count as u64 + u64::from(state == PartState::Running)
    };
    MetricSample::by(
        "state",
        PartState::ALL.map(|state| (state.name(), count(state))),
    )
}

#[cfg(test)]
mod tests {
    use opilio_job::part_status::OtherPart;

    use super::super::metrics;
    use super::super::tests::figures;
    use super::*;

    fn exposed(part: Option<PartStatus>) -> String {
        let mut figures = figures();
        figures.status.part = part;
        metrics([("a", &figures)])
    }

    #[test]
    fn metrics_have_the_name_of_the_part_and_count_parts_by_state() {
        let other = |name: &str, state| OtherPart {
            name: name.to_owned(),
            state,
            node: None,
            is_done: false,
            takeover: None,
            failed_takeover: None,
        };
        let part = PartStatus {
            crawl: "news".to_owned(),
            name: "one".to_owned(),
            inbox_wait_s: 7,
            takeovers: Some(2),
            others: Some(vec![
                other("two", PartState::Gone),
                other("three", PartState::Running),
            ]),
            ..PartStatus::default()
        };
        let text = exposed(Some(part.clone()));
        for line in [
            "opilio_part_info{job_name=\"a\",crawl=\"news\",part=\"one\"} 1\n",
            "opilio_parts{job_name=\"a\",state=\"running\"} 2\n",
            "opilio_parts{job_name=\"a\",state=\"gone\"} 1\n",
            "opilio_parts{job_name=\"a\",state=\"new\"} 0\n",
            "opilio_links_waiting_seconds{job_name=\"a\",place=\"inbox\"} 7\n",
            "opilio_part_takeovers_total{job_name=\"a\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        // Another part observes the others.
        let text = exposed(Some(PartStatus {
            others: None,
            ..part
        }));
        assert!(!text.contains("opilio_parts{"), "{text}");
    }

    #[test]
    fn a_job_on_one_machine_has_no_metrics_of_parts() {
        let text = exposed(None);
        for name in ["opilio_part", "opilio_inbox", "opilio_jetstream"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
    }
}
