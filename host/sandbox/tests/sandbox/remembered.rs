//! Answers that are remembered are those that a call would have given: the plugins that ship, asked the same by an engine that
//! remembers and by one that does not.

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

/// Numbers that are the same in every run.
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

/// A document and its visit, of so few values that many come twice, yet in all that a plugin may ask for. `plugin` has kept
/// something, or not.
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

/// All that comes of asking.
fn asked(plugin: &Plugin, (stage, document, visit): &(Stage, Document, Visit)) -> String {
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

/// One that remembers, and one that does not.
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
fn what_is_remembered_is_what_a_call_would_have_answered() {
    let engines = engines();
    let (mut calls, mut made) = (0, 0);
    for name in ["revisit", "walls"] {
        let builtin = opilio_builtin::all().find(|builtin| builtin.name == name);
        let bytes = builtin.unwrap().component;
        let [remembers, calls_anew] = engines
            .each_ref()
            .map(|engine| engine.load(bytes, name).unwrap());
        for description in remembers.plugins() {
            let name = description.name.as_str();
            let kinds = [Kind::Filter, Kind::WaitEvaluator];
            if !kinds.iter().any(|kind| description.kinds.contains(kind)) {
                continue;
            }
            let config = || config_of(name, json!({}), Limits::default());
            let one = remembers.configure(config()).unwrap();
            let other = calls_anew.configure(config()).unwrap();
            for number in 0..500 {
                let mut dice = [Dice(number), Dice(number)];
                let [same, anew] = dice.each_mut().map(|dice| case(dice, name));
                assert_eq!(
                    asked(&one, &same),
                    asked(&other, &anew),
                    "{name}, case {number}"
                );
            }
            // What is asked again, and of whom, and what comes of it, is counted all the same.
            let (one, other) = (one.statistics(), other.statistics());
            assert_eq!(one.calls, other.calls, "{name}");
            assert_eq!(one.counters, other.counters, "{name}");
            assert_eq!(one.outputs, other.outputs, "{name}");
            assert_eq!(other.times.count(), other.calls, "{name}");
            calls += one.calls;
            made += one.times.count();
        }
    }
    // `budgeted`, `poisson` and `adaptive` ask for the time, or keep something.
    assert!(made < calls * 3 / 4, "{made} of {calls} answers were calls");
    assert!(made > calls / 20, "{made} of {calls} answers were calls");
}

/// Up to three links, of few values, and a stage at which they are ruled on.
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

/// Filters ask for what they need of links since 0.2.0; those of 0.1.0 are handed all of it.
#[test]
fn rulings_on_links_that_are_remembered_are_those_that_a_call_would_have_given() {
    let engines = engines();
    let builtin = opilio_builtin::all().find(|builtin| builtin.name == "scope");
    let today = builtin.unwrap().component.to_vec();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/contract");
    let [before, once] = ["0.2.0", "0.1.0"]
        .map(|version| std::fs::read(format!("{folder}/{version}/scope.wasm")).unwrap());
    for (contract, bytes) in [("0.3.0", today), ("0.2.0", before), ("0.1.0", once)] {
        let [remembers, calls_anew] = engines
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
            let one = remembers.configure(config()).unwrap();
            let other = calls_anew.configure(config()).unwrap();
            assert_eq!(one.contract(), contract);
            for number in 0..300 {
                let (stage, links) = links(&mut Dice(number));
                let [same, anew] =
                    [&one, &other].map(|plugin| plugin.judge_candidates(stage.clone(), &links));
                let same = format!("{:?}", same.unwrap());
                assert_eq!(
                    same,
                    format!("{:?}", anew.unwrap()),
                    "{name}, case {number}"
                );
                rulings.insert(same);
            }
            let (one, other) = (one.statistics(), other.statistics());
            assert_eq!(one.calls, other.calls, "{name}");
            assert_eq!(one.outputs, other.outputs, "{name}");
            assert!(one.times.count() < other.times.count(), "{contract} {name}");
        }
        assert!(rulings.len() > 10, "{contract}: {rulings:?}");
    }
}
