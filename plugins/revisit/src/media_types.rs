//! Media type patterns of settings: `text/html`, `text/*`, `*/*`, `*/*+json`. An asterisk matches any text before or after the
//! slash, but not across it.

use opilio_plugin::prelude::*;

/// Returns `true` if a media type matches one of the patterns. An empty list matches every type.
pub(crate) fn is_among(patterns: &[String], media_type: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, media_type))
}

/// Returns a fault for each invalid pattern.
pub(crate) fn faults<'a>(
    pointer: &'a str,
    patterns: &'a [String],
) -> impl Iterator<Item = SettingsFault> + 'a {
    let is_invalid = |pattern: &str| {
        let is_forbidden = |c: char| c.is_ascii_uppercase() || c.is_whitespace() || c == ';';
        pattern.split('/').count() != 2 || pattern.contains(is_forbidden)
    };
    let faulty = patterns.iter().enumerate();
    let faulty = faulty.filter(move |(_, pattern)| is_invalid(pattern));
    faulty.map(move |(at, pattern)| {
        let problem =
            format!("`{pattern}` is not a media type; write it like `text/html` or `image/*`");
        SettingsFault::new(format!("{pointer}/{at}"), problem)
    })
}

fn matches(pattern: &str, media_type: &str) -> bool {
    let half = |pattern: &str, text: &str| match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text
            .strip_prefix(before)
            .is_some_and(|rest| rest.len() >= after.len() && rest.ends_with(after)),
    };
    match (pattern.split_once('/'), media_type.split_once('/')) {
        (Some((kind, subtype)), Some((media_kind, media_subtype))) => {
            half(kind, media_kind) && half(subtype, media_subtype)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_subtype_are_matched_separately() {
        for (pattern, media_type, expected) in [
            ("text/html", "text/html", true),
            ("text/*", "text/html", true),
            ("*/*", "image/png", true),
            ("*/*+json", "application/ld+json", true),
            ("text/*", "texture/x", false),
            ("text/html", "text/html5", false),
            ("*/*+json", "application/json", false),
            ("text/*", "", false),
        ] {
            assert_eq!(
                matches(pattern, media_type),
                expected,
                "{pattern} {media_type}"
            );
        }
    }
}
