//! The `swf` extractor: references of Flash movies in their actions, imports and script strings.
//!
//! Tags, actions and constant pools of ActionScript are read, and no code is run (SWF File Format Specification 19, AVM2
//! Overview). Flash Player resolved relative references against the URI of the page that showed the movie. That page is unknown
//! here, so the movie's own URI is used.

use std::collections::HashSet;
use std::io::Read;

use flate2::read::ZlibDecoder;
use opilio_plugin::prelude::*;

use crate::{Results, recognise, reference};

/// Most unpacked bytes of a movie to read.
const MOVIE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most tags of a movie, including those in sprites, and most actions of all tags.
const TAGS_MAX: usize = 200_000;
const ACTIONS_MAX: usize = 1_000_000;

/// Most strings of one constant pool.
const STRINGS_MAX: usize = 100_000;

/// Deepest nesting of sprites. Sprites of valid movies are not nested; a few levels are tolerated.
const SPRITE_DEPTH_MAX: usize = 4;

/// Codes of the tags that may have references.
mod tag {
    pub(super) const DEFINE_BUTTON: u16 = 7;
    pub(super) const DO_ACTION: u16 = 12;
    pub(super) const DEFINE_BUTTON_2: u16 = 34;
    pub(super) const DEFINE_EDIT_TEXT: u16 = 37;
    pub(super) const DEFINE_SPRITE: u16 = 39;
    pub(super) const PLACE_OBJECT_2: u16 = 26;
    pub(super) const IMPORT_ASSETS: u16 = 57;
    pub(super) const DO_INIT_ACTION: u16 = 59;
    pub(super) const PLACE_OBJECT_3: u16 = 70;
    pub(super) const IMPORT_ASSETS_2: u16 = 71;
    pub(super) const DO_ABC_1: u16 = 72;
    pub(super) const DO_ABC: u16 = 82;
}

/// Codes of the actions that may have references.
mod action {
    pub(super) const GET_URL: u8 = 0x83;
    pub(super) const CONSTANT_POOL: u8 = 0x88;
    pub(super) const PUSH: u8 = 0x96;
    pub(super) const GET_URL_2: u8 = 0x9A;
    /// The lowest code of actions with a length and content.
    pub(super) const WITH_LENGTH: u8 = 0x80;
}

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Swf;

impl Plugin for Swf {
    const NAME: &'static str = "swf";
    const SUMMARY: &'static str = "Links in Flash movies: actions, imports and script strings";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/x-shockwave-flash",
            "application/vnd.adobe.flash.movie",
            "application/futuresplash",
            "application/octet-stream",
        ])
    }
}

impl Extractor for Swf {
    fn extract(&self, document: &Document) -> Extraction {
        let header = document.read(0, 8);
        let (Some(signature), Some(&version)) = (header.get(..3), header.get(3)) else {
            return Extraction::default();
        };
        // Other files may begin with the three letters too, so the version is checked. Versions go up to 51.
        if document.fragment().is_some() || header.len() < 8 || !(1..64).contains(&version) {
            return Extraction::default();
        }
        let movie = match signature {
            b"FWS" => document.read(8, MOVIE_BYTES_MAX as u32),
            b"CWS" => unpack(document),
            b"ZWS" => {
                recognise(document, Self::NAME);
                let problem = "the movie is packed with LZMA, which is not supported";
                return Results::default().into_extraction(Some(problem.to_owned()));
            }
            _ => return Extraction::default(),
        };
        let Some(tags) = tags_after_header(&movie) else {
            return Extraction::default();
        };
        recognise(document, Self::NAME);
        let mut reader = Movie {
            found: Results::default(),
            seen: HashSet::new(),
            tags_left: TAGS_MAX,
            actions_left: ACTIONS_MAX,
        };
        reader.tags(tags, 0);
        let is_truncated = movie.len() as u64 >= MOVIE_BYTES_MAX;
        let problem = is_truncated
            .then(|| format!("only the first {MOVIE_BYTES_MAX} bytes of the movie were read"));
        reader.found.into_extraction(problem)
    }
}

/// Returns the unpacked movie without its first 8 bytes. It ends at the first error of the compressed data.
fn unpack(document: &Document) -> Vec<u8> {
    let packed = document.read(8, MOVIE_BYTES_MAX as u32);
    let mut movie = Vec::new();
    // The movie before an error may contain links.
    let _ = ZlibDecoder::new(packed.as_slice())
        .take(MOVIE_BYTES_MAX)
        .read_to_end(&mut movie);
    movie
}

