//! Plots of simulations as SVG: freshness over time, and waits against true rates. Each run has a colour and a mark;
//! the best possible result is grey.

mod canvas;
mod chart;

use crate::report::{PageWait, Report};
use canvas::{Canvas, Mark, Paint};
use chart::{Axis, Chart, Line, SeriesStyle};

/// Colours with a contrast of three and more on white that differ for people with red-green colour blindness, too. They are those
/// of Okabe and Ito and of Paul Tol, darkened if they were too light.
const COLOURS: [[u8; 3]; 8] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xaa, 0x33, 0x77],
    [0x33, 0x22, 0x88],
    [0xb0, 0x7d, 0x00],
    [0x3a, 0x96, 0xd2],
    [0x00, 0x00, 0x00],
];

/// The line styles of the first eight runs, of the next eight, and of all further ones.
const DASHES: [&[f64]; 3] = [&[], &[9.0, 4.0], &[3.0, 3.0]];

/// Colour of the oracle's result: beneath all runs, and lighter.
const REFERENCE: Paint = Paint::solid([0xbd, 0xbd, 0xbd]);

/// Plots freshness over the measured time, with a line for each named run. The result of the best regular visits on the first
/// run's web is dashed. The axis begins at 0 or, if all values are above a half, at the value in its title.
pub fn freshness_over_time(runs: &[(&str, &Report)]) -> String {
    let names: Vec<&str> = runs.iter().map(|(name, _)| *name).collect();
    let curves = runs.iter().map(|(_, report)| curve(report)).collect();
    let Some((_, first)) = runs.first() else {
        return freshness(&Curves::default()).svg();
    };
    freshness(&Curves {
        note: web_of(first),
        from: first.warm_up,
        to: first.days,
        best: 100.0 * first.oracle.freshness_tried,
        names: labels(&names),
        curves,
    })
    .svg()
}

/// Plots the last wait of each page against the page's true rate, with the mark of its run. The best waits for freshness on the
/// first run's web are beneath, in light grey. Pages that never change cannot be shown on a logarithmic axis; if there are any, the
/// note below the heading mentions them.
pub fn waits_by_rate(runs: &[(&str, &Report)]) -> String {
    let names: Vec<&str> = runs.iter().map(|(name, _)| *name).collect();
    waits(&Waits {
        note: runs
            .first()
            .map_or_else(String::new, |(_, report)| web_of(report)),
        names: labels(&names),
        pages: (runs.iter().map(|(_, report)| report.waits.as_slice())).collect(),
    })
    .svg()
}

/// The data of the first plot: freshness in per cent, times in days.
#[derive(Debug, Default)]
struct Curves {
    note: String,
    from: f64,
    to: f64,
    best: f64,
    names: Vec<String>,
    curves: Vec<Vec<(f64, f64)>>,
}

/// The data of the second plot.
#[derive(Debug, Default)]
struct Waits<'r> {
    note: String,
    names: Vec<String>,
    pages: Vec<&'r [PageWait]>,
}

