//! Explanation of a URI by a profile or a job. It has every setting, every stack, the answer of each filter before the fetch, and
//! the answers of wait evaluators after a visit. Plugins that need a response are listed and not called.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::ResponseHead;
use opilio_frontier::{ContentState, KeptValues, UriRecord, Visit as Turn};
use opilio_profile::{Origin, Profile, Settings, Strategy};
use opilio_sandbox::{Candidate, Candidates, Engine, EngineConfig, Stage, Verdict, Visit};
use opilio_uri::{Hop, HopPath, Uri};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::crawl::{self, CrawlError};
use crate::places::component_cache;
use opilio_stacks::batch::{self, BatchAnswer};
use opilio_stacks::components::JobPlugins;
use opilio_stacks::guards::{CandidateGuards, Guards, Seen, handled};
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{StackedPlugin, Stacks, Staged};
use opilio_visit::evaluation::{AnswerKind, EvaluatorAnswer, evaluate};
use opilio_visit::plugin_view::{self, PluginMemory, plugin_state};
use opilio_visit::reading;
use opilio_visit::scope;
use opilio_visit::site_figures::DocumentTraits;

/// Explanation how a profile or a job handles a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedUri {
    /// The URI, normalised.
    pub uri: String,
    /// Canonical form of the URI.
    pub canonical: String,
    /// Queue of the URI.
    pub queue: String,
    /// Politeness delay of the queue after a fetch of one second, in seconds.
    pub rest_s: f64,
    /// Page on which the URI is assumed to be found: from the request, or from its record; not set for a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Hop path from the seed, from the request or from its record; empty for a seed.
    #[serde(default)]
    pub hops: String,
    /// Whether the URI is in scope.
    pub in_scope: bool,
    /// Answers of the scope's filters, in the order of the calls.
    pub scope: Vec<FilterAnswer>,
    /// Whether the URI would be fetched when it is issued.
    pub fetched: bool,
    /// Answers of the pre-fetch filters, in the order of the calls.
    pub pre_fetch: Vec<FilterAnswer>,
    /// Treatment of robots.txt, which is not fetched here; not set if it does not apply to such a URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<String>,
    /// Waits after the next visit, by its possible results; empty if the URI is not visited again.
    #[serde(default)]
    pub waits: Vec<ExplainedWait>,
    /// Plugins of the stages that the URI passes, in order; stages without plugins are left out.
    #[serde(default)]
    pub stacks: Vec<ExplainedStack>,
    /// Settings that apply to the URI.
    pub settings: Vec<ExplainedSetting>,
}

impl ExplainedUri {
    /// Removes expert settings, except those that a file sets.
    pub fn leave_out_expert(&mut self) {
        self.settings
            .retain(|one| !one.expert || one.file.is_some());
    }
}

/// Stack that a URI passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedStack {
    /// Stage, as in `[stacks]` of the profile.
    pub stage: String,
    /// Plugins, in order.
    pub plugins: Vec<StackedPlugin>,
}

/// Wait after a visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedWait {
    /// Result of the visit: `new`, `changed`, `unchanged`; `any` if the result makes no difference.
    pub found: String,
    /// Wait until the next visit, in seconds, within the profile's limits.
    pub wait_s: f64,
    /// Answers of the wait evaluators at present, in the order of the calls. They are called without a document, so notes of
    /// other plugins about it are missing.
    pub answers: Vec<WaitAnswer>,
}

/// Answer of a wait evaluator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitAnswer {
    /// Name in the profile.
    pub evaluator: String,
    /// `wait` or `pass`; `failed` if the call failed; `not-asked` if the evaluator does not handle such documents, its own
    /// filters reject this one, or an earlier one has answered.
    pub answer: String,
    /// Reason; may be empty.
    pub reason: String,
    /// Requested wait in seconds, before the profile's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Time after which the evaluator wants to be called again without a visit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_again_s: Option<f64>,
    /// Whether this answer decides.
    pub decides: bool,
}

/// Answer of a filter about a URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FilterAnswer {
    /// Name in the profile.
    pub filter: String,
    /// `accept`, `reject` or `pass`; `failed` if the call failed; `not-asked` if the filter does not handle such URIs or its
    /// own filters reject this one.
    pub answer: String,
    /// Reason; may be empty.
    pub reason: String,
    /// Whether this answer decides.
    pub decides: bool,
}

