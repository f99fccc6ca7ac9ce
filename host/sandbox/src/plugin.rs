//! A configured plugin: what it is, and the calls to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::{Instance, Resource};

use crate::bindings::exports::opilio::plugin::extractor;
use crate::call::{CallState, Occasion, Problem, call};
use crate::component::{Loaded, Program};
use crate::configure::Configuration;
use crate::describe::Callable;
use crate::document::Document;
use crate::engine::Shared;
use crate::fault::{Fault, FaultKind};
use crate::handles::{Matcher, is_media_type};
use crate::notes::clip;
use crate::statistics::Statistics;
use crate::visit::Visit;
use crate::{
    Candidate, Description, Fragment, Kind, Limits, Link, NamedValue, Ruling, Span, Stage,
    StripProblem, Verdict,
};

/// Bytes kept of a link's or fragment's context, as the contract says.
const CONTEXT_BYTES_MAX: usize = 200;
/// Bytes kept of a ruling's reason and of an extraction's problem.
const REASON_BYTES_MAX: usize = 500;

/// A plugin, ready to be called from any thread. Clones are the same plugin and share their statistics.
#[derive(Clone)]
pub struct Plugin(Arc<Ready>);

struct Ready {
    shared: Arc<Shared>,
    program: Program,
    name: Arc<str>,
    configuration: Configuration,
    matcher: Matcher,
    component_sha256: String,
    origin: String,
    start: Start,
    statistics: Mutex<Statistics>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name())
            .field("origin", &self.origin())
            .field("start", self.start())
            .finish_non_exhaustive()
    }
}

/// How a call of a plugin begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// From the memory that `configure` left, compiled ahead of time.
    Snapshot {
        /// The compiled snapshot came from the cache; `configure` was not called at all.
        cached: bool,
    },
    /// With `configure` in the fresh instance, within the limits of the call.
    EachCall {
        /// Why there is no snapshot.
        why: String,
    },
}

/// What an extractor found in one document. Spans and media types of fragments have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// In document order, at most [`Limits::links`].
    pub links: Vec<Link>,
    /// Links past the limit.
    pub links_dropped: u64,
    /// Parts with a media type of their own, at most [`Limits::fragments`]; see [`Document::fragment_of`].
    pub fragments: Vec<Fragment>,
    /// Fragments past the limit.
    pub fragments_dropped: u64,
    /// The document's base, where it declares one: a reference, to be resolved by the host.
    pub base: Option<String>,
    /// Extractors of last resort stay out.
    pub finished: bool,
    /// What could not be read, for the log.
    pub problem: Option<String>,
}

/// How long a wait evaluator would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// From now until the next visit; the host keeps it within the profile's limits.
    pub next_visit: Duration,
    /// Ask again after this time without a visit; always less than `next_visit`.
    pub ask_again: Option<Duration>,
}

impl Plugin {
    pub(crate) fn new(
        component: &Loaded,
        configuration: Configuration,
        program: Program,
        start: Start,
    ) -> Self {
        let handles = &configuration.description.handles;
        Self(Arc::new(Ready {
            shared: component.shared.clone(),
            program,
            name: configuration.description.name.as_str().into(),
            // Checked when the component was loaded.
            matcher: Matcher::new(handles).unwrap_or_else(|_| Matcher::nothing()),
            configuration,
            component_sha256: component.sha256.clone(),
            origin: component.origin.clone(),
            start,
            statistics: Mutex::default(),
        }))
    }

    /// Its name, as its component describes it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its semantic version.
    pub fn version(&self) -> &str {
        &self.0.configuration.description.version
    }

    /// All that its component says of it.
    pub fn description(&self) -> &Description {
        &self.0.configuration.description
    }

    /// Where its component came from.
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// The digest of its component, in lower-case hexadecimal.
    pub fn component_sha256(&self) -> &str {
        &self.0.component_sha256
    }

    /// Its settings as JSON, keys sorted.
    pub fn settings(&self) -> &str {
        &self.0.configuration.settings
    }

    /// The digest of [`settings`](Self::settings), in lower-case hexadecimal.
    pub fn settings_sha256(&self) -> &str {
        &self.0.configuration.settings_sha256
    }

    /// The limits of each of its calls.
    pub fn limits(&self) -> &Limits {
        &self.0.configuration.limits
    }

    /// How its calls begin.
    pub fn start(&self) -> &Start {
        &self.0.start
    }

    /// Calls begin from a snapshot.
    pub fn snapshotted(&self) -> bool {
        matches!(self.0.start, Start::Snapshot { .. })
    }

