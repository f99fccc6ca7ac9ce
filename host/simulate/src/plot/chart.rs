//! A frame with two axes, a heading and a legend. The legend is below everything, so it hides nothing.

use super::canvas::{Anchor, Canvas, Mark, Paint, Point, Stroke, Weight};

const INK: Paint = Paint::solid([0x22, 0x22, 0x22]);
const QUIET: Paint = Paint::solid([0x55, 0x55, 0x55]);
const GRID: Paint = Paint::solid([0xe4, 0xe4, 0xe4]);

/// Size of the whole picture and of the frame in it; the legend adds to the height.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = 876.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 486.0;

/// Width of a letter: wider than most, so that names fit in any font.
const LETTER: f64 = 7.0;
const LEGEND_ROW: f64 = 20.0;
const LEGEND_SIGN: f64 = 34.0;

/// One axis, in the unit of its positions.
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) from: f64,
    pub(super) to: f64,
    /// Positions of its grid lines, with their labels.
    pub(super) ticks: Vec<(f64, String)>,
}

/// The style of a run or a reference, in the plot and in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeriesStyle {
    pub(super) paint: Paint,
    pub(super) line: Option<Line>,
    pub(super) mark: Option<(Mark, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) width: f64,
    /// Lengths of dashes and gaps in turn; empty for a solid line.
    pub(super) dashes: &'static [f64],
}

impl Line {
    fn stroke(self, paint: Paint) -> Stroke<'static> {
        Stroke {
            dashes: self.dashes,
            ..Stroke::solid(self.width, paint)
        }
    }
}

pub(super) struct Chart {
    canvas: Canvas,
    across: Axis,
    up: Axis,
}

impl Chart {
    pub(super) fn new(heading: &str, note: &str, across: Axis, up: Axis) -> Self {
        let canvas = Canvas::new(WIDTH as u32, BOTTOM as u32);
        let mut chart = Self { canvas, across, up };
        let canvas = &mut chart.canvas;
        canvas.text((LEFT, 24.0), heading, Anchor::Start, Weight::Bold, INK);
        let note = shortened(note, ((RIGHT - LEFT) / LETTER) as usize);
        canvas.text((LEFT, 46.0), &note, Anchor::Start, Weight::Regular, QUIET);
        chart.draw_axes();
        chart
    }

    fn draw_axes(&mut self) {
        let (left, right) = (self.across.from, self.across.to);
        for (value, label) in std::mem::take(&mut self.across.ticks) {
            let (x, _) = self.place((value, self.up.from));
            let line = [(x, TOP), (x, BOTTOM + 5.0)];
            self.canvas.line(&line, Stroke::solid(1.0, GRID));
            let place = (x, BOTTOM + 16.0);
            (self.canvas).text(place, &label, Anchor::Middle, Weight::Regular, QUIET);
        }
        for (value, label) in std::mem::take(&mut self.up.ticks) {
            let (_, y) = self.place((left, value));
            let line = [(LEFT - 5.0, y), (RIGHT, y)];
            self.canvas.line(&line, Stroke::solid(1.0, GRID));
            let place = (LEFT - 9.0, y);
            (self.canvas).text(place, &label, Anchor::End, Weight::Regular, QUIET);
        }
        debug_assert!(left < right, "an axis of no length");
        let corner = [(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)];
        self.canvas.line(&corner, Stroke::solid(1.0, QUIET));
        let middle = (0.5 * (LEFT + RIGHT), 0.5 * (TOP + BOTTOM));
        let title = self.across.title.as_str();
        let below = (middle.0, BOTTOM + 38.0);
        (self.canvas).text(below, title, Anchor::Middle, Weight::Regular, INK);
        let title = self.up.title.as_str();
        let beside = (16.0, middle.1);
        (self.canvas).text(beside, title, Anchor::Upwards, Weight::Regular, INK);
    }

    /// Returns the position in the picture of a point of both axes.
    pub(super) fn place(&self, (across, up): (f64, f64)) -> Point {
        let share = |axis: &Axis, value: f64| (value - axis.from) / (axis.to - axis.from);
        (
            LEFT + (RIGHT - LEFT) * share(&self.across, across),
            BOTTOM - (BOTTOM - TOP) * share(&self.up, up),
        )
    }