/// Setting that applies to a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedSetting {
    /// Name with its tables.
    pub key: String,
    /// Value of the setting.
    pub value: Value,
    /// The value as TOML.
    pub toml: String,
    /// File that sets the value; not set if the setting has its default.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<usize>,
    /// Whether the setting is rarely changed.
    #[serde(default)]
    pub expert: bool,
}

/// URI to explain, with the path on which it would be found.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The URI.
    pub uri: &'a Uri,
    /// Page on which the URI is found.
    pub via: Option<&'a Uri>,
    /// Hop path from the seed; empty for a seed.
    pub hops: HopPath,
    /// Seed that the URI descends from.
    pub source: Option<&'a str>,
    /// Media type of the URI's response.
    pub media_type: Option<&'a str>,
    /// Time of the explanation.
    pub now: Timestamp,
}

/// Facts that a job has about a URI, for its wait evaluators. Empty by default.
#[derive(Default)]
pub(crate) struct Known {
    pub record: Option<UriRecord>,
    /// Values that plugins keep with the URI's site.
    pub site: KeptValues,
    /// Prices.
    pub measures: BTreeMap<String, f64>,
}

/// Explains a URI by a profile: loads its plugins and calls them. Creates nothing but entries of the component cache.
///
/// # Errors
/// Errors in the profile's plugins and tables.
pub fn explain(
    profile: &Profile,
    asked: &Asked<'_>,
    component_cache: Option<PathBuf>,
) -> Result<ExplainedUri, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    let prefixes = profile.seeds.scope();
    let sources = crawl::sources(Path::new(""));
    let asking = || -> Result<ExplainedUri, CrawlError> {
        let (_, loaded) = crawl::load(&engine, profile, &prefixes, &sources, None)?;
        let known = Known::default();
        Ok(explained(profile, &loaded.stacks, asked, &known))
    };
    on_plugin_thread("explain", asking).map_err(CrawlError::Kept)?
}

/// Explains a URI by a job that no process runs, with the plugins and prefixes that the job has kept.
pub(crate) fn explain_at_rest(
    job: &Path,
    profile: &Profile,
    prefixes: &[String],
    asked: &Asked<'_>,
    known: &Known,
) -> Result<ExplainedUri, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache(),
        ..EngineConfig::default()
    })?;
    let sources = crawl::sources(job);
    let kept = JobPlugins::read(job)
        .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
    let asking = || -> Result<ExplainedUri, CrawlError> {
        let (_, loaded) = crawl::load(&engine, profile, prefixes, &sources, Some(&kept))?;
        Ok(explained(profile, &loaded.stacks, asked, known))
    };
    on_plugin_thread("explain", asking).map_err(CrawlError::Kept)?
}

/// Explains a URI by a profile with these plugins. For a thread that may call plugins.
pub(crate) fn explained(
    profile: &Profile,
    stacks: &Arc<Stacks>,
    asked: &Asked<'_>,
    known: &Known,
) -> ExplainedUri {
    let context = opilio_profile::Context {
        source: asked.source,
        media_type: asked.media_type,
        now: Some(asked.now),
        ..opilio_profile::Context::of(asked.uri)
    };
    let settings = profile.effective_with(&context);
    let stacks = stacks.selected(&settings, profile.settings());
    let mut seeds = profile.seeds.list.iter();
    let is_seed = seeds.any(|seed| seed.uri == *asked.uri);
    let candidate = Candidate {
        uri: asked.uri.as_str().to_owned(),
        surt: asked.uri.surt(),
        hop_path: asked.hops.as_str().to_owned(),
        via: asked.via.map(|via| via.as_str().to_owned()),
        via_surt: asked.via.map(Uri::surt),
        context: String::new(),
        seed: is_seed,
        source: asked.source.map(str::to_owned),
        address: None,
        attributes: Vec::new(),
    };
    let waits = waits(&stacks, &settings, asked, &candidate, known);
    let candidates = Candidates::new(vec![candidate]);
    let scope = answers(&stacks.scope, &Stage::Scope, &candidates);
    let in_scope = scope::judge(&stacks.scope, &Stage::Scope, &candidates, false);
    let pre_fetch = answers(&stacks.pre_fetch, &Stage::PreFetch, &candidates);
    let fetched = scope::judge(&stacks.pre_fetch, &Stage::PreFetch, &candidates, true);
    let accepted = |judged: &scope::ScopeJudgement| judged.decisions.iter().all(|one| one.accepted);
    let queue = profile.queue_name(asked.uri);
    let of_queue = profile.queue_settings_at(&queue, asked.now);
    let robots = asked.uri.robots_txt().map(|_| {
        match settings.robots.policy.needs_robots_txt() {
            true => "not fetched here; URIs that it disallows are not fetched",
            false => "ignored, as robots.policy sets",
        }
        .to_owned()
    });
    let settings = profile.explain_with(&context).into_iter().map(|one| {
        let (file, line) = match &one.place {
            Origin::Default => (None, None),
            Origin::Written { file, line } => (Some(file.clone()), Some(*line)),
        };
        ExplainedSetting {
            toml: one.toml(),
            expert: one.expert,
            key: one.key,
            value: one.value,
            file,
            line,
        }
    });
    ExplainedUri {
        uri: asked.uri.as_str().to_owned(),
        canonical: profile.canonical(asked.uri),
        rest_s: of_queue
            .politeness
            .delay_factor
            .max(of_queue.politeness.min_delay.as_secs_f64())
            .min(of_queue.politeness.max_delay.as_secs_f64()),
        queue,
        via: asked.via.map(|via| via.as_str().to_owned()),
        hops: asked.hops.as_str().to_owned(),
        in_scope: is_seed || accepted(&in_scope),
        scope,
        fetched: accepted(&fetched),
        pre_fetch,
        robots,
        waits,
        stacks: staged(&stacks),
        settings: settings.collect(),
    }
}

