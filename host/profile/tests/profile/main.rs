//! Tests of profiles through the public API: their values, the origins of these, and errors.

#![allow(clippy::unwrap_used, reason = "tests")]

mod archive;
mod browser;
mod effects;
mod faults;
mod heritrix;
mod layers;
mod overrides;
mod plugins;
mod ready;
mod settings;

use opilio_profile::{Diagnostics, Profile, ProfileContext};

/// Names of the shipped plugins. No plugin is loaded.
const BUILTINS: [&str; 50] = [
    "accept",
    "adaptive",
    "autoplay",
    "autoscroll",
    "bot-walls",
    "broad",
    "calendar-trap",
    "consent",
    "css",
    "domain",
    "feed",
    "feed-trigger",
    "ftp-listing",
    "hop-path",
    "hops",
    "host",
    "html",
    "html-strip",
    "http",
    "js",
    "json",
    "keyword-precedence",
    "link-precedence",
    "load-more",
    "manifest",
    "marked-sections",
    "media",
    "needs-browser",
    "office",
    "path-depth",
    "pdf",
    "prerequisite",
    "query-trap",
    "regex-list",
    "regex-strip",
    "repeating-path",
    "robots",
    "scheme",
    "seed",
    "session-trap",
    "site-specific",
    "sitemap",
    "soft-404",
    "surt-scope",
    "svg",
    "swf",
    "transclusion",
    "unchanged-headers",
    "whois",
    "xml",
];

/// The context of all test profiles: the names of plugins, and seeds from elsewhere, so that the texts need no seeds.
fn context() -> ProfileContext {
    ProfileContext {
        builtins: BUILTINS.map(str::to_owned).to_vec(),
        seeds_elsewhere: true,
        ..ProfileContext::default()
    }
}

#[track_caller]
fn profile(text: &str) -> Profile {
    Profile::parse("p.toml", text, &context()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// All errors, warnings and notes of a profile.
fn faults_of(text: &str) -> Diagnostics {
    match Profile::parse("p.toml", text, &context()) {
        Ok(profile) => profile.notices,
        Err(faults) => faults,
    }
}

/// Compares the printed errors, warnings and notes of a profile with `expected`.
#[track_caller]
fn check(text: &str, expected: &str) {
    let printed = faults_of(text).to_string();
    let expected = expected.trim_matches('\n');
    assert_eq!(printed, expected, "\n--- printed:\n{printed}\n---");
}