    /// It is of this kind.
    pub fn is(&self, kind: &Kind) -> bool {
        self.description().kinds.contains(kind)
    }

    /// It wants to be called for documents of this media type (lower-case, without parameters) and URI.
    pub fn handles(&self, media_type: &str, uri: &str) -> bool {
        self.0.matcher.matches(media_type, uri)
    }

    /// It wants to be called for candidates with this URI, whatever may come of fetching them.
    pub fn handles_uri(&self, uri: &str) -> bool {
        self.0.matcher.matches_uri(uri)
    }

    /// What has been seen of it so far.
    pub fn statistics(&self) -> Statistics {
        self.0
            .statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Finds links in documents of one type, all in one call: one whole document, or all fragments of that type in a
    /// page. Answers stand in the same order. Of no documents, no call is made.
    pub fn extract(&self, documents: Vec<Document>) -> Result<Vec<Extraction>, Fault> {
        let Some(uri) = documents.first().map(|document| Arc::from(document.uri())) else {
            return Ok(Vec::new());
        };
        let Some(indices) = &self.0.program.extractor else {
            return Err(self.no_such_kind(Callable::Extractor, uri));
        };
        let limits = self.limits();
        self.call(uri, |store, instance| {
            let guest = indices.load(&mut *store, &instance)?;
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
            let answers = guest.call_extract(store, &handles)?;
            check_aligned(answers.len(), documents.len())?;
            answers
                .into_iter()
                .zip(&documents)
                .map(|(answer, document)| checked(answer, document, limits))
                .collect()
        })
    }

    /// Rules on candidates, all in one call, at stages scope and pre-fetch. Answers stand in the same order. Of no
    /// candidates, no call is made.
    pub fn judge_candidates(
        &self,
        stage: Stage,
        candidates: &[Candidate],
    ) -> Result<Vec<Ruling>, Fault> {
        // The page they stand on says more than the first of them.
        let Some(uri) = candidates
            .first()
            .map(|first| Arc::from(first.via.as_ref().unwrap_or(&first.uri).as_str()))
        else {
            return Ok(Vec::new());
        };
        let Some(indices) = &self.0.program.filter else {
            return Err(self.no_such_kind(Callable::Filter, uri));
        };
        self.call(uri, |store, instance| {
            let guest = indices.load(&mut *store, &instance)?;
            let rulings = guest.call_judge_candidates(store, &stage, candidates)?;
            check_aligned(rulings.len(), candidates.len())?;
            rulings
                .into_iter()
                .map(|ruling| fitting(ruling, &stage))
                .collect()
        })
    }

    /// Rules on a response, at the other stages. At mid-fetch the document has headers and no content.
    pub fn judge_document(
        &self,
        stage: Stage,
        document: &Document,
        visit: &Visit,
    ) -> Result<Ruling, Fault> {
        let uri = Arc::from(document.uri());
        let Some(indices) = &self.0.program.filter else {
            return Err(self.no_such_kind(Callable::Filter, uri));
        };
        self.call(uri, |store, instance| {
            let guest = indices.load(&mut *store, &instance)?;
            let (document, visit) = (lend(store, document.clone())?, lend(store, visit.clone())?);
            let ruling = guest.call_judge_document(store, &stage, document, visit)?;
            fitting(ruling, &stage)
        })
    }

    /// The spans of a document's bytes that do not count as content: in order, empty ones left out, overlapping ones
    /// joined. The inner error is the plugin's own: it can say nothing of this document.
    pub fn strip(&self, document: &Document) -> Result<Result<Vec<Span>, StripProblem>, Fault> {
        let uri = Arc::from(document.uri());
        let Some(indices) = &self.0.program.digest_stripper else {
            return Err(self.no_such_kind(Callable::DigestStripper, uri));
        };
        let length = document.content().len() as u64;
        self.call(uri, |store, instance| {
            let guest = indices.load(&mut *store, &instance)?;
            let document = lend(store, document.clone())?;
            match guest.call_strip(store, document)? {
                Ok(spans) => joined(spans, length).map(Ok),
                Err(problem) => Ok(Err(problem)),
            }
        })
    }

    /// How long to wait before the next visit; none leaves that to the next evaluator.
    pub fn evaluate(&self, visit: &Visit) -> Result<Option<Wait>, Fault> {
        let uri = Arc::from(visit.candidate.uri.as_str());
        let Some(indices) = &self.0.program.wait_evaluator else {
            return Err(self.no_such_kind(Callable::WaitEvaluator, uri));
        };
        self.call(uri, |store, instance| {
            let guest = indices.load(&mut *store, &instance)?;
            let visit = lend(store, visit.clone())?;
            let wait = guest.call_evaluate(store, visit)?;
            Ok(wait.map(|wait| {
                let ask_again = wait
                    .ask_again
                    .filter(|ask_again| *ask_again < wait.next_visit);
                Wait {
                    next_visit: Duration::from_millis(wait.next_visit),
                    ask_again: ask_again.map(Duration::from_millis),
                }
            }))
        })
    }

    fn call<R>(
        &self,
        uri: Arc<str>,
        work: impl FnOnce(&mut Store<CallState>, Instance) -> Result<R, Problem>,
    ) -> Result<R, Fault> {
        let Ready {
            shared,
            program,
            configuration,
            ..
        } = &*self.0;
        let occasion = Occasion {
            plugin: self.0.name.clone(),
            uri,
            limits: &configuration.limits,
        };
        let (answer, used) = call(shared, &program.instance, &occasion, |store, instance| {
            if !self.snapshotted() {
                self.configure(store, instance)?;
            }
            work(store, instance)
        });
        let mut statistics = self
            .0
            .statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        statistics.calls += 1;
        if let Err(fault) = &answer {
            *statistics.faults.entry(fault.kind).or_default() += 1;
        }
        statistics.time += used.time;
        statistics.time_max = statistics.time_max.max(used.time);
        statistics.memory_max = statistics.memory_max.max(used.memory as u64);
        statistics.log_bytes_dropped += used.log_bytes_dropped;
        for (name, n) in used.counts {
            statistics.count(&name, n, configuration.limits.counters);
        }
        answer
    }

    fn configure(&self, store: &mut Store<CallState>, instance: Instance) -> Result<(), Problem> {
        let setup = self.0.program.setup.load(&mut *store, &instance)?;
        match setup.call_configure(store, self.name(), self.settings())? {
            Ok(()) => Ok(()),
            Err(faults) => {
                let first = faults
                    .first()
                    .map(|fault| fault.problem.as_str())
                    .unwrap_or("without saying why");
                Err(Problem::Unconfigured(format!(
                    "settings refused that were taken before: {first}"
                )))
            }
        }
    }

    /// The caller's mistake rather than the plugin's, so it is not counted.
    fn no_such_kind(&self, kind: Callable, uri: Arc<str>) -> Fault {
        Fault {
            plugin: self.0.name.clone(),
            uri,
            kind: FaultKind::Nonsense,
            message: format!("its component does not export {}", kind.name()),
            backtrace: Vec::new(),
            log: Vec::new(),
        }
    }
}

/// A borrowed handle of a value that the store owns until the call is over.
fn lend<T: Send + 'static>(store: &mut Store<CallState>, value: T) -> Result<Resource<T>, Problem> {
    let owned = store
        .data_mut()
        .table
        .push(value)
        .map_err(wasmtime::Error::from)?;
    Ok(Resource::new_borrow(owned.rep()))
}

