//! Cases: calls of a plugin with the expected answers, in JSON files. The same case runs natively, through the sandbox, and
//! against plugins in other languages. `docs/PLUGINS.md` describes the format.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::double::{self, DocumentFacts, QueueFacts, TableFacts, VisitFacts};
use super::page::PageFacts;
use crate::{
    Candidate, CandidatesHandle, Comparison, Configured, Difference, Document, Extraction,
    Finished, Observation, Page, Plugins, Report, Ruling, SettingsFault, Span, Stage, StepPlan,
    StripProblem, Verdict, Visit, Wait,
};

/// A case. A file has a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Unique among a plugin folder's cases.
    pub id: String,
    /// Name of the plugin.
    pub plugin: String,
    /// Settings of the plugin; missing ones have their defaults.
    #[serde(default = "no_settings")]
    pub settings: Value,
    /// The host's tables during the call; not during `configure`.
    #[serde(default)]
    pub tables: BTreeMap<String, TableFacts>,
    /// The call.
    pub call: Call,
    /// The expected answer: the call's result as JSON, under the contract's names.
    pub expected: Value,
    /// Reason for the expected answer, if it is not obvious.
    #[serde(default)]
    pub note: String,
}

fn no_settings() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A call of the contract with its arguments.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Call {
    /// `setup.configure` with invalid settings: expects the list of faults.
    Configure {},
    /// `extractor.extract`: expects a list of extractions.
    Extract {
        /// The documents, or fragments of a page.
        documents: Vec<DocumentFacts>,
    },
    /// `filter.judge-candidates`: expects a list of rulings.
    JudgeCandidates {
        /// The stage of the call.
        stage: Stage,
        /// The candidates.
        candidates: Vec<Candidate>,
    },
    /// `filter.judge-document`: expects a ruling.
    JudgeDocument {
        /// The stage of the call.
        stage: Stage,
        /// The response.
        #[serde(default)]
        document: Box<DocumentFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
    },
    /// `digest-stripper.strip`: expects `{"ok": [spans]}` or `{"error": problem}`.
    Strip {
        /// The response.
        document: Box<DocumentFacts>,
    },
    /// `change-evaluator.compare`: expects a comparison.
    Compare {
        /// The response.
        #[serde(default)]
        document: Box<DocumentFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
        /// Fingerprint of the last archived version.
        #[serde(default)]
        last: Option<Vec<u8>>,
    },
    /// `precedence.rank-candidates`: expects a list of precedences or nulls.
    RankCandidates {
        /// The candidates.
        candidates: Vec<Candidate>,
        /// The page they were found on.
        #[serde(default)]
        document: Option<Box<DocumentFacts>>,
    },
    /// `precedence.rank-queue`: expects a precedence or null.
    RankQueue {
        /// The queue.
        queue: Box<QueueFacts>,
    },
    /// `observer.observe`: expects an observation.
    Observe {
        /// The memory of the last observation.
        #[serde(default)]
        memory: Vec<u8>,
        /// The finished URIs.
        events: Vec<Finished>,
    },
    /// `observer.report`: expects a list of reports.
    Report {
        /// The memory of the last observation.
        #[serde(default)]
        memory: Vec<u8>,
        /// The time, in milliseconds since 1970.
        #[serde(default)]
        now: u64,
    },
    /// `wait-evaluator.evaluate`: expects a wait or null.
    Evaluate {
        /// The visit.
        visit: Box<VisitFacts>,
    },
    /// `page-behavior.step`: expects a plan.
    Step {
        /// The page.
        #[serde(default)]
        page: Box<PageFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
        /// The memory of the last step.
        #[serde(default)]
        memory: Vec<u8>,
    },
}

/// The result of `strip` as JSON.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Stripped {
    Ok(Vec<Span>),
    Error(StripProblem),
}

/// An expected ruling. Its reason is compared only if given.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ExpectedRuling {
    verdict: Verdict,
    reason: Option<String>,
}

/// An expected comparison. Its reason is compared only if given.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ExpectedComparison {
    #[serde(default)]
    difference: Option<Difference>,
    #[serde(default)]
    fingerprint: Option<Vec<u8>>,
    reason: Option<String>,
}

impl PartialEq<Comparison> for ExpectedComparison {
    fn eq(&self, comparison: &Comparison) -> bool {
        self.difference == comparison.difference
            && self.fingerprint == comparison.fingerprint
            && self
                .reason
                .as_ref()
                .is_none_or(|reason| *reason == comparison.reason)
    }
}

/// An expected fault. The problem's text is compared only if given.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ExpectedFault {
    pointer: String,
    problem: Option<String>,
}

impl PartialEq<Ruling> for ExpectedRuling {
    fn eq(&self, ruling: &Ruling) -> bool {
        self.verdict == ruling.verdict
            && self
                .reason
                .as_ref()
                .is_none_or(|reason| *reason == ruling.reason)
    }
}

