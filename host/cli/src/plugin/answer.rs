//! The answers of plugins as items: for display, counting and comparison.

use std::time::Duration;

use opilio_crawl::sample::{ExtractionResult, RefusedLink};
use opilio_profile::format_duration;
use opilio_sandbox::{
    CallResult, Candidates, Comparison, Difference, Document, Fragment, FragmentContent,
    NamedValue, Ruling, Span, StepPlan, Verdict, Wait,
};
use serde_json::{Value, json};

/// Characters of a document that are shown next to a span.
const EXCERPT_CHARS_MAX: usize = 60;

/// A part of an answer: a link, a span, a ruling.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// The noun under which it is counted, such as `links`.
    pub(super) what: &'static str,
    /// The cells of a table row.
    pub(super) cells: Vec<String>,
    pub(super) json: Value,
}

/// The links that extractors found, within the fragment `inside` if there is one, and references that cannot be followed.
pub(super) fn of_links(
    found: ExtractionResult,
    inside: Option<&str>,
    remarks: &mut Vec<String>,
) -> Vec<Item> {
    let ExtractionResult {
        links,
        refused,
        dropped,
        incomplete: _,
        failures,
        problems,
    } = found;
    let problems = problems.into_iter();
    remarks.extend(problems.map(|(plugin, problem)| format!("{plugin}: {problem}")));
    remarks.extend(failures.iter().map(|failure| failure.fault.to_string()));
    if dropped > 0 {
        remarks.push(format!(
            "dropped {dropped} links or fragments above the limits"
        ));
    }
    let within = |context: String| match inside {
        Some(inside) => format!("{inside} {context}"),
        None => context,
    };
    let found = links.into_iter().map(|link| {
        let context = within(link.context);
        let hop = link.hop.letter().to_string();
        let modified = link.modified.map(|at| at.to_string());
        let mut cells = vec![hop.clone(), link.uri.as_str().to_owned(), context.clone()];
        let attributes = link.attributes.iter();
        let pairs: Vec<String> = attributes
            .map(|NamedValue { name, value }| format!("{name}={value}"))
            .chain(modified.iter().map(|at| format!("modified={at}")))
            .collect();
        if !pairs.is_empty() {
            cells.push(pairs.join(" "));
        }
        let json = json!({
            "uri": link.uri, "hop": hop, "context": context, "modified": modified,
            "attributes": link.attributes.iter()
                .map(|one| json!({"name": one.name, "value": one.value}))
                .collect::<Value>(),
        });
        Item {
            what: "links",
            cells,
            json,
        }
    });
    let refused = refused
        .into_iter()
        .map(|RefusedLink { reference, problem }| {
            let problem = problem.to_string();
            Item {
                what: "refused",
                json: json!({"reference": reference, "problem": problem}),
                cells: vec!["-".to_owned(), reference, problem],
            }
        });
    found.chain(refused).collect()
}

/// The answer of a wait evaluator.
pub(super) fn of_wait(wait: &Wait) -> Item {
    let next = format_duration(wait.next_visit);
    let ask_again = wait.ask_again.map(format_duration);
    let again = ask_again
        .iter()
        .map(|again| format!("ask again in {again}"));
    Item {
        what: "waits",
        cells: [next].into_iter().chain(again).collect(),
        json: json!({
            "wait_s": wait.next_visit.as_secs_f64(),
            "ask_again_s": wait.ask_again.map(|time| time.as_secs_f64()),
        }),
    }
}

/// The ranks of candidates; candidates without a rank are left out.
pub(super) fn of_ranks(candidates: &Candidates, ranks: Vec<Option<u8>>) -> Vec<Item> {
    let pairs = candidates.iter().zip(ranks);
    pairs
        .filter_map(|(candidate, rank)| Some((candidate, rank?)))
        .map(|(candidate, rank)| Item {
            what: "ranks",
            cells: vec![rank.to_string(), candidate.uri.clone()],
            json: json!({"precedence": rank, "uri": candidate.uri}),
        })
        .collect()
}

