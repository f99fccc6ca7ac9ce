//! Documents made to break extractors. No extractor may panic, or take more time than proportional to the size of the document.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use opilio_plugin::Configured;
use opilio_plugin::testing::document;
use proptest::prelude::*;

/// Returns every plugin with the media types that it handles.
fn every_plugin() -> Vec<(Configured, Vec<String>)> {
    let plugins = opilio_formats::plugins();
    plugins
        .describe()
        .into_iter()
        .map(|description| {
            let mut types = description.handles.media_types;
            types.retain(|one| !one.starts_with('*'));
            if types.is_empty() {
                types.push("text/plain".to_owned());
            }
            (plugins.configure(&description.name, "{}").unwrap(), types)
        })
        .collect()
}

/// Calls every plugin with a document, for each of its media types.
fn extract_with_all(content: &[u8]) {
    for (plugin, types) in every_plugin() {
        for media_type in types {
            let document = document("http://e.org/robots.txt?manifest.json")
                .media_type(&media_type)
                .bytes(content);
            let _ = plugin.extract(&[document]);
        }
    }
}

/// Returns the time of all plugins together, each called once for its first media type.
fn time(content: &[u8]) -> Duration {
    let plugins = every_plugin();
    let start = Instant::now();
    for (plugin, types) in &plugins {
        let document = document("http://e.org/robots.txt")
            .media_type(&types[0])
            .bytes(content);
        let _ = plugin.extract(&[document]);
    }
    start.elapsed()
}

/// Fails if the time grows more than 64-fold plus 200 ms for sixteen times the size. Linear time grows 16-fold, quadratic time
/// 256-fold. The margin is for a busy machine.
#[track_caller]
fn check_linear(name: &str, start: &str, repeated: &str, end: &str) {
    let of = |bytes: usize| format!("{start}{}{end}", repeated.repeat(bytes / repeated.len()));
    let (small, large) = (of(10_000), of(160_000));
    let fastest = |text: &str| (0..3).map(|_| time(text.as_bytes())).min().unwrap();
    let (small, large) = (fastest(&small), fastest(&large));
    assert!(
        large < small * 64 + Duration::from_millis(200),
        "{name}: {small:?}, but {large:?} for sixteen times the size"
    );
}

#[test]
fn time_is_linear_in_size() {
    for (name, start, repeated, end) in [
        ("open tags", "", "<a", ">"),
        ("elements", "", "<a>", ""),
        ("named elements", "<rss>", "<item><link>", ""),
        (
            "entries",
            "<urlset>",
            "<url><loc>http://e.org/</loc></url>",
            "",
        ),
        ("end tags", "<rss><channel>", "</item>", ""),
        ("attributes", "<svg><a ", "a='url(b)' ", "/></svg>"),
        ("bases", "<feed>", "<a xml:base='b/'>", ""),
        ("ampersands", "<a>", "&", ""),
        ("references", "<a>", "&#38;", ""),
        ("unfinished references", "<a b='", "&#3", "'/>"),
        ("comments", "", "<!--", "-->"),
        ("sections", "", "<![CDATA[", "]]>"),
        ("declarations", "<!DOCTYPE a [", "<!ENTITY b '", "'>]><a/>"),
        ("quotes", "<!DOCTYPE a ", "'", "'><a/>"),
        ("starts of URIs", "<a>", "http://", "</a>"),
        ("URIs in text", "<a>", " http://e.org/a", ""),
        ("brackets", "<a>", "http://e.org/(", ""),
        ("arrays", "", "[", ""),
        ("objects", "", "{\"a\":", ""),
        ("texts", "[\"\"", ",\"http://e.org/\"", ""),
        ("one text", "[\"", "://<a", "\"]"),
        ("members", "{\"a\":1", ",\"url\":\"/a.html\"", ""),
        ("lines", "", "http://e.org/a\n", ""),
        ("tags of a playlist", "#EXTM3U\n#EXT-X-KEY:", "A=B,", ""),
        (
            "segments",
            "<MPD><Period><SegmentTimeline>",
            "<S d='1'/>",
            "",
        ),
        ("levels", "<MPD>", "<Period>", ""),
        (
            "representations",
            "<MPD mediaPresentationDuration='PT9H'><Period><SegmentTemplate media='$Number$' duration='1'/>",
            "<Representation/>",
            "",
        ),
        (
            "timelines",
            "<MPD><Period><SegmentTimeline><S d='1' r='20000'/></SegmentTimeline>",
            "<Period><S d='1'/>",
            "",
        ),
        (
            "bases of levels",
            "<MPD>",
            "<Period><BaseURL>a/</BaseURL>",
            "",
        ),
        ("sitemaps", "", "Sitemap:", ""),
    ] {
        check_linear(name, start, repeated, end);
    }
}

#[test]
fn long_repetitions_cause_no_panic() {
    for unit in [
        "<a", "<", "&", "[", "{\"", "\"", "\\u", "http://", "\n", "\u{fffd}", "#EXT-X-",
    ] {
        extract_with_all(unit.repeat(512 * 1024 / unit.len()).as_bytes());
    }
    let long = "a".repeat(1024 * 1024);
    for content in [
        format!("<rss {long}='{long}'><channel><link>{long}</link></channel></rss>"),
        format!("<{long}><{long}/></{long}>"),
        format!("{{\"{long}\": \"http://e.org/{long}\"}}"),
        format!("<svg style='url({long})'><style>{long}</style></svg>"),
    ] {
        extract_with_all(content.as_bytes());
    }
}

#[test]
fn entities_are_not_expanded() {
    let bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>\
                <!ENTITY c SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>http://e.org/&b;&c;</loc></url></urlset>";
    let plugin = opilio_formats::plugins()
        .configure("sitemap", "{}")
        .unwrap();
    let document = document("http://e.org/").media_type("text/xml").text(bomb);
    assert_eq!(
        plugin.extract(&[document])[0].links[0].uri,
        "http://e.org/&b;&c;"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_accepted(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        extract_with_all(&content);
    }

    #[test]
    fn any_sequence_of_keywords_is_accepted(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "<", ">", "/>", "</", "=", "'", "\"", "&", ";", "&amp;", "&#x26;", "<!", "[", "]", "{", "}", ":", ",", "\\",
                "<?xml version='1.0'?>", "<rss>", "<channel>", "<item>", "</item>", "<link>", "</link>", "<feed xml:base='",
                "<entry>", "<content type='xhtml'>", "</content>", "<urlset>", "<url>", "<loc>", "</loc>", "<lastmod>", "2024-02-30",
                "<svg>", "<style>", "<a href='", "<MPD>", "<Period duration='", "PT1S", "<SegmentTemplate media='$Number%0", "$",
                "<S d='", "r='", "<Representation>", "</Representation>", "#EXTM3U\n", "#EXT-X-KEY:", "URI=\"", "[playlist]\n", "File1=",
                "\"url\"", "\"items\"", "\"version\"", "\"https://jsonfeed.org/version/1\"", "\"@context\"", "http://e.org/", "é", "\u{0}",
                "\n", " ", "Sitemap:", "9", "-", "<![CDATA[", "]]>", "<!--", "-->", "<!DOCTYPE ", "\u{feff}",
            ]),
            0..60,
        ),
    ) {
        extract_with_all(words.concat().as_bytes());
    }
}