impl PartialEq<SettingsFault> for ExpectedFault {
    fn eq(&self, fault: &SettingsFault) -> bool {
        self.pointer == fault.pointer
            && self
                .problem
                .as_ref()
                .is_none_or(|problem| *problem == fault.problem)
    }
}

impl Case {
    /// Calls the plugin natively. The answer is JSON, like `expected`.
    pub fn ask(&self, plugins: &Plugins) -> Result<Value, String> {
        let configured = match (
            plugins.configure(&self.plugin, &self.settings.to_string()),
            &self.call,
        ) {
            (Ok(_), Call::Configure {}) => return Ok(Value::Array(Vec::new())),
            (Err(faults), Call::Configure {}) => return json(&faults),
            (Ok(configured), _) => configured,
            (Err(faults), _) => {
                return Err(format!("the plugin rejects its settings: {faults:?}"));
            }
        };
        double::tables::set(self.tables.clone());
        let answer = self.call.run(&configured);
        double::tables::set(BTreeMap::new());
        answer
    }

    /// Compares an answer with the expected one. An error describes the difference.
    pub fn compare(&self, answer: &Value) -> Result<(), String> {
        match self.call {
            Call::Configure {} => self.compare_as::<Vec<ExpectedFault>, Vec<SettingsFault>>(answer),
            Call::Extract { .. } => self.compare_as::<Vec<Extraction>, Vec<Extraction>>(answer),
            Call::JudgeCandidates { .. } => {
                self.compare_as::<Vec<ExpectedRuling>, Vec<Ruling>>(answer)
            }
            Call::JudgeDocument { .. } => self.compare_as::<ExpectedRuling, Ruling>(answer),
            Call::Strip { .. } => self.compare_as::<Stripped, Stripped>(answer),
            Call::Compare { .. } => self.compare_as::<ExpectedComparison, Comparison>(answer),
            Call::Evaluate { .. } => self.compare_as::<Option<Wait>, Option<Wait>>(answer),
            Call::RankCandidates { .. } => {
                self.compare_as::<Vec<Option<u8>>, Vec<Option<u8>>>(answer)
            }
            Call::RankQueue { .. } => self.compare_as::<Option<u8>, Option<u8>>(answer),
            Call::Observe { .. } => self.compare_as::<Observation, Observation>(answer),
            Call::Report { .. } => self.compare_as::<Vec<Report>, Vec<Report>>(answer),
            Call::Step { .. } => self.compare_as::<StepPlan, StepPlan>(answer),
        }
    }

    fn compare_as<Expected, Answer>(&self, answer: &Value) -> Result<(), String>
    where
        Expected: DeserializeOwned + Serialize + PartialEq<Answer>,
        Answer: DeserializeOwned + Serialize,
    {
        let expected: Expected = serde_json::from_value(self.expected.clone())
            .map_err(|error| format!("invalid `expected` for this call: {error}"))?;
        let answer: Answer = serde_json::from_value(answer.clone())
            .map_err(|error| format!("invalid answer to this call: {error}"))?;
        if expected == answer {
            return Ok(());
        }
        Err(format!(
            "expected {}\nanswered {}",
            pretty(&expected),
            pretty(&answer)
        ))
    }
}

impl Call {
    fn run(&self, plugin: &Configured) -> Result<Value, String> {
        match self {
            Self::Configure {} => Ok(Value::Array(Vec::new())),
            Self::Extract { documents } => {
                let documents: Vec<Document> =
                    documents.iter().cloned().map(Document::from).collect();
                json(&plugin.extract(&documents))
            }
            Self::JudgeCandidates { stage, candidates } => {
                let candidates = CandidatesHandle::from(candidates.clone());
                json(&plugin.judge_candidates(stage, &candidates))
            }
            Self::JudgeDocument {
                stage,
                document,
                visit,
            } => {
                let (document, visit) = (
                    Document::from((**document).clone()),
                    Visit::from((**visit).clone()),
                );
                json(&plugin.judge_document(stage, &document, &visit))
            }
            Self::Strip { document } => json(&match plugin.strip(&(**document).clone().into()) {
                Ok(spans) => Stripped::Ok(spans),
                Err(problem) => Stripped::Error(problem),
            }),
            Self::Compare {
                document,
                visit,
                last,
            } => {
                let (document, visit) = (
                    Document::from((**document).clone()),
                    Visit::from((**visit).clone()),
                );
                json(&plugin.compare(&document, &visit, last.as_deref()))
            }
            Self::Evaluate { visit } => json(&plugin.evaluate(&(**visit).clone().into())),
            Self::RankCandidates {
                candidates,
                document,
            } => {
                let candidates = CandidatesHandle::from(candidates.clone());
                let document = document
                    .as_ref()
                    .map(|document| Document::from((**document).clone()));
                json(&plugin.rank_candidates(&candidates, document.as_ref()))
            }
            Self::RankQueue { queue } => json(&plugin.rank_queue(&(**queue).clone().into())),
            Self::Observe { memory, events } => json(&plugin.observe(memory, events)),
            Self::Report { memory, now } => json(&plugin.report(memory, *now)),
            Self::Step {
                page,
                visit,
                memory,
            } => {
                let page = Page::from((**page).clone());
                let visit = Visit::from((**visit).clone());
                json(&plugin.step(&page, &visit, memory))
            }
        }
    }

