//! Extractors of formats other than pages: lists for crawlers and readers (`sitemap`, `feed`, `robots`), data (`json`, `xml`),
//! and parts of pages (`manifest`, `svg`, `media`).
//!
//! They share one component because they share readers of XML and JSON. Each extractor answers for documents it recognises, and
//! leaves a note. `json` and `xml`, which read any document of their type, skip recognised ones.

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

/// The note with the recognised format of a document. The metadata record has it too.
const FORMAT: &str = "format";

/// Leaves the note, so that general extractors skip the document.
fn recognise(document: &Document, format: &str) {
    document.set_note(FORMAT, format);
}

/// Whether an earlier extractor recognised the document. Notes belong to the visit, so a fragment of a recognised document has
/// them too. A fragment is another document.
fn is_recognised(document: &Document) -> bool {
    document.fragment().is_none() && document.note(FORMAT).is_some()
}

/// Most links of one document: the limit of a sitemap.
const LINKS_MAX: usize = 50_000;

/// Most parts of a document that are passed to the extractors of their type.
const FRAGMENTS_MAX: usize = 1_000;

/// Most bytes of a document's answer. The host allows 16 MiB by default; more is a fault that loses the whole answer.
const ANSWER_BYTES_MAX: usize = 12 * 1024 * 1024;

/// Problem of a document with more references than the limit.
const MORE: &str = "too many references in one document; the rest is dropped";

/// Size of a link without its texts.
const LINK_BYTES: usize = 64;

/// The results of a document in document order, within limits. A document of 32 MiB may contain millions of references, which
/// take more memory than the document.
#[derive(Debug, Default)]
struct Found {
    links: Vec<Link>,
    fragments: Vec<Fragment>,
    bytes: usize,
    /// Whether a limit was reached.
    full: bool,
}

impl Found {
    /// Adds a link with a usable reference, within the limits.
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

    /// Adds a text in another language as a fragment, within the limits.
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

    /// Whether no more links are accepted, so that reading on would waste time.
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

    /// The answer for a recognised document.
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