/// Returns the tags, which follow the stage size, frame rate and number of frames.
fn tags_after_header(movie: &[u8]) -> Option<&[u8]> {
    let bits = usize::from(movie.first()? >> 3);
    movie.get((5 + 4 * bits).div_ceil(8) + 4..)
}

/// The state of reading a movie.
struct Movie {
    found: Results,
    /// Strings already reported. Many scripts share constants.
    seen: HashSet<String>,
    tags_left: usize,
    actions_left: usize,
}

impl Movie {
    fn tags(&mut self, bytes: &[u8], depth: usize) {
        let mut bytes = Bytes(bytes);
        while let Some(head) = bytes.u16()
            && self.tags_left > 0
            && !self.found.is_full()
        {
            self.tags_left -= 1;
            let length = match head & 0x3F {
                0x3F => match bytes.u32() {
                    Some(length) => length as usize,
                    None => return,
                },
                length => usize::from(length),
            };
            // The last tag may be truncated.
            let content = bytes.take_up_to(length);
            self.tag(head >> 6, content, depth);
        }
    }

    fn tag(&mut self, code: u16, content: &[u8], depth: usize) {
        let mut bytes = Bytes(content);
        match code {
            tag::DO_ACTION => self.actions(content),
            tag::DO_INIT_ACTION => {
                bytes.take_up_to(2);
                self.actions(bytes.0);
            }
            tag::DEFINE_BUTTON => {
                bytes.take_up_to(2);
                // Records of the button's shapes: flags, character, depth, matrix. A zero ends them. The length of a matrix
                // depends on its bits.
                while let Some(flags) = bytes.u8().filter(|flags| *flags != 0) {
                    let _ = flags;
                    bytes.take_up_to(4);
                    bytes.matrix();
                }
                self.actions(bytes.0);
            }
            tag::DEFINE_BUTTON_2 => {
                bytes.take_up_to(3);
                let Some(offset) = bytes.u16().filter(|offset| *offset >= 2) else {
                    return;
                };
                bytes.take_up_to(usize::from(offset) - 2);
                self.button_actions(bytes);
            }
            // Event actions of placed objects follow a matrix, colours and filters. To avoid parsing those, all bytes are
            // searched for strings.
            tag::PLACE_OBJECT_2 | tag::PLACE_OBJECT_3 => self.strings_in(content),
            tag::DEFINE_SPRITE if depth < SPRITE_DEPTH_MAX => {
                bytes.take_up_to(4);
                self.tags(bytes.0, depth + 1);
            }
            tag::IMPORT_ASSETS | tag::IMPORT_ASSETS_2 => {
                if let Some(uri) = bytes.text() {
                    self.link(&uri, Hop::Embed, "swf/ImportAssets");
                }
            }
            tag::DEFINE_EDIT_TEXT => self.edit_text(content),
            tag::DO_ABC_1 => self.script(bytes),
            tag::DO_ABC => {
                bytes.take_up_to(4);
                let _name = bytes.text();
                self.script(bytes);
            }
            _ => {}
        }
    }

    /// Reads the actions of a button: a list for each of its events.
    fn button_actions(&mut self, mut bytes: Bytes<'_>) {
        while let Some(size) = bytes.u16() {
            bytes.take_up_to(2);
            // The size of the last list is given as zero; it extends to the end.
            let length = match usize::from(size) {
                0 => bytes.0.len(),
                size => size.saturating_sub(4),
            };
            let list = bytes.take_up_to(length);
            self.actions(list);
            if size == 0 {
                return;
            }
        }
    }

