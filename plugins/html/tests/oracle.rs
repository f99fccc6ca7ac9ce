//! Compares the tokenizer with html5gum, which passes the HTML standard's own tests, on random tag soup. Also measures time:
//! hostile input must take linear time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use html5gum::{DefaultEmitter, State, Tokenizer as Gum};
use opilio_html::Settings;
use opilio_html::entities::decode;
use opilio_html::page::{self, Syntax};
use opilio_html::tokenizer::{RawText, Token, Tokenizer};
use proptest::prelude::*;

/// Tokens as `<name a=b …`, `</name` or `<!--text`. As in html5gum, names are in lower case and line breaks are `\n`.
fn our_tokens(text: &str) -> Vec<String> {
    let mut tokenizer = Tokenizer::new(text, 0, text.len());
    let mut attributes = Vec::new();
    let mut tokens = Vec::new();
    while let Some(token) = tokenizer.next(&mut attributes, |_| true) {
        tokens.push(match token {
            Token::Start { name, self_closing } => {
                let mut by_name = std::collections::BTreeMap::new();
                for attribute in &attributes {
                    by_name
                        .entry(attribute.name.to_ascii_lowercase())
                        .or_insert_with(|| {
                            decode(&with_unix_newlines(attribute.value)).into_owned()
                        });
                }
                let name = name.to_ascii_lowercase();
                let token = format!("<{name} {by_name:?} {self_closing}");
                let kind = match name.as_str() {
                    "textarea" | "title" | "style" | "iframe" | "xmp" | "noembed" => {
                        Some(RawText::Plain)
                    }
                    "script" => Some(RawText::Script),
                    "plaintext" => Some(RawText::Endless),
                    _ => None,
                };
                if let Some(kind) = kind {
                    tokenizer.raw_text(&name, kind);
                }
                token
            }
            Token::End { name } => format!("</{}", name.to_ascii_lowercase()),
            Token::Comment { text, .. } => format!("<!--{}", with_unix_newlines(text)),
        });
    }
    tokens
}

fn with_unix_newlines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn html5gum_tokens(text: &str) -> Vec<String> {
    let string = |bytes: &html5gum::HtmlString| String::from_utf8_lossy(bytes).into_owned();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut tokenizer = Gum::new_with_emitter(text, emitter);
    tokenizer.set_state(State::Data);
    let mut tokens = Vec::new();
    for token in tokenizer {
        match token.unwrap() {
            html5gum::Token::StartTag(tag) => {
                let attributes: std::collections::BTreeMap<_, _> = tag
                    .attributes
                    .iter()
                    .map(|(name, value)| (string(name), string(value)))
                    .collect();
                tokens.push(format!(
                    "<{} {attributes:?} {}",
                    string(&tag.name),
                    tag.self_closing
                ));
            }
            html5gum::Token::EndTag(tag) => tokens.push(format!("</{}", string(&tag.name))),
            html5gum::Token::Comment(comment) => tokens.push(format!("<!--{}", string(&comment))),
            _ => {}
        }
    }
    tokens
}

/// Removes bogus comments, which html5gum reports and this tokenizer skips.
fn without_bogus_comments(text: &str, tokens: Vec<String>) -> Vec<String> {
    tokens
        .into_iter()
        .filter(|token| !token.starts_with("<!--") || text.contains("<!--"))
        .collect()
}

