//! Text exposition format of Prometheus, version 0.0.4: one heading for each metric, followed by its samples.

use std::fmt::Write as _;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Value that only grows.
    Counter,
    /// Value that goes up and down.
    Gauge,
    /// Counts up to bounds, and a total count.
    Histogram,
    /// Quantiles, a sum and a count.
    Summary,
}

/// Metrics to be written as text, in the order of their first samples.
#[derive(Default)]
pub struct Exposition {
    metrics: Vec<Metric>,
}

struct Metric {
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    samples: String,
}

impl Exposition {
    /// Adds a sample.
    pub fn sample<V: AsRef<str>>(
        &mut self,
        name: &'static str,
        kind: MetricKind,
        help: &'static str,
        labels: &[(&str, V)],
        value: f64,
    ) {
        self.part(name, "", kind, help, labels, value);
    }

    /// Adds a sample whose name is the metric's name with a suffix: `_sum`, `_count`.
    pub fn part<V: AsRef<str>>(
        &mut self,
        name: &'static str,
        suffix: &str,
        kind: MetricKind,
        help: &'static str,
        labels: &[(&str, V)],
        value: f64,
    ) {
        let place = self.metrics.iter().position(|metric| metric.name == name);
        let place = place.unwrap_or_else(|| {
            self.metrics.push(Metric {
                name,
                kind,
                help,
                samples: String::new(),
            });
            self.metrics.len() - 1
        });
        let samples = &mut self.metrics[place].samples;
        samples.push_str(name);
        samples.push_str(suffix);
        for (index, (label, said)) in labels.iter().enumerate() {
            samples.push(if index == 0 { '{' } else { ',' });
            // Writing to a `String` cannot fail.
            let _ = write!(samples, "{label}=\"{}\"", escaped(said.as_ref()));
        }
        if !labels.is_empty() {
            samples.push('}');
        }
        let _ = writeln!(samples, " {value}");
    }

    /// Adds a gauge with these labels.
    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        self.sample(name, MetricKind::Gauge, help, labels, value);
    }

    /// Adds a counter with these labels.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        self.sample(name, MetricKind::Counter, help, labels, value);
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        let mut text = String::new();
        for metric in self.metrics {
            let Metric {
                name,
                kind,
                help,
                samples,
            } = metric;
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
                MetricKind::Summary => "summary",
            };
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}"
            );
        }
        text
    }
}

/// Escapes a label's value for the quotes of the format.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
