//! Drawings of simulations, as SVG: freshness over time, and waits against true rates. One colour for each run.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::report::Report;

/// Of a drawing, in pixels.
const SIZE: (u32, u32) = (900, 560);

/// Something could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw")]
pub struct PlotError(#[from] DrawingAreaErrorKind<io::Error>);

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// Freshness over the measured time, a line for each named run; the first one's optimum is dashed.
///
/// # Errors
/// Where the drawing library fails.
pub fn freshness_over_time(runs: &[(&str, &Report)]) -> Result<String, PlotError> {
    draw(|area| {
        let Some((_, first)) = runs.first() else {
            return Ok(());
        };
        let best = 100.0 * first.oracle.freshness;
        let courses: Vec<Vec<(f64, f64)>> = runs.iter().map(|(_, report)| course(report)).collect();
        let all = courses.iter().flatten().map(|(_, fresh)| *fresh);
        let lowest = all.fold(best, f64::min);
        let from = ((lowest - 2.0) / 10.0).floor().max(0.0) * 10.0;
        let mut chart = ChartBuilder::on(area)
            .caption(format!("Freshness, {}", first.scenario), ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(55)
            .build_cartesian_2d(first.warm_up..first.days, from..100.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("days")
            .y_desc("% of pages' time, by importance")
            .draw()?;
        let dashes = [(first.warm_up, best), (first.days, best)];
        let style = BLACK.mix(0.6).stroke_width(1);
        chart
            .draw_series(DashedLineSeries::new(dashes, 6, 4, style))?
            .label("best regular visits")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        for (index, ((name, _), course)) in runs.iter().zip(courses).enumerate() {
            let style = colour(index).stroke_width(2);
            chart
                .draw_series(LineSeries::new(course, style))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        Ok(())
    })
}

/// The last wait of each page against the page's true rate, in the colour of its run, and in grey the waits that would be best
/// for freshness on the first one's web. Pages that never change have no place on an axis of ratios and are left out.
///
/// # Errors
/// Where the drawing library fails.
pub fn waits_by_rate(runs: &[(&str, &Report)]) -> Result<String, PlotError> {
    draw(|area| {
        let Some((_, first)) = runs.first() else {
            return Ok(());
        };
        let best = first.waits.iter();
        let best = best.filter_map(|page| Some((page.rate, page.best?)));
        let best: Vec<(f64, f64)> = best.filter(is_positive).collect();
        let points: Vec<Vec<(f64, f64)>> = runs
            .iter()
            .map(|(_, report)| {
                let waits = report.waits.iter().map(|page| (page.rate, page.wait));
                waits.filter(is_positive).collect()
            })
            .collect();
        let all = || points.iter().flatten().chain(&best);
        let rates = decades(all().map(|(rate, _)| *rate));
        let waits = decades(all().map(|(_, wait)| *wait));
        let mut chart = ChartBuilder::on(area)
            .caption(format!("Waits, {}", first.scenario), ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(65)
            .build_cartesian_2d(
                (rates.0..rates.1).log_scale(),
                (waits.0..waits.1).log_scale(),
            )?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("true changes a day")
            .y_desc("days until the next visit")
            .draw()?;
        for (index, ((name, _), points)) in runs.iter().zip(&points).enumerate() {
            let style = colour(index).mix(0.5).filled();
            let dots = points.iter().map(|point| Circle::new(*point, 2, style));
            chart
                .draw_series(dots)?
                .label(*name)
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, style));
        }
        let style = BLACK.mix(0.6).filled();
        let dots = best.iter().map(|point| Circle::new(*point, 1, style));
        chart
            .draw_series(dots)?
            .label("best regular visits")
            .legend(move |(x, y)| Circle::new((x + 9, y), 2, style));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        Ok(())
    })
}

fn draw(content: impl FnOnce(&Area<'_>) -> Result<(), PlotError>) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        content(&area)?;
        area.present()?;
    }
    Ok(shown(&text))
}

/// What no XML parser takes, whoever's name it is in, as the sign for what cannot be shown (XML 1.0 §2.2).
fn shown(text: &str) -> String {
    let is_char = |c: &char| !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    let chars = text.chars();
    let chars = chars.map(|c| {
        if is_char(&c) {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    });
    chars.collect()
}

/// The middle of each part of the measured time, and the freshness in it in per cent. Parts in which no page was there are
/// left out.
fn course(report: &Report) -> Vec<(f64, f64)> {
    let parts = report.freshness_over_time();
    let part = (report.days - report.warm_up) / parts.len().max(1) as f64;
    let middle = |index: usize| report.warm_up + part * (index as f64 + 0.5);
    let parts = parts.into_iter().enumerate();
    let points = parts.filter_map(|(index, fresh)| Some((middle(index), 100.0 * fresh?)));
    points.collect()
}

fn is_positive(point: &(f64, f64)) -> bool {
    point.0 > 0.0 && point.1 > 0.0
}

/// The powers of ten about these.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return (0.1, 10.0);
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    (10_f64.powf(low), 10_f64.powf(high.max(low + 1.0)))
}

fn colour(index: usize) -> RGBAColor {
    Palette99::pick(index).to_rgba()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_characters_make_a_drawing() {
        assert_eq!(shown("a\tb\u{1b}[1m\u{0}é"), "a\tb\u{fffd}[1m\u{fffd}é");
    }

    #[test]
    fn axes_end_at_powers_of_ten() {
        assert_eq!(decades([0.02, 3.0].into_iter()), (0.01, 10.0));
        assert_eq!(decades([1.0].into_iter()), (1.0, 10.0));
        assert_eq!(decades(std::iter::empty()), (0.1, 10.0));
    }
}
