//! What a profile or a job makes of one URI: every setting, and the answer of every filter that is asked before it is
//! fetched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_profile::{Origin, Profile};
use opilio_sandbox::{Candidate, Candidates, Engine, EngineConfig, Stage, Verdict};
use opilio_uri::{HopPath, Uri};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::batch::{self, Answer};
use crate::components::JobPlugins;
use crate::crawl::{self, CrawlError};
use crate::guards::{CandidateGuards, Seen, handled};
use crate::lanes::beside;
use crate::places::component_cache;
use crate::scope;
use crate::stacks::{Stacks, Staged};

/// What a profile or a job makes of a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedUri {
    /// The URI as normalised.
    pub uri: String,
    /// What it counts as.
    pub canonical: String,
    /// The queue that it stands in.
    pub queue: String,
    /// The rest of that queue after a fetch that took a second, in seconds.
    pub rest_s: f64,
    /// The page that it is judged as found on: as was asked, or as it was found; none for a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The hops from the seed, likewise; empty for a seed.
    #[serde(default)]
    pub hops: String,
    /// It belongs to the crawl.
    pub in_scope: bool,
    /// What the filters of the scope answer, in the order asked.
    pub scope: Vec<FilterAnswer>,
    /// It is fetched when its turn has come.
    pub fetched: bool,
    /// What the filters before a fetch answer, in the order asked.
    pub pre_fetch: Vec<FilterAnswer>,
    /// Every setting that holds for it.
    pub settings: Vec<ExplainedSetting>,
}

/// What a filter answers about a URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FilterAnswer {
    /// Its name in the profile.
    pub filter: String,
    /// `accept`, `reject`, `pass`; `failed` where it could not be asked, `not-asked` where it does not handle such URIs or
    /// its own filters keep it from seeing this one.
    pub answer: String,
    /// Why; may be empty.
    pub reason: String,
    /// Its answer is the one that holds.
    pub decides: bool,
}

/// A setting that holds for a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedSetting {
    /// Its name with its tables.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The value as TOML writes it.
    pub toml: String,
    /// The file that says so; none: its default.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<usize>,
    /// Few ever change it.
    #[serde(default)]
    pub expert: bool,
}

/// A URI as it would be found, and what is known of it.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The URI.
    pub uri: &'a Uri,
    /// The page it is found on.
    pub via: Option<&'a Uri>,
    /// The hops from the seed; empty for a seed.
    pub hops: HopPath,
    /// The seed it descends from.
    pub source: Option<&'a str>,
    /// The media type of its response.
    pub media_type: Option<&'a str>,
    /// When.
    pub now: Timestamp,
}

/// What a profile makes of a URI: its plugins are loaded and asked. Creates nothing but entries of the component cache.
///
/// # Errors
/// Faults of the profile's plugins and tables.
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
        Ok(explained(profile, &loaded.stacks, asked))
    };
    beside("explain", asking).map_err(CrawlError::Kept)?
}

/// The same of a job that nobody runs, with the plugins and the prefixes that it has kept.
pub(crate) fn explain_at_rest(
    job: &Path,
    profile: &Profile,
    prefixes: &[String],
    asked: &Asked<'_>,
) -> Result<ExplainedUri, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache(),
        ..EngineConfig::default()
    })?;
    let sources = crawl::sources(job);
    let kept = JobPlugins::read(job)
        .map_err(|problem| CrawlError::Kept(crate::stacks::chain(&problem)))?;
    let asking = || -> Result<ExplainedUri, CrawlError> {
        let (_, loaded) = crawl::load(&engine, profile, prefixes, &sources, Some(&kept))?;
        Ok(explained(profile, &loaded.stacks, asked))
    };
    beside("explain", asking).map_err(CrawlError::Kept)?
}

/// What a profile with these plugins makes of a URI. For a thread that plugins may be called on.
pub(crate) fn explained(
    profile: &Profile,
    stacks: &Arc<Stacks>,
    asked: &Asked<'_>,
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
    let candidates = Candidates::new(vec![candidate]);
    let scope = answers(&stacks.scope, &Stage::Scope, &candidates);
    let in_scope = scope::judge(&stacks.scope, &Stage::Scope, &candidates, false);
    let pre_fetch = answers(&stacks.pre_fetch, &Stage::PreFetch, &candidates);
    let fetched = scope::judge(&stacks.pre_fetch, &Stage::PreFetch, &candidates, true);
    let accepted = |judged: &scope::Judged| judged.decisions.iter().all(|one| one.accepted);
    let queue = profile.queue_name(asked.uri);
    let of_queue = profile.queue_settings_at(&queue, asked.now);
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
        settings: settings.collect(),
    }
}

/// What each filter answers about the sole candidate; the last that is no pass decides.
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
            return (
                "not-asked",
                "its own filters keep it from seeing it".to_owned(),
            );
        }
        Some(Seen::Unknown(reason)) => return ("failed", reason.clone()),
    }
    let places = handled(staged, candidates);
    if places.is_empty() {
        return ("not-asked", "it does not handle such URIs".to_owned());
    }
    let mut asked = batch::ask(staged, stage, candidates, &places).list;
    match asked.pop() {
        Some(Answer::Ruled(ruling)) => match ruling.verdict {
            Verdict::Accept => ("accept", ruling.reason),
            Verdict::Reject => ("reject", ruling.reason),
            _ => ("pass", ruling.reason),
        },
        Some(Answer::Failed(missing)) => ("failed", missing.reason),
        Some(Answer::NotAsked) | None => ("not-asked", String::new()),
    }
}
