//! Text exposition format of Prometheus, version 0.0.4: one heading for each metric, followed by its samples.
//!
//! A [`Metric`] describes a metric once: name, kind, help, and the function that reads its samples from a source.

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

/// Metric of a source, such as a job or a plugin.
pub struct Metric<S: 'static> {
    /// Name of the metric.
    pub name: &'static str,
    /// Type of the metric.
    pub kind: MetricKind,
    /// Explanation for readers of the text.
    pub help: &'static str,
    /// Function that returns the present samples. A metric without samples is left out.
    pub samples: fn(&S) -> Vec<MetricSample>,
}

/// Line of a metric.
pub struct MetricSample {
    /// Suffix of the metric's name: `_sum`, `_count`.
    pub suffix: &'static str,
    /// Further labels and their values, in addition to those of the source.
    pub labels: Vec<(&'static str, String)>,
    /// Value.
    pub value: f64,
}

impl<S> Metric<S> {
    /// Describes a gauge.
    pub const fn gauge(
        name: &'static str,
        help: &'static str,
        samples: fn(&S) -> Vec<MetricSample>,
    ) -> Metric<S> {
        Metric {
            name,
            kind: MetricKind::Gauge,
            help,
            samples,
        }
    }

    /// Describes a counter.
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        samples: fn(&S) -> Vec<MetricSample>,
    ) -> Metric<S> {
        Metric {
            kind: MetricKind::Counter,
            ..Metric::gauge(name, help, samples)
        }
    }
}

impl MetricSample {
    /// Returns the sole sample of a metric.
    pub fn sole(value: f64) -> Vec<MetricSample> {
        Self::optional(Some(value))
    }

    /// Returns the sole sample of a metric whose value may be missing.
    pub fn optional(value: Option<f64>) -> Vec<MetricSample> {
        let sample = |value| MetricSample {
            suffix: "",
            labels: Vec::new(),
            value,
        };
        value.map(sample).into_iter().collect()
    }

    /// Returns one sample for each count, with its name in the label.
    pub fn by(
        label: &'static str,
        counts: impl IntoIterator<Item = (impl ToString, u64)>,
    ) -> Vec<MetricSample> {
        let sample = |(name, count): (_, u64)| MetricSample {
            suffix: "",
            labels: vec![(label, ToString::to_string(&name))],
            value: count as f64,
        };
        counts.into_iter().map(sample).collect()
    }
}

/// Metrics to be written as text, in the order of their first samples.
#[derive(Default)]
pub struct Exposition(Vec<MetricText>);

/// Heading of a metric, and its samples.
struct MetricText {
    name: &'static str,
    text: String,
}

impl Exposition {
    /// Adds the samples of each metric for a source. The given labels are written before those of a sample.
    pub fn add<S>(&mut self, metrics: &[Metric<S>], labels: &[(&str, &str)], source: &S) {
        for metric in metrics {
            for sample in (metric.samples)(source) {
                let own = sample.labels.iter();
                let own = own.map(|(label, value)| (*label, value.as_str()));
                let labels: Vec<_> = labels.iter().copied().chain(own).collect();
                self.write(metric, &sample, &labels);
            }
        }
    }

    fn write<S>(&mut self, metric: &Metric<S>, sample: &MetricSample, labels: &[(&str, &str)]) {
        let name = metric.name;
        let known = self.0.iter().position(|written| written.name == name);
        let place = known.unwrap_or_else(|| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
                MetricKind::Summary => "summary",
            };
            let text = format!("# HELP {name} {}\n# TYPE {name} {kind}\n", metric.help);
            self.0.push(MetricText { name, text });
            self.0.len() - 1
        });
        let text = &mut self.0[place].text;
        text.push_str(name);
        text.push_str(sample.suffix);
        for (index, (label, value)) in labels.iter().enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {}", sample.value);
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.0.into_iter().map(|written| written.text).collect()
    }
}

/// Escapes a label's value for the quotes of the format.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
