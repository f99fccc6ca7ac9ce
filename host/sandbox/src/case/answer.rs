//! Answers of calls, as JSON under the contract's names, and their comparison.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::Call;
use crate::visit::millis;
use crate::{
    BehaviorAction, Comparison, Difference as ContentDifference, Extraction, Fragment,
    FragmentContent, Hop, Link, LinkDetails, Observation, Report, Ruling, ScrollPosition,
    SettingsFault, Span, StepPlan, StripProblem, Verdict, Wait,
};

/// Longest answer that is written on one line of a case file, in bytes.
const LINE_BYTES_MAX: usize = 100;

/// The result of a call, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallResult(Value);

/// Two different answers to one call. Its display shows both as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The expected or earlier answer.
    pub expected: Value,
    /// The answer given.
    pub answered: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, answered } = self;
        write!(f, "expected {expected:#}\nanswered {answered:#}")
    }
}

impl CallResult {
    /// The answer to `extract`.
    pub fn extractions(answers: &[Extraction]) -> Self {
        Self(answers.iter().map(of_extraction).collect())
    }

    /// The answer to `judge-candidates`.
    pub fn rulings(answers: &[Ruling]) -> Self {
        Self(answers.iter().map(of_ruling).collect())
    }

    /// The answer to `judge-document`.
    pub fn ruling(answer: &Ruling) -> Self {
        Self(of_ruling(answer))
    }

    /// The answer to `strip`.
    pub fn stripped(answer: &Result<Vec<Span>, StripProblem>) -> Self {
        Self(match answer {
            Ok(spans) => json!({"ok": spans.iter().map(of_span).collect::<Value>()}),
            Err(StripProblem::TooLarge(bytes)) => json!({"error": {"too-large": bytes}}),
            Err(StripProblem::Other(problem)) => json!({"error": {"other": problem}}),
        })
    }

    /// The answer to `compare`.
    pub fn comparison(answer: &Comparison) -> Self {
        let difference = answer.difference.map(|difference| match difference {
            ContentDifference::Changed => "changed",
            ContentDifference::Unchanged => "unchanged",
        });
        Self(json!({
            "difference": difference,
            "fingerprint": answer.fingerprint,
            "reason": answer.reason,
        }))
    }

    /// The answer to `evaluate`.
    pub fn wait(answer: Option<Wait>) -> Self {
        let of = |wait: Duration| json!(millis(wait));
        Self(match answer {
            Some(wait) => {
                json!({"next-visit": of(wait.next_visit), "ask-again": wait.ask_again.map(of)})
            }
            None => Value::Null,
        })
    }

    /// The answer to `rank-candidates`.
    pub fn ranks(answers: &[Option<u8>]) -> Self {
        Self(json!(answers))
    }

    /// The answer to `rank-queue`.
    pub fn rank(answer: Option<u8>) -> Self {
        Self(json!(answer))
    }

    /// The answer to `observe`.
    pub fn observation(answer: &Observation) -> Self {
        let lines = answer.lines.iter();
        Self(json!({
            "memory": answer.memory,
            "lines": lines.map(|line| json!({"file": line.file, "text": line.text})).collect::<Value>(),
        }))
    }

    /// The answer to `report`.
    pub fn reports(answers: &[Report]) -> Self {
        let report = |report: &Report| json!({"file": report.file, "content": report.content});
        Self(answers.iter().map(report).collect())
    }

    /// The answer to `step`.
    pub fn step_plan(answer: &StepPlan) -> Self {
        Self(json!({
            "actions": answer.actions.iter().map(of_action).collect::<Value>(),
            "count": answer.count,
            "memory": answer.memory,
            "finished": answer.finished,
        }))
    }

    /// The answer to `configure`.
    pub fn settings_faults(faults: &[SettingsFault]) -> Self {
        let fault =
            |fault: &SettingsFault| json!({"pointer": fault.pointer, "problem": fault.problem});
        Self(faults.iter().map(fault).collect())
    }

    /// The whole answer.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The answer without fields that have their defaults.
    pub fn short(&self) -> Value {
        let mut value = self.0.clone();
        drop_defaults(&mut value);
        value
    }

    /// The answer in the form that a case expects. Natively nothing is cut off, and the SDKs have no fields for it.
    pub(super) fn shortened(mut self) -> Self {
        drop_defaults(&mut self.0);
        self
    }

    /// The answer in the form of a case file, if the line on which it begins is indented by `indent` blanks.
    pub fn written(&self, indent: usize) -> String {
        let value = self.short();
        let line = value.to_string();
        if line.len() <= LINE_BYTES_MAX {
            return line;
        }
        format!("{value:#}").replace('\n', &format!("\n{:indent$}", ""))
    }

