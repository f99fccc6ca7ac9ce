//! A configured plugin: its description, and the calls of each kind. `calls.rs` has the steps that all calls have in common,
//! `configured.rs` makes plugins of components, `later_snapshot.rs` has the snapshot of a plugin that has been called often.

mod calls;
mod configured;
mod later_snapshot;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use wasmtime::component::Resource;

use crate::answer_cache::{Answers, CallInputs};
use crate::answers::{
    Extraction, Wait, check_aligned, checked_comparison, checked_extraction, checked_observation,
    checked_rank, checked_reports, checked_ruling, sorted_spans,
};
use crate::candidates::Candidates;
use crate::component::{Loaded, Program};
use crate::configure::Configuration;
use crate::describe::Callable;
use crate::document::Document;
use crate::fault::{Fault, Problem};
use crate::handles::Matcher;
use crate::permits::Permits;
use crate::queue::Queue;
use crate::shared::Shared;
use crate::statistics::PluginStatistics;
use crate::visit::{Visit, instant};
use crate::{
    Comparison, Description, Difference, Finished, Kind, Limits, Observation, Report, Ruling, Span,
    Stage, StripProblem, Verdict,
};

use self::later_snapshot::LaterSnapshot;

/// Name under which answers without an opinion are counted.
const PASS: &str = "pass";

/// A plugin, ready to be called from any thread. Clones are the same plugin and share their statistics.
#[derive(Clone)]
pub struct Plugin(Arc<PluginInner>);

struct PluginInner {
    shared: Arc<Shared>,
    program: Program,
    /// The snapshot that is made when the plugin has been called often.
    later: Option<LaterSnapshot>,
    /// Permits for simultaneous calls, if their number is limited.
    permits: Option<Permits>,
    configuration: Configuration,
    matcher: Matcher,
    component_sha256: String,
    origin: String,
    start: Start,
    statistics: Mutex<PluginStatistics>,
    /// Its answers so far, if they are remembered.
    answer_cache: Option<Answers>,
    /// `true` after the first call; see [`Plugin::judges_by_uri`].
    has_judged: AtomicBool,
    /// `true` after a call that read more than URIs, hop paths and seed flags, or had a side effect.
    has_read_more: AtomicBool,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name())
            .field("instance", &self.instance())
            .field("origin", &self.origin())
            .field("start", self.start())
            .finish_non_exhaustive()
    }
}

/// The start of a plugin's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Calls start from the memory that `configure` left, compiled ahead of time.
    Snapshot {
        /// `true` if the compiled snapshot came from the cache. Then `configure` was not called at all.
        cached: bool,
    },
    /// Calls run `configure` in the fresh instance, within the limits of the call.
    EachCall {
        /// Reason for which there is no snapshot.
        why: String,
    },
}

impl Plugin {
    fn new(
        component: &Loaded,
        configuration: Configuration,
        program: Program,
        start: Start,
        later: Option<LaterSnapshot>,
    ) -> Self {
        let handles = &configuration.description.handles;
        Self(Arc::new(PluginInner {
            shared: component.shared.clone(),
            program,
            later,
            permits: (configuration.callee.limits.instances < usize::MAX)
                .then(|| Permits::new(configuration.callee.limits.instances.max(1))),
            // The patterns were checked when the component was loaded.
            matcher: Matcher::new(handles).unwrap_or_else(|_| Matcher::nothing()),
            configuration,
            component_sha256: component.sha256.clone(),
            origin: component.origin.clone(),
            start,
            statistics: Mutex::default(),
            answer_cache: component.shared.remembers.then(Answers::default),
            has_judged: AtomicBool::new(false),
            has_read_more: AtomicBool::new(false),
        }))
    }

    /// Its name in the description of its component.
    pub fn name(&self) -> &str {
        &self.0.configuration.description.name
    }

    /// Its name in plugin errors, log lines and kept values.
    pub fn instance(&self) -> &str {
        &self.0.configuration.callee.name
    }

    /// Its semantic version.
    pub fn version(&self) -> &str {
        &self.0.configuration.description.version
    }

    /// Its description by its component.
    pub fn description(&self) -> &Description {
        &self.0.configuration.description
    }

    /// The origin of its component.
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// The digest of its component, in lower-case hexadecimal.
    pub fn component_sha256(&self) -> &str {
        &self.0.component_sha256
    }

