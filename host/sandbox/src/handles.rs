//! Patterns of the documents and URIs for which a plugin is called, compiled for matching.

use regex::{RegexSet, RegexSetBuilder};

use crate::Handles;

/// Most bytes of the compiled URI expressions of one plugin.
const EXPRESSIONS_BYTES_MAX: usize = 1 << 20;
/// Most URI expressions of one plugin, and most media type patterns.
const PATTERNS_MAX: usize = 256;
/// Most bytes of all URI expressions of one plugin. Parsing takes some hundred times as much memory, before
/// [`EXPRESSIONS_BYTES_MAX`] is checked.
const EXPRESSIONS_LENGTH_MAX: usize = 16 << 10;
/// Longest media type pattern, in bytes (RFC 6838 §4.2: two names of 127).
const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// Media types and URIs of a description, compiled.
#[derive(Debug)]
pub(crate) struct Matcher {
    media_types: Vec<Pattern>,
    uris: Option<RegexSet>,
}

#[derive(Debug)]
enum Pattern {
    Any,
    /// `text/*`: the part before the slash.
    Type(String),
    /// `*+json`: the part from the plus sign on.
    Suffix(String),
    Exact(String),
}

/// Error in the patterns of a description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HandlesProblem {
    /// Not a media type, nor `*/*`, `type/*`, `*+suffix`.
    #[error("`{0}` is not a media type pattern; `text/html`, `text/*`, `*+json` and `*/*` are")]
    MediaType(String),
    /// More patterns than a plugin may have.
    #[error("{count} {what}; {PATTERNS_MAX} are allowed")]
    TooMany {
        /// Media type patterns or URI expressions.
        what: &'static str,
        /// Number of patterns.
        count: usize,
    },
    /// URI expressions that are too long in total.
    #[error("its URI expressions have {0} bytes; {EXPRESSIONS_LENGTH_MAX} are allowed")]
    TooLong(usize),
    /// An expression does not compile.
    #[error("URI expression: {0}")]
    Uri(regex::Error),
}

impl Matcher {
    pub(crate) fn new(handles: &Handles) -> Result<Self, HandlesProblem> {
        let lists = [
            ("media type patterns", handles.media_types.len()),
            ("URI expressions", handles.uris.len()),
        ];
        for (what, count) in lists {
            if count > PATTERNS_MAX {
                return Err(HandlesProblem::TooMany { what, count });
            }
        }
        let length = handles.uris.iter().map(String::len).sum();
        if length > EXPRESSIONS_LENGTH_MAX {
            return Err(HandlesProblem::TooLong(length));
        }
        let media_types = handles
            .media_types
            .iter()
            .map(|text| Pattern::parse(text))
            .collect::<Result<_, _>>()?;
        let uris = match handles.uris.as_slice() {
            [] => None,
            uris => Some(
                RegexSetBuilder::new(uris)
                    .size_limit(EXPRESSIONS_BYTES_MAX)
                    .build()
                    .map_err(HandlesProblem::Uri)?,
            ),
        };
        Ok(Self { media_types, uris })
    }

    /// A matcher that matches no document.
    pub(crate) fn nothing() -> Self {
        Self {
            media_types: vec![Pattern::Exact(String::new())],
            uris: None,
        }
    }

    pub(crate) fn matches(&self, media_type: &str, uri: &str) -> bool {
        (self.media_types.is_empty()
            || self
                .media_types
                .iter()
                .any(|pattern| pattern.matches(media_type)))
            && self.matches_uri(uri)
    }

    /// Returns `true` if a URI matches. Before a fetch only the URI is known.
    pub(crate) fn matches_uri(&self, uri: &str) -> bool {
        self.uris.as_ref().is_none_or(|uris| uris.is_match(uri))
    }
}

