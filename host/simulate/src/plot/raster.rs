//! A canvas as PNG, twice as large as the SVG. Letters come with the program: it looks the same without fonts on the system.

use std::io::{self, Write};

use flate2::{Compression, Crc, write::ZlibEncoder};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::canvas::{Anchor, Canvas, Mark, Paint, Place, Shape, Weight};

/// Pixels of the PNG for one of the SVG: for screens and paper that show more than 96 per inch.
const SCALE: f64 = 2.0;

/// The picture as PNG (RFC 2083): eight bits for each of red, green and blue.
pub(super) fn png(canvas: &Canvas) -> io::Result<Vec<u8>> {
    let mut raster = Raster::new(canvas);
    for shape in &canvas.shapes {
        raster.draw(shape);
    }
    raster.png()
}

struct Raster {
    width: usize,
    height: usize,
    rgb: Vec<[u8; 3]>,
}

impl Raster {
    fn new(canvas: &Canvas) -> Self {
        let width = canvas.width as usize * SCALE as usize;
        let height = canvas.height as usize * SCALE as usize;
        let rgb = vec![Paint::WHITE.rgb; width * height];
        Self { width, height, rgb }
    }

    fn draw(&mut self, shape: &Shape) {
        let larger = |(x, y): Place| (SCALE * x, SCALE * y);
        match shape {
            Shape::Line {
                points,
                width,
                paint,
            } => {
                let half = 0.5 * SCALE * width;
                for ends in points.windows(2) {
                    let (from, to) = (larger(ends[0]), larger(ends[1]));
                    let distance = |at| distance_to_line(at, from, to) - half;
                    self.fill(&[from, to], half, *paint, distance);
                }
            }
            Shape::Mark {
                place,
                radius,
                mark,
                paint,
            } => {
                let (centre, radius) = (larger(*place), SCALE * radius);
                if *mark == Mark::Circle {
                    let distance = |at| distance_to_line(at, centre, centre) - radius;
                    self.fill(&[centre], radius, *paint, distance);
                    return;
                }
                let parts = mark.parts(centre, radius);
                let corners = parts.concat();
                self.fill(&corners, 0.0, *paint, |at| {
                    let parts = parts.iter().map(|part| distance_to_polygon(at, part));
                    parts.fold(f64::INFINITY, f64::min)
                });
            }
            Shape::Text {
                place,
                text,
                anchor,
                weight,
                paint,
            } => self.write(larger(*place), text, *anchor, *weight, *paint),
        }
    }

    /// Paints what lies within: `distance` is below 0 there, in pixels. No more than `beyond` outside of the points' bounds.
    fn fill(
        &mut self,
        points: &[Place],
        beyond: f64,
        paint: Paint,
        distance: impl Fn(Place) -> f64,
    ) {
        let bounds = |values: &dyn Fn(&Place) -> f64, size: usize| {
            let low = points.iter().map(values).fold(f64::INFINITY, f64::min);
            let high = points.iter().map(values).fold(0.0, f64::max);
            let low = (low - beyond - 1.0).max(0.0) as usize;
            low..((high + beyond + 2.0) as usize).min(size)
        };
        let columns = bounds(&|(x, _)| *x, self.width);
        for row in bounds(&|(_, y)| *y, self.height) {
            for column in columns.clone() {
                let middle = (column as f64 + 0.5, row as f64 + 0.5);
                self.blend(column, row, paint, (0.5 - distance(middle)).clamp(0.0, 1.0));
            }
        }
    }

    fn write(&mut self, (x, y): Place, text: &str, anchor: Anchor, weight: Weight, paint: Paint) {
        let (weight, size) = match weight {
            Weight::Regular => (FontWeight::Regular, RasterHeight::Size32),
            Weight::Bold => (FontWeight::Bold, RasterHeight::Size32),
        };
        let advance = get_raster_width(weight, size) as i64;
        let length = advance * text.chars().count() as i64;
        let before = match anchor {
            Anchor::Start => 0,
            Anchor::Middle | Anchor::Upwards => length / 2,
            Anchor::End => length,
        };
        let (x, y) = (x.round() as i64, y.round() as i64);
        for (index, c) in text.chars().enumerate() {
            let shown = get_raster(c, weight, size);
            let replaced = || get_raster(char::REPLACEMENT_CHARACTER, weight, size);
            let Some(letter) = shown.or_else(replaced) else {
                continue;
            };
            let start = advance * index as i64 - before;
            for (row, pixels) in letter.rows().enumerate() {
                let down = row as i64 - letter.height() as i64 / 2;
                for (column, cover) in pixels.iter().enumerate() {
                    let along = start + column as i64;
                    let (column, row) = match anchor {
                        Anchor::Upwards => (x + down, y - along),
                        _ => (x + along, y + down),
                    };
                    let place = (usize::try_from(column), usize::try_from(row));
                    if let (Ok(column), Ok(row)) = place {
                        self.blend(column, row, paint, f64::from(*cover) / 255.0);
                    }
                }
            }
        }
    }

    /// Lays paint over a pixel, as far as it covers that; outside of the picture nothing is laid.
    fn blend(&mut self, column: usize, row: usize, paint: Paint, cover: f64) {
        if cover <= 0.0 || column >= self.width || row >= self.height {
            return;
        }
        let alpha = paint.alpha * cover;
        let pixel = &mut self.rgb[row * self.width + column];
        for (below, above) in pixel.iter_mut().zip(paint.rgb) {
            let mixed = alpha * f64::from(above) + (1.0 - alpha) * f64::from(*below);
            *below = mixed.round() as u8;
        }
    }

