//! Checks that the scopes of `profiles/heritrix-scope.toml` and `profiles/default.toml` decide like the scope of Heritrix. The
//! cases are derived from its rules.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use opilio_plugin::prelude::*;
use opilio_plugin::testing;
use opilio_plugin::{Configured, TableKind};

/// Returns the scope stack of the profile, configured with the seeds' prefixes.
fn stack(profile: &str) -> Vec<(String, Configured)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../profiles")
        .join(profile);
    let profile: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let names = profile["stacks"]["scope"].as_array().unwrap();
    let configured = names.iter().map(|name| {
        let name = name.as_str().unwrap();
        let own = profile.get("plugins").and_then(|plugins| plugins.get(name));
        let component = own.and_then(|own| own.get("component"));
        let plugin = component.map_or(name, |component| component.as_str().unwrap());
        let plugin = plugin.trim_start_matches("builtin:");
        let mut settings = own
            .and_then(|own| own.get("settings"))
            .map_or_else(toml::Table::new, |settings| {
                settings.as_table().unwrap().clone()
            });
        if plugin == "surt-scope" {
            let seeds = SEEDS.map(toml::Value::from).to_vec();
            settings.insert("seed-prefixes".to_owned(), seeds.into());
        }
        let settings = serde_json::to_string(&settings).unwrap();
        let configured = opilio_scope::plugins().configure(plugin, &settings);
        (name.to_owned(), configured.unwrap())
    });
    configured.collect()
}

/// Prefixes implied by the seeds `http://www.example.org` and `http://example.com/a/b`.
const SEEDS: [&str; 2] = ["http://(org,example,www,", "http://(com,example,)/a/"];

/// Returns true if the stack accepts the candidate, and the name of the deciding filter.
fn decide(stack: &[(String, Configured)], candidate: &Candidate) -> (bool, String) {
    let candidates = testing::candidates(vec![candidate.clone()]);
    let mut decided = (false, "none".to_owned());
    for (name, filter) in stack {
        let ruling = filter
            .judge_candidates(&Stage::Scope, &candidates)
            .remove(0);
        match ruling.verdict {
            Verdict::Accept => decided = (true, name.clone()),
            Verdict::Reject => decided = (false, name.clone()),
            _ => {}
        }
    }
    decided
}

fn candidate(uri: &str, surt: &str, hop_path: &str) -> Candidate {
    let facts = serde_json::json!({"uri": uri, "surt": surt, "hop-path": hop_path});
    serde_json::from_value(facts).unwrap()
}

