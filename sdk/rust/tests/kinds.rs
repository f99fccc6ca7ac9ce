//! Native tests of the kinds that contracts 0.2.0 and 0.3.0 added, of tables, and of kept values.
#![allow(clippy::unwrap_used, reason = "tests")]

use opilio_plugin::testing::{
    KeptFacts, QueueFacts, candidates, document, queue, set_tables, visit,
};
use opilio_plugin::{Kind, Plugins, TableKind, prelude::*};

/// Compares the first lines of documents, takes ranks from a table, counts events, and plans every action on a page.
struct Headline;

impl Plugin for Headline {
    const NAME: &'static str = "headline";
    const SUMMARY: &'static str = "For tests.";
    type Settings = NoSettings;

    fn new(_: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn keeps() -> Vec<Keep> {
        vec![
            Keep::with_uri("headline", 2),
            Keep::with_site("last-headline", 1),
        ]
    }
}

impl ChangeEvaluator for Headline {
    fn compare(&self, document: &Document, visit: &Visit, last: Option<&[u8]>) -> Comparison {
        let text = document.text();
        let headline = text.lines().next().unwrap_or_default();
        document.set_attribute("headline", headline);
        visit.set_site_value("last-headline", headline);
        let comparison = match last {
            None => Comparison::pass(),
            Some(last) if last == headline.as_bytes() => Comparison::unchanged("the same headline"),
            Some(_) => Comparison::changed("another headline"),
        };
        comparison.fingerprint(headline)
    }
}

impl Precedence for Headline {
    fn rank_candidate(
        &self,
        candidate: CandidateView<'_>,
        document: Option<&Document>,
    ) -> Option<u8> {
        if candidate.seed() {
            return Some(1);
        }
        if candidate.is_in_table("first") {
            return table("first").find(candidate.surt())?.value.parse().ok();
        }
        document.map(|document| 10 + u8::try_from(document.length()).unwrap_or(200))
    }

    fn rank_queue(&self, queue: &Queue) -> Option<u8> {
        queue.best().map(|best| best.max(queue.base()))
    }
}

impl Observer for Headline {
    fn observe(&self, memory: &[u8], events: &[Finished]) -> Observation {
        let seen = memory.first().copied().unwrap_or(0);
        Observation {
            memory: vec![seen + u8::try_from(events.len()).unwrap_or(u8::MAX)],
            lines: events
                .iter()
                .map(|event| Line::new("uris.txt", &event.uri))
                .collect(),
        }
    }

