//! Comparison of several profiles on the same webs, measure by measure. Webs differ much more than profiles do. Profiles are
//! therefore compared web by web, and the confidence intervals are those of the differences.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::plot::labels;
use crate::report::{MIB, Report};

/// A value that is measured of each run.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The name, as in a report's JSON.
    pub name: &'static str,
    /// The unit; `%` stands for a share.
    pub unit: &'static str,
    /// `true` if more is better.
    pub more_is_better: bool,
    /// The value of a report; none if there is nothing to measure.
    of: fn(&Report) -> Option<f64>,
}

/// The measures, in the order of the table.
const MEASURES: [Measure; 18] = [
    more("freshness", "%", |report| Some(report.freshness())),
    more("freshness-of-best", "%", |report| {
        Some(report.of_best_freshness())
    }),
    less("age", "days", |report| Some(report.age())),
    more("captures", "%", Report::captures),
    more("captures-of-best", "%", Report::of_best_captures),
    less("delay", "days", Report::delay),
    less("wasted", "%", Report::wasted),
    more("found", "pages", |report| Some(report.sums.found as f64)),
    less("unchanged", "visits", |report| {
        Some(report.visits.unchanged as f64)
    }),
    less("requests", "", |report| Some(report.visits.requests as f64)),
    less("stored", "MiB", |report| {
        Some(report.visits.stored as f64 / MIB)
    }),
    less("overdue", "days", Report::overdue),
    less("starved", "pages", |report| Some(report.starved as f64)),
    less("too-short", "waits", |report| {
        Some(report.visits.too_short as f64)
    }),
    less("too-long", "waits", |report| {
        Some(report.visits.too_long as f64)
    }),
    less("oscillating", "waits", |report| {
        Some(report.visits.oscillating as f64)
    }),
    less("faults", "calls", |report| {
        Some(report.visits.faults as f64)
    }),
    less("too-soon", "requests", |report| {
        Some(report.visits.too_soon as f64)
    }),
];

const fn more(name: &'static str, unit: &'static str, of: fn(&Report) -> Option<f64>) -> Measure {
    Measure {
        name,
        unit,
        more_is_better: true,
        of,
    }
}

const fn less(name: &'static str, unit: &'static str, of: fn(&Report) -> Option<f64>) -> Measure {
    Measure {
        more_is_better: false,
        ..more(name, unit, of)
    }
}

/// A mean over webs, with its 95 % confidence interval for the mean over all webs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean; not a number if some web had nothing to measure.
    pub mean: f64,
    /// Half of the interval's length; infinite after a single web.
    pub margin: f64,
}

/// One measure of all profiles.
#[derive(Clone, Debug)]
pub struct Row {
    /// The measure.
    pub measure: Measure,
    /// The value of each profile.
    pub values: Vec<Estimate>,
    /// `differences[a][b]`: the value of profile a minus that of profile b, web by web.
    pub differences: Vec<Vec<Estimate>>,
    /// The profile that is better than every other, if the difference is significant.
    pub best: Option<usize>,
}

