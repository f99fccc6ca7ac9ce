//! Shared parts of the tests: an engine, documents, candidates.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidate, Candidates, Component, Document, DocumentParts, Engine, EngineConfig, Header,
    Limits, Notes, Plugin, PluginConfig, SharedKeptValues, Visit,
};
use serde_json::json;

use crate::guest::Guest;

pub(crate) const URI: &str = "http://example.org/";

/// One engine for all tests that need no engine of their own, because each engine reserves much address space.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        Engine::new(EngineConfig {
            instances_max: 8,
            ..EngineConfig::default()
        })
        .unwrap()
    })
}

/// Directory of compiled components for tests of built-in plugins. Other crates' tests share it
/// (`opilio_stories::component_cache`).
pub(crate) fn component_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/opilio/components")
}

/// Limits that a test can reach quickly.
pub(crate) fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(5),
        memory: 4 << 20,
        ..Limits::default()
    }
}

pub(crate) fn config(settings: serde_json::Value, limits: Limits) -> PluginConfig {
    PluginConfig {
        settings,
        limits,
        ..PluginConfig::default()
    }
}

pub(crate) fn config_of(plugin: &str, settings: serde_json::Value, limits: Limits) -> PluginConfig {
    PluginConfig {
        plugin: Some(plugin.to_owned()),
        ..config(settings, limits)
    }
}

#[track_caller]
pub(crate) fn load(guest: Guest) -> Component {
    engine().load(&guest.build(), "guest").unwrap()
}

#[track_caller]
pub(crate) fn plugin(guest: Guest) -> Plugin {
    load(guest).configure(config(json!({}), limits())).unwrap()
}

pub(crate) fn candidate(uri: &str) -> Candidate {
    Candidate {
        uri: uri.to_owned(),
        surt: String::new(),
        hop_path: String::new(),
        via: None,
        via_surt: None,
        context: String::new(),
        seed: true,
        source: None,
        address: None,
        attributes: Vec::new(),
    }
}

pub(crate) fn candidates(n: usize) -> Candidates {
    (0..n).map(|i| candidate(&format!("{URI}{i}"))).collect()
}

pub(crate) fn document(content: &str) -> Document {
    document_of(Bytes::copy_from_slice(content.as_bytes()))
}

pub(crate) fn document_of(content: Bytes) -> Document {
    Document::new(parts(content))
}

/// A document of a visit at which these values are kept.
pub(crate) fn document_keeping(kept: SharedKeptValues) -> Document {
    Document::new(DocumentParts {
        kept,
        ..parts(Bytes::new())
    })
}

fn parts(content: Bytes) -> DocumentParts {
    DocumentParts {
        uri: URI.to_owned(),
        base: URI.to_owned(),
        status: 200,
        headers: Arc::new([Header {
            name: "Content-Type".to_owned(),
            value: "text/html".to_owned(),
        }]),
        media_type: "text/html".to_owned(),
        charset: Some(encoding_rs::UTF_8),
        fragment: None,
        content,
        notes: Notes::new(),
        kept: SharedKeptValues::default(),
    }
}

pub(crate) fn visit() -> Visit {
    Visit::of(
        candidate(URI),
        Timestamp::from_millisecond(1_000_000).unwrap(),
    )
}
