//! Lists of media types in settings: `text/html`, `image/*`, `*+json`, `*/*`.

use opilio_plugin::prelude::*;

use crate::list;

/// Media types, some with a star as a wildcard.
#[derive(Debug)]
pub struct MediaTypes(Vec<String>);

impl MediaTypes {
    /// Parses the media types of a setting. An invalid one is reported with its position in the list.
    pub fn new(setting: &str, texts: &[String]) -> Result<Self, Vec<SettingsFault>> {
        let parse = |text: &str| {
            let text = text.trim().to_ascii_lowercase();
            match is_pattern(&text) {
                true => Ok(text),
                false => Err(format!(
                    "`{text}` is not a media type; write it like `text/html`, `image/*` or `*+json`, without parameters"
                )),
            }
        };
        list::parse_each(setting, texts, parse).map(Self)
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first entry that matches a media type in lower case and without parameters.
    #[must_use]
    pub fn first_match(&self, media_type: &str) -> Option<&str> {
        let mut types = self.0.iter();
        let found = types.find(|known| match known.split_once('*') {
            None => known.as_str() == media_type,
            Some((before, after)) => {
                let after = if after == "/*" { "" } else { after };
                media_type.len() >= before.len() + after.len()
                    && media_type.starts_with(before)
                    && media_type.ends_with(after)
            }
        });
        found.map(String::as_str)
    }
}

fn is_pattern(text: &str) -> bool {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match text.split_once('/') {
        Some(("*", "*")) => true,
        Some((kind, "*")) => token(kind),
        Some((kind, subtype)) => token(kind) && token(subtype.strip_prefix('*').unwrap_or(subtype)),
        None => text.strip_prefix("*+").is_some_and(token),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(pattern: &str, media_type: &str, expected: bool) {
        let types = MediaTypes::new("types", &[pattern.to_owned()]).unwrap();
        assert_eq!(types.first_match(media_type).is_some(), expected);
    }

    #[test]
    fn a_star_matches_any_text() {
        check("text/html", "text/html", true);
        check("Text/HTML", "text/html", true);
        check("text/html", "text/htmlx", false);
        check("text/*", "text/plain", true);
        check("text/*", "image/png", false);
        check("*/*", "image/png", true);
        check("*+json", "application/ld+json", true);
        check("*+json", "application/json", false);
        check("application/*+xml", "application/rss+xml", true);
        check("application/*+xml", "image/svg+xml", false);
    }

    #[test]
    fn invalid_media_types_are_refused() {
        for text in [
            "",
            "*",
            "html",
            "text/",
            "/html",
            "text/html; charset=utf-8",
            "a/b/c",
        ] {
            assert!(
                MediaTypes::new("types", &[text.to_owned()]).is_err(),
                "{text:?}"
            );
        }
    }
}