/// Profiles side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The scenario's name.
    pub scenario: String,
    /// The names of the profiles.
    pub profiles: Vec<String>,
    /// The number of webs that each profile has crawled.
    pub webs: usize,
    /// All measures.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Compares runs on the same webs: `runs[p][w]` is the report of profile p on web w.
    pub fn new(scenario: String, profiles: Vec<String>, runs: &[Vec<Report>]) -> Self {
        let rows = MEASURES.iter().map(|measure| Row::new(*measure, runs));
        Self {
            scenario,
            profiles,
            webs: runs.first().map_or(0, Vec::len),
            rows: rows.collect(),
        }
    }

    /// Returns everything as JSON, for machines. An unknown margin is null.
    pub fn as_json(&self) -> Value {
        let estimate = |estimate: &Estimate| json!({ "mean": finite(estimate.mean), "margin": finite(estimate.margin) });
        let rows = self.rows.iter().map(|row| {
            let profiles = self.profiles.iter().enumerate().map(|(this, name)| {
                let others = self.profiles.iter().enumerate();
                let others = others.filter(|(other, _)| *other != this);
                let more_than = others.map(|(other, name)| {
                    json!({ "profile": name, "difference": estimate(&row.differences[this][other]) })
                });
                json!({
                    "profile": name,
                    "value": estimate(&row.values[this]),
                    "more_than": more_than.collect::<Vec<_>>(),
                })
            });
            json!({
                "measure": row.measure.name,
                "unit": row.measure.unit,
                "better": if row.measure.more_is_better { "more" } else { "less" },
                "profiles": profiles.collect::<Vec<_>>(),
                "best": row.best.map(|best| &self.profiles[best]),
            })
        });
        json!({
            "scenario": self.scenario,
            "webs": self.webs,
            "confidence": 0.95,
            "measures": rows.collect::<Vec<_>>(),
        })
    }

    /// Returns a table for people: each profile's value, its difference from the first, and the best profile.
    pub fn as_text(&self) -> String {
        let mut table = vec![vec![format!("{}, {} webs", self.scenario, self.webs)]];
        let named: Vec<&str> = self.profiles.iter().map(String::as_str).collect();
        let names = labels(&named);
        table[0].extend(names.iter().cloned());
        table[0].push("best".to_owned());
        for row in &self.rows {
            let is_share = row.measure.unit == "%";
            let scale = if is_share { 100.0 } else { 1.0 };
            let shown = |value: f64| number(value * scale, is_share);
            let mut line = vec![format!("{} {}", row.measure.name, row.measure.unit)];
            for (index, value) in row.values.iter().enumerate() {
                let mut cell = shown(value.mean);
                let more = row.differences[index][0];
                if index > 0 && !more.mean.is_nan() {
                    let is_less = more.mean <= -row.measure.visible();
                    let sign = if is_less { '-' } else { '+' };
                    let _ = write!(cell, " ({sign}{}", shown(more.mean.abs()));
                    if more.margin.is_finite() {
                        let _ = write!(cell, " ± {}", shown(more.margin));
                    }
                    cell.push(')');
                } else if value.margin.is_finite() {
                    let _ = write!(cell, " ± {}", shown(value.margin));
                }
                line.push(cell);
            }
            let best = row.best.map(|best| names[best].clone());
            line.push(best.unwrap_or_else(|| "-".to_owned()));
            table.push(line);
        }
        let columns = table[0].len();
        let width = |column: usize| {
            let cells = table.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for line in &table {
            let mut written = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(written, "{cell:<width$}   ");
            }
            let _ = writeln!(text, "{}", written.trim_end());
        }
        text
    }
}

impl Measure {
    /// The smallest difference that counts: a difference that the table shows as 0 decides nothing.
    fn visible(&self) -> f64 {
        if self.unit == "%" { 5e-5 } else { 5e-4 }
    }
}

impl Row {
    fn new(measure: Measure, runs: &[Vec<Report>]) -> Self {
        let measured: Vec<Vec<f64>> = runs
            .iter()
            .map(|runs| {
                let value = |report| (measure.of)(report).unwrap_or(f64::NAN);
                runs.iter().map(value).collect()
            })
            .collect();
        Self::of_values(measure, &measured)
    }

    fn of_values(measure: Measure, measured: &[Vec<f64>]) -> Self {
        let difference = |one: &Vec<f64>, other: &Vec<f64>| {
            let pairs = one.iter().zip(other);
            Estimate::of(&pairs.map(|(one, other)| one - other).collect::<Vec<_>>())
        };
        let differences: Vec<Vec<Estimate>> = measured
            .iter()
            .map(|one| {
                measured
                    .iter()
                    .map(|other| difference(one, other))
                    .collect()
            })
            .collect();
        let beats = |more: &Estimate| {
            let better = if measure.more_is_better {
                more.mean
            } else {
                -more.mean
            };
            better > more.margin && better >= measure.visible()
        };
        let is_best = |this: &usize| {
            let others = (0..measured.len()).filter(|other| other != this);
            let mut more = others.map(|other| &differences[*this][other]);
            more.all(beats)
        };
        let best = (0..measured.len()).find(is_best);
        Self {
            measure,
            values: measured.iter().map(|values| Estimate::of(values)).collect(),
            differences,
            best: best.filter(|_| measured.len() > 1),
        }
    }
}