    /// The contract version of its component.
    pub fn contract(&self) -> &str {
        self.0.program.exports.contract().version()
    }

    /// Its settings as JSON, with sorted keys.
    pub fn settings(&self) -> &str {
        &self.0.configuration.settings
    }

    /// The digest of [`settings`](Self::settings), in lower-case hexadecimal.
    pub fn settings_sha256(&self) -> &str {
        &self.0.configuration.settings_sha256
    }

    /// The limits of each of its calls.
    pub fn limits(&self) -> &Limits {
        &self.0.configuration.callee.limits
    }

    /// The start of its calls. It changes if the snapshot is compiled later
    /// ([`EngineConfig::snapshots_later`](crate::EngineConfig::snapshots_later)).
    pub fn start(&self) -> &Start {
        match self.later_program() {
            Some(_) => &Start::Snapshot { cached: false },
            None => &self.0.start,
        }
    }

    /// Returns `true` if calls start from a snapshot.
    pub fn snapshotted(&self) -> bool {
        matches!(self.start(), Start::Snapshot { .. })
    }

    /// Returns `true` if it is of this kind.
    pub fn is(&self, kind: &Kind) -> bool {
        self.description().kinds.contains(kind)
    }

    /// Returns `true` if it handles documents of this media type (lower-case, without parameters) and URI.
    pub fn handles(&self, media_type: &str, uri: &str) -> bool {
        self.0.matcher.matches(media_type, uri)
    }

    /// Returns `true` if it handles candidates with this URI. Their media types are unknown.
    pub fn handles_uri(&self, uri: &str) -> bool {
        self.0.matcher.matches_uri(uri)
    }

    /// Returns `true` if the plugin has been called, and all calls so far read only URIs, hop paths and seed flags of candidates and
    /// had no side effect: no counter, note, kept value or log line. A ruling that it gave while this is true applies whenever the same
    /// URI is found again over the same hop path, provided that the plugin judges each candidate separately.
    pub fn judges_by_uri(&self) -> bool {
        self.0.has_judged.load(Ordering::Acquire) && !self.0.has_read_more.load(Ordering::Acquire)
    }