fn freshness(drawn: &Curves) -> Canvas {
    let (from, to) = if drawn.from < drawn.to {
        (drawn.from, drawn.to)
    } else {
        (drawn.from, drawn.from + 1.0)
    };
    let all = drawn.curves.iter().flatten().map(|(_, fresh)| *fresh);
    let is_empty = all.clone().next().is_none();
    let lowest = all.fold(drawn.best, f64::min);
    let least = if lowest > 50.0 && !is_empty {
        (((lowest - 2.0) / 10.0).floor() * 10.0).max(0.0)
    } else {
        0.0
    };
    let mut title = "fresh pages by importance, %".to_owned();
    if least > 0.0 {
        title.push_str(&format!(" (axis begins at {least} %)"));
    }
    let groups = alike(&drawn.curves, 0.003 * (100.0 - least));
    let mut note = drawn.note.clone();
    if groups.iter().any(|group| group.len() > 1) {
        note.push_str("; runs with equal results alternate on one line");
    }
    let days = Axis {
        title: "days since the crawl began".into(),
        from,
        to,
        ticks: round_numbers(from, to, 8.0),
    };
    let fresh = Axis {
        title,
        from: least,
        // The margin keeps points at 100 % fully visible.
        to: 100.0 + 0.015 * (100.0 - least),
        ticks: round_numbers(least, 100.0, 6.0),
    };
    let mut chart = Chart::new("Freshness over time", &note, days, fresh);
    if is_empty {
        chart.explain(&["Nothing to show:", "no page existed in the measured time."]);
        return chart.with_legend(&[]);
    }
    let best = SeriesStyle {
        paint: REFERENCE,
        line: Some(Line {
            // Visible on both sides of a run's line that coincides with it.
            width: 4.0,
            dashes: &[8.0, 6.0],
        }),
        mark: None,
    };
    chart.lines(&[(from, drawn.best), (to, drawn.best)], &[best]);
    let line_style = |index: usize| SeriesStyle {
        line: Some(Line {
            width: 2.0,
            dashes: DASHES[(index / COLOURS.len()).min(DASHES.len() - 1)],
        }),
        mark: Some((mark(index), 4.0)),
        paint: colour(index),
    };
    for group in &groups {
        let shared: Vec<SeriesStyle> = group.iter().map(|index| line_style(*index)).collect();
        chart.lines(&drawn.curves[group[0]], &shared);
    }
    // Each run has its marks at positions of its own.
    let step = drawn.curves.len().max(8);
    for (index, curve) in drawn.curves.iter().enumerate() {
        let first = (index * step / drawn.curves.len()).min(curve.len().saturating_sub(1));
        let marked = curve.iter().copied().skip(first).step_by(step);
        chart.marks(marked, line_style(index));
    }
    let names = drawn.names.iter().cloned().enumerate();
    let mut legend: Vec<(String, SeriesStyle)> = names
        .map(|(index, name)| (name, line_style(index)))
        .collect();
    legend.push(("best regular visits (oracle, tried)".into(), best));
    chart.with_legend(&legend)
}

fn waits(drawn: &Waits<'_>) -> Canvas {
    let first = drawn.pages.first().copied().unwrap_or_default();
    let logarithms = |(rate, wait): (f64, f64)| (rate.log10(), wait.log10());
    let best: Vec<(f64, f64)> = first
        .iter()
        .filter_map(|page| Some((page.rate, page.best?)))
        .filter(is_positive)
        .map(logarithms)
        .collect();
    let runs = drawn.pages.iter().map(|pages| {
        let points = pages.iter().map(|page| (page.rate, page.wait));
        points.filter(is_positive).map(logarithms).collect()
    });
    let runs: Vec<Vec<(f64, f64)>> = runs.collect();
    let all = || runs.iter().flatten().chain(&best);
    let (slowest, fastest) = with_margin(all().map(|(rate, _)| *rate));
    let (shortest, longest) = with_margin(all().map(|(_, wait)| *wait));
    let mut note = drawn.note.clone();
    let has_constant = first.iter().any(|page| page.rate <= 0.0);
    if has_constant {
        note.push_str("; pages that never change are not shown");
    }
    let is_empty = runs.iter().all(Vec::is_empty);
    let (rates, times) = if is_empty {
        (Vec::new(), Vec::new())
    } else {
        (rate_ticks(slowest, fastest), wait_ticks(shortest, longest))
    };
    let rates = Axis {
        title: "true rate of the page, changes per day".into(),
        from: slowest,
        to: fastest,
        ticks: rates,
    };
    let times = Axis {
        title: "last wait until the next visit".into(),
        from: shortest,
        to: longest,
        ticks: times,
    };
    let mut chart = Chart::new("Waits by rate of change", &note, rates, times);
    if is_empty {
        let reason = if has_constant {
            "the pages that were visited never change."
        } else {
            "no page that changes has a wait."
        };
        chart.explain(&["Nothing to show:", reason]);
        return chart.with_legend(&[]);
    }
    let most = runs.iter().map(Vec::len).max().unwrap_or_default();
    let radius = if most > 200 { 2.4 } else { 4.0 };
    let reference = SeriesStyle {
        paint: REFERENCE,
        line: None,
        mark: Some((Mark::Circle, 1.7 * radius)),
    };
    let has_best = !best.is_empty();
    chart.marks(best, reference);
    let mark_style = |index: usize| SeriesStyle {
        paint: colour(index).with_alpha(0.7),
        line: None,
        mark: Some((mark(index), radius)),
    };
    // Marks are drawn page by page, with another run on top each time: equal runs do not hide each other.
    for page in 0..most {
        for place in 0..runs.len() {
            let index = (place + page) % runs.len();
            chart.marks(runs[index].get(page).copied(), mark_style(index));
        }
    }
    let names = drawn.names.iter().cloned().enumerate();
    let mut legend: Vec<(String, SeriesStyle)> = names
        .map(|(index, name)| {
            let mark_style = mark_style(index);
            let paint = mark_style.paint.with_alpha(1.0);
            (
                name,
                SeriesStyle {
                    paint,
                    ..mark_style
                },
            )
        })
        .collect();
    if has_best {
        legend.push(("best waits for freshness (oracle)".into(), reference));
    }
    chart.with_legend(&legend)
}

