//! The `media` extractor: playlists and segments of streams: HLS (RFC 8216), DASH, M3U, PLS, XSPF, ASX, SMIL.
//!
//! A player requests all parts of a stream, so all references are embeds.

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::markup::{Markup, Token};
use crate::{Results, recognise};

mod dash;

/// Settings of the `media` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report the segments of streams, not only playlists. A film of an hour has a thousand segments in each
    /// quality.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub segments: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { segments: true }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    settings: Settings,
}

impl Plugin for Media {
    const NAME: &'static str = "media";
    const SUMMARY: &'static str =
        "Playlists and segments of streams: HLS, DASH, M3U, PLS, XSPF, ASX, SMIL";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/vnd.apple.mpegurl",
            "application/x-mpegurl",
            "application/mpegurl",
            "audio/mpegurl",
            "audio/x-mpegurl",
            "application/dash+xml",
            "video/vnd.mpeg.dash.mpd",
            "audio/x-scpls",
            "application/xspf+xml",
            "video/x-ms-asf",
            "video/x-ms-wvx",
            "audio/x-ms-wax",
            "application/smil",
            "application/smil+xml",
            "application/xml",
            "text/xml",
            "text/plain",
            "application/octet-stream",
        ])
    }
}

/// Kinds of playlists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    M3u,
    Pls,
    Dash,
    /// XSPF, ASX, SMIL.
    Markup,
}

impl Extractor for Media {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() {
            return Extraction::default();
        }
        let start = document.read(0, 4_096);
        let Some(kind) = kind(&document.media_type(), &String::from_utf8_lossy(&start)) else {
            return Extraction::default();
        };
        recognise(document, Self::NAME);
        let content = content(document);
        let mut found = Results::default();
        let problem = match kind {
            Kind::M3u => {
                self.m3u(&content.text, &mut found);
                None
            }
            Kind::Pls => {
                pls(&content.text, &mut found);
                None
            }
            Kind::Dash => dash::read(&content.text, self.settings.segments, &mut found),
            Kind::Markup => playlist(&content.text, &mut found),
        };
        found.into_extraction(content.problem.or(problem))
    }
}

/// Determines the kind by the start of the document, or else by its media type.
fn kind(media_type: &str, start: &str) -> Option<Kind> {
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let lower = start.to_ascii_lowercase();
    if lower.starts_with("#extm3u") {
        return Some(Kind::M3u);
    }
    if lower.starts_with("[playlist]") {
        return Some(Kind::Pls);
    }
    if start.starts_with('<') {
        let has = |root: &str| lower.contains(root);
        if has("<mpd") {
            return Some(Kind::Dash);
        }
        if has("<playlist") && has("xspf.org") || has("<asx") || has("<smil") {
            return Some(Kind::Markup);
        }
        return None;
    }
    match media_type {
        "audio/mpegurl"
        | "audio/x-mpegurl"
        | "application/x-mpegurl"
        | "application/mpegurl"
        | "application/vnd.apple.mpegurl" => Some(Kind::M3u),
        _ => None,
    }
}

impl Media {
    /// Reads M3U, or HLS, which is M3U with tags.
    fn m3u(&self, text: &str, found: &mut Results) {
        let is_media = text.contains("#EXTINF") && text.contains("#EXT-X-");
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.trim();
            match line.strip_prefix('#') {
                Some(tag) => {
                    if let Some((tag, uri)) = tag_uri(tag) {
                        found.push(Link::new(uri, Hop::Embed, format!("m3u/{tag}")));
                    }
                }
                None if is_media && !self.settings.segments => {}
                None => found.push(Link::new(line, Hop::Embed, "m3u/line")),
            }
        }
    }
}

/// Returns the name and the URI of a tag: `EXT-X-KEY` and `k` for `EXT-X-KEY:METHOD=AES-128,URI="k"`.
fn tag_uri(tag: &str) -> Option<(&str, &str)> {
    let (name, attributes) = tag.split_once(':')?;
    if !name.starts_with("EXT-X-") {
        return None;
    }
    let mut rest = attributes;
    loop {
        let (attribute, after) = rest.split_once('=')?;
        let attribute = attribute.trim_matches([' ', ',']);
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if matches!(
            attribute,
            "URI" | "SERVER-URI" | "X-ASSET-URI" | "X-ASSET-LIST"
        ) {
            return Some((name, value));
        }
        rest = after;
    }
}

/// Reads the lines `File1=http://…` of PLS.
fn pls(text: &str, found: &mut Results) {
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = key.trim().to_ascii_lowercase();
        let is_file = key
            .strip_prefix("file")
            .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
        if is_file {
            found.push(Link::new(value, Hop::Embed, "pls/File"));
        }
    }
}

/// Reads XSPF, ASX and SMIL.
fn playlist(text: &str, found: &mut Results) -> Option<String> {
    let mut markup = Markup::new(text);
    while let Some(token) = markup.next() {
        match token {
            Token::Start(tag) => {
                let element = tag.local_name().to_ascii_lowercase();
                for (name, value) in tag.attributes() {
                    let hop = match (element.as_str(), name.to_ascii_lowercase().as_str()) {
                        ("a" | "area" | "moreinfo", "href") => Hop::Link,
                        (_, "src" | "href") => Hop::Embed,
                        _ => continue,
                    };
                    found.push(Link::new(value, hop, format!("{element}/@{name}")));
                }
            }
            Token::End(name) => {
                let hop = match name.as_str() {
                    "location" | "image" => Hop::Embed,
                    "info" => Hop::Link,
                    _ => continue,
                };
                found.push(Link::new(markup.text().trim(), hop, name));
            }
            Token::Instruction { .. } | Token::DocumentType(_) => {}
        }
    }
    markup.into_problem()
}