    /// Compares an answer with this one, which is expected. Reasons of rulings and texts of errors count only if they are
    /// expected. Spans may be expected in any order.
    pub(super) fn compare(&self, answer: &Self, call: &Call) -> Result<(), Difference> {
        let (mut expected, mut answered) = (self.0.clone(), answer.0.clone());
        match call {
            Call::Configure {} => drop_unexpected_field(&expected, &mut answered, "problem"),
            Call::JudgeCandidates { .. } | Call::JudgeDocument { .. } | Call::Compare { .. } => {
                drop_unexpected_field(&expected, &mut answered, "reason");
            }
            Call::Strip { .. } => put_in_order(&mut expected),
            _ => {}
        }
        drop_defaults(&mut expected);
        drop_defaults(&mut answered);
        if expected == answered {
            Ok(())
        } else {
            Err(Difference { expected, answered })
        }
    }
}

fn of_ruling(ruling: &Ruling) -> Value {
    let verdict = match &ruling.verdict {
        Verdict::Accept => json!("accept"),
        Verdict::Reject => json!("reject"),
        Verdict::Pass => json!("pass"),
        Verdict::Unchanged => json!("unchanged"),
        Verdict::Retry(after) => json!({"retry": after}),
        Verdict::Other(name) => json!({"other": name}),
    };
    json!({"verdict": verdict, "reason": ruling.reason})
}

/// An extraction as JSON. It includes the numbers of items cut off, which no case expects.
fn of_extraction(extraction: &Extraction) -> Value {
    json!({
        "links": extraction.links.iter().map(of_link).collect::<Value>(),
        "links-cut-off": extraction.links_dropped,
        "fragments": extraction.fragments.iter().map(of_fragment).collect::<Value>(),
        "fragments-cut-off": extraction.fragments_dropped,
        "base": extraction.base,
        "finished": extraction.finished,
        "problem": extraction.problem,
    })
}

fn of_link(link: &Link) -> Value {
    let hop = match &link.hop {
        Hop::Link => json!("link"),
        Hop::Embed => json!("embed"),
        Hop::Speculative => json!("speculative"),
        Hop::Redirect => json!("redirect"),
        Hop::Prerequisite => json!("prerequisite"),
        Hop::Inferred => json!("inferred"),
        Hop::Manifest => json!("manifest"),
        Hop::Submit => json!("submit"),
        Hop::Other(name) => json!({"other": name}),
    };
    json!({
        "uri": link.uri,
        "hop": hop,
        "context": link.context,
        "base": link.base,
        "details": link.details.as_ref().map(of_details),
    })
}

fn of_details(details: &LinkDetails) -> Value {
    json!({
        "submission": details.submission.as_ref().map(|submission| json!({
            "method": submission.method,
            "content-type": submission.content_type,
            "body": submission.body,
        })),
        "dates": details.dates.as_ref().map(|dates| json!({
            "published": dates.published,
            "modified": dates.modified,
        })),
        "attributes": details
            .attributes
            .iter()
            .map(|attribute| json!({"name": attribute.name, "value": attribute.value}))
            .collect::<Value>(),
    })
}

fn of_fragment(fragment: &Fragment) -> Value {
    let content = match &fragment.content {
        FragmentContent::BytesAt(span) => json!({"bytes-at": of_span(span)}),
        FragmentContent::TextAt(span) => json!({"text-at": of_span(span)}),
        FragmentContent::Text(text) => json!({"text": text}),
        FragmentContent::Bytes(bytes) => json!({"bytes": bytes}),
    };
    json!({
        "media-type": fragment.media_type,
        "content": content,
        "context": fragment.context,
        "base": fragment.base,
    })
}

fn of_action(action: &BehaviorAction) -> Value {
    match action {
        BehaviorAction::Scroll(position) => json!({"scroll": match position {
            ScrollPosition::Top => json!("top"),
            ScrollPosition::Bottom => json!("bottom"),
            ScrollPosition::To(pixels) => json!({"to": pixels}),
            ScrollPosition::By(pixels) => json!({"by": pixels}),
            ScrollPosition::Element(selector) => json!({"element": selector}),
            ScrollPosition::Other(name) => json!({"other": name}),
        }}),
        BehaviorAction::Click(click) => json!({"click": {
            "selector": click.selector,
            "text": click.text,
            "at-most": click.at_most,
            "only-new": click.only_new,
        }}),
        BehaviorAction::WaitForSelector(wait) => json!({"wait-for-selector": {
            "selector": wait.selector,
            "at-most": wait.at_most,
        }}),
        BehaviorAction::WaitForNetwork(time) => json!({"wait-for-network": time}),
        BehaviorAction::Wait(time) => json!({"wait": time}),
        BehaviorAction::Evaluate(script) => json!({"evaluate": script}),
        BehaviorAction::Screenshot => json!("screenshot"),
        BehaviorAction::Other(name) => json!({"other": name}),
    }
}

fn of_span(span: &Span) -> Value {
    json!({"offset": span.offset, "length": span.length})
}