fn web_of(report: &Report) -> String {
    format!("scenario {}, seed {}", report.scenario, report.seed)
}

/// Returns the middle of each part of the measured time, with the freshness in it in per cent. Parts without pages are left out.
fn curve(report: &Report) -> Vec<(f64, f64)> {
    let parts = report.freshness_over_time();
    let part = (report.days - report.warm_up) / parts.len().max(1) as f64;
    let middle = |index: usize| report.warm_up + part * (index as f64 + 0.5);
    let parts = parts.into_iter().enumerate();
    let points = parts.filter_map(|(index, fresh)| Some((middle(index), 100.0 * fresh?)));
    points.collect()
}

/// Groups curves that never differ by more than this from the first of their group.
fn alike(curves: &[Vec<(f64, f64)>], most: f64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, curve) in curves.iter().enumerate() {
        let is_alike = |group: &&mut Vec<usize>| {
            let other = &curves[group[0]];
            let mut pairs = curve.iter().zip(other);
            curve.len() == other.len() && pairs.all(|(one, two)| (one.1 - two.1).abs() <= most)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Returns short names for a legend. Of a path it is the shortest unique end, without `.toml`. Repeated names are numbered from
/// the second on.
pub(crate) fn labels(names: &[&str]) -> Vec<String> {
    let paths: Vec<Vec<&str>> = names
        .iter()
        .map(|name| {
            let name = name.strip_suffix(".toml").unwrap_or(name);
            let parts = name.split(['/', '\\']);
            parts.filter(|part| !part.is_empty()).collect()
        })
        .collect();
    let end = |path: &[&str], parts: usize| path[path.len().saturating_sub(parts)..].join("/");
    let labels = paths.iter().enumerate().map(|(index, path)| {
        let is_other = |other: &&Vec<&str>| *other != path;
        let is_enough = |parts: &usize| {
            let mut others = paths.iter().filter(is_other);
            others.all(|other| end(other, *parts) != end(path, *parts))
        };
        let parts = (1..path.len()).find(is_enough).unwrap_or(path.len());
        match paths[..index].iter().filter(|other| *other == path).count() {
            0 => end(path, parts),
            earlier => format!("{} ({})", end(path, parts), earlier + 1),
        }
    });
    labels.collect()
}

fn is_positive(point: &(f64, f64)) -> bool {
    point.0 > 0.0 && point.1 > 0.0
}

/// Returns the ends of a logarithmic axis, with a margin around all values: at least one power of ten.
fn with_margin(logarithms: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = logarithms.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return (-1.0, 1.0);
    }
    let margin = (0.05 * (high - low))
        .max(0.5 * (1.0 - (high - low)))
        .max(0.1);
    (low - margin, high + margin)
}

/// Returns ticks at 1, 2 or 5 times a power of ten, in about this many steps.
fn round_numbers(from: f64, to: f64, steps: f64) -> Vec<(f64, String)> {
    let exact = (to - from) / steps;
    let power = exact.log10().floor() as i32;
    let unit = 10_f64.powi(power);
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * unit >= exact);
    let factor = factor.unwrap_or(10.0);
    let decimals = if factor < 10.0 { -power } else { -power - 1 }.max(0) as usize;
    let step = factor * unit;
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    let numbers = (first..=last).map(|count| count as f64 * step);
    let ticks = numbers.map(|number| (number, format!("{number:.decimals$}")));
    ticks.collect()
}

/// Returns ticks at powers of ten; on a short axis at twice and five times these, too.
fn rate_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    let factors: &[i32] = if to - from < 2.5 { &[1, 2, 5] } else { &[1] };
    let powers = from.floor() as i32..=to.ceil() as i32;
    let rates = powers.flat_map(|power| {
        factors.iter().map(move |factor| {
            let decimals = (-power).max(0) as usize;
            let rate = f64::from(*factor) * 10_f64.powi(power);
            (rate.log10(), format!("{rate:.decimals$}"))
        })
    });
    let ticks = rates.filter(|(at, _)| (from..=to).contains(at));
    ticks.collect()
}

