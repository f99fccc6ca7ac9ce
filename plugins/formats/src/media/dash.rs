//! Reads DASH manifests (ISO/IEC 23009-1): representations, and the URIs of their segments.
//!
//! Segment URIs come from lists or templates. A template is filled in from a timeline, or from the segments' length and the total
//! duration. The number of segments of a live stream without a timeline is unknown, so only its explicit URIs are reported.

use std::rc::Rc;

use opilio_plugin::{Hop, Link};

use crate::Results;
use crate::markup::{Markup, Tag, Token};
use crate::reference::join;

/// Most segments of one representation. Ten hours in segments of two seconds are 18,000.
const SEGMENTS_MAX: u64 = 20_000;

/// Deepest nesting of levels. Valid manifests have at most the four levels of [`Level`], below an initial empty one.
const LEVELS_MAX: usize = 8;

/// Longest accepted base URI, in bytes. Every level has a copy.
const BASE_BYTES_MAX: usize = 2 * 1024;

/// An element that segments inherit from: manifest, period, adaptation set or representation. Each is nested in the one before.
#[derive(Clone, Debug, Default)]
struct Level {
    base: String,
    /// `true` if the element has set its own base. Further ones are alternatives, and ignored.
    has_base: bool,
    /// Duration of the period in seconds.
    duration: Option<f64>,
    template: Template,
    identifier: String,
    bandwidth: String,
}

/// A `SegmentTemplate`. Each attribute is inherited separately.
#[derive(Clone, Debug, Default)]
struct Template {
    media: String,
    initialization: String,
    index: String,
    timescale: Option<u64>,
    duration: Option<u64>,
    start_number: Option<u64>,
    /// Start and length of each segment, in units of the timescale.
    timeline: Rc<Vec<(u64, u64)>>,
    /// `true` after the start of the level's own timeline.
    in_timeline: bool,
}

/// Reads a manifest. Returns the problem if it could not be read completely.
pub(super) fn read(text: &str, segments: bool, found: &mut Results) -> Option<String> {
    let mut markup = Markup::new(text);
    let mut levels = vec![Level::default()];
    // Depths in the document of the elements that are levels.
    let mut depths = Vec::new();
    while let Some(token) = markup.next() {
        match token {
            Token::Start(tag) => {
                if is_level(tag.local_name()) && levels.len() < LEVELS_MAX {
                    let inherited = levels.last().cloned().unwrap_or_default();
                    levels.push(inherited.child(&tag));
                    depths.push(markup.depth());
                } else if let Some(level) = levels.last_mut() {
                    level.start(&tag, segments, found);
                }
                if let Some(href) = tag.attributes().find(|(name, _)| *name == "xlink:href") {
                    push(found, &levels, &href.1, "@xlink:href");
                }
            }
            Token::End(name) => {
                if name == "BaseURL" {
                    if let Some(level) = levels.last_mut() {
                        level.set_base(markup.text().trim());
                    }
                } else if name == "Location" {
                    push(found, &levels, markup.text(), "Location");
                } else if name == "Representation"
                    && let Some(level) = levels.last()
                {
                    level.finish_representation(segments, found);
                }
                while depths.last().is_some_and(|depth| *depth > markup.depth()) {
                    depths.pop();
                    levels.pop();
                }
            }
            Token::Instruction { .. } | Token::DocumentType(_) => {}
        }
    }
    markup.into_problem()
}

fn is_level(name: &str) -> bool {
    matches!(name, "MPD" | "Period" | "AdaptationSet" | "Representation")
}

fn push(found: &mut Results, levels: &[Level], uri: &str, context: &str) {
    let base = levels.last().map_or("", |level| level.base.as_str());
    let uri = join(base, uri.trim());
    found.push(Link::new(uri, Hop::Embed, format!("mpd/{context}")));
}

impl Level {
    /// Returns the level that this tag begins inside the present one.
    fn child(mut self, tag: &Tag<'_>) -> Self {
        self.has_base = false;
        self.template.in_timeline = false;
        match tag.local_name() {
            "MPD" => self.duration = tag.attribute("mediaPresentationDuration").and_then(seconds),
            "Period" => {
                let own = tag.attribute("duration").and_then(seconds);
                self.duration = own.or(self.duration);
            }
            "Representation" => {
                self.identifier = tag.attribute("id").unwrap_or_default();
                self.bandwidth = tag.attribute("bandwidth").unwrap_or_default();
            }
            _ => {}
        }
        self
    }

    fn set_base(&mut self, uri: &str) {
        let base = join(&self.base, uri);
        if !self.has_base && base.len() <= BASE_BYTES_MAX {
            self.base = base;
            self.has_base = true;
        }
    }

