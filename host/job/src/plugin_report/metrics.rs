//! Plugin figures as metrics: as part of the metrics of a job, and as the file `plugins.prom` for a textfile collector.

use std::collections::BTreeMap;

use super::PluginReport;
use crate::exposition::{Exposition, Metric, MetricKind, MetricSample};

const METRICS: [Metric<PluginReport>; 10] = [
    Metric::counter(
        "opilio_plugin_calls_total",
        "Calls of the plugin, including those that ended in an error.",
        |plugin| MetricSample::sole(plugin.calls as f64),
    ),
    Metric::counter(
        "opilio_plugin_faults_total",
        "Plugin errors by kind.",
        |plugin| {
            MetricSample::by(
                "kind",
                plugin.faults.iter().map(|(kind, count)| (kind, *count)),
            )
        },
    ),
    Metric {
        name: "opilio_plugin_call_seconds",
        kind: MetricKind::Summary,
        help: "Durations of calls, in seconds of wall-clock time.",
        samples: call_seconds,
    },
    Metric::gauge(
        "opilio_plugin_call_seconds_max",
        "Duration of the longest call, in seconds.",
        |plugin| MetricSample::sole(plugin.times.max_s),
    ),
    Metric::gauge(
        "opilio_plugin_memory_bytes_max",
        "Maximum linear memory of a call, in bytes.",
        |plugin| MetricSample::sole(plugin.memory_max as f64),
    ),
    Metric::counter(
        "opilio_plugin_outputs_total",
        "Answers of the plugin by kind.",
        |plugin| by("what", &plugin.outputs),
    ),
    Metric::counter(
        "opilio_plugin_odd_waits_total",
        "Waits of an evaluator that were corrected, by reason: outside of the profile's limits, or oscillating.",
        |plugin| by("why", &plugin.odd_waits),
    ),
    Metric::counter(
        "opilio_plugin_counter_total",
        "Counters of the plugin by name.",
        |plugin| by("name", &plugin.counters),
    ),
    Metric::counter(
        "opilio_plugin_trips_total",
        "Number of times the plugin has failed too often.",
        |plugin| MetricSample::sole(plugin.trips as f64),
    ),
    Metric::counter(
        "opilio_plugin_lost_events_total",
        "Events that an observer has lost because of errors.",
        |plugin| MetricSample::sole(plugin.lost_events as f64),
    ),
];

fn by(label: &'static str, counts: &BTreeMap<String, u64>) -> Vec<MetricSample> {
    MetricSample::by(label, counts.iter().map(|(name, count)| (name, *count)))
}

fn call_seconds(plugin: &PluginReport) -> Vec<MetricSample> {
    let times = &plugin.times;
    let quantiles = [
        ("0.5", times.median_s),
        ("0.9", times.p90_s),
        ("0.99", times.p99_s),
    ];
    let quantiles = quantiles.map(|(quantile, value)| MetricSample {
        suffix: "",
        labels: vec![("quantile", quantile.to_owned())],
        value,
    });
    let all = [("_sum", times.total_s), ("_count", plugin.calls as f64)];
    let all = all.map(|(suffix, value)| MetricSample {
        suffix,
        labels: Vec::new(),
        value,
    });
    quantiles.into_iter().chain(all).collect()
}

/// Returns the figures of these plugins as a file of metrics. A metric without a sample is left out.
pub(super) fn text(plugins: &[PluginReport]) -> String {
    let mut text = Exposition::default();
    expose(&mut text, &[], plugins);
    text.finish()
}

/// Adds the figures of these plugins. The given labels precede the plugin's own.
pub fn expose(text: &mut Exposition, labels: &[(&str, &str)], plugins: &[PluginReport]) {
    for plugin in plugins {
        let variant = plugin.variant.as_deref().unwrap_or_default();
        let own = [("plugin", plugin.name.as_str()), ("variant", variant)];
        text.add(&METRICS, &[labels, &own].concat(), plugin);
    }
}

#[cfg(test)]
mod tests {
    use opilio_sandbox::FaultKind;

    use super::super::CallTimes;
    use super::*;

    #[test]
    fn each_metric_has_one_heading_and_label_values_are_escaped() {
        let plugin = PluginReport {
            name: "a\"b\\c\nd".to_owned(),
            variant: Some("1a2b3c4d".to_owned()),
            version: "1.0.0".to_owned(),
            component: String::new(),
            calls: 4,
            faults: BTreeMap::from([(FaultKind::Trap, 3)]),
            times: CallTimes {
                total_s: 1.5,
                median_s: 12e-6,
                p90_s: 0.001,
                p99_s: 0.25,
                max_s: 1.0,
            },
            memory_max: 3 << 19,
            outputs: BTreeMap::from([("links".to_owned(), 7)]),
            odd_waits: BTreeMap::new(),
            counters: BTreeMap::new(),
            log_bytes_dropped: 0,
            kept_dropped: 0,
            left_out_s: None,
            trips: 1,
            lost_events: 0,
        };
        let labels = r#"plugin="a\"b\\c\nd",variant="1a2b3c4d""#;
        let expected = format!(
            r#"# HELP opilio_plugin_calls_total Calls of the plugin, including those that ended in an error.
# TYPE opilio_plugin_calls_total counter
opilio_plugin_calls_total{{{labels}}} 4
# HELP opilio_plugin_faults_total Plugin errors by kind.
# TYPE opilio_plugin_faults_total counter
opilio_plugin_faults_total{{{labels},kind="trap"}} 3
# HELP opilio_plugin_call_seconds Durations of calls, in seconds of wall-clock time.
# TYPE opilio_plugin_call_seconds summary
opilio_plugin_call_seconds{{{labels},quantile="0.5"}} 0.000012
opilio_plugin_call_seconds{{{labels},quantile="0.9"}} 0.001
opilio_plugin_call_seconds{{{labels},quantile="0.99"}} 0.25
opilio_plugin_call_seconds_sum{{{labels}}} 1.5
opilio_plugin_call_seconds_count{{{labels}}} 4
# HELP opilio_plugin_call_seconds_max Duration of the longest call, in seconds.
# TYPE opilio_plugin_call_seconds_max gauge
opilio_plugin_call_seconds_max{{{labels}}} 1
# HELP opilio_plugin_memory_bytes_max Maximum linear memory of a call, in bytes.
# TYPE opilio_plugin_memory_bytes_max gauge
opilio_plugin_memory_bytes_max{{{labels}}} 1572864
# HELP opilio_plugin_outputs_total Answers of the plugin by kind.
# TYPE opilio_plugin_outputs_total counter
opilio_plugin_outputs_total{{{labels},what="links"}} 7
# HELP opilio_plugin_trips_total Number of times the plugin has failed too often.
# TYPE opilio_plugin_trips_total counter
opilio_plugin_trips_total{{{labels}}} 1
# HELP opilio_plugin_lost_events_total Events that an observer has lost because of errors.
# TYPE opilio_plugin_lost_events_total counter
opilio_plugin_lost_events_total{{{labels}}} 0
"#
        );
        assert_eq!(text(&[plugin]), expected);
        assert_eq!(text(&[]), "");
    }
}
