//! The registry of a component's plugins: describes, configures and calls them. `export!` fills it. Tests and benchmarks call it
//! natively, as the host calls the component.

use std::any::Any;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Candidates, CandidatesHandle, ChangeEvaluator, Comparison, Description, DigestStripper,
    Document, Extraction, Extractor, Filter, Finished, Kind, Observation, Observer, Page,
    PageBehavior, Plugin, Precedence, Queue, Report, Ruling, SettingsFault, Span, Stage, StepPlan,
    StripProblem, Visit, Wait, WaitEvaluator,
};

/// Settings of a plugin without settings.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Implemented by `export!` on a component.
pub trait Component {
    /// The component's plugins.
    fn plugins() -> Plugins;
}

/// The plugins of a component, in the order they were exported.
#[derive(Default)]
pub struct Plugins {
    version: &'static str,
    entries: Vec<Entry>,
}

struct Entry {
    name: &'static str,
    describe: fn(&'static str) -> Description,
    configure: Configure,
    calls: Calls,
}

/// The functions that call a plugin of one type. Those of kinds that the plugin lacks are `None`.
#[derive(Clone, Copy, Default)]
struct Calls {
    extract: Option<Extract>,
    judge_candidates: Option<JudgeCandidates>,
    judge_document: Option<JudgeDocument>,
    strip: Option<Strip>,
    compare: Option<Compare>,
    evaluate: Option<Evaluate>,
    rank_candidates: Option<RankCandidates>,
    rank_queue: Option<RankQueue>,
    observe: Option<Observe>,
    report: Option<MakeReport>,
    step: Option<PlanStep>,
}

type Configure = fn(&str) -> Result<Box<dyn Any>, Vec<SettingsFault>>;
type Extract = fn(&dyn Any, &[Document]) -> Vec<Extraction>;
type JudgeCandidates = fn(&dyn Any, &Stage, &Candidates<'_>) -> Vec<Ruling>;
type JudgeDocument = fn(&dyn Any, &Stage, &Document, &Visit) -> Ruling;
type Strip = fn(&dyn Any, &Document) -> Result<Vec<Span>, StripProblem>;
type Compare = fn(&dyn Any, &Document, &Visit, Option<&[u8]>) -> Comparison;
type Evaluate = fn(&dyn Any, &Visit) -> Option<Wait>;
type RankCandidates = fn(&dyn Any, &Candidates<'_>, Option<&Document>) -> Vec<Option<u8>>;
type RankQueue = fn(&dyn Any, &Queue) -> Option<u8>;
type Observe = fn(&dyn Any, &[u8], &[Finished]) -> Observation;
type MakeReport = fn(&dyn Any, &[u8], u64) -> Vec<Report>;
type PlanStep = fn(&dyn Any, &Page, &Visit, &[u8]) -> StepPlan;

impl Calls {
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        if self.extract.is_some() {
            kinds.push(Kind::Extractor);
        }
        if self.judge_candidates.is_some() {
            kinds.push(Kind::Filter);
        }
        if self.strip.is_some() {
            kinds.push(Kind::DigestStripper);
        }
        if self.compare.is_some() {
            kinds.push(Kind::ChangeEvaluator);
        }
        if self.evaluate.is_some() {
            kinds.push(Kind::WaitEvaluator);
        }
        if self.rank_queue.is_some() {
            kinds.push(Kind::Precedence);
        }
        if self.observe.is_some() {
            kinds.push(Kind::Observer);
        }
        if self.step.is_some() {
            kinds.push(Kind::PageBehavior);
        }
        kinds
    }
}

impl Plugins {
    /// An empty list. `version` is that of the exporting crate.
    #[must_use]
    pub fn new(version: &'static str) -> Self {
        Self {
            version,
            entries: Vec::new(),
        }
    }

    /// Adds an extractor.
    #[must_use]
    pub fn extractor<P: Extractor>(mut self) -> Self {
        self.calls::<P>().extract =
            Some(|plugin, documents| plugin_of::<P>(plugin).extract_all(documents));
        self
    }

    /// Adds a filter.
    #[must_use]
    pub fn filter<P: Filter>(mut self) -> Self {
        let calls = self.calls::<P>();
        calls.judge_candidates = Some(|plugin, stage, candidates| {
            plugin_of::<P>(plugin).judge_candidates(stage, candidates)
        });
        calls.judge_document = Some(|plugin, stage, document, visit| {
            plugin_of::<P>(plugin).judge_document(stage, document, visit)
        });
        self
    }

    /// Adds a digest stripper.
    #[must_use]
    pub fn digest_stripper<P: DigestStripper>(mut self) -> Self {
        self.calls::<P>().strip = Some(|plugin, document| plugin_of::<P>(plugin).strip(document));
        self
    }

    /// Adds a change evaluator.
    #[must_use]
    pub fn change_evaluator<P: ChangeEvaluator>(mut self) -> Self {
        self.calls::<P>().compare = Some(|plugin, document, visit, last| {
            plugin_of::<P>(plugin).compare(document, visit, last)
        });
        self
    }

    /// Adds a precedence plugin.
    #[must_use]
    pub fn precedence<P: Precedence>(mut self) -> Self {
        let calls = self.calls::<P>();
        calls.rank_candidates = Some(|plugin, candidates, document| {
            plugin_of::<P>(plugin).rank_candidates(candidates, document)
        });
        calls.rank_queue = Some(|plugin, queue| plugin_of::<P>(plugin).rank_queue(queue));
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn observer<P: Observer>(mut self) -> Self {
        let calls = self.calls::<P>();
        calls.observe =
            Some(|plugin, memory, events| plugin_of::<P>(plugin).observe(memory, events));
        calls.report = Some(|plugin, memory, now| plugin_of::<P>(plugin).report(memory, now));
        self
    }

    /// Adds a wait evaluator.
    #[must_use]
    pub fn wait_evaluator<P: WaitEvaluator>(mut self) -> Self {
        self.calls::<P>().evaluate = Some(|plugin, visit| plugin_of::<P>(plugin).evaluate(visit));
        self
    }

    /// Adds a page behaviour.
    #[must_use]
    pub fn page_behavior<P: PageBehavior>(mut self) -> Self {
        self.calls::<P>().step =
            Some(|plugin, page, visit, memory| plugin_of::<P>(plugin).step(page, visit, memory));
        self
    }

    /// Returns the calls of `P`. Adds `P` if it is not in the list yet.
    fn calls<P: Plugin>(&mut self) -> &mut Calls {
        let at = self
            .entries
            .iter()
            .position(|entry| entry.name == P::NAME)
            .unwrap_or_else(|| {
                self.entries.push(Entry {
                    name: P::NAME,
                    describe: describe::<P>,
                    configure: configure::<P>,
                    calls: Calls::default(),
                });
                self.entries.len() - 1
            });
        &mut self.entries[at].calls
    }

    /// Returns the result of the component's `describe`.
    #[must_use]
    pub fn describe(&self) -> Vec<Description> {
        self.entries
            .iter()
            .map(|entry| Description {
                kinds: entry.calls.kinds(),
                ..(entry.describe)(self.version)
            })
            .collect()
    }

    /// Configures the plugin `name`. `settings` is a JSON object; missing settings have their defaults.
    pub fn configure(&self, name: &str, settings: &str) -> Result<Configured, Vec<SettingsFault>> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| {
                let names: Vec<_> = self.entries.iter().map(|entry| entry.name).collect();
                vec![SettingsFault::new(
                    "",
                    format!(
                        "the component has no plugin `{name}`; it has: {}",
                        names.join(", ")
                    ),
                )]
            })?;
        Ok(Configured {
            plugin: (entry.configure)(settings)?,
            calls: entry.calls,
        })
    }
}

/// A configured plugin, called by kind. Calls of a kind that the plugin lacks panic, because they are mistakes of the caller. In
/// a component, such calls trap.
pub struct Configured {
    plugin: Box<dyn Any>,
    calls: Calls,
}

impl Configured {
    /// `extractor.extract`.
    #[must_use]
    pub fn extract(&self, documents: &[Document]) -> Vec<Extraction> {
        require(self.calls.extract, "extractor")(&*self.plugin, documents)
    }