fn check_aligned(answers: usize, questions: usize) -> Result<(), Problem> {
    if answers == questions {
        Ok(())
    } else {
        Err(Problem::Nonsense(format!(
            "answered {answers} times to {questions} questions"
        )))
    }
}

fn checked(
    answer: extractor::Extraction,
    document: &Document,
    limits: &Limits,
) -> Result<Extraction, Problem> {
    let extractor::Extraction {
        mut links,
        mut fragments,
        base,
        finished,
        mut problem,
    } = answer;
    let links_dropped = cut(&mut links, limits.links);
    let fragments_dropped = cut(&mut fragments, limits.fragments);
    for link in &mut links {
        truncate(&mut link.context, CONTEXT_BYTES_MAX);
    }
    for fragment in &mut fragments {
        truncate(&mut fragment.context, CONTEXT_BYTES_MAX);
        if !is_media_type(&fragment.media_type) {
            let media_type = clip(&fragment.media_type, CONTEXT_BYTES_MAX);
            return Err(Problem::Nonsense(format!(
                "a fragment's media type is `{media_type}`"
            )));
        }
        document
            .check_fragment(fragment)
            .map_err(|problem| Problem::Nonsense(problem.to_string()))?;
    }
    if let Some(problem) = &mut problem {
        truncate(problem, REASON_BYTES_MAX);
    }
    Ok(Extraction {
        links,
        links_dropped,
        fragments,
        fragments_dropped,
        base,
        finished,
        problem,
    })
}