    fn png(&self) -> io::Result<Vec<u8>> {
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits, colours, and the only methods there are; not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        let mut data = ZlibEncoder::new(Vec::new(), Compression::best());
        for row in self.rgb.chunks(self.width) {
            // Each row says how it is written: as it is.
            data.write_all(&[0])?;
            data.write_all(row.as_flattened())?;
        }
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        push_chunk(&mut png, *b"IHDR", &header);
        push_chunk(&mut png, *b"IDAT", &data.finish()?);
        push_chunk(&mut png, *b"IEND", &[]);
        Ok(png)
    }
}

fn push_chunk(png: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let mut sum = Crc::new();
    sum.update(&name);
    sum.update(data);
    png.extend(name);
    png.extend(data);
    png.extend(sum.sum().to_be_bytes());
}

fn distance_to_line((x, y): Place, from: Place, to: Place) -> f64 {
    let (along_x, along_y) = (to.0 - from.0, to.1 - from.1);
    let squared = along_x * along_x + along_y * along_y;
    let share = if squared > 0.0 {
        (((x - from.0) * along_x + (y - from.1) * along_y) / squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let (off_x, off_y) = (x - from.0 - share * along_x, y - from.1 - share * along_y);
    (off_x * off_x + off_y * off_y).sqrt()
}

/// To the lines through its edges, which come clockwise and turn to one side only. Below 0 within.
fn distance_to_polygon((x, y): Place, corners: &[Place]) -> f64 {
    let next = corners.iter().cycle().skip(1);
    let edges = corners.iter().zip(next).map(|(from, to)| {
        let (along_x, along_y) = (to.0 - from.0, to.1 - from.1);
        let length = (along_x * along_x + along_y * along_y).sqrt();
        ((x - from.0) * along_y - (y - from.1) * along_x) / length
    });
    edges.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Read;

    use super::*;

    const RED: Paint = Paint::solid([255, 0, 0]);

    fn canvas() -> Canvas {
        Canvas {
            width: 60,
            height: 20,
            shapes: Vec::new(),
        }
    }

    fn drawn(canvas: &Canvas) -> Raster {
        let mut raster = Raster::new(canvas);
        canvas.shapes.iter().for_each(|shape| raster.draw(shape));
        raster
    }

    fn covered(raster: &Raster) -> f64 {
        let green = raster
            .rgb
            .iter()
            .map(|[_, green, _]| f64::from(255 - green));
        green.sum::<f64>() / 255.0 / SCALE / SCALE
    }

    #[test]
    fn a_picture_reads_back() {
        let mut canvas = canvas();
        canvas.line(vec![(0.0, 10.0), (60.0, 10.0)], 2.0, RED);
        let png = png(&canvas).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(
            &png[8..33],
            b"\0\0\0\x0dIHDR\0\0\0\x78\0\0\0\x28\x08\x02\0\0\0\xba\x88\xa9\x72"
        );
        let data_bytes = u32::from_be_bytes(png[33..37].try_into().unwrap()) as usize;
        let mut rows = Vec::new();
        let mut data = flate2::read::ZlibDecoder::new(&png[41..41 + data_bytes]);
        data.read_to_end(&mut rows).unwrap();
        let rows: Vec<&[u8]> = rows.chunks(1 + 3 * 120).collect();
        assert_eq!(rows.len(), 40);
        assert_eq!(rows[17][..4], [0, 255, 255, 255]);
        assert_eq!(rows[18][..4], [0, 255, 0, 0]);
        assert_eq!(rows[21][..4], [0, 255, 0, 0]);
        assert_eq!(rows[22][..4], [0, 255, 255, 255]);
    }

    /// Each mark covers about as much as a circle: none looks as if its run weighed more.
    #[test]
    fn marks_are_all_of_a_size() {
        for mark in Mark::ALL {
            let mut canvas = canvas();
            canvas.mark((20.0, 10.0), 4.0, mark, RED);
            let area = covered(&drawn(&canvas));
            assert!((33.0..55.0).contains(&area), "{mark:?} {area}");
        }
    }

    #[test]
    fn letters_are_there_without_fonts() {
        for (anchor, columns, rows) in [
            (Anchor::Start, 60..102, 4..36),
            (Anchor::Middle, 39..81, 4..36),
            (Anchor::End, 18..60, 4..36),
            (Anchor::Upwards, 44..76, 0..40),
        ] {
            let mut canvas = canvas();
            canvas.text((30.0, 10.0), "a\u{4e2d}é", anchor, Weight::Regular, RED);
            let raster = drawn(&canvas);
            for (index, [_, green, _]) in raster.rgb.iter().enumerate() {
                let place = (index % raster.width, index / raster.width);
                let is_within = columns.contains(&place.0) && rows.contains(&place.1);
                assert!(is_within || *green == 255, "{anchor:?} {place:?}");
            }
            assert!(covered(&raster) > 20.0, "{anchor:?} {}", covered(&raster));
        }
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut canvas = canvas();
        canvas.line(vec![(-50.0, -10.0), (500.0, 300.0)], 2.0, RED);
        canvas.mark((-1.0, 100.0), 4.0, Mark::Diamond, RED);
        canvas.text((59.0, 20.0), "long", Anchor::Start, Weight::Bold, RED);
        assert!(png(&canvas).is_ok());
    }
}
