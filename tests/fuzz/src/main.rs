//! One fuzz target for each extractor, in one program: `OPILIO_FUZZ_TARGET` is the plugin's name. `cargo xtask fuzz` builds it with
//! coverage counters, and runs it with the golden cases as corpus and with limits.
//!
//! Besides panics, a target reports fragments whose spans are outside of the document, and oversized answers. libFuzzer checks time
//! and memory.

#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;
use opilio_plugin::testing::document;
use opilio_plugin::{Configured, Document, Extraction, FragmentContent, Plugins};

/// The environment variable with the name of the fuzzed plugin.
const TARGET: &str = "OPILIO_FUZZ_TARGET";

/// Most bytes of an answer to any document. It is above every extractor's own limits and below the host's limit.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

struct Target {
    plugin: Configured,
    name: String,
    /// Media types for which the plugin uses different parsers.
    media_types: Vec<String>,
}

thread_local! {
    /// libFuzzer calls from a single thread.
    static THE_TARGET: OnceCell<Target> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    THE_TARGET.with(|target| target.get_or_init(Target::named).try_with(data));
});

impl Target {
    fn named() -> Self {
        let name = std::env::var(TARGET).unwrap_or_default();
        let components: [fn() -> Plugins; 5] = [
            opilio_css::plugins,
            opilio_formats::plugins,
            opilio_html::plugins,
            opilio_http_links::plugins,
            opilio_js::plugins,
        ];
        for plugins in components.map(|plugins| plugins()) {
            let descriptions = plugins.describe();
            let Some(description) = descriptions.iter().find(|one| one.name == name) else {
                continue;
            };
            let plugin = match plugins.configure(&name, settings(&name)) {
                Ok(plugin) => plugin,
                Err(faults) => panic!("settings of {name}: {faults:?}"),
            };
            return Self {
                plugin,
                media_types: media_types(&description.handles.media_types),
                name,
            };
        }
        panic!("{TARGET} names no extractor: {name:?}");
    }

    fn try_with(&self, data: &[u8]) {
        for document in self.documents(data) {
            let length = document.length() as usize;
            let text = document.text();
            for extraction in self.plugin.extract(&[document]) {
                check(&extraction, length, &text);
            }
        }
    }

    fn documents(&self, data: &[u8]) -> Vec<Document> {
        let text = || String::from_utf8_lossy(data);
        match self.name.as_str() {
            // These plugins read only the URI.
            "uri" | "implied" => vec![document(&text()).bytes(b"")],
            // The fuzzer's data are header lines.
            "http" => {
                let mut response = document("https://example.org/a/b");
                for line in text().lines() {
                    let (name, value) = line.split_once(':').unwrap_or((line, ""));
                    response = response.header(name.trim(), value.trim());
                }
                vec![response.bytes(b"")]
            }
            _ => self
                .media_types
                .iter()
                .map(|media_type| {
                    document("https://example.org/robots.txt?sitemap.xml&manifest.json")
                        .media_type(media_type)
                        .bytes(data)
                })
                .collect(),
        }
    }
}

/// Settings that enable as much of a plugin as possible.
fn settings(name: &str) -> &'static str {
    match name {
        "implied" => {
            r#"{"rules": [{"uri": "^(https?://[^/]+)/(\\w+)", "implies": "$1/$2/icon.png"}]}"#
        }
        "multi-regex" => {
            r#"{"uri": "^https://example\\.(\\w+)/", "templates": ["/${1}/${id}-${size}"],
                "parts": [{"name": "id", "regex": "id=\"(\\d+)\""}, {"name": "size", "regex": "\\b(small|large)\\b"}]}"#
        }
        _ => "{}",
    }
}

/// The first media type that a plugin handles, and those with another syntax.
fn media_types(handled: &[String]) -> Vec<String> {
    let other_syntax = ["application/xhtml+xml", "application/ld+json"];
    let mut types: Vec<String> = handled
        .iter()
        .filter(|one| !one.contains('*'))
        .take(1)
        .cloned()
        .collect();
    types.extend(
        handled
            .iter()
            .filter(|one| other_syntax.contains(&one.as_str()))
            .cloned(),
    );
    if types.is_empty() {
        types.push("text/plain".to_owned());
    }
    types
}

fn check(extraction: &Extraction, length: usize, text: &str) {
    let mut bytes = 0;
    for link in &extraction.links {
        bytes += link.uri.len() + link.context.len() + link.base.as_ref().map_or(0, String::len);
    }
    for fragment in &extraction.fragments {
        match &fragment.content {
            FragmentContent::BytesAt(span) => {
                assert!(span.offset + span.length <= length as u64, "{span:?}");
            }
            FragmentContent::TextAt(span) => {
                let end = span.offset + span.length;
                assert!(
                    text.get(span.offset as usize..end as usize).is_some(),
                    "{span:?}"
                );
            }
            FragmentContent::Text(text) => bytes += text.len(),
            FragmentContent::Bytes(content) => bytes += content.len(),
        }
    }
    assert!(bytes < ANSWER_BYTES_MAX, "an answer of {bytes} bytes");
}
