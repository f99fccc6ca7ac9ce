//! Answers of every kind of plugin are decoded, checked against the contract, and cut to its limits.

use std::time::Duration;

use opilio_sandbox::{
    FaultKind, FragmentContent, Hop, Kind, Limits, Plugin, Span, Stage, StripProblem, Verdict, Wait,
};
use serde_json::json;

use crate::guest::{Described, EXTRACTOR, Guest};
use crate::support::{candidates, config, document, limits, load, plugin, visit};

/// The 32-bit words of one link. `hop` is the number of its case.
fn link(guest: &mut Guest, uri: &str, hop: u32, context: &str) -> Vec<u32> {
    let mut words = vec![0; 32];
    words[0..2].copy_from_slice(&guest.data.text(uri));
    words[2] = hop;
    words[5..7].copy_from_slice(&guest.data.text(context));
    words
}

/// The 32-bit words of one fragment whose content is a span of bytes (`of` 0) or of text (`of` 1).
fn fragment(guest: &mut Guest, media_type: &str, of: u32, [offset, length]: [u32; 2]) -> Vec<u32> {
    let mut words = vec![0; 14];
    words[0..2].copy_from_slice(&guest.data.text(media_type));
    words[2] = of;
    words[4] = offset;
    words[6] = length;
    words[8..10].copy_from_slice(&guest.data.text("style"));
    words
}

/// An extractor that returns the same links and fragments and a base for every document, and reports that it is finished.
fn extractor(links: &[(&str, u32, &str)], fragments: &[(&str, u32, [u32; 2])]) -> Guest {
    let mut guest = Guest::extractor("");
    let links: Vec<Vec<u32>> = links
        .iter()
        .map(|(uri, hop, context)| link(&mut guest, uri, *hop, context))
        .collect();
    let fragments: Vec<Vec<u32>> = fragments
        .iter()
        .map(|(media_type, of, span)| fragment(&mut guest, media_type, *of, *span))
        .collect();
    let mut words = vec![0; 11];
    words[0..2].copy_from_slice(&[guest.data.words(&links.concat()), links.len() as u32]);
    words[2..4].copy_from_slice(&[
        guest.data.words(&fragments.concat()),
        fragments.len() as u32,
    ]);
    words[4] = 1;
    words[5..7].copy_from_slice(&guest.data.text("/base/"));
    words[7] = 1;
    let list = guest.data.words(&words);
    let answer = guest.data.words(&[list, 1]);
    Guest {
        data: guest.data,
        ..Guest::extractor(&format!("(i32.const {answer})"))
    }
}

#[test]
fn links_arrive_with_hop_and_context() {
    let long = "x".repeat(199) + "ä";
    let plugin = plugin(extractor(&[("/a", 0, "a/@href"), ("b.png", 1, &long)], &[]));
    let found = &plugin.extract(vec![document("")]).unwrap()[0];
    assert_eq!(
        (found.links[0].uri.as_str(), &found.links[0].hop),
        ("/a", &Hop::Link)
    );
    assert_eq!(
        (found.links[1].uri.as_str(), &found.links[1].hop),
        ("b.png", &Hop::Embed)
    );
    assert_eq!(found.links[0].context, "a/@href");
    assert_eq!(found.links[1].context, "x".repeat(199));
    assert_eq!(
        (found.base.as_deref(), found.finished),
        (Some("/base/"), true)
    );
    assert_eq!(found.links_dropped, 0);
}

#[test]
fn links_and_fragments_past_their_limits_are_dropped_and_counted() {
    let guest = extractor(&[("/a", 0, ""); 5], &[("text/css", 0, [0, 1]); 4]);
    let limits = Limits {
        links: 2,
        fragments: 3,
        ..limits()
    };
    let plugin = load(guest).configure(config(json!({}), limits)).unwrap();
    let found = &plugin.extract(vec![document("x")]).unwrap()[0];
    assert_eq!((found.links.len(), found.links_dropped), (2, 3));
    assert_eq!((found.fragments.len(), found.fragments_dropped), (3, 1));
}