    fn documents(&mut self) -> Vec<&mut DocumentFacts> {
        match self {
            Self::Extract { documents } => documents.iter_mut().collect(),
            Self::JudgeDocument { document, .. }
            | Self::Compare { document, .. }
            | Self::Strip { document } => vec![document],
            Self::RankCandidates { document, .. } => document.as_deref_mut().into_iter().collect(),
            Self::Configure {}
            | Self::JudgeCandidates { .. }
            | Self::Evaluate { .. }
            | Self::RankQueue { .. }
            | Self::Observe { .. }
            | Self::Report { .. }
            | Self::Step { .. } => Vec::new(),
        }
    }
}

fn json(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string())
}

/// Reads the cases of all `*.json` files in a folder, and the files that cases refer to. Errors have the file and the position.
pub fn read_cases(folder: impl AsRef<Path>) -> Result<Vec<Case>, String> {
    let folder = folder.as_ref();
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|error| at(folder, &error))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();

    let mut cases: Vec<Case> = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
        let mut parsed: Vec<Case> =
            serde_json::from_str(&text).map_err(|error| at(file, &error))?;
        for document in parsed.iter_mut().flat_map(|case| case.call.documents()) {
            document.read_file(folder)?;
        }
        cases.append(&mut parsed);
    }
    let mut ids = HashSet::new();
    match cases.iter().find(|case| !ids.insert(&case.id)) {
        Some(case) => Err(at(folder, &format!("duplicate case id {}", case.id))),
        None => Ok(cases),
    }
}

/// Runs all cases of a folder natively, for the tests of a plugin's crate. Panics with all differences if a case fails, or if
/// a plugin of the component has no case.
#[track_caller]
pub fn check_cases(plugins: &Plugins, folder: impl AsRef<Path>) {
    let cases = match read_cases(folder) {
        Ok(cases) => cases,
        Err(error) => panic!("{error}"),
    };
    let mut faults: BTreeMap<&str, String> = BTreeMap::new();
    for case in &cases {
        if let Err(fault) = case.ask(plugins).and_then(|answer| case.compare(&answer)) {
            faults.insert(&case.id, fault);
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} cases failed:\n{}",
        faults.len(),
        cases.len(),
        faults
            .iter()
            .map(|(id, fault)| format!("{id}: {fault}\n"))
            .collect::<String>()
    );
    for plugin in plugins.describe() {
        assert!(
            cases.iter().any(|case| case.plugin == plugin.name),
            "{} has no case",
            plugin.name
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn case(call: &str, expected: &str) -> Case {
        let json =
            format!(r#"{{"id": "x", "plugin": "p", "call": {call}, "expected": {expected}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[track_caller]
    fn check(call: &str, expected: &str, answer: &str, same: bool) {
        let outcome = case(call, expected).compare(&serde_json::from_str(answer).unwrap());
        assert_eq!(outcome.is_ok(), same, "{outcome:?}");
    }

    #[test]
    fn reasons_are_compared_only_if_expected() {
        let call = r#"{"judge-candidates": {"stage": "scope", "candidates": []}}"#;
        let answer = r#"[{"verdict": "reject", "reason": "too far"}]"#;
        check(call, r#"[{"verdict": "reject"}]"#, answer, true);
        check(
            call,
            r#"[{"verdict": "reject", "reason": "too far"}]"#,
            answer,
            true,
        );
        check(
            call,
            r#"[{"verdict": "reject", "reason": "other"}]"#,
            answer,
            false,
        );
        check(call, r#"[{"verdict": "accept"}]"#, answer, false);
        check(call, "[]", answer, false);
    }

    #[test]
    fn all_fields_of_links_are_compared() {
        let call = r#"{"extract": {"documents": []}}"#;
        let answer = r#"[{"links": [{"uri": "a", "hop": "embed", "context": "img/@src"}]}]"#;
        check(call, answer, answer, true);
        check(
            call,
            r#"[{"links": [{"uri": "a", "hop": "link", "context": "img/@src"}]}]"#,
            answer,
            false,
        );
        check(call, r#"[{"links": []}]"#, answer, false);
    }

    #[test]
    fn unknown_fields_are_rejected() {
        let json = r#"{"id": "x", "plugin": "p", "call": {"evaluate": {"visit": {"sate": "new"}}}, "expected": null}"#;
        assert!(serde_json::from_str::<Case>(json).is_err());
    }
}
