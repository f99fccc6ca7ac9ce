//! Extractors of formats other than pages: lists made for crawlers and readers (`sitemap`, `feed`, `robots`), data
//! (`json`, `xml`), and what pages are furnished with (`manifest`, `svg`, `media`).
//!
//! One component, because they share readers of XML and JSON. Each extractor answers for what it recognises and leaves a
//! note of it; `json` and `xml`, which read anything of theirs, stay out of what has been recognised before them.

mod content;
mod dates;
pub mod feed;
pub mod ftp;
pub mod guess;
pub mod json;
mod json_feed;
pub mod manifest;
mod markup;
pub mod media;
pub mod office;
mod package;
pub mod pdf;
mod reference;
pub mod robots;
pub mod sitemap;
pub mod svg;
pub mod swf;
mod values;
mod vocabulary;
pub mod whois;
pub mod xml;

use opilio_plugin::prelude::*;

use crate::feed::Feed;
use crate::ftp::FtpListing;
use crate::guess::{Implied, MultiRegex, Universal, UriInUri};
use crate::json::Json;
use crate::manifest::Manifest;
use crate::media::Media;
use crate::office::Office;
use crate::pdf::Pdf;
use crate::robots::Robots;
use crate::sitemap::Sitemap;
use crate::svg::Svg;
use crate::swf::Swf;
use crate::whois::Whois;
use crate::xml::Xml;

/// The note that says what a document has been recognised as. It goes into the metadata record as well.
const FORMAT: &str = "format";

/// Leaves the note; the extractors of anything stay out then.
fn recognise(document: &Document, format: &str) {
    document.set_note(FORMAT, format);
}

/// Has an extractor before this one recognised the document? Notes are those of the visit, so a fragment of what was
/// recognised sees them too, and is another document.
fn is_recognised(document: &Document) -> bool {
    document.fragment().is_none() && document.note(FORMAT).is_some()
}

/// Most links of one document: what a sitemap may have.
const LINKS_MAX: usize = 50_000;

/// Parts of a document handed on to the extractors of their type.
const FRAGMENTS_MAX: usize = 1_000;

/// Bytes that a document's answer may take. The host allows 16 MiB by default and takes more for a fault, which would
/// cost all of it.
const ANSWER_BYTES_MAX: usize = 12 * 1024 * 1024;

/// What is said of a document that has more than is taken of one.
const MORE: &str = "there is more in it than is taken of one document";

/// What a link takes besides its texts.
const LINK_BYTES: usize = 64;

/// What a document gave, in the order found and within bounds: a document of 32 MiB may name millions, and what it
/// names takes more memory than it does.
#[derive(Debug, Default)]
struct Found {
    links: Vec<Link>,
    fragments: Vec<Fragment>,
    bytes: usize,
    /// There was more.
    full: bool,
}

impl Found {
    /// Takes a link whose reference leads somewhere, if there is room.
    fn push(&mut self, link: Link) {
        let Some(uri) = reference::reference(&link.uri) else {
            return;
        };
        let base = link.base.as_ref().map_or(0, String::len);
        let bytes = LINK_BYTES + uri.len() + link.context.len() + base;
        if self.links.len() < LINKS_MAX && self.has_room(bytes) {
            let uri = uri.to_owned();
            self.links.push(Link { uri, ..link });
        } else {
            self.full = true;
        }
    }

    /// Takes a text in another language, if there is room.
    fn fragment(&mut self, media_type: &str, text: &str, context: &str, base: Option<&str>) {
        let bytes = text.len() + context.len() + base.map_or(0, str::len);
        if self.fragments.len() < FRAGMENTS_MAX && self.has_room(bytes) {
            self.fragments.push(Fragment {
                base: base.map(str::to_owned),
                ..Fragment::text(media_type, text, context)
            });
        } else {
            self.full = true;
        }
    }

    /// No link is taken any more: reading on would cost time alone.
    fn is_full(&self) -> bool {
        self.full && (self.links.len() >= LINKS_MAX || self.bytes + LINK_BYTES >= ANSWER_BYTES_MAX)
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes + bytes <= ANSWER_BYTES_MAX;
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }

    /// The answer for a document that has been understood.
    fn finished(self, problem: Option<String>) -> Extraction {
        let more = || MORE.to_owned();
        Extraction {
            problem: problem.or_else(|| self.full.then(more)),
            links: self.links,
            fragments: self.fragments,
            finished: true,
            base: None,
        }
    }
}

opilio_plugin::export!(extractors: [
    Sitemap, Feed, Robots, FtpListing, Whois, Json, Manifest, Xml, Svg, Media, Office, Pdf, Swf, UriInUri, Universal, Implied,
    MultiRegex,
]);
