//! The `sitemap` extractor: entries of sitemaps (sitemaps.org) and their dates of change.
//!
//! Supported are indexes, sitemaps with the extensions for images, videos, news and translations, and plain lists of URIs, also
//! as gzip files. Entries outside the sitemap's own folder are reported too; the job's scope decides about them.

use opilio_plugin::prelude::*;

use crate::content::{content, is_gzip};
use crate::markup::{Markup, Tag, Token};
use crate::{Results, dates, recognise, reference};

/// Settings of the `sitemap` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report translations (`xhtml:link` with `hreflang`).
    #[schemars(extend("x-opilio-overridable" = true))]
    pub alternates: bool,
    /// Whether to report images and videos.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub media: bool,
    /// Whether to report dates of change. A date after a page's last visit makes the page due.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub dates: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            alternates: true,
            media: true,
            dates: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Sitemap {
    settings: Settings,
}

impl Plugin for Sitemap {
    const NAME: &'static str = "sitemap";
    const SUMMARY: &'static str =
        "Entries of sitemaps and sitemap indexes, with the dates of their last change";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/xml",
            "text/xml",
            "application/sitemap+xml",
            "text/plain",
            "application/gzip",
            "application/x-gzip",
            "application/octet-stream",
        ])
    }
}

impl Extractor for Sitemap {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() || !(200..300).contains(&document.status()) {
            return Extraction::default();
        }
        let media_type = document.media_type();
        let is_text = media_type == "text/plain";
        let is_xml = media_type.ends_with("xml");
        // Documents of several types may be sitemaps; the first bytes show whether to read the rest.
        let start = document.read(0, 256);
        if !is_xml && !is_gzip(document) && !may_be_sitemap(&start, is_text) {
            return Extraction::default();
        }
        let content = content(document);
        let read = read(&content.text, &self.settings).or_else(|| {
            let list = || read_list(&content.text, is_named_sitemap(&document.uri()));
            (!is_xml).then(list)?.map(|found| (found, None))
        });
        match read {
            Some((found, problem)) => {
                recognise(document, Self::NAME);
                found.into_extraction(content.problem.or(problem))
            }
            None => Extraction::default(),
        }
    }
}

/// Returns `true` if the document begins with a tag, or if it is text that begins with a URI or is UTF-16.
fn may_be_sitemap(start: &[u8], is_text: bool) -> bool {
    let is_utf_16 = start.starts_with(b"\xFE\xFF") || start.starts_with(b"\xFF\xFE");
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
    let start = start.trim_ascii_start();
    let is_uri = start
        .get(..4)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http"));
    start.starts_with(b"<") || is_text && (is_utf_16 || is_uri)
}

fn is_named_sitemap(uri: &str) -> bool {
    uri.to_ascii_lowercase().contains("sitemap")
}

/// The element of a sitemap that contains a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `url` of a sitemap or `sitemap` of an index.
    Entry,
    Image,
    Video,
    News,
}

/// An entry being read. Its date may come after its URI.
#[derive(Debug, Default)]
struct Entry {
    location: Option<String>,
    modified: Option<u64>,
    published: Option<u64>,
    change_frequency: Option<String>,
    priority: Option<String>,
}

impl Entry {
    /// Adds the link of the complete entry, and resets the entry.
    fn finish(&mut self, context: &str, found: &mut Results) {
        let entry = std::mem::take(self);
        let Some(location) = entry.location else {
            return;
        };
        let mut link = Link::new(location, Hop::Manifest, context);
        if let Some(frequency) = entry.change_frequency {
            link = link.attribute("changefreq", frequency);
        }
        if let Some(priority) = entry.priority {
            link = link.attribute("priority", priority);
        }
        if let Some(dates) = dates::signal(entry.published, entry.modified) {
            link.details.get_or_insert_default().dates = Some(dates);
        }
        found.push(link);
    }
}

/// Reads a sitemap. Returns its entries, and the problem if some could not be read; `None` if the text is not a sitemap.
fn read(text: &str, settings: &Settings) -> Option<(Results, Option<String>)> {
    let mut markup = Markup::new(text);
    let context = loop {
        match markup.next()? {
            Token::Start(root) => match root.local_name() {
                "urlset" => break "sitemap/url",
                "sitemapindex" => break "sitemap/sitemap",
                _ => return None,
            },
            Token::End(_) => return None,
            Token::Instruction { .. } | Token::DocumentType(_) => {}
        }
    };
    let mut found = Results::default();
    let mut entry = Entry::default();
    let mut part = Part::Entry;
    while !found.is_full()
        && let Some(token) = markup.next()
    {
        match token {
            Token::Start(tag) => match tag.local_name() {
                "url" | "sitemap" => {
                    // An entry without an end tag ends at the next one.
                    entry.finish(context, &mut found);
                    part = Part::Entry;
                }
                "image" => part = Part::Image,
                "video" => part = Part::Video,
                "news" => part = Part::News,
                "link" if settings.alternates => alternate(&tag, &mut found),
                _ => {}
            },
            Token::End(name) => match (part, name.as_str()) {
                (_, "url" | "sitemap") => entry.finish(context, &mut found),
                (Part::Entry, "loc") => entry.location = entry_uri(markup.text()),
                (Part::Entry, "lastmod") if settings.dates => {
                    entry.modified = dates::parse(markup.text());
                }
                (Part::Entry, "changefreq") => entry.change_frequency = short_value(markup.text()),
                (Part::Entry, "priority") => entry.priority = short_value(markup.text()),
                (Part::News, "publication_date") if settings.dates => {
                    entry.published = dates::parse(markup.text());
                }
                (Part::Image, "loc")
                | (Part::Video, "content_loc" | "player_loc" | "thumbnail_loc")
                    if settings.media =>
                {
                    if let Some(location) = entry_uri(markup.text()) {
                        let context = format!("sitemap/{name}");
                        found.push(Link::new(location, Hop::Manifest, context));
                    }
                }
                (_, "image" | "video" | "news") => part = Part::Entry,
                _ => {}
            },
            Token::Instruction { .. } | Token::DocumentType(_) => {}
        }
    }
    entry.finish(context, &mut found);
    Some((found, markup.into_problem()))
}