fn staged(stacks: &Stacks) -> Vec<ExplainedStack> {
    let stages = opilio_profile::Stage::ALL.into_iter();
    stages
        .map(|stage| ExplainedStack {
            stage: stage.key().to_owned(),
            plugins: stacks
                .stage(stage)
                .iter()
                .map(StackedPlugin::from)
                .collect(),
        })
        .filter(|stack| !stack.plugins.is_empty())
        .collect()
}

/// Returns the waits that would follow the next visit of a URI.
fn waits(
    stacks: &Stacks,
    settings: &Settings,
    asked: &Asked<'_>,
    candidate: &Candidate,
    known: &Known,
) -> Vec<ExplainedWait> {
    let found: &[ContentState] = match settings.strategy {
        // A prerequisite is fetched again when it has expired.
        _ if asked.hops.last() == Some(Hop::Prerequisite) => &[],
        Strategy::Snapshot => &[],
        Strategy::Fixed => {
            return vec![ExplainedWait {
                found: "any".to_owned(),
                wait_s: settings.revisit.fixed_wait.as_secs_f64(),
                answers: Vec::new(),
            }];
        }
        Strategy::Revisit => match &known.record {
            Some(record) if record.visits > 0 => &[ContentState::Unchanged, ContentState::Changed],
            _ => &[ContentState::New],
        },
    };
    let wait = |state: &ContentState| wait_after(*state, stacks, settings, asked, candidate, known);
    found.iter().map(wait).collect()
}

/// Returns the wait after a visit in this content state, made at the time when the URI is due.
fn wait_after(
    state: ContentState,
    stacks: &Stacks,
    settings: &Settings,
    asked: &Asked<'_>,
    candidate: &Candidate,
    known: &Known,
) -> ExplainedWait {
    let media_type = asked.media_type.unwrap_or_default();
    let visit = visit_that_finds(state, asked, candidate, known);
    let uri = asked.uri.as_str();
    let head = ResponseHead {
        version: "HTTP/1.1".to_owned(),
        status: u16::try_from(visit.status).unwrap_or(200),
        reason: String::new(),
        headers: vec![("content-type".to_owned(), media_type.to_owned())],
        length: 0,
    };
    let memory = PluginMemory {
        notes: visit.notes.clone(),
        kept: visit.kept.clone(),
        ..PluginMemory::default()
    };
    let document = reading::document(uri, uri, &head, Bytes::new(), None, &memory);
    let guards = Guards::default();
    let evaluation = evaluate(&stacks.wait, media_type, &visit, &document, &guards);
    let last = known.record.as_ref().and_then(|record| record.wait);
    let seconds = |wait: Option<Duration>| wait.map(|wait| wait.as_secs_f64());
    let answer = |one: &EvaluatorAnswer| {
        let (answer, reason) = answer_words(&one.kind);
        let decides = matches!(one.kind, AnswerKind::Wait);
        WaitAnswer {
            evaluator: one.name.to_string(),
            answer: answer.to_owned(),
            reason: reason.to_owned(),
            wait_s: seconds(evaluation.wait).filter(|_| decides),
            ask_again_s: seconds(evaluation.ask_again).filter(|_| decides),
            decides,
        }
    };
    ExplainedWait {
        found: match state {
            ContentState::New => "new",
            ContentState::Changed => "changed",
            ContentState::Unchanged => "unchanged",
            ContentState::Unknown => "unknown",
        }
        .to_owned(),
        wait_s: evaluation.until_next(last, &settings.revisit).as_secs_f64(),
        answers: evaluation.answers.iter().map(answer).collect(),
    }
}