/// Returns `true` if a plugin with these patterns is to be called for documents of this media type (lower-case, without
/// parameters) and URI. Invalid patterns match no document.
pub fn handles(patterns: &Handles, media_type: &str, uri: &str) -> bool {
    Matcher::new(patterns).is_ok_and(|matcher| matcher.matches(media_type, uri))
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, HandlesProblem> {
        let short = crate::notes::clip(text, MEDIA_TYPE_BYTES_MAX);
        let refused = || HandlesProblem::MediaType(short.to_owned());
        if short.len() < text.len() {
            return Err(refused());
        }
        if let Some(suffix) = text.strip_prefix("*+") {
            return is_token(suffix)
                .then(|| Self::Suffix(format!("+{suffix}")))
                .ok_or_else(refused);
        }
        match text.split_once('/') {
            Some(("*", "*")) => Ok(Self::Any),
            Some((kind, "*")) if is_token(kind) => Ok(Self::Type(kind.to_owned())),
            Some(_) if is_media_type(text) => Ok(Self::Exact(text.to_owned())),
            _ => Err(refused()),
        }
    }

    fn matches(&self, media_type: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Type(kind) => media_type
                .split_once('/')
                .is_some_and(|(given, _)| given == kind),
            Self::Suffix(suffix) => media_type.ends_with(suffix.as_str()),
            Self::Exact(exact) => media_type == exact,
        }
    }
}

/// Returns `true` if a text is `type/subtype`, lower-case, without parameters (RFC 6838 §4.2, without its bound on length).
pub(crate) fn is_media_type(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(kind, sort)| is_token(kind) && is_token(sort))
}

fn is_token(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$&-^_.+".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handles(media_types: &[&str], uris: &[&str]) -> Handles {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Handles {
            media_types: owned(media_types),
            uris: owned(uris),
        }
    }

    #[test]
    fn media_types_match_their_patterns() {
        #[track_caller]
        fn check(pattern: &str, media_type: &str, expected: bool) {
            let matcher = Matcher::new(&handles(&[pattern], &[])).unwrap();
            assert_eq!(matcher.matches(media_type, "http://example.org/"), expected);
        }
        check("text/html", "text/html", true);
        check("text/html", "text/htm", false);
        check("text/*", "text/css", true);
        check("text/*", "texture/css", false);
        check("*/*", "a/b", true);
        check("*+json", "application/ld+json", true);
        check("*+json", "application/json", false);
        check("image/svg+xml", "image/svg+xml", true);
    }

    #[test]
    fn every_non_empty_list_must_match() {
        #[track_caller]
        fn check(media_types: &[&str], uris: &[&str], expected: bool) {
            let matcher = Matcher::new(&handles(media_types, uris)).unwrap();
            assert_eq!(
                matcher.matches("text/html", "http://example.org/feed.xml"),
                expected
            );
        }
        check(&[], &[], true);
        check(&["text/css", "text/html"], &[], true);
        check(&[], &[r"\.pdf$", r"\.xml$"], true);
        check(&[], &[r"\.pdf$"], false);
        check(&["text/html"], &[r"\.pdf$"], false);
        check(&["text/css"], &[r"\.xml$"], false);
    }

    #[test]
    fn invalid_patterns_are_refused() {
        #[track_caller]
        fn check(media_types: &[&str], uris: &[&str], expected: &str) {
            let problem = Matcher::new(&handles(media_types, uris))
                .unwrap_err()
                .to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        for pattern in [
            "",
            "html",
            "Text/html",
            "text/html; charset=utf-8",
            "*/html",
            "*+",
            "text/",
        ] {
            check(&[pattern], &[], "is not a media type pattern");
        }
        check(&[], &["("], "unclosed group");
        check(&[], &[r"\w{1000}{1000}"], "size limit");
        check(&[], &["x"; 257], "257 URI expressions; 256 are allowed");
        check(&["a/b"; 257], &[], "257 media type patterns");
        check(
            &[&format!("a/{}", "b".repeat(254))],
            &[],
            "media type pattern",
        );
        check(
            &[],
            &[&"(x|".repeat(6_000)],
            "18000 bytes; 16384 are allowed",
        );
    }
}
