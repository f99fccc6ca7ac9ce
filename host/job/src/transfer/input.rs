//! A file of lines, plain or compressed, complete or not.
//!
//! A killed crawler leaves a gzip member without its end. Its next process, or a checkpoint, may append further members. The reader
//! returns every readable line: up to the damage, and again from the next member on. It reports the lost parts.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::GzDecoder;

/// Maximum length of a line in bytes, enough for three URIs of the largest size. Longer lines are invalid.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum of damaged parts that are listed; further ones are only counted.
const DAMAGES_MAX: usize = 20;

/// Distance in bytes before an error at which the search for the next member begins. A decoder that runs past the end of a
/// truncated member reads the header of the next member as data, and fails only later.
const BACK_BYTES: u64 = 64 * 1024;

/// Maximum of damaged parts after which a compressed file is given up, so that it is not decoded again and again. No real crawl was
/// interrupted so often.
const RESUMED_MAX: u64 = 1_000;

/// A part of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputDamage {
    /// The last line has no end. It was truncated when the crawler died, and was skipped.
    #[error("skipped the last line, {line}, because it has no line end")]
    LastLine {
        /// Counted from 1.
        line: u64,
    },
    /// A gzip member is damaged, or ends too early.
    #[error(
        "compressed data is damaged near byte {offset}, after line {line} ({problem}); {}",
        resumed_at.map_or_else(
            || "the rest could not be read".to_owned(),
            |at| format!("reading continued at byte {at}")
        )
    )]
    Compressed {
        /// Approximate offset in the file.
        offset: u64,
        /// Whole lines before it.
        line: u64,
        /// The decoder's error.
        problem: String,
        /// Offset of the next member.
        resumed_at: Option<u64>,
    },
}

/// Lines of a file, one at a time.
pub(super) struct Input<S> {
    stream: Stream<S>,
    buffer: Vec<u8>,
    at: usize,
    line: Vec<u8>,
    lines: u64,
    damages: Vec<InputDamage>,
    damage_count: u64,
}

enum Stream<S> {
    Plain(BufReader<S>),
    Gzip {
        decoder: Box<GzDecoder<BufReader<S>>>,
        member_at: u64,
    },
    Ended,
}