/// Puts spans in the form of the sandbox: in order, without empty ones, overlapping ones joined, touching ones apart.
fn put_in_order(expected: &mut Value) {
    let Some(spans) = expected.get_mut("ok").and_then(Value::as_array_mut) else {
        return;
    };
    let bytes = |span: &Value, field: &str| span.get(field).and_then(Value::as_u64).unwrap_or(0);
    let mut ends: Vec<(u64, u64)> = spans
        .iter()
        .map(|span| (bytes(span, "offset"), bytes(span, "length")))
        .filter(|(_, length)| *length > 0)
        .map(|(offset, length)| (offset, offset + length))
        .collect();
    ends.sort_unstable();
    ends.dedup_by(|next, last| {
        let overlaps = next.0 < last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    *spans = ends
        .iter()
        .map(|(start, end)| json!({"offset": start, "length": end - start}))
        .collect();
}

/// Removes `field` from an answer, or from each answer of a list, if it is not expected.
fn drop_unexpected_field(expected: &Value, answer: &mut Value, field: &str) {
    match (expected, answer) {
        (Value::Array(expected), Value::Array(answers)) => {
            for (expected, answer) in expected.iter().zip(answers) {
                drop_unexpected_field(expected, answer, field);
            }
        }
        (Value::Object(expected), Value::Object(answer)) if !expected.contains_key(field) => {
            answer.remove(field);
        }
        _ => {}
    }
}

/// Variants with a value. They are kept even if the value is empty.
const VARIANTS: [&str; 18] = [
    "ok",
    "error",
    "other",
    "too-large",
    "retry",
    "bytes-at",
    "text-at",
    "text",
    "bytes",
    "scroll",
    "click",
    "wait-for-selector",
    "wait-for-network",
    "wait",
    "evaluate",
    "to",
    "by",
    "element",
];

/// Removes fields that have their defaults from records, so that omitting and writing them means the same.
fn drop_defaults(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_defaults),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .for_each(|(_, value)| drop_defaults(value));
            if !is_variant(fields) {
                fields.retain(|name, value| !is_default(name, value));
            }
        }
        _ => {}
    }
}

fn is_variant(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|name| VARIANTS.contains(&name.as_str()))
}

fn is_default(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty() || (name == "hop" && text == "link"),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_and_written_defaults_are_equal() {
        #[track_caller]
        fn check(one: Value, other: Value, same: bool) {
            let (mut first, mut second) = (one.clone(), other.clone());
            drop_defaults(&mut first);
            drop_defaults(&mut second);
            assert_eq!(first == second, same, "{one} {other}");
        }
        check(
            json!([{"links": [{"uri": "a", "hop": "link", "base": null}], "finished": false}]),
            json!([{"links": [{"uri": "a"}]}]),
            true,
        );
        check(json!([{}]), json!([{"finished": true}]), false);
        check(json!([]), json!([{}]), false);
        check(
            json!([{"uri": "a", "hop": "embed"}]),
            json!([{"uri": "a"}]),
            false,
        );
        check(
            json!({"ok": [{"offset": 0, "length": 1}]}),
            json!({"ok": [{"length": 1}]}),
            true,
        );
        check(json!({"ok": []}), json!({}), false);
        check(
            json!({"error": {"too-large": 0}}),
            json!({"error": {"other": ""}}),
            false,
        );
        check(json!(null), json!({"next-visit": 0}), false);
    }

    #[test]
    fn expected_spans_are_put_in_order() {
        #[track_caller]
        fn check(spans: &[(u64, u64)], ordered: &[(u64, u64)]) {
            let answer = |spans: &[(u64, u64)]| {
                let spans = spans
                    .iter()
                    .map(|(at, n)| json!({"offset": at, "length": n}));
                json!({"ok": spans.collect::<Value>()})
            };
            let mut expected = answer(spans);
            put_in_order(&mut expected);
            assert_eq!(expected, answer(ordered));
        }
        check(&[(1, 1), (3, 1), (0, 1)], &[(0, 1), (1, 1), (3, 1)]);
        check(&[(5, 5), (0, 6), (7, 9)], &[(0, 16)]);
        check(&[(0, 9), (2, 3)], &[(0, 9)]);
        check(&[(4, 0)], &[]);
    }

    #[test]
    fn expected_reasons_are_compared() {
        #[track_caller]
        fn check(expected: Value, answer: Value, same: bool) {
            let mut forgiven = answer.clone();
            drop_unexpected_field(&expected, &mut forgiven, "reason");
            assert_eq!(expected == forgiven, same, "{expected} {answer}");
        }
        let far = json!([{"verdict": "reject", "reason": "too far"}]);
        check(json!([{"verdict": "reject"}]), far.clone(), true);
        check(far.clone(), far.clone(), true);
        check(
            json!([{"verdict": "reject", "reason": ""}]),
            far.clone(),
            false,
        );
        check(json!([{"verdict": "accept"}]), far.clone(), false);
        check(json!([]), far, false);
        check(
            json!({"verdict": "reject"}),
            json!({"verdict": "reject", "reason": "x"}),
            true,
        );
    }
}
