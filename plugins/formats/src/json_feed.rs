//! JSON Feed (jsonfeed.org, versions 1 and 1.1), read for the `feed` extractor.

use opilio_plugin::Hop;

use crate::dates;
use crate::feed::{FeedResults, Item};
use crate::values::{self, ValueHandler};

/// Reads a feed; `None` if the document is not one.
pub(crate) fn read(json: &str, results: FeedResults) -> Option<(FeedResults, Option<String>)> {
    // Most JSON is not a feed, and this search costs less than parsing.
    memchr::memmem::find(json.as_bytes(), b"jsonfeed.org")?;
    let mut members = Members {
        results,
        is_feed: false,
        item: Item::default(),
    };
    let outcome = values::read(json, &mut members);
    members.is_feed.then_some((members.results, outcome.err()))
}

/// The state of a JSON feed while it is read.
struct Members {
    results: FeedResults,
    /// `true` if `version` names JSON Feed.
    is_feed: bool,
    item: Item,
}

impl ValueHandler for Members {
    fn is_full(&self) -> bool {
        self.results.is_full()
    }

    fn text(&mut self, path: &[String], value: &str) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["version"] => self.is_feed = is_version(value),
            ["home_page_url"] => self.results.link(value, Hop::Link, "feed/home_page_url"),
            ["feed_url"] => self.results.link(value, Hop::Inferred, "feed/feed_url"),
            ["next_url"] => self.results.link(value, Hop::Link, "feed/next_url"),
            ["icon" | "favicon"] => self.results.link(value, Hop::Embed, "feed/icon"),
            ["author" | "authors", "url"] | ["items", "author" | "authors", "url"] => {
                self.results.link(value, Hop::Link, "author/url");
            }
            ["author" | "authors", "avatar"] | ["items", "author" | "authors", "avatar"] => {
                self.results.link(value, Hop::Embed, "author/avatar");
            }
            ["items", "url"] => self.item.link(value, "item/url", None),
            ["items", "external_url"] => self.results.link(value, Hop::Link, "item/external_url"),
            ["items", "image" | "banner_image"] => {
                self.results.link(value, Hop::Embed, "item/image");
            }
            ["items", "attachments", "url"] => self.results.enclosure(value, "attachment/url"),
            ["items", "date_published"] => self.item.published = dates::parse(value),
            ["items", "date_modified"] => self.item.modified = dates::parse(value),
            ["items", "content_html"] => {
                self.results.content(value, "item/content_html", None);
            }
            _ => {}
        }
    }

    fn open(&mut self, path: &[String]) {
        if path == ["items"] {
            self.item = Item::default();
        }
    }

    fn close(&mut self, path: &[String]) {
        if path == ["items"] {
            self.results.item(std::mem::take(&mut self.item));
        }
    }
}

fn is_version(value: &str) -> bool {
    [
        "https://jsonfeed.org/version/",
        "http://jsonfeed.org/version/",
    ]
    .iter()
    .any(|start| value.starts_with(start))
}