impl Estimate {
    /// Returns Student's interval of the mean.
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        if values.len() < 2 {
            return Self {
                mean,
                margin: f64::INFINITY,
            };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Self {
            mean,
            margin: student(values.len() - 1) * error,
        }
    }
}

/// The 97.5th percentile of Student's distribution for up to ten degrees of freedom, from its tables.
const STUDENT: [f64; 10] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
    2.262_157, 2.228_139,
];

/// Returns that percentile. Above ten degrees it uses the first terms of the expansion about the normal percentile (Abramowitz &
/// Stegun 26.7.5), which are right to four digits there.
fn student(degrees: usize) -> f64 {
    if let Some(known) = STUDENT.get(degrees - 1) {
        return *known;
    }
    let (normal, degrees) = (1.959_963_985_f64, degrees as f64);
    let first = (normal.powi(3) + normal) / 4.0;
    let second = (5.0 * normal.powi(5) + 16.0 * normal.powi(3) + 3.0 * normal) / 96.0;
    let third = (3.0 * normal.powi(7) + 19.0 * normal.powi(5) + 17.0 * normal.powi(3)
        - 15.0 * normal)
        / 384.0;
    normal + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

/// Formats shares with two digits, other values with three significant ones.
fn number(value: f64, is_share: bool) -> String {
    if value.is_nan() {
        return "none".to_owned();
    }
    let digits = match value.abs() {
        _ if is_share => 2,
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_equals_one_computed_by_hand() {
        // Mean 3, variance 10/4, error √(2.5/5): 2.776 × 0.7071.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.margin - 1.963_243).abs() < 1e-5, "{estimate:?}");
        assert_eq!(Estimate::of(&[7.0]).margin, f64::INFINITY);
    }

    /// Values from tables of the distribution.
    #[test]
    fn percentiles_equal_those_of_tables() {
        for (degrees, expected) in [
            (1, 12.706),
            (10, 2.228),
            (11, 2.201),
            (20, 2.086),
            (60, 2.000),
        ] {
            let found = student(degrees);
            assert!((found - expected).abs() < 6e-4, "{degrees}: {found}");
        }
    }

    #[track_caller]
    fn best(more_is_better: bool, measured: &[Vec<f64>]) -> Option<usize> {
        let measure = Measure {
            more_is_better,
            ..MEASURES[0]
        };
        Row::of_values(measure, measured).best
    }

    /// Webs differ by far more than profiles do: only a comparison web by web shows the difference.
    #[test]
    fn a_small_but_constant_difference_counts() {
        let one = vec![0.1, 0.5, 0.9, 0.3];
        let other: Vec<f64> = one
            .iter()
            .zip([1e-3, 2e-3, 1e-3, 2e-3])
            .map(|(value, more)| value + more)
            .collect();
        let measured = [one, other];
        assert_eq!(best(true, &measured), Some(1));
        assert_eq!(best(false, &measured), Some(0));
    }

    /// A profile that captured nothing has no delay, and is not the best.
    #[test]
    fn missing_values_and_invisible_differences_decide_nothing() {
        let none = vec![f64::NAN; 4];
        assert_eq!(best(false, &[none.clone(), vec![0.2, 0.4, 1.0, 0.2]]), None);
        let row = Row::of_values(MEASURES[0], &[none, vec![0.2, 0.4, 1.0, 0.2]]);
        assert_eq!(number(row.values[0].mean, true), "none");
        let overdue = [vec![1e-7, 2e-7, 1e-7], vec![2e-7, 3e-7, 2e-7]];
        assert_eq!(best(false, &overdue), None);
    }

    #[test]
    fn differences_that_may_be_chance_decide_nothing() {
        let one = vec![0.1, 0.5, 0.9, 0.3];
        assert_eq!(best(true, &[one.clone(), vec![0.2, 0.4, 1.0, 0.2]]), None);
        assert_eq!(best(true, &[one.clone(), one.clone()]), None);
        assert_eq!(best(true, &[vec![0.1], vec![0.9]]), None);
        // A profile that is better than one of two others is not the best.
        let better: Vec<f64> = one.iter().map(|value| value + 0.1).collect();
        assert_eq!(best(true, &[one, better.clone(), better]), None);
    }
}