/// A ruling that its stage knows, with a reason of bounded length.
fn fitting(mut ruling: Ruling, stage: &Stage) -> Result<Ruling, Problem> {
    truncate(&mut ruling.reason, REASON_BYTES_MAX);
    let problem = match (&ruling.verdict, stage) {
        (Verdict::Accept | Verdict::Reject | Verdict::Pass, _)
        | (Verdict::Unchanged, Stage::MidFetch)
        | (Verdict::Retry(_), Stage::PostFetch) => return Ok(ruling),
        (Verdict::Unchanged, _) => "ruled `unchanged`, which belongs to mid-fetch".to_owned(),
        (Verdict::Retry(_), _) => "ruled `retry`, which belongs to post-fetch".to_owned(),
        (Verdict::Other(name), _) => {
            format!(
                "ruled `{}`, a verdict that this version does not know",
                clip(name, CONTEXT_BYTES_MAX)
            )
        }
    };
    Err(Problem::Nonsense(problem))
}

/// Spans in order, empty ones left out, overlapping ones joined; touching ones stay two, as each stands for a blank.
fn joined(mut spans: Vec<Span>, length: u64) -> Result<Vec<Span>, Problem> {
    for Span {
        offset,
        length: bytes,
    } in &spans
    {
        if offset.checked_add(*bytes).is_none_or(|end| end > length) {
            return Err(Problem::Nonsense(format!(
                "span {offset}+{bytes} reaches past the document's {length} bytes"
            )));
        }
    }
    spans.retain(|span| span.length > 0);
    spans.sort_unstable_by_key(|span| span.offset);
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.offset < last.offset + last.length => {
                last.length = last.length.max(span.offset + span.length - last.offset);
            }
            _ => joined.push(span),
        }
    }
    Ok(joined)
}

/// Cuts a list and says how much was cut off.
fn cut<T>(list: &mut Vec<T>, max: usize) -> u64 {
    let dropped = list.len().saturating_sub(max);
    list.truncate(max);
    dropped as u64
}

fn truncate(text: &mut String, bytes_max: usize) {
    text.truncate(clip(text, bytes_max).len());
}

/// A value under its name, as the contract has them.
impl NamedValue {
    /// `name` = `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_in_order_with_overlaps_joined() {
        #[track_caller]
        fn check(spans: &[(u64, u64)], expected: &[(u64, u64)]) {
            let spans = spans
                .iter()
                .map(|&(offset, length)| Span { offset, length })
                .collect();
            let joined = joined(spans, 100).map(|spans| {
                spans
                    .iter()
                    .map(|s| (s.offset, s.length))
                    .collect::<Vec<_>>()
            });
            assert!(
                joined.as_ref().is_ok_and(|joined| joined == expected),
                "{joined:?}"
            );
        }
        check(&[], &[]);
        check(&[(50, 10), (10, 10)], &[(10, 10), (50, 10)]);
        check(&[(10, 10), (15, 10)], &[(10, 15)]);
        check(&[(10, 20), (15, 5), (29, 2)], &[(10, 21)]);
        check(&[(10, 10), (20, 10)], &[(10, 10), (20, 10)]);
        check(&[(10, 10), (10, 10)], &[(10, 10)]);
        check(&[(10, 0), (100, 0), (99, 1)], &[(99, 1)]);
    }

    #[test]
    fn spans_past_the_end_are_nonsense() {
        for (offset, length) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let joined = joined(vec![Span { offset, length }], 100);
            assert!(
                matches!(joined, Err(Problem::Nonsense(_))),
                "{offset}+{length}: {joined:?}"
            );
        }
    }

    #[test]
    fn verdicts_belong_to_stages() {
        #[track_caller]
        fn check(verdict: Verdict, stage: Stage, fits: bool) {
            let ruling = Ruling {
                verdict,
                reason: String::new(),
            };
            let fitted = fitting(ruling, &stage);
            assert_eq!(fitted.is_ok(), fits, "{fitted:?}");
        }
        check(Verdict::Pass, Stage::Scope, true);
        check(Verdict::Unchanged, Stage::MidFetch, true);
        check(Verdict::Unchanged, Stage::PostFetch, false);
        check(Verdict::Retry(1), Stage::PostFetch, true);
        check(Verdict::Retry(1), Stage::Archive, false);
        check(Verdict::Other("maybe".into()), Stage::Scope, false);
    }
}