    /// `filter.judge-candidates`.
    #[must_use]
    pub fn judge_candidates(&self, stage: &Stage, candidates: &CandidatesHandle) -> Vec<Ruling> {
        let candidates = Candidates::new(candidates);
        require(self.calls.judge_candidates, "filter")(&*self.plugin, stage, &candidates)
    }

    /// `filter.judge-document`.
    #[must_use]
    pub fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        require(self.calls.judge_document, "filter")(&*self.plugin, stage, document, visit)
    }

    /// `digest-stripper.strip`.
    pub fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem> {
        require(self.calls.strip, "digest-stripper")(&*self.plugin, document)
    }

    /// `change-evaluator.compare`.
    #[must_use]
    pub fn compare(&self, document: &Document, visit: &Visit, last: Option<&[u8]>) -> Comparison {
        require(self.calls.compare, "change-evaluator")(&*self.plugin, document, visit, last)
    }

    /// `precedence.rank-candidates`.
    #[must_use]
    pub fn rank_candidates(
        &self,
        candidates: &CandidatesHandle,
        document: Option<&Document>,
    ) -> Vec<Option<u8>> {
        let candidates = Candidates::new(candidates);
        require(self.calls.rank_candidates, "precedence")(&*self.plugin, &candidates, document)
    }

    /// `precedence.rank-queue`.
    #[must_use]
    pub fn rank_queue(&self, queue: &Queue) -> Option<u8> {
        require(self.calls.rank_queue, "precedence")(&*self.plugin, queue)
    }