/// The next item of the input.
pub(super) enum NextLine<'a> {
    /// A line, without its line end and surrounding blanks.
    Line(&'a [u8]),
    /// The last line, which has no end.
    Unended(&'a [u8]),
    /// A line longer than [`LINE_BYTES_MAX`].
    TooLong,
    /// The end of the input.
    End,
}

enum ReadResult {
    Bytes,
    Damaged,
    End,
}

impl<S: Read + Seek> Input<S> {
    /// Creates an input that reads from the source's position, which must be its beginning.
    pub(super) fn new(source: S) -> io::Result<Input<S>> {
        let mut reader = BufReader::with_capacity(64 * 1024, source);
        let is_gzip = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let mut input = Input {
            stream: if is_gzip {
                Stream::Gzip {
                    decoder: Box::new(GzDecoder::new(reader)),
                    member_at: 0,
                }
            } else {
                Stream::Plain(reader)
            },
            buffer: Vec::new(),
            at: 0,
            line: Vec::new(),
            lines: 0,
            damages: Vec::new(),
            damage_count: 0,
        };
        input.read_more()?;
        if input.buffer.starts_with(b"\xef\xbb\xbf") {
            input.at = 3;
        }
        Ok(input)
    }

    /// Returns the beginning of the unread bytes, for recognising a format.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Returns the number of lines read so far, including invalid and empty ones.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the first damaged parts so far, and their total number.
    pub(super) fn damages(self) -> (Vec<InputDamage>, u64) {
        (self.damages, self.damage_count)
    }

    /// Records that the last line was cut.
    pub(super) fn note_cut(&mut self) {
        let line = self.lines;
        self.add_damage(InputDamage::LastLine { line });
    }

    /// Returns the next line.
    pub(super) fn next_line(&mut self) -> io::Result<NextLine<'_>> {
        self.line.clear();
        let mut is_too_long = false;
        loop {
            let ahead = &self.buffer[self.at..];
            let end = ahead.iter().position(|byte| *byte == b'\n');
            let part = &ahead[..end.unwrap_or(ahead.len())];
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                is_too_long = true;
                self.line.clear();
            }
            if !is_too_long {
                self.line.extend_from_slice(part);
            }
            self.at += part.len();
            if end.is_some() {
                self.at += 1;
                self.lines += 1;
                return Ok(if is_too_long {
                    NextLine::TooLong
                } else {
                    NextLine::Line(self.line.trim_ascii())
                });
            }
            match self.read_more()? {
                ReadResult::Bytes => {}
                ReadResult::Damaged => {
                    // This line was not read to its end.
                    self.line.clear();
                    is_too_long = false;
                }
                ReadResult::End if is_too_long => {
                    self.lines += 1;
                    return Ok(NextLine::TooLong);
                }
                ReadResult::End if self.line.trim_ascii().is_empty() => return Ok(NextLine::End),
                ReadResult::End => {
                    self.lines += 1;
                    return Ok(NextLine::Unended(self.line.trim_ascii()));
                }
            }
        }
    }

    fn read_more(&mut self) -> io::Result<ReadResult> {
        self.buffer.resize(64 * 1024, 0);
        self.at = 0;
        let more = self.decode();
        if !matches!(more, Ok(ReadResult::Bytes)) {
            self.buffer.clear();
        }
        more
    }

    fn decode(&mut self) -> io::Result<ReadResult> {
        loop {
            match &mut self.stream {
                Stream::Ended => return Ok(ReadResult::End),
                Stream::Plain(reader) => {
                    let count = reader.read(&mut self.buffer)?;
                    self.buffer.truncate(count);
                    return Ok(if count > 0 {
                        ReadResult::Bytes
                    } else {
                        ReadResult::End
                    });
                }
                Stream::Gzip { decoder, .. } => match decoder.read(&mut self.buffer) {
                    Ok(0) => self.next_member()?,
                    Ok(count) => {
                        self.buffer.truncate(count);
                        return Ok(ReadResult::Bytes);
                    }
                    Err(error) if is_damage(&error) => {
                        self.skip_damage(&error)?;
                        return Ok(ReadResult::Damaged);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    fn next_member(&mut self) -> io::Result<()> {
        let Stream::Gzip { decoder, .. } = std::mem::replace(&mut self.stream, Stream::Ended)
        else {
            return Ok(());
        };
        let mut reader = (*decoder).into_inner();
        if !reader.fill_buf()?.is_empty() {
            self.stream = Stream::Gzip {
                member_at: reader.stream_position()?,
                decoder: Box::new(GzDecoder::new(reader)),
            };
        }
        Ok(())
    }

    fn skip_damage(&mut self, error: &io::Error) -> io::Result<()> {
        let Stream::Gzip { decoder, member_at } =
            std::mem::replace(&mut self.stream, Stream::Ended)
        else {
            return Ok(());
        };
        let mut reader = (*decoder).into_inner();
        let offset = reader.stream_position()?;
        let from = offset.saturating_sub(BACK_BYTES).max(member_at + 1);
        let resumed_at = if self.damage_count < RESUMED_MAX {
            member_from(&mut reader, from)?
        } else {
            None
        };
        if let Some(at) = resumed_at {
            reader.seek(SeekFrom::Start(at))?;
            self.stream = Stream::Gzip {
                decoder: Box::new(GzDecoder::new(reader)),
                member_at: at,
            };
        }
        self.add_damage(InputDamage::Compressed {
            offset,
            line: self.lines,
            problem: error.to_string(),
            resumed_at,
        });
        Ok(())
    }

    fn add_damage(&mut self, damage: InputDamage) {
        self.damage_count += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(damage);
        }
    }
}

/// Returns `true` for an error of the decoder about damaged data. Other errors are from the disk.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Returns the offset of the first apparent gzip member at or after `from`.
fn member_from<S: Read + Seek>(reader: &mut BufReader<S>, from: u64) -> io::Result<Option<u64>> {
    let mut at = reader.seek(SeekFrom::Start(from))?;
    // The last four bytes seen: magic, method deflate, and flags whose upper three bits are reserved.
    let mut window = [0_u8; 4];
    let mut seen = 0_u64;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let count = bytes.len();
        for byte in bytes {
            window.rotate_left(1);
            window[3] = *byte;
            at += 1;
            seen += 1;
            if seen >= 4 && window[..3] == [0x1f, 0x8b, 8] && window[3] < 0x20 {
                return Ok(Some(at - 4));
            }
        }
        reader.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn numbered(range: std::ops::Range<u32>) -> String {
        range
            .map(|number| {
                format!(
                    "line {number} {:x}\n",
                    u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                )
            })
            .collect()
    }

    fn read(bytes: Vec<u8>) -> (Vec<String>, Vec<InputDamage>) {
        let mut input = Input::new(Cursor::new(bytes)).unwrap();
        let mut lines = Vec::new();
        loop {
            match input.next_line().unwrap() {
                NextLine::Line(line) => lines.push(String::from_utf8_lossy(line).into_owned()),
                NextLine::Unended(line) => {
                    lines.push(format!("{}…", String::from_utf8_lossy(line)))
                }
                NextLine::TooLong => lines.push("too long".to_owned()),
                NextLine::End => break,
            }
        }
        (lines, input.damages().0)
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[&str]) {
        let (lines, damages) = read(bytes.to_vec());
        assert_eq!(lines, expected);
        assert_eq!(damages, []);
    }

    #[test]
    fn all_line_ends_are_recognised() {
        check(b"", &[]);
        check(b"a\nb\r\n\n c \n", &["a", "b", "", "c"]);
        check(b"a\nb", &["a", "b…"]);
        check(b"a\n  ", &["a"]);
        check(b"\xef\xbb\xbfa\n", &["a"]);
        check(&gzip("a\nb\n"), &["a", "b"]);
        check(&[gzip("a\nb"), gzip("c\n")].concat(), &["a", "bc"]);
    }

    #[test]
    fn an_overlong_line_is_skipped_and_the_next_line_is_read() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 1];
        text.extend_from_slice(b"\nb\n");
        check(&text, &["too long", "b"]);
        check(&text[..LINE_BYTES_MAX + 1], &["too long"]);
        let longest = &text[1..];
        let (lines, _) = read(longest.to_vec());
        assert_eq!((lines[0].len(), lines[1].as_str()), (LINE_BYTES_MAX, "b"));
    }

    #[test]
    fn all_complete_lines_before_a_truncation_are_read() {
        let text = numbered(0..20_000);
        let whole = gzip(&text);
        let (lines, damages) = read(whole[..whole.len() / 2].to_vec());
        assert!(lines.len() > 5_000, "{}", lines.len());
        assert_eq!(
            lines,
            text.lines().take(lines.len()).collect::<Vec<_>>(),
            "no half line"
        );
        let [
            InputDamage::Compressed {
                offset,
                line,
                resumed_at: None,
                ..
            },
        ] = damages.as_slice()
        else {
            panic!("{damages:?}");
        };
        assert_eq!(*offset, whole.len() as u64 / 2);
        assert_eq!(*line, lines.len() as u64);
        // Only the eight bytes of the trailer.
        let (lines, damages) = read(whole[..whole.len() - 4].to_vec());
        assert_eq!((lines.len(), damages.len()), (20_000, 1));
        assert!(damages[0].to_string().contains("after line 20000"));
    }

    #[test]
    fn members_after_a_truncated_member_are_read() {
        let first = gzip(&numbered(0..20_000));
        for kept in [first.len() - 3, first.len() / 2, first.len() / 2 + 1, 15] {
            let second = numbered(50_000..60_000);
            let bytes = [&first[..kept], &gzip(&second)].concat();
            let (lines, damages) = read(bytes);
            let expected: Vec<_> = second.lines().collect();
            assert_eq!(lines[lines.len() - 10_000..], expected, "kept {kept}");
            let before = &lines[..lines.len() - 10_000];
            let text = numbered(0..20_000);
            let whole: Vec<_> = text.lines().take(before.len()).collect();
            assert_eq!(before, whole, "kept {kept}");
            assert!(
                matches!(damages.last(), Some(InputDamage::Compressed { resumed_at: Some(at), .. }) if *at == kept as u64),
                "{damages:?}"
            );
        }
    }

    #[test]
    fn a_file_cut_at_any_offset_yields_complete_lines_only() {
        let text = numbered(0..40);
        let whole = gzip(&text);
        for at in 0..whole.len() {
            let (lines, damages) = read(whole[..at].to_vec());
            if at > 1 {
                assert_eq!(damages.len(), 1, "cut at {at}");
                assert!(text.lines().zip(&lines).all(|(a, b)| a == b), "cut at {at}");
            }
            let mut altered = whole.clone();
            altered[at] ^= 0x55;
            read(altered);
        }
    }

    #[test]
    fn a_file_with_too_many_damaged_members_is_given_up() {
        let mut input = Input::new(Cursor::new([0x1f, 0x8b, 8, 0].repeat(50_000))).unwrap();
        assert!(matches!(input.next_line().unwrap(), NextLine::End));
        let (damages, count) = input.damages();
        assert_eq!((damages.len(), count), (DAMAGES_MAX, RESUMED_MAX + 1));
    }

    #[test]
    fn bytes_after_the_last_member_are_reported() {
        let (lines, damages) = read([gzip("a\n"), vec![0; 512]].concat());
        assert_eq!((lines, damages.len()), (vec!["a".to_owned()], 1));
    }
}