    /// Reads bytecode of ActionScript 1 and 2. Bodies of functions are part of the same list.
    fn actions(&mut self, bytes: &[u8]) {
        let mut bytes = Bytes(bytes);
        let mut constants: Vec<String> = Vec::new();
        // Values pushed by the last actions. `GetURL2` takes its URI and target from them.
        let mut pushed: Vec<Option<String>> = Vec::new();
        while let Some(code) = bytes.u8()
            && self.actions_left > 0
            && !self.found.is_full()
        {
            self.actions_left -= 1;
            let content = if code >= action::WITH_LENGTH {
                let length = bytes.u16().unwrap_or_default();
                bytes.take_up_to(usize::from(length))
            } else {
                &[]
            };
            let mut content = Bytes(content);
            match code {
                action::GET_URL => {
                    let uri = content.text().unwrap_or_default();
                    let target = content.text().unwrap_or_default();
                    self.get_url(&uri, &target);
                }
                action::CONSTANT_POOL => {
                    let _count = content.u16();
                    constants.clear();
                    while let Some(text) = content.text() {
                        self.guess(&text, "swf/constant");
                        constants.push(text);
                    }
                }
                action::PUSH => self.push(content, &constants, &mut pushed),
                action::GET_URL_2 => {
                    if let [.., Some(uri), target] = pushed.as_slice() {
                        let target = target.clone().unwrap_or_default();
                        self.get_url(&uri.clone(), &target);
                    }
                    pushed.clear();
                }
                // The stack effects of other actions are not tracked.
                _ => pushed.clear(),
            }
        }
    }

    /// Reads the values of a `Push` action.
    fn push(
        &mut self,
        mut content: Bytes<'_>,
        constants: &[String],
        pushed: &mut Vec<Option<String>>,
    ) {
        while let Some(kind) = content.u8() {
            let index = match kind {
                0 => {
                    let Some(text) = content.text() else { return };
                    self.guess(&text, "swf/string");
                    pushed.push(Some(text));
                    continue;
                }
                8 => content.u8().map(usize::from),
                9 => content.u16().map(usize::from),
                // Numbers, booleans, registers.
                _ => {
                    content.take_up_to(match kind {
                        4 | 5 => 1,
                        1 | 7 => 4,
                        6 => 8,
                        _ => 0,
                    });
                    None
                }
            };
            pushed.push(index.and_then(|index| constants.get(index)).cloned());
        }
    }

    /// Adds the URI of a `GetURL` or `GetURL2`. It is an embed if it is loaded into a level, and else a link.
    fn get_url(&mut self, uri: &str, target: &str) {
        let window = target.is_empty()
            || ["_self", "_blank", "_parent", "_top"]
                .iter()
                .any(|name| target.eq_ignore_ascii_case(name));
        let is_level = target
            .get(..6)
            .is_some_and(|start| start.eq_ignore_ascii_case("_level"));
        let hop = if is_level && !window {
            Hop::Embed
        } else {
            Hop::Link
        };
        self.link(uri, hop, "swf/GetURL");
    }

    /// Passes on a displayed text if it is HTML.
    fn edit_text(&mut self, content: &[u8]) {
        let Some(at) = memchr::memchr(b'<', content) else {
            return;
        };
        let text = &content[at..];
        let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
        let text = String::from_utf8_lossy(text);
        if reference::is_markup(&text) {
            self.found
                .fragment("text/html", &text, "swf/DefineEditText", None);
        }
    }

    /// Reads the strings of ActionScript 3 (AVM2 Overview §4.3), except the names of namespaces.
    fn script(&mut self, mut bytes: Bytes<'_>) {
        bytes.take_up_to(4);
        for _ in 0..2 {
            // Signed and unsigned integers.
            for _ in 1..bytes.u30().unwrap_or_default() {
                if bytes.u30().is_none() {
                    return;
                }
            }
        }
        let doubles = bytes.u30().unwrap_or_default() as usize;
        bytes.take_up_to(doubles.saturating_sub(1).saturating_mul(8));
        let mut strings = Vec::new();
        for _ in 1..bytes.u30().unwrap_or_default().min(STRINGS_MAX as u32) {
            let Some(length) = bytes.u30() else { break };
            let text = bytes.take_up_to(length as usize);
            strings.push(String::from_utf8_lossy(text).into_owned());
        }
        let mut namespaces = HashSet::new();
        for _ in 1..bytes.u30().unwrap_or_default().min(STRINGS_MAX as u32) {
            let (Some(_kind), Some(name)) = (bytes.u8(), bytes.u30()) else {
                break;
            };
            // Strings are numbered from 1.
            namespaces.insert((name as usize).wrapping_sub(1));
        }
        for (at, text) in strings.iter().enumerate() {
            if !namespaces.contains(&at) {
                self.guess(text, "swf/string");
            }
        }
    }