    /// `observer.observe`.
    #[must_use]
    pub fn observe(&self, memory: &[u8], events: &[Finished]) -> Observation {
        require(self.calls.observe, "observer")(&*self.plugin, memory, events)
    }

    /// `observer.report`.
    #[must_use]
    pub fn report(&self, memory: &[u8], now: u64) -> Vec<Report> {
        require(self.calls.report, "observer")(&*self.plugin, memory, now)
    }

    /// `wait-evaluator.evaluate`.
    #[must_use]
    pub fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        require(self.calls.evaluate, "wait-evaluator")(&*self.plugin, visit)
    }

    /// `page-behavior.step`.
    #[must_use]
    pub fn step(&self, page: &Page, visit: &Visit, memory: &[u8]) -> StepPlan {
        require(self.calls.step, "page-behavior")(&*self.plugin, page, visit, memory)
    }
}

fn require<F>(call: Option<F>, kind: &str) -> F {
    match call {
        Some(call) => call,
        None => panic!("the configured plugin is not of kind {kind}"),
    }
}

fn plugin_of<P: Plugin>(plugin: &dyn Any) -> &P {
    match plugin.downcast_ref() {
        Some(plugin) => plugin,
        None => panic!("two plugins of this component share the name `{}`", P::NAME),
    }
}

fn describe<P: Plugin>(crate_version: &'static str) -> Description {
    Description {
        name: P::NAME.to_owned(),
        version: P::VERSION.unwrap_or(crate_version).to_owned(),
        summary: P::SUMMARY.to_owned(),
        kinds: Vec::new(),
        handles: P::handles(),
        settings_schema: schemars::schema_for!(P::Settings).as_value().to_string(),
        keeps: P::keeps(),
        attributes: P::attributes(),
    }
}

fn configure<P: Plugin>(settings: &str) -> Result<Box<dyn Any>, Vec<SettingsFault>> {
    let settings = serde_json::from_str(settings)
        .map_err(|error| vec![SettingsFault::new("", error.to_string())])?;
    Ok(Box::new(P::new(settings)?))
}
