//! Extractors of formats other than HTML pages: lists (`sitemap`, `feed`, `robots`, `ftp-listing`, `whois`), data (`json`,
//! `xml`), resources of pages (`manifest`, `svg`, `media`, `swf`), files (`office`, `pdf`), and [guesses](guess).
//!
//! They share one component because they share readers of XML and JSON. Most extractors recognise a document by its content, and
//! then set the note `format`. `json` and `xml`, which read any document of their type, skip documents with this note.

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

/// Name of the note that holds the recognised format of a document. The metadata record contains this note too.
const FORMAT: &str = "format";

/// Sets the note [`FORMAT`], so that `json`, `xml` and `universal` skip the document.
fn recognise(document: &Document, format: &str) {
    document.set_note(FORMAT, format);
}

/// Returns `true` if an earlier extractor has recognised the document. Notes belong to the visit, so fragments of a recognised
/// document have its notes too. A fragment is a document of its own, so its result is `false`.
fn is_recognised(document: &Document) -> bool {
    document.fragment().is_none() && document.note(FORMAT).is_some()
}

/// Most links reported for one document. A sitemap may have this many entries.
const LINKS_MAX: usize = 50_000;

/// Most fragments of a document, which the host passes to the extractors of their media type.
const FRAGMENTS_MAX: usize = 1_000;

/// Most bytes of the extraction of a document. The host allows 16 MiB by default, and discards a larger answer as an error.
const ANSWER_BYTES_MAX: usize = 12 * 1024 * 1024;

/// Reported problem of a document with more references than the limits allow.
const TOO_MANY_REFERENCES: &str = "too many references in one document; the rest is dropped";

/// Bytes counted for each link in addition to its texts.
const LINK_BYTES: usize = 64;

/// The results of a document in document order, within limits. A document of 32 MiB may contain millions of references, which
/// take more memory than the document.
#[derive(Debug, Default)]
struct Results {
    links: Vec<Link>,
    fragments: Vec<Fragment>,
    bytes: usize,
    /// `true` if a limit was reached and a result dropped.
    full: bool,
}

impl Results {
    /// Adds a link within the limits. Links without a usable reference are ignored.
    fn push(&mut self, link: Link) {
        let Some(uri) = reference::usable_reference(&link.uri) else {
            return;
        };
        let base = link.base.as_ref().map_or(0, String::len);
        let bytes = LINK_BYTES + uri.len() + link.context.len() + base;
        if self.links.len() < LINKS_MAX && self.reserve(bytes) {
            let uri = uri.to_owned();
            self.links.push(Link { uri, ..link });
        } else {
            self.full = true;
        }
    }

    /// Adds a text in another language as a fragment, within the limits.
    fn fragment(&mut self, media_type: &str, text: &str, context: &str, base: Option<&str>) {
        let bytes = text.len() + context.len() + base.map_or(0, str::len);
        if self.fragments.len() < FRAGMENTS_MAX && self.reserve(bytes) {
            self.fragments.push(Fragment {
                base: base.map(str::to_owned),
                ..Fragment::text(media_type, text, context)
            });
        } else {
            self.full = true;
        }
    }

    /// Returns `true` if no more links fit, so that the rest of the document need not be read.
    fn is_full(&self) -> bool {
        self.full && (self.links.len() >= LINKS_MAX || self.bytes + LINK_BYTES >= ANSWER_BYTES_MAX)
    }

    /// Counts the bytes of a result. Returns `false`, and counts nothing, if they exceed the limit.
    fn reserve(&mut self, bytes: usize) -> bool {
        let is_within = self.bytes + bytes <= ANSWER_BYTES_MAX;
        if is_within {
            self.bytes += bytes;
        }
        is_within
    }

    /// Returns the extraction of a recognised document, with a problem found while reading.
    fn into_extraction(self, problem: Option<String>) -> Extraction {
        let too_many = || TOO_MANY_REFERENCES.to_owned();
        Extraction {
            problem: problem.or_else(|| self.full.then(too_many)),
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