    /// Finds URIs in strings of printable ASCII among other bytes.
    fn strings_in(&mut self, bytes: &[u8]) {
        /// Shorter strings occur by chance.
        const LENGTH_MIN: usize = 6;
        for run in bytes.split(|byte| !(0x20..0x7F).contains(byte)) {
            if run.len() >= LENGTH_MIN
                && let Ok(text) = std::str::from_utf8(run)
            {
                for uri in reference::uris_in(text) {
                    self.guess(uri, "swf/string");
                }
            }
        }
    }

    /// Adds a string if it looks like a reference and is new.
    fn guess(&mut self, text: &str, context: &str) {
        let is_new = text.len() > 4 && !self.seen.contains(text);
        if let Some(found) = reference::likely_reference(text, reference::NameHint::Any)
            && is_new
        {
            self.seen.insert(text.to_owned());
            self.found.push(Link::new(found, Hop::Speculative, context));
        }
    }

    /// Adds a reference, unless it is a command to the program that shows the movie.
    fn link(&mut self, uri: &str, hop: Hop, context: &str) {
        const COMMANDS: [&str; 4] = ["fscommand:", "asfunction:", "event:", "print:"];
        let is_command = COMMANDS.iter().any(|command| {
            uri.get(..command.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(command))
        });
        if !is_command {
            self.seen.insert(uri.to_owned());
            self.found.push(Link::new(uri, hop, context));
        }
    }
}