    fn report(&self, memory: &[u8], now: u64) -> Vec<Report> {
        let seen = memory.first().copied().unwrap_or(0);
        vec![Report::new("seen.txt", format!("{seen} by {now}"))]
    }
}

impl PageBehavior for Headline {
    fn step(&self, page: &Page, visit: &Visit, memory: &[u8]) -> StepPlan {
        if page.step() == 0 {
            let plan = StepPlan {
                memory: vec![1],
                ..StepPlan::then(every_action())
            };
            return plan.count(["h1", "h2"]);
        }
        let mut clicked = 0;
        let mut texts = Vec::new();
        for result in page.results() {
            match result {
                ActionResult::Clicked(elements) => clicked += elements,
                ActionResult::Value(text) | ActionResult::Exception(text) => texts.push(text),
                _ => {}
            }
        }
        let count = |selector| match page.count(selector) {
            Some(count) => count.to_string(),
            None => "none".to_owned(),
        };
        let facts = [
            page.uri(),
            page.title(),
            page.elements().to_string(),
            page.scroll_top().to_string(),
            page.time_left().to_string(),
            page.steps_left().to_string(),
            count("h1"),
            count("h2"),
            texts.join(" "),
            visit.candidate().uri,
        ];
        let seen = memory.first().copied().unwrap_or(0);
        StepPlan {
            actions: vec![Action::Evaluate(facts.join(" "))],
            memory: vec![seen + u8::try_from(clicked).unwrap_or(u8::MAX)],
            ..StepPlan::finish()
        }
    }
}

fn every_action() -> Vec<Action> {
    vec![
        Action::Scroll(ScrollTarget::Top),
        Action::scroll_to_end(),
        Action::Scroll(ScrollTarget::To(7)),
        Action::Scroll(ScrollTarget::By(-7)),
        Action::Scroll(ScrollTarget::Element("#a".to_owned())),
        Action::click("b"),
        Action::Click(Click {
            selector: "c".to_owned(),
            text: Some("more".to_owned()),
            at_most: 5,
            only_new: true,
        }),
        Action::wait_for(".d", 1000),
        Action::WaitForNetwork(2000),
        Action::Wait(3),
        Action::Evaluate("return 1".to_owned()),
        Action::Screenshot,
    ]
}

fn plugins() -> Plugins {
    Plugins::new("1.0.0")
        .change_evaluator::<Headline>()
        .precedence::<Headline>()
        .observer::<Headline>()
        .page_behavior::<Headline>()
}

#[test]
fn cases_pass() {
    opilio_plugin::testing::check_cases(&plugins(), "tests/kinds");
}

#[test]
fn description_has_kinds_and_kept_values() {
    let description = plugins().describe().remove(0);
    assert_eq!(
        description.kinds,
        [
            Kind::ChangeEvaluator,
            Kind::Precedence,
            Kind::Observer,
            Kind::PageBehavior
        ]
    );
    let kept: Vec<_> = description.keeps.iter().map(|keep| &keep.name).collect();
    assert_eq!(kept, ["headline", "last-headline"]);
}

#[test]
fn kept_values_can_be_read() {
    let (document, visit) = (
        document("http://example.com/").text("one\ntwo"),
        visit(Default::default()),
    );
    let comparison = Headline.compare(&document, &visit, None);
    assert_eq!(comparison.fingerprint.as_deref(), Some(&b"one"[..]));
    let value = |kept: &KeptFacts, name: &str| {
        let values = kept.uri.get(name).or(kept.site.get(name));
        values.map(|kept| kept.value.clone())
    };
    assert_eq!(value(&document.kept(), "headline").as_deref(), Some("one"));
    assert_eq!(
        value(&visit.kept(), "last-headline").as_deref(),
        Some("one")
    );
    document.set_attribute("headline", "");
    assert_eq!(document.attribute("headline"), None);
}

#[test]
fn views_of_columns_and_of_whole_candidates_agree() {
    let list = vec![
        Candidate {
            uri: "http://a/".to_owned(),
            surt: "http://(a,)/".to_owned(),
            seed: true,
            ..Candidate::default()
        },
        Candidate {
            uri: "http://b/".to_owned(),
            surt: "http://(b,)/".to_owned(),
            hop_path: "L".to_owned(),
            context: "a/@href".to_owned(),
            via: Some("http://a/".to_owned()),
            via_surt: Some("http://(a,)/".to_owned()),
            source: Some("http://a/".to_owned()),
            address: Some("::1".to_owned()),
            ..Candidate::default()
        },
    ];
    let texts = |view: CandidateView<'_>| {
        let texts = [view.uri(), view.surt(), view.hop_path(), view.context()].map(str::to_owned);
        let optional = [view.via(), view.via_surt(), view.source(), view.address()];
        (
            texts,
            optional.map(|text| text.map(str::to_owned)),
            view.seed(),
        )
    };
    set_tables(&[
        (
            "prefixes",
            TableKind::SurtPrefixes,
            &[("http://(", ""), ("http://(b,", "b")],
        ),
        ("uris", TableKind::KeyValues, &[("http://b/", "")]),
    ]);
    let handle = candidates(list.clone());
    let all = Candidates::new(&handle);
    assert_eq!(all.len(), 2);
    for (view, whole) in all.iter().zip(&list) {
        let alone = CandidateView::from(whole);
        assert_eq!(texts(view), texts(alone));
        assert_eq!(view.whole(), *whole);
        for name in ["prefixes", "uris", "nothing"] {
            assert_eq!(view.is_in_table(name), alone.is_in_table(name), "{name}");
        }
    }
    assert_eq!(all.in_table("prefixes"), [true, true]);
    assert_eq!(all.in_table("uris"), [false, true]);
    assert_eq!(all.in_table("nothing"), [false, false]);
    let row = table("prefixes").find("http://(b,)/").unwrap();
    assert_eq!((row.key.as_str(), row.value.as_str()), ("http://(b,", "b"));
    set_tables(&[]);
    assert_eq!(table("prefixes").kind(), None);
}

#[test]
fn queues_are_ranked_by_the_given_facts() {
    let facts = QueueFacts {
        best: Some(4),
        base: 2,
        ..QueueFacts::default()
    };
    assert_eq!(Headline.rank_queue(&queue(facts)), Some(4));
    assert_eq!(Headline.rank_queue(&queue(QueueFacts::default())), None);
}
