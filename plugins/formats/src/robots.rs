//! The `robots` extractor: sitemaps named in a robots.txt. The host itself applies the rules for robots.

use opilio_plugin::prelude::*;

use crate::Results;
use crate::content::content;

/// Longest line to read, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Robots;

impl Plugin for Robots {
    const NAME: &'static str = "robots";
    const SUMMARY: &'static str = "Sitemaps named in robots.txt";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles {
            media_types: Vec::new(),
            uris: vec![r"^[a-z]+://[^/]+/robots\.txt$".to_owned()],
        }
    }
}

impl Extractor for Robots {
    fn extract(&self, document: &Document) -> Extraction {
        // The error page of a missing robots.txt is ignored.
        if document.fragment().is_some() || !(200..300).contains(&document.status()) {
            return Extraction::default();
        }
        let content = content(document);
        let mut found = Results::default();
        for sitemap in sitemaps(&content.text) {
            found.push(Link::new(sitemap, Hop::Manifest, "robots.txt/Sitemap"));
        }
        let finished = document.media_type() == "text/plain";
        Extraction {
            finished,
            ..found.into_extraction(content.problem)
        }
    }
}

/// Returns the values of all `Sitemap` lines, in any part of the file.
fn sitemaps(text: &str) -> impl Iterator<Item = &str> {
    text.trim_start_matches('\u{feff}')
        .split(['\n', '\r'])
        .filter(|line| line.len() <= LINE_BYTES_MAX)
        .filter_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            // `Sitemap: <https://…>` occurs as well.
            let value = value.strip_prefix('<').unwrap_or(value);
            let value = value.strip_suffix('>').unwrap_or(value);
            (key.trim().eq_ignore_ascii_case("sitemap") && !value.is_empty()).then_some(value)
        })
}

#[cfg(test)]
mod tests {
    use opilio_plugin::testing::document;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(sitemaps(text).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn sitemap_lines_anywhere_in_the_file() {
        check(
            "\u{feff}Sitemap: http://e.org/a.xml\r\nUser-agent: *\rDisallow: /\n\
             sitemap:http://e.org/b.xml # the second\n \tSITEMAP : /c.xml\nSitemap:<http://e.org/d.xml>",
            &[
                "http://e.org/a.xml",
                "http://e.org/b.xml",
                "/c.xml",
                "http://e.org/d.xml",
            ],
        );
        check(
            "# Sitemap: http://e.org/a.xml\nSitemap:\nSitemaps: x\nsitemap x",
            &[],
        );
    }

    #[test]
    fn an_error_page_is_ignored() {
        let page = document("http://e.org/robots.txt")
            .media_type("text/plain")
            .status(404)
            .text("Sitemap: /a.xml");
        assert_eq!(Robots.extract(&page), Extraction::default());
    }
}