/// A fragment of a document.
pub(super) fn of_fragment(fragment: &Fragment) -> Item {
    let (place, bytes) = match &fragment.content {
        FragmentContent::BytesAt(span) => (
            format!("bytes {}+{}", span.offset, span.length),
            span.length,
        ),
        FragmentContent::TextAt(span) => {
            (format!("text {}+{}", span.offset, span.length), span.length)
        }
        FragmentContent::Text(text) => (format!("{} bytes of text", text.len()), text.len() as u64),
        FragmentContent::Bytes(bytes) => (format!("{} bytes", bytes.len()), bytes.len() as u64),
    };
    Item {
        what: "fragments",
        cells: vec![
            "fragment".to_owned(),
            format!("{}, {place}", fragment.media_type),
            fragment.context.clone(),
        ],
        json: json!({
            "fragment": fragment.media_type, "place": place, "bytes": bytes,
            "context": fragment.context, "base": fragment.base,
        }),
    }
}

/// The rulings of a filter on candidates.
pub(super) fn of_rulings(candidates: &Candidates, rulings: &[Ruling]) -> Vec<Item> {
    let pairs = candidates.iter().zip(rulings);
    pairs
        .map(|(candidate, ruling)| of_ruling(Some(&candidate.uri), ruling))
        .collect()
}

/// The ruling of a filter on a candidate, or on the document.
pub(super) fn of_ruling(uri: Option<&str>, ruling: &Ruling) -> Item {
    let (what, verdict) = match &ruling.verdict {
        Verdict::Accept => ("accepted", "accept".to_owned()),
        Verdict::Reject => ("rejected", "reject".to_owned()),
        Verdict::Pass => ("passed", "pass".to_owned()),
        Verdict::Unchanged => ("unchanged", "unchanged".to_owned()),
        Verdict::Retry(after) => {
            let after = format_duration(Duration::from_millis(*after));
            ("retried", format!("retry after {after}"))
        }
        Verdict::Other(name) => ("passed", name.clone()),
    };
    let mut cells = vec![verdict.clone()];
    cells.extend(uri.map(str::to_owned));
    cells.push(ruling.reason.clone());
    Item {
        what,
        cells,
        json: json!({"uri": uri, "verdict": verdict, "reason": ruling.reason}),
    }
}

/// A part of a document that does not count, with its text.
pub(super) fn of_span(span: &Span, document: &Document) -> Item {
    let start = usize::try_from(span.offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(span.length).unwrap_or(usize::MAX));
    let bytes = document.content().get(start..end).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let mut excerpt: String = text
        .chars()
        .take(EXCERPT_CHARS_MAX)
        .collect::<String>()
        .escape_debug()
        .to_string();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        excerpt.push('…');
    }
    Item {
        what: "spans",
        cells: vec![
            span.offset.to_string(),
            format!("+{}", span.length),
            excerpt.clone(),
        ],
        json: json!({"offset": span.offset, "length": span.length, "text": excerpt}),
    }
}

/// The answer of a change evaluator.
pub(super) fn of_comparison(comparison: &Comparison) -> Item {
    let (what, verdict) = match comparison.difference {
        Some(Difference::Changed) => ("changed", "changed"),
        Some(Difference::Unchanged) => ("unchanged", "unchanged"),
        None => ("passed", "pass"),
    };
    let fingerprint = comparison.fingerprint.as_ref().map(Vec::len);
    let mut cells = vec![verdict.to_owned(), comparison.reason.clone()];
    cells.extend(fingerprint.map(|bytes| format!("fingerprint of {bytes} bytes")));
    Item {
        what,
        cells,
        json: json!({"difference": verdict, "reason": comparison.reason, "fingerprint_bytes": fingerprint}),
    }
}

/// The plan of a page behaviour: its actions, and its end.
pub(super) fn of_plan(plan: &StepPlan) -> Vec<Item> {
    let written = CallResult::step_plan(plan).short();
    let actions = written["actions"].as_array().cloned().unwrap_or_default();
    let mut items: Vec<Item> = actions
        .into_iter()
        .map(|action| Item {
            what: "actions",
            cells: match action.as_object().and_then(|fields| fields.iter().next()) {
                Some((name, Value::String(argument))) => vec![name.clone(), argument.clone()],
                Some((name, argument)) => vec![name.clone(), argument.to_string()],
                None => vec![action.as_str().unwrap_or_default().to_owned()],
            },
            json: action,
        })
        .collect();
    if plan.finished {
        items.push(Item {
            what: "finished",
            cells: vec!["finished".to_owned()],
            json: json!("finished"),
        });
    }
    items
}
