//! Profiles from outside: what is read out of them, where it comes from, and what is said of their faults.

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

/// Plugins that stand for those that ship. Names alone matter here: nothing is loaded.
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

/// Knowledge of the host besides the profile: its plugins, and that seeds come from elsewhere, so that texts need none.
fn given() -> ProfileContext {
    ProfileContext {
        builtins: BUILTINS.map(str::to_owned).to_vec(),
        seeds_elsewhere: true,
        ..ProfileContext::default()
    }
}

#[track_caller]
fn profile(text: &str) -> Profile {
    Profile::parse("p.toml", text, &given()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// All that is said of a profile: why it is refused, or what is noticed of one that is not.
fn faults_of(text: &str) -> Diagnostics {
    match Profile::parse("p.toml", text, &given()) {
        Ok(profile) => profile.notices,
        Err(faults) => faults,
    }
}

/// `expected` is all that is said of the profile, as it is printed.
#[track_caller]
fn check(text: &str, expected: &str) {
    let printed = faults_of(text).to_string();
    let expected = expected.trim_matches('\n');
    assert_eq!(printed, expected, "\n--- printed:\n{printed}\n---");
}