#[test]
fn fragments_are_checked_against_their_document() {
    #[track_caller]
    fn check(fragment: (&str, u32, [u32; 2]), expected: Result<&str, &str>) {
        let document = document("grün!");
        match (
            plugin(extractor(&[], &[fragment])).extract(vec![document.clone()]),
            expected,
        ) {
            (Ok(found), Ok(text)) => {
                assert_eq!(
                    document.fragment_of(&found[0].fragments[0]).unwrap().text(),
                    text
                );
            }
            (Err(fault), Err(message)) => {
                assert_eq!(fault.kind, FaultKind::Nonsense, "{fault:?}");
                assert!(fault.message.contains(message), "{fault:?}");
            }
            (got, _) => panic!("{got:?}"),
        }
    }
    check(("text/css", 0, [2, 2]), Ok("ü"));
    check(("text/css", 1, [0, 6]), Ok("grün!"));
    check(
        ("text/css", 0, [2, 5]),
        Err("reaches past the 6 bytes of the document's content"),
    );
    check(("text/css", 1, [3, 1]), Err("cuts a character"));
    check(("CSS", 0, [0, 1]), Err("a fragment's media type is `CSS`"));
    check(
        ("text/css; x=y", 0, [0, 1]),
        Err("a fragment's media type is"),
    );
}

#[test]
fn a_fragment_arrives_whole() {
    let plugin = plugin(extractor(&[], &[("text/css", 0, [1, 2])]));
    let found = &plugin.extract(vec![document("abc")]).unwrap()[0];
    let fragment = &found.fragments[0];
    assert_eq!(
        fragment.content,
        FragmentContent::BytesAt(Span {
            offset: 1,
            length: 2
        })
    );
    assert_eq!(
        (fragment.media_type.as_str(), fragment.context.as_str()),
        ("text/css", "style")
    );
}

#[test]
fn empty_input_makes_no_call() {
    let extractor = plugin(extractor(&[], &[]));
    assert_eq!(extractor.extract(Vec::new()).unwrap(), []);
    assert_eq!(extractor.statistics().calls, 0);
    let filter = plugin(Guest::filter("(unreachable)"));
    assert_eq!(
        filter
            .judge_candidates(Stage::Scope, &candidates(0))
            .unwrap(),
        []
    );
}

#[test]
fn a_filter_rules_on_every_candidate() {
    let plugin = plugin(Guest::filter("(call $rulings (local.get 4) (i32.const 1))"));
    let rulings = plugin
        .judge_candidates(Stage::PreFetch, &candidates(300))
        .unwrap();
    assert_eq!(rulings.len(), 300);
    assert!(
        rulings
            .iter()
            .all(|ruling| ruling.verdict == Verdict::Reject)
    );
}

#[test]
fn a_filter_gets_the_stage() {
    // Accepts (0) at stage 0, rejects (1) at stage 1.
    let plugin = plugin(Guest::filter("(call $rulings (local.get 4) (local.get 0))"));
    let verdict = |stage| {
        plugin
            .judge_candidates(stage, &candidates(1))
            .unwrap()
            .remove(0)
            .verdict
    };
    assert_eq!(verdict(Stage::Scope), Verdict::Accept);
    assert_eq!(verdict(Stage::PreFetch), Verdict::Reject);
}

#[test]
fn a_filter_rules_on_documents() {
    let rule = |verdict: u32, millis: u32| {
        let mut guest = Guest::default();
        let reason = guest.data.text("because");
        let at = guest
            .data
            .words(&[verdict, 0, millis, 0, reason[0], reason[1]]);
        plugin(Guest {
            data: guest.data,
            ..Guest::document_filter(&format!("(i32.const {at})"))
        })
    };
    let judge = |plugin: &Plugin, stage| plugin.judge_document(stage, &document(""), &visit());
    let ruling = judge(&rule(4, 7), Stage::PostFetch).unwrap();
    assert_eq!(
        (ruling.verdict, ruling.reason.as_str()),
        (Verdict::Retry(7), "because")
    );
    assert_eq!(
        judge(&rule(3, 0), Stage::MidFetch).unwrap().verdict,
        Verdict::Unchanged
    );
    assert_eq!(
        judge(&rule(3, 0), Stage::Archive).unwrap_err().kind,
        FaultKind::Nonsense
    );
}