/// Adds the link of `<xhtml:link rel="alternate" hreflang="de" href="…"/>`.
fn alternate(tag: &Tag<'_>, found: &mut Results) {
    let Some(href) = tag.attribute("href") else {
        return;
    };
    let mut link = Link::new(href, Hop::Manifest, "sitemap/link/@href");
    if let Some(language) = tag.attribute("hreflang") {
        link = link.attribute("hreflang", language);
    }
    found.push(link);
}

/// Returns the URI of an entry. If it begins with `www.`, the missing scheme is added.
fn entry_uri(text: &str) -> Option<String> {
    let text = text.trim();
    if text
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("www."))
    {
        return Some(format!("http://{text}"));
    }
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the text if it is a short word.
fn short_value(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= 16).then(|| text.to_owned())
}

/// Reads a text sitemap: a URI on each line, and nothing else. A single URI is enough only if `is_named_sitemap`.
fn read_list(text: &str, is_named_sitemap: bool) -> Option<Results> {
    let mut lines = text
        .trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .peekable();
    lines.peek()?;
    let mut found = Results::default();
    for line in lines {
        if !reference::is_public_uri(line) {
            return None;
        }
        found.push(Link::new(line, Hop::Manifest, "sitemap/line"));
    }
    (is_named_sitemap || found.links.len() > 1).then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use opilio_plugin::testing::document;

    use super::*;

    fn plugin() -> Sitemap {
        Sitemap::new(Settings::default()).unwrap()
    }

    #[track_caller]
    fn check(media_type: &str, text: &str, expected: &[&str]) {
        let document = document("http://e.org/x").media_type(media_type).text(text);
        let extraction = plugin().extract(&document);
        let uris: Vec<_> = extraction.links.iter().map(|link| &link.uri).collect();
        assert_eq!(uris, expected, "{text}");
        assert_eq!(extraction.finished, !expected.is_empty(), "{text}");
    }

    #[test]
    fn gzipped_sitemaps_are_read() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed
            .write_all(b"<urlset><url><loc>/a</loc></url></urlset>")
            .unwrap();
        let packed = packed.finish().unwrap();
        for media_type in [
            "application/gzip",
            "application/x-gzip",
            "text/xml",
            "text/plain",
        ] {
            let document = document("http://e.org/sitemap.xml.gz")
                .media_type(media_type)
                .bytes(&packed);
            assert_eq!(plugin().extract(&document).links[0].uri, "/a");
        }
    }

    #[test]
    fn other_documents_are_ignored() {
        check(
            "text/xml",
            "<rss><channel><link>http://e.org/</link></channel></rss>",
            &[],
        );
        check("text/xml", "http://e.org/a\nhttp://e.org/b", &[]);
        check("application/octet-stream", "PK\u{3}\u{4}", &[]);
        check("text/plain", "http://e.org/a\nis a site", &[]);
        check("text/plain", "http://e.org/a", &[]);
        check("text/plain", "", &[]);
        check("text/xml", "", &[]);
        check("text/xml", "</urlset>", &[]);
    }

    #[test]
    fn a_list_of_uris_is_a_sitemap() {
        check(
            "text/plain",
            "\u{feff}http://e.org/a\r\n\r\n https://e.org/b \n",
            &["http://e.org/a", "https://e.org/b"],
        );
        let one = document("http://e.org/SiteMap.txt")
            .media_type("text/plain")
            .text("http://e.org/a\n");
        assert_eq!(plugin().extract(&one).links.len(), 1);
    }

    #[test]
    fn entries_without_end_tags_are_read() {
        check(
            "application/octet-stream",
            "<urlset><url><loc>/a</loc><url><loc>www.e.org/b</loc></url><url></url><url><loc/></url>",
            &["/a", "http://www.e.org/b"],
        );
    }

    #[test]
    fn links_are_limited() {
        let text = format!(
            "<urlset>{}</urlset>",
            "<url><loc>/a</loc></url>".repeat(60_000)
        );
        let document = document("http://e.org/x")
            .media_type("text/xml")
            .text(&text);
        let extraction = plugin().extract(&document);
        assert_eq!(extraction.links.len(), crate::LINKS_MAX);
        assert!(extraction.problem.unwrap().contains("too many references"));
    }
}