/// The bytes still to be read.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Takes `length` bytes, or all that are left.
    fn take_up_to(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        let (two, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*two))
    }

    fn u32(&mut self) -> Option<u32> {
        let (four, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*four))
    }

    /// Reads a number with seven bits in each of at most five bytes.
    fn u30(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(value)
    }

    /// Reads a zero-terminated text as UTF-8. Movies before version 6 have the system's encoding, which is not known.
    fn text(&mut self) -> Option<String> {
        let end = memchr::memchr(0, self.0)?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    /// Skips a matrix: scale, rotation and translation if present, rounded up to whole bytes.
    fn matrix(&mut self) {
        let mut at = 0;
        let bytes = self.0;
        let mut bits = |count: usize| {
            let mut value = 0_usize;
            for _ in 0..count {
                let bit = bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
                value = value << 1 | usize::from(bit);
                at += 1;
            }
            value
        };
        for _ in 0..2 {
            if bits(1) == 1 {
                let each = bits(5);
                let _pair = (bits(each), bits(each));
            }
        }
        let each = bits(5);
        let _pair = (bits(each), bits(each));
        self.take_up_to(at.div_ceil(8));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use opilio_plugin::testing::document;
    use proptest::prelude::*;

    use super::*;

    /// Returns a movie of these tags, with an empty stage, 12 frames a second and one frame.
    fn movie(tags: &[(u16, &[u8])]) -> Vec<u8> {
        let mut movie = vec![0, 0, 12, 1, 0];
        for (code, content) in tags {
            movie.extend((code << 6 | 0x3F).to_le_bytes());
            movie.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
            movie.extend(*content);
        }
        movie.extend([0, 0]);
        movie
    }

    fn file(signature: &[u8], movie: &[u8]) -> Vec<u8> {
        [
            signature,
            &[8],
            &(movie.len() as u32 + 8).to_le_bytes(),
            movie,
        ]
        .concat()
    }

    fn extract(bytes: &[u8]) -> Extraction {
        let document = document("http://e.org/m.swf")
            .media_type("application/x-shockwave-flash")
            .bytes(bytes);
        Swf.extract(&document)
    }

    #[track_caller]
    fn check(tags: &[(u16, &[u8])], expected: &[(&str, Hop)]) {
        let extraction = extract(&file(b"FWS", &movie(tags)));
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| (link.uri.as_str(), link.hop.clone()))
            .collect();
        assert_eq!(found, expected);
    }

    fn action(code: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_le_bytes();
        [&[code], length.as_slice(), content].concat()
    }

    #[test]
    fn uris_of_actions() {
        let go = action(0x83, b"http://e.org/a\0_blank\0");
        let load = action(0x83, b"b.swf\0_level0\0");
        let command = action(0x83, b"FSCommand:quit\0x\0");
        let script = action(0x83, b"javascript:x()\0\0");
        check(
            &[(12, &[go.clone(), load, command, script].concat())],
            &[("http://e.org/a", Hop::Link), ("b.swf", Hop::Embed)],
        );
        check(
            &[(59, &[&[1, 0], go.as_slice()].concat())],
            &[("http://e.org/a", Hop::Link)],
        );
    }

    #[test]
    fn pushed_uris_of_actions() {
        let pool = action(0x88, b"\x03\0page.html\0_self\0see http\0");
        let push = action(0x96, b"\x08\0\x08\x01");
        let go = action(0x9A, &[0]);
        check(
            &[(12, &[pool, push, go].concat())],
            &[("page.html", Hop::Link)],
        );
        let push = action(0x96, b"\x07\x01\0\0\0\0http://e.org/data.xml\0\x09\0\0");
        check(
            &[(12, &push)],
            &[("http://e.org/data.xml", Hop::Speculative)],
        );
    }

    #[test]
    fn actions_of_buttons() {
        let go = action(0x83, b"http://e.org/a\0\0");
        // One record: up, character 1, depth 1, a matrix of one byte; then the zero.
        let one = [&[9, 0, 1, 1, 0, 1, 0, 0, 0], go.as_slice()].concat();
        check(&[(7, &one)], &[("http://e.org/a", Hop::Link)]);
        let two = [&[9, 0, 0, 3, 0, 0, 0, 0, 8, 0], go.as_slice()].concat();
        check(&[(34, &two)], &[("http://e.org/a", Hop::Link)]);
    }

    #[test]
    fn sprites_imports_and_texts() {
        let go = action(0x83, b"http://e.org/a\0\0");
        let inner = [
            &[1, 0, 1, 0, 0x3F, 3][..],
            &(go.len() as u32).to_le_bytes(),
            &go,
        ]
        .concat();
        check(&[(39, &inner)], &[("http://e.org/a", Hop::Link)]);
        check(
            &[(57, b"shared.swf\0\x01\0")],
            &[("shared.swf", Hop::Embed)],
        );
        let text = b"\x01\0\0\0\x2C\0v\0<p><a href=\"http://e.org/t\">t</a></p>\0";
        let extraction = extract(&file(b"FWS", &movie(&[(37, text)])));
        assert_eq!(extraction.fragments.len(), 1);
        check(
            &[(70, b"\0\x01http://e.org/clip.xml\0\x02")],
            &[("http://e.org/clip.xml", Hop::Speculative)],
        );
    }

    #[test]
    fn strings_of_scripts_except_namespaces() {
        let strings: [&[u8]; 4] = [
            b"http://e.org/feed.xml",
            b"http://adobe.com/AS3/2006/builtin",
            b"img/a.png",
            b"trace",
        ];
        let mut abc = b"\x01\0\0\0main\0\x10\0\x2E\0\x02\x05\0\x00".to_vec();
        abc.push(5);
        for text in strings {
            abc.push(u8::try_from(text.len()).unwrap());
            abc.extend(text);
        }
        abc.extend([2, 8, 2]);
        check(
            &[(82, &abc)],
            &[
                ("http://e.org/feed.xml", Hop::Speculative),
                ("img/a.png", Hop::Speculative),
            ],
        );
    }

    #[test]
    fn compressed_movies_are_unpacked() {
        let movie = movie(&[(57, b"http://e.org/a.swf\0")]);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&movie).unwrap();
        let packed = file(b"CWS", &encoder.finish().unwrap());
        assert_eq!(extract(&packed).links.len(), 1);
        assert!(
            extract(&file(b"ZWS", &movie))
                .problem
                .unwrap()
                .contains("LZMA")
        );
        assert_eq!(extract(&file(b"FWX", &movie)), Extraction::default());
    }

    #[test]
    fn a_zip_bomb_is_unpacked_to_the_limit() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; 17 * 1024 * 1024]).unwrap();
        let extraction = extract(&file(b"CWS", &encoder.finish().unwrap()));
        assert!(extraction.problem.is_some());
    }

    proptest! {
        #[test]
        fn damaged_movies_cause_no_panic(at in 0usize..200, value in any::<u8>(), length in 0usize..200, code in 0u16..90) {
            let go = action(0x83, b"http://e.org/a\0\0");
            let mut bytes = file(b"FWS", &movie(&[(code, &go), (12, &go), (39, &go), (82, &go)]));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            extract(&bytes);
            bytes.truncate(length);
            extract(&bytes);
        }
    }
}