fn answer_words(kind: &AnswerKind) -> (&'static str, &str) {
    match kind {
        AnswerKind::Wait => ("wait", ""),
        AnswerKind::Pass => ("pass", ""),
        AnswerKind::Unhandled => ("not-asked", "does not handle such documents"),
        AnswerKind::Guarded => ("not-asked", "excluded by its own filters"),
        AnswerKind::Unreached => ("not-asked", "an earlier evaluator has answered"),
        AnswerKind::Failed(reason) => ("failed", reason),
    }
}

/// Returns the visit as wait evaluators see it: the last visit, with another content state.
fn visit_that_finds(
    state: ContentState,
    asked: &Asked<'_>,
    candidate: &Candidate,
    known: &Known,
) -> Visit {
    let media_type = asked.media_type.unwrap_or_default().to_owned();
    let Some(record) = &known.record else {
        let memory = PluginMemory::new(&KeptValues::default(), &known.site);
        let shared = DocumentTraits {
            uri: asked.uri,
            media_type: &media_type,
            depth: asked.hops.link_hops(),
            is_dated: false,
        };
        let neighbourhood = memory.site.neighbourhood(&shared);
        return Visit {
            status: 200,
            state: plugin_state(state),
            visits: 1,
            versions: 1,
            neighbourhood,
            measures: known.measures.clone(),
            kept: memory.kept,
            media_type,
            ..Visit::of(candidate.clone(), asked.now)
        };
    };
    let due = match record.place {
        opilio_frontier::Place::Queued { due, .. } => due,
        _ => asked.now,
    };
    let at = due.max(asked.now);
    let turn = Turn {
        status: if record.status > 0 {
            record.status
        } else {
            200
        },
        state,
        size: record.history.first().and_then(|last| last.size),
        media_type,
        ..Turn::default()
    };
    let memory = PluginMemory::new(&record.kept, &known.site);
    let subject = plugin_view::KnownUri {
        uri: asked.uri,
        record,
        overdue: Duration::try_from(at - due).unwrap_or_default(),
    };
    let mut visit = plugin_view::after(subject, at, &turn, &memory);
    visit.measures = known.measures.clone();
    visit
}

/// Returns the answer of each filter about the sole candidate. The last answer other than `pass` decides.
fn answers(stack: &[Staged], stage: &Stage, candidates: &Candidates) -> Vec<FilterAnswer> {
    let mut guards = CandidateGuards::new(candidates);
    let mut answers: Vec<FilterAnswer> = stack
        .iter()
        .map(|staged| {
            let (answer, reason) = answer(staged, stage, candidates, &mut guards);
            FilterAnswer {
                filter: staged.name.to_string(),
                answer: answer.to_owned(),
                reason,
                decides: false,
            }
        })
        .collect();
    let has_say = |one: &&mut FilterAnswer| matches!(one.answer.as_str(), "accept" | "reject");
    if let Some(last) = answers.iter_mut().rev().find(has_say) {
        last.decides = true;
    }
    answers
}

fn answer(
    staged: &Staged,
    stage: &Stage,
    candidates: &Candidates,
    guards: &mut CandidateGuards<'_>,
) -> (&'static str, String) {
    match guards.seen_by(staged).first() {
        Some(Seen::Yes) => {}
        Some(Seen::No) | None => {
            return ("not-asked", "excluded by its own filters".to_owned());
        }
        Some(Seen::Unknown(reason)) => return ("failed", reason.clone()),
    }
    let places = handled(staged, candidates);
    if places.is_empty() {
        return ("not-asked", "does not handle such URIs".to_owned());
    }
    let mut asked = batch::ask(staged, stage, candidates, &places).list;
    match asked.pop() {
        Some(BatchAnswer::Ruled(ruling)) => match ruling.verdict {
            Verdict::Accept => ("accept", ruling.reason),
            Verdict::Reject => ("reject", ruling.reason),
            _ => ("pass", ruling.reason),
        },
        Some(BatchAnswer::Failed(missing)) => ("failed", missing.reason),
        Some(BatchAnswer::NotAsked) | None => ("not-asked", String::new()),
    }
}