const SECOND: f64 = 1.0 / 86_400.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const YEAR: f64 = 365.0;

/// Returns ticks at common units of time; more of them on a short axis.
fn wait_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    const FEW: [(f64, &str, &[u32]); 5] = [
        (SECOND, "second", &[1, 10]),
        (MINUTE, "minute", &[1, 10]),
        (HOUR, "hour", &[1, 6]),
        (1.0, "day", &[1, 7, 30]),
        (YEAR, "year", &[1, 10, 100, 1000]),
    ];
    const MANY: [(f64, &str, &[u32]); 5] = [
        (SECOND, "second", &[1, 2, 5, 10, 20, 30]),
        (MINUTE, "minute", &[1, 2, 5, 10, 20, 30]),
        (HOUR, "hour", &[1, 2, 3, 6, 12]),
        (1.0, "day", &[1, 2, 4, 7, 14, 30, 60, 120]),
        (YEAR, "year", &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
    ];
    let units = if to - from < 2.5 { MANY } else { FEW };
    let times = units.into_iter().flat_map(|(unit, name, counts)| {
        counts.iter().map(move |count| {
            let plural = if *count == 1 { "" } else { "s" };
            let at = (unit * f64::from(*count)).log10();
            (at, format!("{count} {name}{plural}"))
        })
    });
    let ticks = times.filter(|(at, _)| (from..=to).contains(at));
    ticks.collect()
}

fn colour(index: usize) -> Paint {
    Paint::solid(COLOURS[index % COLOURS.len()])
}

