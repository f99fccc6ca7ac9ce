//! Annotations of plugins in the crawl log, apart from the crawl's own words.
//!
//! Scripts, reports and people read `unchanged` or `robotExcluded` as the crawl's finding. A plugin that uses such a word
//! gets its name in front of it: `my-plugin:unchanged`.

use opilio_sandbox::Annotation;

/// First words of the annotations that the crawl or its fetcher makes, up to a colon or an equals sign, in lower case.
const RESERVED: &[&str] = &[
    "authenticated",
    "browser",
    "cancelled",
    "cookieredirect",
    "damagedcontentencoding",
    "decodedlentrunc",
    "deletedby",
    "dol",
    "duplicate",
    "err",
    "excessbytes",
    "ftpdirectorylist",
    "headertrunc",
    "lentrunc",
    "login",
    "midfetchabort",
    "noclosenotify",
    "ov",
    "notrendered",
    "quota",
    "ratetrunc",
    "recovered",
    "redirectstrunc",
    "render",
    "rendered",
    "retriesexhausted",
    "robotexcluded",
    "robotsline",
    "robotstag",
    "scope-fault",
    "scratchtrunc",
    "stoptrunc",
    "timetrunc",
    "unchanged",
    "unextracted",
    "unreadablecontent",
    "unstripped",
    "unwantedtrunc",
    "unwritten",
    "warcrevisit",
    "wt",
    "wt-by",
];

/// Beginnings of further first words, for annotations about charsets and codings.
const RESERVED_BEGINNINGS: &[&str] = &["inconsistent", "unsatisfiable", "using"];

/// Letters around a number that make a reserved word: `3t`, `2vis`, `1ver`, and `os200`.
const COUNTS: &[&str] = &["t", "vis", "ver", "os"];

/// Returns a plugin's annotation as it appears in the crawl log.
pub(crate) fn of_plugin(annotation: &Annotation) -> String {
    let Annotation { plugin, text } = annotation;
    if is_reserved(text) {
        format!("{plugin}:{text}")
    } else {
        text.clone()
    }
}

fn is_reserved(text: &str) -> bool {
    let first = text.split([':', '=']).next().unwrap_or_default();
    let first = first.to_ascii_lowercase();
    let letters = first.trim_matches(|c: char| c.is_ascii_digit());
    RESERVED.contains(&first.as_str())
        || RESERVED_BEGINNINGS
            .iter()
            .any(|beginning| first.starts_with(beginning))
        || (letters.len() < first.len() && COUNTS.contains(&letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let annotation = Annotation {
            plugin: "liar".into(),
            text: text.to_owned(),
        };
        assert_eq!(of_plugin(&annotation), expected);
    }

    #[test]
    fn words_of_the_crawl_carry_the_name_of_a_plugin_that_uses_them() {
        for word in [
            "unchanged",
            "robotExcluded",
            "RobotExcluded",
            "robotsLine:7",
            "duplicate:digest",
            "warcRevisit:digest",
            "err=timeout",
            "3t",
            "2vis",
            "1ver",
            "os200",
            "wt:1d0h0m0s0ms",
            "unsatisfiableContentEncoding:br",
            "usingCharsetInHTML:utf-8",
        ] {
            check(word, &format!("liar:{word}"));
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for word in [
            "botblock:cloudflare",
            "soft404",
            "login-form",
            "headers:right:2",
            "t",
            "unchanged-headers:x",
            "3",
        ] {
            check(word, word);
        }
    }
}