    fn start(&mut self, tag: &Tag<'_>, segments: bool, found: &mut Results) {
        let push_attribute = |level: &Self, found: &mut Results, name: &str| {
            if let Some(uri) = tag.attribute(name) {
                let context = format!("mpd/{}/@{name}", tag.local_name());
                found.push(Link::new(join(&level.base, &uri), Hop::Embed, context));
            }
        };
        match tag.local_name() {
            "Initialization" | "RepresentationIndex" | "BitstreamSwitching" => {
                push_attribute(self, found, "sourceURL");
            }
            "SegmentURL" if segments => {
                push_attribute(self, found, "media");
                push_attribute(self, found, "index");
            }
            "SegmentTemplate" => self.template.inherit(tag),
            "SegmentTimeline" => {
                self.template.timeline = Rc::default();
                self.template.in_timeline = true;
            }
            "S" if segments && self.template.in_timeline => self.template.add_segments(tag),
            _ => {}
        }
    }

    /// Adds the URIs of a complete representation: those of its template, or its only file.
    fn finish_representation(&self, segments: bool, found: &mut Results) {
        let template = &self.template;
        for (uri, context) in [
            (
                &template.initialization,
                "mpd/SegmentTemplate/@initialization",
            ),
            (&template.index, "mpd/SegmentTemplate/@index"),
        ] {
            if !uri.is_empty() {
                self.push(uri, 0, 0, context, found);
            }
        }
        if template.media.is_empty() {
            // A representation of one file: the base is its URI. Its segments may have been reported already.
            if !self.base.is_empty() && !self.base.ends_with('/') {
                found.push(Link::new(self.base.clone(), Hop::Embed, "mpd/BaseURL"));
            }
            return;
        }
        if !segments {
            return;
        }
        let first = template.start_number.unwrap_or(1);
        let context = "mpd/SegmentTemplate/@media";
        if !template.timeline.is_empty() {
            for (number, (start, _)) in (first..).zip(template.timeline.iter()) {
                if found.full {
                    break;
                }
                self.push(&template.media, number, *start, context, found);
            }
            return;
        }
        let (Some(length), Some(total)) = (template.duration.filter(|d| *d > 0), self.duration)
        else {
            return;
        };
        let timescale = template.timescale.unwrap_or(1).max(1);
        let count = (total * timescale as f64 / length as f64).ceil().max(0.0);
        // The cast turns NaN into 0.
        let count = (count as u64).min(SEGMENTS_MAX);
        for at in 0..count {
            if found.full {
                break;
            }
            let (number, start) = (first.saturating_add(at), at.saturating_mul(length));
            self.push(&template.media, number, start, context, found);
        }
    }

    fn push(&self, template: &str, number: u64, time: u64, context: &str, found: &mut Results) {
        if let Some(uri) = self.fill_in(template, number, time) {
            found.push(Link::new(join(&self.base, &uri), Hop::Embed, context));
        }
    }

    /// Fills in the identifiers of a template (§5.3.9.4.4). Returns `None` if one is unknown.
    fn fill_in(&self, template: &str, number: u64, time: u64) -> Option<String> {
        /// Largest width of a number. Segment numbers are shorter.
        const WIDTH_MAX: usize = 32;
        let mut filled = String::new();
        for (at, part) in template.split('$').enumerate() {
            if at % 2 == 0 {
                filled.push_str(part);
                continue;
            }
            let (name, format) = part.split_once('%').unwrap_or((part, ""));
            let width = format.trim_start_matches('0').trim_end_matches('d');
            let width = width.parse().unwrap_or(0).min(WIDTH_MAX);
            match name {
                "" => filled.push('$'),
                "RepresentationID" => filled.push_str(&self.identifier),
                "Bandwidth" => filled.push_str(&format!("{:0>width$}", self.bandwidth)),
                "Number" => filled.push_str(&format!("{number:0width$}")),
                "Time" => filled.push_str(&format!("{time:0width$}")),
                _ => return None,
            }
        }
        Some(filled)
    }
}

impl Template {
    fn inherit(&mut self, tag: &Tag<'_>) {
        let set = |own: &mut String, name| {
            if let Some(value) = tag.attribute(name) {
                *own = value;
            }
        };
        set(&mut self.media, "media");
        set(&mut self.initialization, "initialization");
        set(&mut self.index, "index");
        let number = |name| tag.attribute(name)?.parse().ok();
        self.timescale = number("timescale").or(self.timescale);
        self.duration = number("duration").or(self.duration);
        self.start_number = number("startNumber").or(self.start_number);
    }

