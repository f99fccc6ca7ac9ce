//! Annotations of plugins in the crawl log, kept distinct from the crawl's own annotations.
//!
//! Scripts, reports and people read `unchanged` or `robotExcluded` as a result of the crawl itself. If a plugin uses such a
//! reserved word, the annotation gets the plugin's name as a prefix: `my-plugin:unchanged`. Other annotations of plugins are not
//! changed. `by:my-plugin` follows them, so that a search for the plugin's name finds them.

use std::sync::Arc;

use opilio_sandbox::Annotation;

/// Reserved first words: those of the annotations that the crawl or its fetcher makes, up to a colon or an equals sign, in lower
/// case.
const RESERVED: &[&str] = &[
    "authenticated",
    "behaved",
    "browser",
    "by",
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
    "method",
    "midfetchabort",
    "noclosenotify",
    "notrendered",
    "ov",
    "pagerequestsrefused",
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
    "websocketsrefused",
    "wt",
    "wt-by",
];

/// Beginnings of further reserved words, for annotations about charsets and codings.
const RESERVED_BEGINNINGS: &[&str] = &["inconsistent", "unsatisfiable", "using"];

/// Letters around a number that make a reserved word: `3t`, `2vis`, `1ver`, and `os200`.
const COUNTS: &[&str] = &["t", "vis", "ver", "os"];

/// Returns the annotations of plugins as they appear in the crawl log. The annotations of one plugin are together, in the order
/// made. `by:NAME` follows them, unless the plugin's name is a part of each of them, between colons.
pub(crate) fn of_plugins(annotations: &[Annotation]) -> Vec<String> {
    let mut plugins: Vec<&Arc<str>> = Vec::new();
    for annotation in annotations {
        if !plugins.contains(&&annotation.plugin) {
            plugins.push(&annotation.plugin);
        }
    }
    let mut words = Vec::new();
    for plugin in plugins {
        let own = annotations.iter().filter(|it| it.plugin == *plugin);
        let own: Vec<String> = own.map(of_plugin).collect();
        let names_it = |word: &String| word.split(':').any(|part| *part == **plugin);
        let author = (!own.iter().all(names_it)).then(|| format!("by:{plugin}"));
        words.extend(own);
        words.extend(author);
    }
    words
}

/// Returns a plugin's annotation. It gets the plugin's name as a prefix if it begins with a reserved word.
fn of_plugin(annotation: &Annotation) -> String {
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
    fn reserved_words_get_the_name_of_the_plugin_as_prefix() {
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
            "by:someone-else",
            "behaved:autoscroll:3",
            "method:POST",
            "pageRequestsRefused:40",
            "webSocketsRefused:2",
        ] {
            check(word, &format!("liar:{word}"));
        }
    }

    #[test]
    fn other_annotations_are_not_changed() {
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

    #[test]
    fn annotations_without_the_plugin_name_are_followed_by_it() {
        let made = [
            ("bot-walls", "botblock:cloudflare"),
            ("headers", "headers:right:2"),
            ("soft-404", "soft404"),
            ("bot-walls", "unchanged"),
        ];
        let made = made.map(|(plugin, text)| Annotation {
            plugin: plugin.into(),
            text: text.to_owned(),
        });
        let expected = [
            "botblock:cloudflare",
            "bot-walls:unchanged",
            "by:bot-walls",
            "headers:right:2",
            "soft404",
            "by:soft-404",
        ];
        assert_eq!(of_plugins(&made), expected);
        assert_eq!(of_plugins(&[]), [""; 0]);
    }
}