fn mark(index: usize) -> Mark {
    Mark::ALL[index % Mark::ALL.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageWait = PageWait {
        rate: 1.0,
        wait: 7.0,
        best: Some(1.0),
    };

    fn curves(levels: &[f64]) -> Curves {
        let curve = |level: &f64| (0..120).map(|part| (f64::from(part), *level)).collect();
        Curves {
            note: "scenario x, seed 1".into(),
            from: 0.0,
            to: 120.0,
            best: 90.0,
            names: (0..levels.len())
                .map(|index| format!("run-{index}"))
                .collect(),
            curves: levels.iter().map(curve).collect(),
        }
    }

    fn waits_of(pages: &[&[PageWait]]) -> String {
        let drawn = Waits {
            note: "scenario x, seed 1".into(),
            names: (0..pages.len())
                .map(|index| format!("run-{index}"))
                .collect(),
            pages: pages.to_vec(),
        };
        waits(&drawn).svg()
    }

    #[track_caller]
    fn check_labels(names: &[&str], expected: &[&str]) {
        assert_eq!(labels(names), expected);
    }

    #[test]
    fn labels_are_the_shortest_unique_ends_of_names() {
        check_labels(&["continuous", "/a/b/fixed.toml"], &["continuous", "fixed"]);
        check_labels(
            &["a/x/p.toml", "b/x/p.toml", "q.toml"],
            &["a/x/p", "b/x/p", "q"],
        );
        check_labels(&["p.toml", "x/p.toml"], &["p", "x/p"]);
        check_labels(&["v1.2", "v1.3", "C:\\p\\v2.toml"], &["v1.2", "v1.3", "v2"]);
        check_labels(&["x/p", "x/p", "y/p"], &["x/p", "x/p (2)", "y/p"]);
        check_labels(&["/", ""], &["", " (2)"]);
    }

    #[test]
    fn colours_contrast_with_white() {
        for rgb in COLOURS {
            let linear = rgb.map(|value| {
                let value = f64::from(value) / 255.0;
                if value <= 0.040_45 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            });
            // WCAG 2.2: relative luminance, and §1.4.11.
            let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
            let contrast = 1.05 / (luminance + 0.05);
            assert!(contrast >= 3.0, "{rgb:x?}: {contrast}");
        }
    }

    #[test]
    fn the_title_mentions_an_axis_that_does_not_begin_at_0() {
        let svg = freshness(&curves(&[95.0, 72.5])).svg();
        assert!(
            svg.contains("fresh pages by importance, % (axis begins at 70 %)<"),
            "{svg}"
        );
        let svg = freshness(&curves(&[95.0, 49.0])).svg();
        assert!(svg.contains("fresh pages by importance, %<"), "{svg}");
    }

    /// Of seven runs with one curve, equal parts of each are visible.
    #[test]
    fn runs_with_equal_results_share_a_line() {
        assert_eq!(
            alike(&curves(&[80.0, 60.0, 80.1, 60.5, 80.0]).curves, 0.2),
            [vec![0, 2, 4], vec![1], vec![3]]
        );
        let svg = freshness(&curves(&[80.0; 7])).svg();
        assert!(svg.contains("alternate on one line"), "{svg}");
        for [red, green, blue] in &COLOURS[..7] {
            let line = format!("stroke=\"#{red:02x}{green:02x}{blue:02x}\"");
            assert_eq!(
                svg.matches(&line).count(),
                2,
                "{line}: itself and its legend"
            );
        }
        for offset in (1..=7).map(|run| 16 * run) {
            let dashes = format!("stroke-dasharray=\"16 96\" stroke-dashoffset=\"{offset}\"");
            assert_eq!(svg.matches(&dashes).count(), 1, "{dashes}");
        }
    }

    #[test]
    fn an_empty_plot_shows_the_reason() {
        let never = PageWait {
            rate: 0.0,
            best: None,
            ..PAGE
        };
        let svg = waits_of(&[&[never, never]]);
        assert!(
            svg.contains("the pages that were visited never change."),
            "{svg}"
        );
        let svg = waits_of(&[&[]]);
        assert!(svg.contains("no page that changes has a wait."), "{svg}");
        let svg = waits_of(&[&[PAGE, never]]);
        assert!(
            svg.contains("; pages that never change are not shown"),
            "{svg}"
        );
        assert!(!svg.contains("Nothing to show"), "{svg}");
        let svg = freshness(&curves(&[])).svg();
        assert!(
            svg.contains("no page existed in the measured time"),
            "{svg}"
        );
    }

    #[test]
    fn the_reference_is_beneath_the_runs_and_in_the_legend() {
        let svg = waits_of(&[&[PAGE], &[PAGE]]);
        let reference = svg.find("fill=\"#bdbdbd\"");
        let run = svg.find("fill=\"#0072b2\"");
        assert!(reference.is_some() && reference < run, "{svg}");
        assert!(svg.contains(">best waits for freshness (oracle)<"), "{svg}");
        let given_up = PageWait { best: None, ..PAGE };
        let svg = waits_of(&[&[given_up]]);
        assert!(!svg.contains("best waits"), "{svg}");
    }

    #[test]
    fn data_do_not_touch_the_edges() {
        for logarithms in [vec![0.3], vec![-2.0, 2.0], vec![0.0, 0.9], vec![-6.0, 3.0]] {
            let (from, to) = with_margin(logarithms.iter().copied());
            let is_within = |at: &f64| (from + 0.1 - 1e-9..=to - 0.1 + 1e-9).contains(at);
            assert!(
                logarithms.iter().all(is_within),
                "{logarithms:?} {from} {to}"
            );
            assert!(to - from >= 1.0 - 1e-9, "{logarithms:?} {from} {to}");
        }
        assert_eq!(with_margin(std::iter::empty()), (-1.0, 1.0));
    }

    #[track_caller]
    fn check_ticks(ticks: &[(f64, String)], expected: &[&str]) {
        let ticks: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(ticks, expected);
    }

    #[test]
    fn axes_are_labelled_in_round_numbers() {
        check_ticks(
            &round_numbers(2.0, 8.0, 8.0),
            &["2", "3", "4", "5", "6", "7", "8"],
        );
        check_ticks(
            &round_numbers(0.0, 100.0, 6.0),
            &["0", "20", "40", "60", "80", "100"],
        );
        check_ticks(&round_numbers(0.5, 0.6, 4.0), &["0.50", "0.55", "0.60"]);
        check_ticks(&rate_ticks(-2.1, 1.1), &["0.01", "0.1", "1", "10"]);
        check_ticks(&rate_ticks(-0.8, 0.1), &["0.2", "0.5", "1"]);
        check_ticks(
            &wait_ticks(-1.5, 1.5),
            &["1 hour", "6 hours", "1 day", "7 days", "30 days"],
        );
        check_ticks(&wait_ticks(0.4, 1.4), &["4 days", "7 days", "14 days"]);
    }

    /// An axis with one label does not show its scale, so short axes have two as well.
    #[test]
    fn each_axis_has_two_labels_at_least() {
        for step in -80..80 {
            let middle = 0.05 * f64::from(step);
            let (from, to) = with_margin(std::iter::once(middle));
            assert!(rate_ticks(from, to).len() >= 2, "{from}");
            assert!(wait_ticks(from, to).len() >= 2, "{from}");
        }
    }
}