fn stripping(spans: &[[u32; 2]]) -> Plugin {
    let mut guest = Guest::stripper("");
    let words: Vec<u32> = spans
        .iter()
        .flat_map(|[offset, length]| [*offset, 0, *length, 0])
        .collect();
    let list = guest.data.words(&words);
    let answer = guest.data.words(&[0, 0, list, spans.len() as u32, 0, 0]);
    plugin(Guest {
        data: guest.data,
        ..Guest::stripper(&format!("(i32.const {answer})"))
    })
}

#[test]
fn spans_arrive_in_order_and_within_the_document() {
    let stripped = stripping(&[[6, 2], [0, 3], [2, 2]])
        .strip(&document("0123456789"))
        .unwrap()
        .unwrap();
    assert_eq!(
        stripped,
        [
            Span {
                offset: 0,
                length: 4
            },
            Span {
                offset: 6,
                length: 2
            }
        ]
    );
    let fault = stripping(&[[9, 2]])
        .strip(&document("0123456789"))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Nonsense);
    assert_eq!(
        fault.message,
        "span 9+2 reaches past the document's 10 bytes"
    );
}

#[test]
fn a_stripper_may_return_no_spans() {
    let mut guest = Guest::stripper("");
    let answer = guest.data.words(&[1, 0, 0, 0, 5, 0]);
    let plugin = plugin(Guest {
        data: guest.data,
        ..Guest::stripper(&format!("(i32.const {answer})"))
    });
    assert_eq!(
        plugin.strip(&document("")).unwrap(),
        Err(StripProblem::TooLarge(5))
    );
}

#[test]
fn waits_arrive_as_durations() {
    #[track_caller]
    fn check(words: &[u32; 8], expected: Option<(u64, Option<u64>)>) {
        let mut guest = Guest::wait_evaluator("");
        let answer = guest.data.words(words);
        let plugin = plugin(Guest {
            data: guest.data,
            ..Guest::wait_evaluator(&format!("(i32.const {answer})"))
        });
        let expected = expected.map(|(next_visit, ask_again)| Wait {
            next_visit: Duration::from_millis(next_visit),
            ask_again: ask_again.map(Duration::from_millis),
        });
        assert_eq!(plugin.evaluate(&visit()).unwrap(), expected);
    }
    check(&[0; 8], None);
    check(&[1, 0, 1_000, 0, 0, 0, 0, 0], Some((1_000, None)));
    check(&[1, 0, 1_000, 0, 1, 0, 999, 0], Some((1_000, Some(999))));
    // A time to ask again that lies after the next visit is cut to that visit.
    check(
        &[1, 0, 1_000, 0, 1, 0, 2_000, 0],
        Some((1_000, Some(1_000))),
    );
    check(
        &[1, 0, u32::MAX, u32::MAX, 0, 0, 0, 0],
        Some((u64::MAX, None)),
    );
}

#[test]
fn handles_follow_the_description() {
    let guest = Guest {
        described: vec![Described {
            kinds: &[EXTRACTOR],
            media_types: &["text/*", "*+xml"],
            ..Described::default()
        }],
        ..extractor(&[], &[])
    };
    let plugin = plugin(guest);
    assert!(plugin.handles("text/html", "http://example.org/"));
    assert!(plugin.handles("image/svg+xml", "http://example.org/"));
    assert!(!plugin.handles("image/png", "http://example.org/"));
    assert!(plugin.is(&Kind::Extractor) && !plugin.is(&Kind::Filter));
    assert_eq!(
        (
            plugin.name(),
            plugin.version(),
            plugin.component_sha256().len()
        ),
        ("guest", "1.0.0", 64)
    );
}
