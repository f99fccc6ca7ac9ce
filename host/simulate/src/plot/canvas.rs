//! A picture as a list of lines, marks and words, and the SVG that is written of it.

use std::fmt::Write as _;

/// A place or a distance, in pixels of the SVG from its upper left corner.
pub(super) type Place = (f64, f64);

/// What is seen of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    /// Red, green and blue.
    pub(super) rgb: [u8; 3],
    /// From 0, what is below is seen, to 1.
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

/// The form of a mark: who sees no colours tells runs by it.
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

    /// What it is made of, about as large as a circle of the radius; none for the circle itself.
    pub(super) fn parts(self, (x, y): Place, radius: f64) -> Vec<Vec<Place>> {
        let polygon = |corners: &[Place]| -> Vec<Place> {
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

/// Where a text is from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// Written upwards, the place in its middle.
    Upwards,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Line {
        points: Vec<Place>,
        width: f64,
        paint: Paint,
    },
    Mark {
        place: Place,
        radius: f64,
        mark: Mark,
        paint: Paint,
    },
    /// The place is in the middle of the letters' height.
    Text {
        place: Place,
        text: String,
        anchor: Anchor,
        weight: Weight,
        paint: Paint,
    },
}

/// What was drawn, the lowest first.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) shapes: Vec<Shape>,
}

impl Canvas {
    pub(super) fn line(&mut self, points: Vec<Place>, width: f64, paint: Paint) {
        self.shapes.push(Shape::Line {
            points,
            width,
            paint,
        });
    }

    pub(super) fn mark(&mut self, place: Place, radius: f64, mark: Mark, paint: Paint) {
        self.shapes.push(Shape::Mark {
            place,
            radius,
            mark,
            paint,
        });
    }

    pub(super) fn text(
        &mut self,
        place: Place,
        text: impl Into<String>,
        anchor: Anchor,
        weight: Weight,
        paint: Paint,
    ) {
        self.shapes.push(Shape::Text {
            place,
            text: text.into(),
            anchor,
            weight,
            paint,
        });
    }

    /// The picture as SVG. Its words are text: whoever shows it has the fonts.
    pub(super) fn svg(&self) -> String {
        let Self { width, height, .. } = self;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            // Writing to a string does not fail.
            let _ = write_shape(&mut svg, shape);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn write_shape(svg: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Line {
            points,
            width,
            paint,
        } => {
            write!(svg, "<polyline points=\"")?;
            write_points(svg, points)?;
            write!(
                svg,
                "\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"",
                hexadecimal(*paint)
            )?;
            if paint.alpha < 1.0 {
                write!(svg, " stroke-opacity=\"{}\"", paint.alpha)?;
            }
            svg.push_str("/>\n");
        }
        Shape::Mark {
            place: (x, y),
            radius,
            mark: Mark::Circle,
            paint,
        } => {
            write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"")?;
            write_fill(svg, *paint)?;
            svg.push_str("/>\n");
        }
        Shape::Mark {
            place,
            radius,
            mark,
            paint,
        } => {
            write!(svg, "<path d=\"")?;
            for part in mark.parts(*place, *radius) {
                svg.push('M');
                write_points(svg, &part)?;
                svg.push('z');
            }
            svg.push('"');
            write_fill(svg, *paint)?;
            svg.push_str("/>\n");
        }
        Shape::Text {
            place: (x, y),
            text,
            anchor,
            weight,
            paint,
        } => {
            // Half the height of capitals.
            let (right, down) = if *anchor == Anchor::Upwards {
                (x + 4.3, *y)
            } else {
                (*x, y + 4.3)
            };
            write!(svg, "<text x=\"{right:.1}\" y=\"{down:.1}\"")?;
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => svg.push_str(" text-anchor=\"middle\""),
                Anchor::End => svg.push_str(" text-anchor=\"end\""),
                Anchor::Upwards => write!(
                    svg,
                    " text-anchor=\"middle\" transform=\"rotate(-90 {right:.1} {down:.1})\""
                )?,
            }
            if *weight == Weight::Bold {
                svg.push_str(" font-weight=\"bold\" font-size=\"15\"");
            }
            write_fill(svg, *paint)?;
            svg.push('>');
            text.chars().for_each(|c| push_escaped(svg, c));
            svg.push_str("</text>\n");
        }
    }
    Ok(())
}

fn write_points(svg: &mut String, points: &[Place]) -> std::fmt::Result {
    for (index, (x, y)) in points.iter().enumerate() {
        let between = if index == 0 { "" } else { " " };
        write!(svg, "{between}{x:.1},{y:.1}")?;
    }
    Ok(())
}

fn write_fill(svg: &mut String, paint: Paint) -> std::fmt::Result {
    write!(svg, " fill=\"{}\"", hexadecimal(paint))?;
    if paint.alpha < 1.0 {
        write!(svg, " fill-opacity=\"{}\"", paint.alpha)?;
    }
    Ok(())
}

fn hexadecimal(paint: Paint) -> String {
    let [red, green, blue] = paint.rgb;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A character of text. What no XML parser takes, whoever's name it is in, becomes the sign for what cannot be shown
/// (XML 1.0 §2.2).
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
    fn names_of_any_characters_make_a_drawing() {
        let mut svg = String::new();
        ("a\tb\u{1b}[1m\u{0}é<&>".chars()).for_each(|c| push_escaped(&mut svg, c));
        assert_eq!(svg, "a\tb\u{fffd}[1m\u{fffd}é&lt;&amp;&gt;");
    }

    #[test]
    fn svg_as_written() {
        let mut canvas = Canvas {
            width: 20,
            height: 10,
            shapes: Vec::new(),
        };
        let red = Paint::solid([255, 0, 0]);
        canvas.line(vec![(1.0, 2.0), (3.0, 4.25)], 2.0, red);
        canvas.mark((5.0, 5.0), 2.0, Mark::Square, red.with_alpha(0.5));
        canvas.text((9.0, 5.0), "x<y", Anchor::Upwards, Weight::Regular, red);
        let expected = r##"<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" viewBox="0 0 20 10" font-family="sans-serif" font-size="12">
<rect width="20" height="10" fill="#ffffff"/>
<polyline points="1.0,2.0 3.0,4.2" fill="none" stroke="#ff0000" stroke-width="2" stroke-linejoin="round"/>
<path d="M3.2,3.2 6.8,3.2 6.8,6.8 3.2,6.8z" fill="#ff0000" fill-opacity="0.5"/>
<text x="13.3" y="5.0" text-anchor="middle" transform="rotate(-90 13.3 5.0)" fill="#ff0000">x&lt;y</text>
</svg>
"##;
        assert_eq!(canvas.svg(), expected);
    }
}
