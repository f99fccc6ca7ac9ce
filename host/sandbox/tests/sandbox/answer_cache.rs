//! Remembered answers equal those of a call. Each case goes to a built-in plugin in an engine that remembers answers and in one
//! that does not.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidate, Candidates, ContentState, Document, DocumentParts, Engine, EngineConfig, Header,
    KeptValue, KeptValues, Kind, Limits, Notes, Plugin, SharedKeptValues, Signal, Stage, Visit,
};
use serde_json::json;

use crate::support::{candidate, component_cache, config_of};

/// A random number generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// A document and its visit. Every field that a plugin may read varies, but each has few values, so that many cases repeat.
/// `plugin` may have kept a value.
fn case(dice: &mut Dice, plugin: &str) -> (Stage, Document, Visit) {
    let uri = dice.one_of(&[
        "http://a.org/",
        "http://a.org/feed.xml",
        "http://a.org/x/gone",
    ]);
    let value = dice.one_of(&["3 4 5", "20 20 0", "x"]);
    let kept = |dice: &mut Dice, names: &[&str]| {
        let name = dice.one_of(names);
        let value = KeptValue {
            version: 1,
            value: value.to_owned(),
        };
        let values = BTreeMap::from([(name.to_owned(), value)]);
        match dice.below(3) {
            0 => KeptValues::of_plugin(plugin, values),
            _ => KeptValues::default(),
        }
    };
    let kept = SharedKeptValues::new(
        kept(dice, &["evidence", "wait"]),
        kept(dice, &["trust", "told"]),
    );
    let notes = Notes::new();
    let mut headers = vec![Header {
        name: "Content-Type".to_owned(),
        value: "text/html".to_owned(),
    }];
    for name in ["ETag", "Last-Modified", "Server"] {
        if dice.below(3) == 0 {
            headers.push(Header {
                name: name.to_owned(),
                value: dice.one_of(&["\"a\"", "\"b\"", "cloudflare"]).to_owned(),
            });
        }
    }
    let content = dice.one_of(&[
        "<title>News</title><p>of today",
        "<title>404 Not Found</title><h1>Not found</h1>",
        "<title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/x></script>",
        "",
    ]);
    let status = dice.one_of(&[200, 200, 403, 404, 301]);
    let media_type = dice.one_of(&["text/html", "application/rss+xml"]);
    let document = Document::new(DocumentParts {
        uri: uri.to_owned(),
        base: uri.to_owned(),
        status,
        headers: headers.into(),
        media_type: media_type.to_owned(),
        charset: Some(encoding_rs::UTF_8),
        fragment: None,
        content: Bytes::from_static(content.as_bytes()),
        notes: notes.clone(),
        kept: kept.clone(),
    });
    let now = Timestamp::from_second(1_700_000_000 + dice.below(3) as i64 * 86_400).unwrap();
    let mut visit = Visit {
        status,
        media_type: media_type.to_owned(),
        state: dice.one_of(&[
            ContentState::New,
            ContentState::Changed,
            ContentState::Unchanged,
            ContentState::Unknown,
        ]),
        size: dice.one_of(&[None, Some(10), Some(10_000)]),
        last_wait: dice.one_of(&[None, Some(Duration::from_secs(86_400))]),
        visits: 1 + dice.below(3),
        versions: 1 + dice.below(2),
        outlinks: dice.below(2),
        inlinks: dice.below(2),
        notes,
        kept,
        ..Visit::of(candidate(uri), now)
    };
    if dice.below(2) == 0 {
        visit.signals.push(Signal {
            at: 1_700_000_000_000,
            source: "http://a.org/feed.xml".to_owned(),
            modified: None,
        });
    }
    for name in ["etag", "last-modified"] {
        if dice.below(3) == 0 {
            let value = dice.one_of(&["\"a\"", "\"b\""]);
            visit.validators.insert(name.to_owned(), value.to_owned());
        }
    }
    let stage = dice.one_of(&[Stage::MidFetch, Stage::PostFetch, Stage::Archive]);
    (stage, document, visit)
}

/// The answer of a call with its notes, annotations and kept values.
fn answer_and_effects(
    plugin: &Plugin,
    (stage, document, visit): &(Stage, Document, Visit),
) -> String {
    let answer = match plugin.is(&Kind::Filter) {
        true => format!(
            "{:?}",
            plugin.judge_document(stage.clone(), document, visit)
        ),
        false => format!("{:?}", plugin.evaluate(visit)),
    };
    let notes = document.notes();
    let kept = document.kept().changes();
    format!(
        "{answer} {:?} {:?} {kept:?}",
        notes.all(),
        notes.annotations()
    )
}

/// An engine that remembers answers, and one that does not.
fn engines() -> [Engine; 2] {
    [true, false].map(|remember| {
        Engine::new(EngineConfig {
            cache_dir: Some(component_cache()),
            instances_max: 2,
            remember,
            ..EngineConfig::default()
        })
        .unwrap()
    })
}

