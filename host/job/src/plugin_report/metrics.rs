//! Plugin figures as metrics: among those of a job, and alone as `plugins.prom` for a textfile collector.

use super::PluginReport;
use crate::exposition::{Exposition, MetricKind};

/// One metric, with the function that returns a plugin's samples of it.
struct Metric {
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    samples: fn(&PluginReport) -> Vec<Sample>,
}

/// One line of a metric.
struct Sample {
    /// Suffix of the metric's name: `_sum`, `_count`.
    suffix: &'static str,
    /// A label besides those of the plugin, and its value.
    label: Option<(&'static str, String)>,
    value: f64,
}

const METRICS: [Metric; 10] = [
    Metric {
        name: "opilio_plugin_calls_total",
        kind: MetricKind::Counter,
        help: "Calls of the plugin, including those that ended in an error.",
        samples: |plugin| vec![Sample::sole(plugin.calls)],
    },
    Metric {
        name: "opilio_plugin_faults_total",
        kind: MetricKind::Counter,
        help: "Plugin errors by kind.",
        samples: |plugin| {
            let faults = plugin.faults.iter();
            faults
                .map(|(kind, count)| Sample::of("kind", kind.to_string(), *count))
                .collect()
        },
    },
    Metric {
        name: "opilio_plugin_call_seconds",
        kind: MetricKind::Summary,
        help: "Durations of calls, in seconds of wall-clock time.",
        samples: |plugin| {
            let times = &plugin.times;
            let at = |quantile: &str, value| Sample {
                suffix: "",
                label: Some(("quantile", quantile.to_owned())),
                value,
            };
            let all = |suffix, value| Sample {
                suffix,
                label: None,
                value,
            };
            vec![
                at("0.5", times.median_s),
                at("0.9", times.p90_s),
                at("0.99", times.p99_s),
                all("_sum", times.total_s),
                all("_count", plugin.calls as f64),
            ]
        },
    },
    Metric {
        name: "opilio_plugin_call_seconds_max",
        kind: MetricKind::Gauge,
        help: "Duration of the longest call, in seconds.",
        samples: |plugin| {
            vec![Sample {
                suffix: "",
                label: None,
                value: plugin.times.max_s,
            }]
        },
    },
    Metric {
        name: "opilio_plugin_memory_bytes_max",
        kind: MetricKind::Gauge,
        help: "Maximum linear memory of a call, in bytes.",
        samples: |plugin| vec![Sample::sole(plugin.memory_max)],
    },
    Metric {
        name: "opilio_plugin_outputs_total",
        kind: MetricKind::Counter,
        help: "Answers of the plugin by kind.",
        samples: |plugin| {
            let outputs = plugin.outputs.iter();
            outputs
                .map(|(what, count)| Sample::of("what", what.clone(), *count))
                .collect()
        },
    },
    Metric {
        name: "opilio_plugin_odd_waits_total",
        kind: MetricKind::Counter,
        help: "Waits of an evaluator that were corrected, by reason: outside of the profile's limits, or oscillating.",
        samples: |plugin| {
            let odd = plugin.odd_waits.iter();
            odd.map(|(why, count)| Sample::of("why", why.clone(), *count))
                .collect()
        },
    },
    Metric {
        name: "opilio_plugin_counter_total",
        kind: MetricKind::Counter,
        help: "Counters of the plugin by name.",
        samples: |plugin| {
            let counters = plugin.counters.iter();
            counters
                .map(|(name, count)| Sample::of("name", name.clone(), *count))
                .collect()
        },
    },
    Metric {
        name: "opilio_plugin_trips_total",
        kind: MetricKind::Counter,
        help: "Number of times the plugin has failed too often.",
        samples: |plugin| vec![Sample::sole(plugin.trips)],
    },
    Metric {
        name: "opilio_plugin_lost_events_total",
        kind: MetricKind::Counter,
        help: "Events that an observer has lost because of errors.",
        samples: |plugin| vec![Sample::sole(plugin.lost_events)],
    },
];

impl Sample {
    fn sole(value: u64) -> Sample {
        Sample {
            suffix: "",
            label: None,
            value: value as f64,
        }
    }

    fn of(label: &'static str, said: String, value: u64) -> Sample {
        Sample {
            label: Some((label, said)),
            ..Sample::sole(value)
        }
    }
}

/// Returns the figures of these plugins as a file of metrics. A metric without a sample is left out.
pub(super) fn text(plugins: &[PluginReport]) -> String {
    let mut text = Exposition::default();
    expose(&mut text, &[], plugins);
    text.finish()
}

/// Adds the figures of these plugins. The given labels precede the plugin's own.
pub fn expose(text: &mut Exposition, labels: &[(&str, &str)], plugins: &[PluginReport]) {
    for metric in &METRICS {
        for plugin in plugins {
            let variant = plugin.variant.as_deref().unwrap_or_default();
            for sample in (metric.samples)(plugin) {
                let mut labels = labels.to_vec();
                labels.extend([("plugin", plugin.name.as_str()), ("variant", variant)]);
                if let Some((label, said)) = &sample.label {
                    labels.push((label, said));
                }
                let Metric {
                    name, kind, help, ..
                } = metric;
                text.part(name, sample.suffix, *kind, help, &labels, sample.value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use opilio_sandbox::FaultKind;

    use super::super::CallTimes;
    use super::*;

    #[test]
    fn figures_are_metrics_with_a_heading_each_and_labels_that_cannot_break_out() {
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