#[track_caller]
fn check(text: &str) {
    let (ours, theirs) = (
        our_tokens(text),
        without_bogus_comments(text, html5gum_tokens(text)),
    );
    // If the text contains `<!--`, html5gum's bogus comments stay: our comments must be a subset, and the tags the same.
    let tags = |tokens: &[String]| -> Vec<String> {
        tokens
            .iter()
            .filter(|token| !token.starts_with("<!--"))
            .cloned()
            .collect()
    };
    assert_eq!(tags(&ours), tags(&theirs), "{text:?}");
    let mut rest = theirs.iter();
    for token in &ours {
        assert!(
            rest.any(|other| other == token),
            "{token:?} of {text:?} is not in {theirs:?}"
        );
    }
}

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[<>/=!\"' a-b\\-\n\t]{1,4}",
        1 => "[&#;x0-9a-z\r\\x0C=]{1,6}",
        3 => prop::sample::select(vec![
            "<a href=", "<a href=\"", "<p ", "</p>", "<br/>", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!", "<?", "</",
            "<script>", "</script>", "</script ", "<script ", "<!--<script", "<style>", "</style>", "</STYLE/", "<title>", "</title>",
            "<textarea>", "</textarea>", "<xmp>", "</xmp>", "<!doctype html>", "<![CDATA[", "]]>", "&amp;", "&amp", "&copy=", "&#38;",
            "&#x3c", "&notin;", "&notit;", "a=1 A=2", "é", "=", "/>", " >", "\"", "'", "--",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_of_tag_soup_are_those_of_html5gum(text in soup()) {
        check(&text);
    }

    #[test]
    fn any_text_is_read(text in soup(), other in "\\PC{0,40}") {
        let text = format!("{text}{other}<svg><title><![CDATA[{text}");
        for syntax in [Syntax::Html, Syntax::Xml] {
            page::read(&text, syntax, &Settings::default());
        }
    }

    #[test]
    fn decoded_references_are_those_of_html5gum(value in "[&#xa-zA-Z0-9;= ]{0,12}", name in prop::sample::select(vec!["&amp", "&lt;", "&notin", "&copy", "&hellip;", "&CounterClockwiseContourIntegral;"])) {
        check(&format!("<a b=\"{value}{name}{value}\">"));
    }
}

#[test]
fn script_states_follow_the_standard() {
    for text in [
        "<script><!--</script><a>",
        "<script><!--<script></script><a></script><b>",
        "<script><!--<script>--></script><a>",
        "<script><!--<script></script>--></script><a>",
        "<script><!--></script><a>",
        "<script><!---></script><a>",
        "<script><!--<scriptx></script><a>",
        "<script><!--<script/></script><a></script><b>",
        "<script><!-- -- ></script><a>",
        "<script></scripty></script><a>",
        "<script></SCRIPT\n foo><a>",
        "<script><!--<script>",
        "<script><!--<script --></script><a>",
    ] {
        check(text);
    }
}

#[test]
fn hostile_input_takes_linear_time() {
    /// Size of most inputs. One takes about a second; in quadratic time it would take hours. Debug builds use less.
    const BYTES: usize = if cfg!(debug_assertions) {
        1024 * 1024
    } else {
        10 * 1024 * 1024
    };
    const TIME_MAX: Duration = Duration::from_secs(30);
    let attribute = "x".repeat(1024 * 1024);
    for (name, text) in [
        ("open tags", "<a ".repeat(BYTES / 3)),
        ("open tags without blanks", "<a".repeat(BYTES / 2)),
        ("unclosed quotes", "<a href=\"".repeat(BYTES / 9)),
        ("mixed quotes", "<a href=\"'>".repeat(BYTES / 11)),
        ("comments", "<!--".repeat(BYTES / 4)),
        ("conditional comments", "<!--[if IE]>".repeat(BYTES / 12)),
        (
            "closed conditional comments",
            "<!--[if IE]>-->".repeat(BYTES / 15),
        ),
        ("scripts", "<script><!--<script ".repeat(BYTES / 20)),
        ("script ends", "<script></scrip".repeat(BYTES / 15)),
        ("titles", "<title></titl".repeat(BYTES / 13)),
        ("sections", "<svg><![CDATA[".repeat(BYTES / 14)),
        ("svg", "<svg><title>".repeat(BYTES / 12)),
        (
            "long attributes",
            format!("<a href={attribute} title={attribute}>").repeat(5),
        ),
        (
            "many attributes",
            format!("<a {}>", "href=x ".repeat(BYTES / 7)),
        ),
        (
            "many prefixed attributes",
            format!(
                "<a {}>",
                (0..500_000)
                    .map(|n| format!("data-src{n}=/x "))
                    .collect::<String>()
            ),
        ),
        (
            "references",
            format!("<a href=\"{}\">", "&amp".repeat(BYTES / 4)),
        ),
        (
            "numeric references",
            format!("<a href=\"&#{}\">", "9".repeat(BYTES)),
        ),
        (
            "candidates",
            format!("<img srcset=\"{}\">", "a ( ,".repeat(BYTES / 5)),
        ),
        ("robots", "<meta name=robots content=x>".repeat(BYTES / 28)),
    ] {
        let start = Instant::now();
        page::read(&text, Syntax::Html, &Settings::default());
        assert!(start.elapsed() < TIME_MAX, "{name}: {:?}", start.elapsed());
    }
}