    /// Its statistics so far.
    pub fn statistics(&self) -> PluginStatistics {
        self.0
            .statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Counts an answered wait that its caller changed or doubts, under this reason.
    pub fn note_odd_wait(&self, why: &'static str) {
        self.note(|statistics| *statistics.odd_waits.entry(why).or_default() += 1);
    }

    /// Extracts links from documents of one type, all in one call: one whole document, or all fragments of that type in a page.
    /// The answers are in the same order. Without documents no call is made.
    pub fn extract(&self, documents: Vec<Document>) -> Result<Vec<Extraction>, Fault> {
        let Some(uri) = documents.first().map(|document| Arc::from(document.uri())) else {
            return Ok(Vec::new());
        };
        self.check_has(Callable::Extractor, &uri)?;
        let limits = self.limits();
        let extractions = self.call(uri, |exports, store, instance| {
            let handles = documents
                .iter()
                .map(|document| {
                    Ok(store
                        .data_mut()
                        .table
                        .push(document.clone())
                        .map_err(wasmtime::Error::from)?)
                })
                .collect::<Result<Vec<Resource<Document>>, Problem>>()?;
            let answers = exports.extract(store, &instance, &handles)?;
            check_aligned(answers.len(), documents.len())?;
            answers
                .into_iter()
                .zip(&documents)
                .map(|(answer, document)| checked_extraction(answer, document, limits))
                .collect::<Result<Vec<Extraction>, _>>()
        })?;
        self.note(|statistics| {
            for extraction in &extractions {
                statistics.output("links", extraction.links.len());
                statistics.output("fragments", extraction.fragments.len());
            }
        });
        Ok(extractions)
    }

    /// Rules on candidates, all in one call, at stages scope, pre-fetch and plugin. The answers are in the same order. Without
    /// candidates no call is made.
    pub fn judge_candidates(
        &self,
        stage: Stage,
        candidates: &Candidates,
    ) -> Result<Vec<Ruling>, Fault> {
        let Some(uri) = error_uri_of(candidates) else {
            return Ok(Vec::new());
        };
        self.check_has(Callable::Filter, &uri)?;
        let about = CallInputs {
            document: None,
            visit: None,
            candidates: Some(candidates),
            owner: self.0.configuration.callee.owner(),
        };
        let known = self
            .0
            .answer_cache
            .as_ref()
            .map(|answers| &answers.on_candidates);
        let key = (stage.clone(), candidates.len());
        let rulings =
            self.recall_or_call(known, &key, uri, about, |exports, store, instance| {
                let rulings = exports.judge_candidates(store, &instance, &stage, candidates)?;
                check_aligned(rulings.len(), candidates.len())?;
                rulings
                    .into_iter()
                    .map(|ruling| checked_ruling(ruling, &stage))
                    .collect::<Result<Vec<Ruling>, _>>()
            })?;
        self.note(|statistics| {
            // Most outlinks of a page get the same verdict, so they are counted in runs.
            let names = rulings.iter().map(|ruling| verdict_name(&ruling.verdict));
            let names: Vec<&'static str> = names.collect();
            for run in names.chunk_by(|one, other| std::ptr::eq(*one, *other)) {
                statistics.output(run[0], run.len());
            }
        });
        Ok(rulings)
    }

    /// Rules on a response, at the other stages. At mid-fetch the document has headers and no content.
    pub fn judge_document(
        &self,
        stage: Stage,
        document: &Document,
        visit: &Visit,
    ) -> Result<Ruling, Fault> {
        let uri = Arc::from(document.uri());
        self.check_has(Callable::Filter, &uri)?;
        let about = CallInputs {
            document: Some(document),
            visit: Some(visit),
            candidates: None,
            owner: self.0.configuration.callee.owner(),
        };
        let known = self
            .0
            .answer_cache
            .as_ref()
            .map(|answers| &answers.on_documents);
        let ruling =
            self.recall_or_call(known, &stage, uri, about, |exports, store, instance| {
                let ruling = exports.judge_document(store, &instance, &stage, document, visit)?;
                checked_ruling(ruling, &stage)
            })?;
        self.note(|statistics| statistics.output(verdict_name(&ruling.verdict), 1));
        Ok(ruling)
    }

    /// The spans of a document's bytes that do not count as content: in order, without empty ones, overlapping ones joined. The
    /// inner error is the plugin's own: it cannot strip this document.
    pub fn strip(&self, document: &Document) -> Result<Result<Vec<Span>, StripProblem>, Fault> {
        let uri = Arc::from(document.uri());
        self.check_has(Callable::DigestStripper, &uri)?;
        let length = document.content().len() as u64;
        let stripped = self.call(uri, |exports, store, instance| {
            match exports.strip(store, &instance, document)? {
                Ok(spans) => sorted_spans(spans, length).map(Ok),
                Err(problem) => Ok(Err(problem)),
            }
        })?;
        self.note(|statistics| match &stripped {
            Ok(spans) => statistics.output("spans", spans.len()),
            Err(_) => statistics.output(PASS, 1),
        });
        Ok(stripped)
    }

    /// Compares a document with its last archived version, and returns the fingerprint for the next comparison. `last` is the
    /// fingerprint of that version, if this plugin with these settings made it.
    pub fn compare(
        &self,
        document: &Document,
        visit: &Visit,
        last: Option<&[u8]>,
    ) -> Result<Comparison, Fault> {
        let uri = Arc::from(document.uri());
        self.check_has(Callable::ChangeEvaluator, &uri)?;
        let comparison = self.call(uri, |exports, store, instance| {
            let comparison = exports.compare(store, &instance, document, visit, last)?;
            checked_comparison(comparison, self.limits())
        })?;
        let output = match comparison.difference {
            Some(Difference::Changed) => "changed",
            Some(Difference::Unchanged) => "unchanged",
            None => PASS,
        };
        self.note(|statistics| statistics.output(output, 1));
        Ok(comparison)
    }

    /// The wait before the next visit; `None` leaves it to the next evaluator.
    pub fn evaluate(&self, visit: &Visit) -> Result<Option<Wait>, Fault> {
        let uri = Arc::from(visit.candidate.uri.as_str());
        self.check_has(Callable::WaitEvaluator, &uri)?;
        let about = CallInputs {
            document: None,
            visit: Some(visit),
            candidates: None,
            owner: self.0.configuration.callee.owner(),
        };
        let known = self.0.answer_cache.as_ref().map(|answers| &answers.waits);
        let wait = self.recall_or_call(known, &(), uri, about, |exports, store, instance| {
            let wait = exports.evaluate(store, &instance, visit)?;
            Ok(wait.map(|wait| {
                // Not later than the visit itself. Before the visit, there may be new signals to consider.
                let ask_again = wait.ask_again.map(|it| it.min(wait.next_visit));
                Wait {
                    next_visit: Duration::from_millis(wait.next_visit),
                    ask_again: ask_again.map(Duration::from_millis),
                }
            }))
        })?;
        self.note(|statistics| statistics.output(wait.map_or(PASS, |_| "waits"), 1));
        Ok(wait)
    }

    /// Precedences of candidates, 1 being the highest, all in one call. `None` leaves a candidate to the next plugin. `document`
    /// is the page on which they were found; `None` for seeds. Without candidates no call is made.
    pub fn rank_candidates(
        &self,
        candidates: &Candidates,
        document: Option<&Document>,
    ) -> Result<Vec<Option<u8>>, Fault> {
        let Some(uri) = error_uri_of(candidates) else {
            return Ok(Vec::new());
        };
        self.check_has(Callable::Precedence, &uri)?;
        let ranks = self.call(uri, |exports, store, instance| {
            let ranks = exports.rank_candidates(store, &instance, candidates, document)?;
            check_aligned(ranks.len(), candidates.len())?;
            ranks
                .into_iter()
                .map(checked_rank)
                .collect::<Result<Vec<Option<u8>>, _>>()
        })?;
        self.note(|statistics| {
            let answered = ranks.iter().flatten().count();
            statistics.output("ranks", answered);
            statistics.output(PASS, ranks.len() - answered);
        });
        Ok(ranks)
    }

    /// The precedence of a queue, 1 being the highest; `None` leaves it to the next plugin.
    pub fn rank_queue(&self, queue: &Queue) -> Result<Option<u8>, Fault> {
        let about = Arc::from(queue.name.as_str());
        self.check_has(Callable::Precedence, &about)?;
        let rank = self.call(about, |exports, store, instance| {
            checked_rank(exports.rank_queue(store, &instance, queue)?)
        })?;
        self.note(|statistics| statistics.output(rank.map_or(PASS, |_| "ranks"), 1));
        Ok(rank)
    }

    /// Passes a batch of events to the plugin, in the order finished. `memory` is that of the last observation, empty at the
    /// first. Without events no call is made and the memory stays.
    pub fn observe(&self, memory: &[u8], events: &[Finished]) -> Result<Observation, Fault> {
        let Some(about) = events.first().map(|first| Arc::from(first.uri.as_str())) else {
            return Ok(Observation {
                memory: memory.to_vec(),
                lines: Vec::new(),
            });
        };
        self.check_has(Callable::Observer, &about)?;
        let observation = self.call(about, |exports, store, instance| {
            checked_observation(
                exports.observe(store, &instance, memory, events)?,
                self.limits(),
            )
        })?;
        self.note(|statistics| statistics.output("lines", observation.lines.len()));
        Ok(observation)
    }

    /// Reports on the observations so far.
    pub fn report(&self, memory: &[u8], now: Timestamp) -> Result<Vec<Report>, Fault> {
        let about = Arc::from("report");
        self.check_has(Callable::Observer, &about)?;
        let reports = self.call(about, |exports, store, instance| {
            checked_reports(
                exports.report(store, &instance, memory, instant(now))?,
                self.limits(),
            )
        })?;
        self.note(|statistics| statistics.output("reports", reports.len()));
        Ok(reports)
    }
}

/// The URI of a batch of candidates for plugin errors. For several candidates it is that of their page, which is more useful than
/// that of the first.
fn error_uri_of(candidates: &Candidates) -> Option<Arc<str>> {
    let first = candidates.get(0)?;
    let page = first.via.as_ref().filter(|_| candidates.len() > 1);
    Some(Arc::from(page.unwrap_or(&first.uri).as_str()))
}

fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Accept => "accept",
        Verdict::Reject => "reject",
        Verdict::Pass => PASS,
        Verdict::Unchanged => "unchanged",
        Verdict::Retry(_) => "retry",
        Verdict::Other(_) => "other",
    }
}
