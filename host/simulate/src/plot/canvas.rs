//! A picture of lines, marks and text, written as SVG while it is drawn.

use std::fmt::{self, Write as _};

/// A position or a distance, in pixels of the SVG from its upper left corner.
pub(super) type Point = (f64, f64);

/// The colour and opacity of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    /// Red, green and blue.
    pub(super) rgb: [u8; 3],
    /// Opacity, from 0 (transparent) to 1.
    pub(super) alpha: f64,
}

impl Paint {
    pub(super) const fn solid(rgb: [u8; 3]) -> Self {
        Self { rgb, alpha: 1.0 }
    }

    pub(super) const fn with_alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

/// The form of a mark, which distinguishes runs without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Plus,
    TriangleDown,
    Cross,
}

impl Mark {
    pub(super) const ALL: [Self; 7] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Diamond,
        Self::Plus,
        Self::TriangleDown,
        Self::Cross,
    ];

    /// Returns the polygons of the mark, about as large as a circle of the radius; none for the circle itself.
    pub(super) fn parts(self, (x, y): Point, radius: f64) -> Vec<Vec<Point>> {
        let polygon = |corners: &[Point]| -> Vec<Point> {
            let corners = corners.iter();
            let corners = corners.map(|(across, down)| (x + across * radius, y + down * radius));
            corners.collect()
        };
        let (long, thin) = (1.25, 0.4);
        let (far, near) = (0.884 + 0.283, 0.884 - 0.283);
        match self {
            Self::Circle => Vec::new(),
            Self::Square => vec![polygon(&[
                (-0.9, -0.9),
                (0.9, -0.9),
                (0.9, 0.9),
                (-0.9, 0.9),
            ])],
            Self::Triangle => vec![polygon(&[(0.0, -1.3), (1.2, 0.85), (-1.2, 0.85)])],
            Self::Diamond => vec![polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)])],
            Self::Plus => vec![
                polygon(&[(-long, -thin), (long, -thin), (long, thin), (-long, thin)]),
                polygon(&[(-thin, -long), (thin, -long), (thin, long), (-thin, long)]),
            ],
            Self::TriangleDown => vec![polygon(&[(0.0, 1.3), (-1.2, -0.85), (1.2, -0.85)])],
            Self::Cross => vec![
                polygon(&[(-far, -near), (-near, -far), (far, near), (near, far)]),
                polygon(&[(near, -far), (far, -near), (-near, far), (-far, near)]),
            ],
        }
    }
}

/// The alignment of a text to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// Written upwards, with the position in its middle.
    Upwards,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke<'a> {
    pub(super) width: f64,
    pub(super) paint: Paint,
    /// Lengths of dashes and gaps in turn; empty for a solid line.
    pub(super) dashes: &'a [f64],
    /// Offset in those lengths at which the line begins.
    pub(super) offset: f64,
}

impl Stroke<'_> {
    pub(super) const fn solid(width: f64, paint: Paint) -> Self {
        Self {
            width,
            paint,
            dashes: &[],
            offset: 0.0,
        }
    }
}