    /// Draws a mark at each of the points.
    pub(super) fn marks(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        style: SeriesStyle,
    ) {
        let Some((mark, radius)) = style.mark else {
            return;
        };
        for point in points {
            let place = self.place(point);
            self.canvas.mark(place, radius, mark, style.paint);
        }
    }

    /// Draws lines through nearly the same points. Their dashes follow each other, so that each line is visible.
    pub(super) fn lines(&mut self, points: &[(f64, f64)], styles: &[SeriesStyle]) {
        const PIECE: f64 = 16.0;
        let places: Vec<Point> = points.iter().map(|point| self.place(*point)).collect();
        let styles = styles
            .iter()
            .filter_map(|style| Some((style.line?, style.paint)));
        let styles: Vec<(Line, Paint)> = styles.collect();
        let dashes = [PIECE, PIECE * (styles.len().max(1) - 1) as f64];
        for (index, (line, paint)) in styles.iter().enumerate() {
            let mut stroke = line.stroke(*paint);
            if styles.len() > 1 {
                // Its dash begins at the end of the preceding ones.
                stroke.dashes = &dashes;
                stroke.offset = PIECE * (styles.len() - index) as f64;
            }
            self.canvas.line(&places, stroke);
        }
    }

    /// Writes the reason for an empty frame into its middle.
    pub(super) fn explain(&mut self, lines: &[&str]) {
        for (index, line) in lines.iter().enumerate() {
            let row = index as f64 - 0.5 * (lines.len() - 1) as f64;
            let place = (
                0.5 * (LEFT + RIGHT),
                0.5 * (TOP + BOTTOM) + LEGEND_ROW * row,
            );
            (self.canvas).text(place, line, Anchor::Middle, Weight::Regular, INK);
        }
    }

    /// Adds the legend, in as many columns as its longest name leaves room for.
    pub(super) fn with_legend(self, legend: &[(String, SeriesStyle)]) -> Canvas {
        let mut canvas = self.canvas;
        let room = RIGHT - LEFT;
        let most = ((room - LEGEND_SIGN) / LETTER) as usize;
        let names: Vec<String> = (legend.iter().map(|(name, _)| shortened(name, most))).collect();
        let longest = names.iter().map(|name| name.chars().count()).max();
        let column = LEGEND_SIGN + LETTER * (longest.unwrap_or_default() + 3) as f64;
        let columns = ((room / column) as usize).clamp(1, 4);
        let top = BOTTOM + 68.0;
        for (index, (name, (_, style))) in names.into_iter().zip(legend).enumerate() {
            let x = LEFT + room / columns as f64 * (index % columns) as f64;
            let y = top + LEGEND_ROW * (index / columns) as f64;
            if let Some(line) = style.line {
                canvas.line(&[(x, y), (x + 26.0, y)], line.stroke(style.paint));
            }
            if let Some((mark, radius)) = style.mark {
                // Marks that are small in the plot are larger in the legend, to show their form.
                canvas.mark((x + 13.0, y), radius.max(4.0), mark, style.paint);
            }
            let place = (x + LEGEND_SIGN, y);
            canvas.text(place, &name, Anchor::Start, Weight::Regular, INK);
        }
        let rows = legend.len().div_ceil(columns) as f64;
        canvas.height = (top + LEGEND_ROW * rows + 4.0) as u32;
        canvas
    }
}

/// Returns the end of a name that is too long: names differ at their ends.
fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let end = name.chars().skip(count + 3 - most);
    "...".chars().chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_their_start() {
        assert_eq!(shortened("budgeted-0", 10), "budgeted-0");
        assert_eq!(shortened("é/budgeted-0", 10), "...geted-0");
    }

    #[test]
    fn a_legend_gets_the_rows_it_needs() {
        let axis = || Axis {
            title: String::new(),
            from: 0.0,
            to: 1.0,
            ticks: Vec::new(),
        };
        let style = SeriesStyle {
            paint: INK,
            line: None,
            mark: None,
        };
        let height = |name: &str, count: usize| {
            let legend = vec![(name.to_owned(), style); count];
            let chart = Chart::new("", "", axis(), axis());
            chart.with_legend(&legend).height
        };
        assert_eq!(height("short", 4) + 20, height("short", 5));
        assert_eq!(height("short", 4) + 60, height(&"long".repeat(40), 4));
    }
}
