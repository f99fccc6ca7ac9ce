//! Rendering of a plot as PNG, at twice the size of its SVG. The program contains the font, so that the result is the same
//! without fonts on the system.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::PlotError;

/// Pixels of the PNG for one of the SVG: for screens and paper with more than 96 per inch.
const SCALE: f32 = 2.0;

pub(super) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    pixels(svg)?.encode_png().map_err(PlotError::new)
}

fn pixels(svg: &str) -> Result<Pixmap, PlotError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    fonts.set_sans_serif_family("Ubuntu");
    let options = Options {
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(PlotError::new)?;
    let size = tree
        .size()
        .to_int_size()
        .scale_by(SCALE)
        .ok_or_else(|| PlotError::new("it has no size"))?;
    let mut pixels = Pixmap::new(size.width(), size.height())
        .ok_or_else(|| PlotError::new("it is too large"))?;
    let larger = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, larger, &mut pixels.as_mut());
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::canvas::{Anchor, Canvas, Mark, Paint, Stroke, Weight};
    use super::*;

    const RED: Paint = Paint::solid([255, 0, 0]);

    /// Returns the number of red pixels of a drawing of 60 by 20, with fractions for partly covered ones.
    fn covered(draw: impl Fn(&mut Canvas)) -> f64 {
        let mut canvas = Canvas::new(60, 20);
        draw(&mut canvas);
        let pixels = pixels(&canvas.svg()).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (120, 40));
        let red = pixels.pixels().iter();
        red.map(|pixel| f64::from(255 - pixel.green()) / 255.0)
            .sum()
    }

    #[test]
    fn lines_and_letters_are_there_without_fonts() {
        let line =
            covered(|canvas| canvas.line(&[(0.0, 10.0), (60.0, 10.0)], Stroke::solid(2.0, RED)));
        assert!((line - 480.0).abs() < 1.0, "{line}");
        let dashed = Stroke {
            dashes: &[4.0, 4.0],
            ..Stroke::solid(2.0, RED)
        };
        let line = covered(|canvas| canvas.line(&[(0.0, 10.0), (60.0, 10.0)], dashed));
        // Eight pieces of four and seven gaps.
        assert!((line - 256.0).abs() < 1.0, "{line}");
        for text in ["a", "é", "ж"] {
            let place = (30.0, 15.0);
            let write = |canvas: &mut Canvas| {
                canvas.text(place, text, Anchor::Middle, Weight::Regular, RED);
            };
            assert!(covered(write) > 15.0, "{text}");
        }
        assert_eq!(covered(|_| ()), 0.0);
    }

    /// Each mark covers about as much as a circle, so that no run is emphasised.
    #[test]
    fn marks_are_all_of_a_size() {
        for mark in Mark::ALL {
            let area = 0.25 * covered(|canvas| canvas.mark((20.0, 10.0), 4.0, mark, RED));
            assert!((33.0..55.0).contains(&area), "{mark:?} {area}");
        }
    }

    #[test]
    fn the_same_drawing_is_the_same_picture() {
        let svg = Canvas::new(60, 20).svg();
        let picture = png(&svg).unwrap();
        assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert_eq!(picture, png(&svg).unwrap());
        let error = png("<svg").unwrap_err();
        assert_eq!(error.to_string(), "cannot draw");
    }
}