/// URI, SURT form, hop path, `true` if Heritrix accepts the URI, and the deciding filter of Opilio.
const CASES: [(&str, &str, &str, bool, &str); 30] = [
    (
        "http://www.example.org/",
        "http://(org,example,www,)/",
        "L",
        true,
        "in-scope",
    ),
    (
        "https://a.www.example.org/x",
        "http://(org,example,www,a,)/x",
        "LL",
        true,
        "in-scope",
    ),
    (
        "http://example.org/",
        "http://(org,example,)/",
        "L",
        false,
        "none",
    ),
    (
        "http://example.com/a/c",
        "http://(com,example,)/a/c",
        "L",
        true,
        "in-scope",
    ),
    (
        "http://example.com/b",
        "http://(com,example,)/b",
        "L",
        false,
        "none",
    ),
    // Too many hops, on any host; embeds and prerequisites are still accepted.
    (
        "http://www.example.org/",
        "http://(org,example,www,)/",
        "LLLLLLLLLLLLLLLLLLLL",
        true,
        "in-scope",
    ),
    (
        "http://www.example.org/",
        "http://(org,example,www,)/",
        "LLLLLLLLLLLLLLLLLLLLL",
        false,
        "hops",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "LLLLLLLLLLLLLLLLLLLLE",
        true,
        "transclusion",
    ),
    (
        "http://www.example.org/",
        "http://(org,example,www,)/",
        "30+LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL",
        false,
        "hops",
    ),
    // Transclusion: at most two hops since the last chosen one, one of them speculative.
    (
        "http://other.net/i.png",
        "http://(net,other,)/i.png",
        "LE",
        true,
        "transclusion",
    ),
    (
        "http://other.net/i.png",
        "http://(net,other,)/i.png",
        "LEE",
        true,
        "transclusion",
    ),
    (
        "http://other.net/i.png",
        "http://(net,other,)/i.png",
        "LEEE",
        false,
        "none",
    ),
    (
        "http://other.net/i.png",
        "http://(net,other,)/i.png",
        "LRE",
        true,
        "transclusion",
    ),
    (
        "http://other.net/i.png",
        "http://(net,other,)/i.png",
        "LERR",
        true,
        "transclusion",
    ),
    (
        "http://other.net/i.js",
        "http://(net,other,)/i.js",
        "LEX",
        true,
        "transclusion",
    ),
    (
        "http://other.net/i.js",
        "http://(net,other,)/i.js",
        "LXX",
        false,
        "none",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "LR",
        true,
        "transclusion",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "LM",
        false,
        "none",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "LME",
        true,
        "transclusion",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "LS",
        false,
        "none",
    ),
    (
        "http://other.net/",
        "http://(net,other,)/",
        "ME",
        true,
        "transclusion",
    ),
    (
        "http://other.net/robots.txt",
        "http://(net,other,)/robots.txt",
        "P",
        true,
        "prerequisite",
    ),
    (
        "dns:other.net",
        "dns:other.net",
        "LEP",
        true,
        "prerequisite",
    ),
    // Paths that repeat segments or are too deep, for links and embeds.
    (
        "http://www.example.org/a/a/a/",
        "http://(org,example,www,)/a/a/a/",
        "L",
        false,
        "repeating-path",
    ),
    (
        "http://www.example.org/a/b/a/b/a/b/",
        "http://(org,example,www,)/a/b/a/b/a/b/",
        "E",
        false,
        "repeating-path",
    ),
    (
        "http://www.example.org/a/b/a/c/a/d/",
        "http://(org,example,www,)/a/b/a/c/a/d/",
        "L",
        true,
        "in-scope",
    ),
    (
        "http://www.example.org/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20",
        "http://(org,example,www,)/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20",
        "L",
        true,
        "in-scope",
    ),
    (
        "http://www.example.org/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/",
        "http://(org,example,www,)/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/",
        "E",
        false,
        "path-depth",
    ),
    // A scheme that is not fetched, even if a page embeds it.
    (
        "ws://www.example.org/",
        "ws://(org,example,www,)/",
        "LX",
        false,
        "scheme",
    ),
    (
        "mailto:a@example.org",
        "mailto:a@example.org",
        "LP",
        false,
        "scheme",
    ),
];

#[test]
fn the_heritrix_scope_profile_decides_as_heritrix_does() {
    let stack = stack("heritrix-scope.toml");
    for (uri, surt, hop_path, accepted, by) in CASES {
        let decided = decide(&stack, &candidate(uri, surt, hop_path));
        assert_eq!(decided, (accepted, by.to_owned()), "{uri} {hop_path}");
    }
}

#[test]
fn the_default_scope_decides_the_same() {
    let stack = stack("default.toml");
    for (uri, surt, hop_path, accepted, _) in CASES {
        let (is_accepted, by) = decide(&stack, &candidate(uri, surt, hop_path));
        assert_eq!(is_accepted, accepted, "{uri} {hop_path}, by {by}");
    }
}

/// The list of excluded URIs comes after transclusion, and before prerequisites.
#[test]
fn excluded_uris_are_rejected_except_prerequisites() {
    let stack = stack("heritrix-scope.toml");
    testing::set_tables(&[(
        "surts-out",
        TableKind::SurtPrefixes,
        &[("http://(org,example,www,)/out/", "")],
    )]);
    let deciding_filter = |path: &str, hop_path: &str| {
        let uri = format!("http://www.example.org{path}");
        let surt = format!("http://(org,example,www,){path}");
        decide(&stack, &candidate(&uri, &surt, hop_path)).1
    };
    assert_eq!(deciding_filter("/out/x", "L"), "surts-out");
    assert_eq!(deciding_filter("/out/x", "LE"), "surts-out");
    assert_eq!(deciding_filter("/out/x", "LP"), "prerequisite");
    assert_eq!(deciding_filter("/in/x", "L"), "in-scope");
}