    /// Adds the ten segments of `<S t="0" d="180" r="9"/>`. A repetition of −1 extends to the next `S` or the end of the period;
    /// it counts once, because its number of segments is not given.
    fn add_segments(&mut self, tag: &Tag<'_>) {
        let number = |name| tag.attribute(name)?.parse::<u64>().ok();
        let Some(length) = number("d") else { return };
        let timeline = Rc::make_mut(&mut self.timeline);
        let end = |&(start, length): &(u64, u64)| start.saturating_add(length);
        let mut start = number("t").unwrap_or_else(|| timeline.last().map_or(0, end));
        let repeated = number("r").unwrap_or(0);
        for _ in 0..=repeated {
            if timeline.len() as u64 >= SEGMENTS_MAX {
                return;
            }
            timeline.push((start, length));
            start = start.saturating_add(length);
        }
    }
}

/// Parses a duration such as `P1DT2H3M4.5S` into seconds. Years and months are rejected, because their length varies.
fn seconds(duration: String) -> Option<f64> {
    let rest = duration.trim().strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    let days = match days {
        "" => 0.0,
        days => days.strip_suffix('D')?.parse::<f64>().ok()?,
    };
    let mut total = days * 86_400.0;
    let mut number = String::new();
    for character in time.chars() {
        let unit = match character {
            'H' => 3_600.0,
            'M' => 60.0,
            'S' => 1.0,
            other => {
                number.push(other);
                continue;
            }
        };
        total += unit * number.parse::<f64>().ok()?;
        number.clear();
    }
    number.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(manifest: &str, expected: &[&str]) {
        let mut found = Results::default();
        read(manifest, true, &mut found);
        let uris: Vec<_> = found.links.iter().map(|link| link.uri.as_str()).collect();
        assert_eq!(uris, expected, "{manifest}");
    }

    #[test]
    fn templates_are_filled_in() {
        check(
            "<MPD mediaPresentationDuration='PT5S'><BaseURL>v/</BaseURL><Period><AdaptationSet>\
             <SegmentTemplate media='$RepresentationID$/$Number%03d$.m4s' initialization='$RepresentationID$/i.mp4' \
             timescale='10' duration='20' startNumber='7'/>\
             <Representation id='a'/><Representation id='b'><BaseURL>/w/</BaseURL></Representation>\
             </AdaptationSet></Period></MPD>",
            &[
                "v/a/i.mp4",
                "v/a/007.m4s",
                "v/a/008.m4s",
                "v/a/009.m4s",
                "/w/b/i.mp4",
                "/w/b/007.m4s",
                "/w/b/008.m4s",
                "/w/b/009.m4s",
            ],
        );
        check(
            "<MPD><Period><AdaptationSet><SegmentTemplate media='$Bandwidth$-$Time$$$.m4s'>\
             <SegmentTimeline><S t='5' d='10' r='1'/><S d='3'/></SegmentTimeline></SegmentTemplate>\
             <Representation bandwidth='9'/></AdaptationSet></Period></MPD>",
            &["9-5$.m4s", "9-15$.m4s", "9-25$.m4s"],
        );
    }

    #[test]
    fn segment_lists_and_single_files() {
        check(
            "<MPD><BaseURL>http://e.org/</BaseURL><Period><Representation><SegmentList>\
             <Initialization sourceURL='i.mp4'/><SegmentURL media='1.m4s'/></SegmentList></Representation>\
             <Representation><BaseURL>f.mp4</BaseURL><BaseURL>http://e.net/f.mp4</BaseURL></Representation>\
             <Representation><BaseURL>g.mp4</BaseURL></Representation></Period></MPD>",
            &[
                "http://e.org/i.mp4",
                "http://e.org/1.m4s",
                "http://e.org/f.mp4",
                "http://e.org/g.mp4",
            ],
        );
    }

    #[test]
    fn large_numbers_are_limited() {
        let mut found = Results::default();
        let manifest = "<MPD mediaPresentationDuration='PT99999999999S'><Period>\
             <SegmentTemplate media='$Number$' duration='1' startNumber='18446744073709551615'/>\
             <Representation/></Period></MPD>";
        read(manifest, true, &mut found);
        assert_eq!(found.links.len() as u64, SEGMENTS_MAX);
        let mut found = Results::default();
        let manifest = "<MPD><Period><SegmentTemplate media='$Time%0999999999d$'><SegmentTimeline>\
             <S d='18446744073709551615' r='18446744073709551615'/></SegmentTimeline></SegmentTemplate>\
             <Representation/></Period></MPD>";
        read(manifest, true, &mut found);
        assert_eq!(found.links.len() as u64, SEGMENTS_MAX);
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("PT1H2M3.5S", Some(3_723.5)),
            ("P1DT1S", Some(86_401.0)),
            ("PT", Some(0.0)),
            ("P1Y", None),
            ("PTxS", None),
            ("", None),
        ] {
            assert_eq!(seconds(text.to_owned()), expected, "{text}");
        }
    }
}