#[test]
fn remembered_answers_equal_fresh_answers() {
    let engines = engines();
    let (mut calls, mut fresh_calls) = (0, 0);
    for name in ["revisit", "walls"] {
        let builtin = opilio_builtin::all().find(|builtin| builtin.name == name);
        let bytes = builtin.unwrap().component;
        let [remembering, calling] = engines
            .each_ref()
            .map(|engine| engine.load(bytes, name).unwrap());
        for description in remembering.plugins() {
            let name = description.name.as_str();
            let kinds = [Kind::Filter, Kind::WaitEvaluator];
            if !kinds.iter().any(|kind| description.kinds.contains(kind)) {
                continue;
            }
            let config = || config_of(name, json!({}), Limits::default());
            let cached = remembering.configure(config()).unwrap();
            let fresh = calling.configure(config()).unwrap();
            for number in 0..500 {
                let mut dice = [Dice(number), Dice(number)];
                let [same, anew] = dice.each_mut().map(|dice| case(dice, name));
                assert_eq!(
                    answer_and_effects(&cached, &same),
                    answer_and_effects(&fresh, &anew),
                    "{name}, case {number}"
                );
            }
            // Remembered answers are included in the counts of calls, counters and outputs.
            let (cached, fresh) = (cached.statistics(), fresh.statistics());
            assert_eq!(cached.calls, fresh.calls, "{name}");
            assert_eq!(cached.counters, fresh.counters, "{name}");
            assert_eq!(cached.outputs, fresh.outputs, "{name}");
            assert_eq!(fresh.times.count(), fresh.calls, "{name}");
            calls += cached.calls;
            fresh_calls += cached.times.count();
        }
    }
    // `budgeted`, `poisson` and `adaptive` read the clock, or keep values.
    assert!(
        fresh_calls < calls * 3 / 4,
        "{fresh_calls} of {calls} answers were calls"
    );
    assert!(
        fresh_calls > calls / 20,
        "{fresh_calls} of {calls} answers were calls"
    );
}

/// Up to three links with few different values, and a stage for their rulings.
fn links(dice: &mut Dice) -> (Stage, Candidates) {
    let link = |dice: &mut Dice| Candidate {
        hop_path: dice.one_of(&["", "L", "LE", "LLL", "LP"]).to_owned(),
        via: dice.one_of(&[None, Some("http://a.org/".to_owned())]),
        seed: dice.below(4) == 0,
        ..candidate(dice.one_of(&[
            "http://a.org/",
            "http://a.org/a/a/a/a/a/b",
            "http://a.org/1/2/3/4/5/6/7/8/9/1/2/3/4/5/6/7/8/9/1/2/3/4/5",
            "data:,x",
        ]))
    };
    let links = (0..=dice.below(3)).map(|_| link(dice)).collect();
    let stage = dice.one_of(&[Stage::Scope, Stage::PreFetch]);
    (stage, links)
}

/// Filters read single columns of links since contract 0.2.0. Filters of 0.1.0 get whole candidates.
#[test]
fn remembered_rulings_on_links_equal_fresh_rulings() {
    let engines = engines();
    let builtin = opilio_builtin::all().find(|builtin| builtin.name == "scope");
    let scope_0_3 = builtin.unwrap().component.to_vec();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/contract");
    let [scope_0_2, scope_0_1] = ["0.2.0", "0.1.0"]
        .map(|version| std::fs::read(format!("{folder}/{version}/scope.wasm")).unwrap());
    for (contract, bytes) in [
        ("0.3.0", scope_0_3),
        ("0.2.0", scope_0_2),
        ("0.1.0", scope_0_1),
    ] {
        let [remembering, calling] = engines
            .each_ref()
            .map(|engine| engine.load(&bytes, contract).unwrap());
        let mut rulings = std::collections::BTreeSet::new();
        for name in [
            "hops",
            "path-depth",
            "prerequisite",
            "repeating-path",
            "scheme",
            "transclusion",
        ] {
            let config = || config_of(name, json!({}), Limits::default());
            let cached = remembering.configure(config()).unwrap();
            let fresh = calling.configure(config()).unwrap();
            assert_eq!(cached.contract(), contract);
            for number in 0..300 {
                let (stage, links) = links(&mut Dice(number));
                let [same, anew] =
                    [&cached, &fresh].map(|plugin| plugin.judge_candidates(stage.clone(), &links));
                let same = format!("{:?}", same.unwrap());
                assert_eq!(
                    same,
                    format!("{:?}", anew.unwrap()),
                    "{name}, case {number}"
                );
                rulings.insert(same);
            }
            let (cached, fresh) = (cached.statistics(), fresh.statistics());
            assert_eq!(cached.calls, fresh.calls, "{name}");
            assert_eq!(cached.outputs, fresh.outputs, "{name}");
            assert!(
                cached.times.count() < fresh.times.count(),
                "{contract} {name}"
            );
        }
        assert!(rulings.len() > 10, "{contract}: {rulings:?}");
    }
}