/// The shapes drawn so far; later ones are on top.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
    elements: String,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            elements: String::new(),
        }
    }

    pub(super) fn line(&mut self, points: &[Point], stroke: Stroke<'_>) {
        let Paint { alpha, .. } = stroke.paint;
        let points = written_points(points);
        self.write(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
            hexadecimal(stroke.paint),
            stroke.width
        ));
        if alpha < 1.0 {
            self.write(format_args!(" stroke-opacity=\"{alpha}\""));
        }
        if !stroke.dashes.is_empty() {
            let dashes: Vec<String> = stroke.dashes.iter().map(f64::to_string).collect();
            self.write(format_args!(" stroke-dasharray=\"{}\"", dashes.join(" ")));
        }
        if stroke.offset > 0.0 {
            self.write(format_args!(" stroke-dashoffset=\"{}\"", stroke.offset));
        }
        self.elements.push_str("/>\n");
    }

    pub(super) fn mark(&mut self, place: Point, radius: f64, mark: Mark, paint: Paint) {
        let parts = mark.parts(place, radius);
        if parts.is_empty() {
            let (x, y) = place;
            self.write(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\""
            ));
        } else {
            let parts = parts.iter();
            let parts: String = parts
                .map(|part| format!("M{}z", written_points(part)))
                .collect();
            self.write(format_args!("<path d=\"{parts}\""));
        }
        self.fill(paint);
        self.elements.push_str("/>\n");
    }

    /// Draws a text. The position is in the middle of the letters' height.
    pub(super) fn text(
        &mut self,
        (x, y): Point,
        text: &str,
        anchor: Anchor,
        weight: Weight,
        paint: Paint,
    ) {
        /// Half the height of capitals.
        const HALF: f64 = 4.3;
        let (right, down) = match anchor {
            Anchor::Upwards => (x + HALF, y),
            Anchor::Start | Anchor::Middle | Anchor::End => (x, y + HALF),
        };
        self.write(format_args!("<text x=\"{right:.1}\" y=\"{down:.1}\""));
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => self.elements.push_str(" text-anchor=\"middle\""),
            Anchor::End => self.elements.push_str(" text-anchor=\"end\""),
            Anchor::Upwards => self.write(format_args!(
                " text-anchor=\"middle\" transform=\"rotate(-90 {right:.1} {down:.1})\""
            )),
        }
        if weight == Weight::Bold {
            (self.elements).push_str(" font-weight=\"bold\" font-size=\"15\"");
        }
        self.fill(paint);
        self.elements.push('>');
        text.chars()
            .for_each(|c| push_escaped(&mut self.elements, c));
        self.elements.push_str("</text>\n");
    }

    /// Returns the picture as SVG. Its text is not drawn: the viewer supplies the fonts.
    pub(super) fn svg(&self) -> String {
        let Self {
            width,
            height,
            elements,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             {elements}</svg>\n"
        )
    }

    fn fill(&mut self, paint: Paint) {
        self.write(format_args!(" fill=\"{}\"", hexadecimal(paint)));
        if paint.alpha < 1.0 {
            self.write(format_args!(" fill-opacity=\"{}\"", paint.alpha));
        }
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.elements.write_fmt(text);
    }
}

fn written_points(points: &[Point]) -> String {
    let points: Vec<String> = (points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"))).collect();
    points.join(" ")
}

fn hexadecimal(paint: Paint) -> String {
    let [red, green, blue] = paint.rgb;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Appends a character of text. A character that XML forbids becomes the replacement character (XML 1.0 §2.2).
fn push_escaped(svg: &mut String, c: char) {
    match c {
        '&' => svg.push_str("&amp;"),
        '<' => svg.push_str("&lt;"),
        '>' => svg.push_str("&gt;"),
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
            svg.push(char::REPLACEMENT_CHARACTER);
        }
        other => svg.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_any_character() {
        let mut svg = String::new();
        ("a\tb\u{1b}[1m\u{0}é<&>".chars()).for_each(|c| push_escaped(&mut svg, c));
        assert_eq!(svg, "a\tb\u{fffd}[1m\u{fffd}é&lt;&amp;&gt;");
    }

    #[test]
    fn shapes_become_this_svg() {
        let mut canvas = Canvas::new(20, 10);
        let red = Paint::solid([255, 0, 0]);
        canvas.line(&[(1.0, 2.0), (3.0, 4.25)], Stroke::solid(2.0, red));
        let dashed = Stroke {
            dashes: &[4.0, 2.5],
            offset: 1.0,
            ..Stroke::solid(1.0, red)
        };
        canvas.line(&[(1.0, 2.0), (3.0, 2.0)], dashed);
        canvas.mark((5.0, 5.0), 2.0, Mark::Square, red.with_alpha(0.5));
        canvas.text((9.0, 5.0), "x<y", Anchor::Upwards, Weight::Regular, red);
        let expected = r##"<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" viewBox="0 0 20 10" font-family="sans-serif" font-size="12">
<rect width="20" height="10" fill="#ffffff"/>
<polyline points="1.0,2.0 3.0,4.2" fill="none" stroke="#ff0000" stroke-width="2" stroke-linejoin="round"/>
<polyline points="1.0,2.0 3.0,2.0" fill="none" stroke="#ff0000" stroke-width="1" stroke-linejoin="round" stroke-dasharray="4 2.5" stroke-dashoffset="1"/>
<path d="M3.2,3.2 6.8,3.2 6.8,6.8 3.2,6.8z" fill="#ff0000" fill-opacity="0.5"/>
<text x="13.3" y="5.0" text-anchor="middle" transform="rotate(-90 13.3 5.0)" fill="#ff0000">x&lt;y</text>
</svg>
"##;
        assert_eq!(canvas.svg(), expected);
    }
}
