//! Explanation of a URI by a profile or a job: every setting, every stack, the answer of each filter before the fetch, and the
//! answers of wait evaluators after a visit. Plugins that need a response are listed and not called.
//!
//! Plugins are called as in a visit (`opilio_visit`), for a URI that was not issued. An explanation differs from a visit only in
//! these points:
//!
//! - All stages are called, even after one has refused the URI, so that the reader sees all refusals.
//! - The scope also judges an unknown URI without hops, because it may be meant as a link. It does not judge seeds.
//! - If the command names another path, the link by which the crawl found the URI is ignored.
//! - Nothing is looked up or fetched: pre-fetch filters get no address, and robots.txt and logins are not checked.
//! - Wait evaluators get no content and no notes, and the current prices.

mod answer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_frontier::{Candidate, ContentState, Issue, SiteRecord, UriRecord, VisitUpdate};
use opilio_profile::{EffectiveSettings, Origin, Profile};
use opilio_sandbox::{Engine, EngineConfig, Verdict};
use opilio_uri::{HopPath, Uri};

use opilio_crawl::CrawlError;
use opilio_crawl::load::{load, sources};
use opilio_job::component_cache;
use opilio_stacks::components::JobPlugins;
use opilio_stacks::guards::Guards;
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{StackedPlugin, Stacks, Staged};
use opilio_visit::evaluation::{AnswerKind, EvaluatorAnswer, evaluate};
use opilio_visit::plugin_view::{self, KnownUri, PluginMemory};
use opilio_visit::scope::{FilterPart, ScopeJudgement};
use opilio_visit::{Pipeline, WaitRule, policy, synthetic};

pub use answer::{
    ExplainedSetting, ExplainedStack, ExplainedUri, ExplainedWait, FilterAnswer, WaitAnswer,
};

/// URI to explain, with the path on which it would be found.
#[derive(Clone, Debug)]
pub struct ExplainRequest<'a> {
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
    /// State kept for the URI's site.
    pub site: SiteRecord,
    /// Prices.
    pub measures: BTreeMap<String, f64>,
}

/// Explains a URI by a profile: loads its plugins and calls them. Creates nothing but entries of the component cache.
///
/// # Errors
/// Errors in the profile's plugins and tables.
pub fn explain(
    profile: &Arc<Profile>,
    asked: &ExplainRequest<'_>,
    component_cache: Option<PathBuf>,
) -> Result<ExplainedUri, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    let prefixes = profile.seeds.scope();
    let sources = sources(Path::new(""));
    let asking = || -> Result<ExplainedUri, CrawlError> {
        let (_, loaded) = load(&engine, profile, &prefixes, &sources, None)?;
        let known = Known::default();
        Ok(explained(profile, &loaded.stacks, asked, &known))
    };
    on_plugin_thread("explain", asking).map_err(CrawlError::Kept)?
}

/// Explains a URI by a job that no process runs, with the plugins and prefixes that the job has kept.
pub(crate) fn explain_at_rest(
    job: &Path,
    profile: &Arc<Profile>,
    prefixes: &[String],
    asked: &ExplainRequest<'_>,
    known: &Known,
) -> Result<ExplainedUri, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache(),
        ..EngineConfig::default()
    })?;
    let sources = sources(job);
    let kept = JobPlugins::read(job)
        .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
    let asking = || -> Result<ExplainedUri, CrawlError> {
        let (_, loaded) = load(&engine, profile, prefixes, &sources, Some(&kept))?;
        Ok(explained(profile, &loaded.stacks, asked, known))
    };
    on_plugin_thread("explain", asking).map_err(CrawlError::Kept)?
}

/// Explains a URI by a profile with these plugins. Must run on a thread that may call plugins.
pub(crate) fn explained(
    profile: &Arc<Profile>,
    stacks: &Arc<Stacks>,
    asked: &ExplainRequest<'_>,
    known: &Known,
) -> ExplainedUri {
    let record = subject(profile, asked, known.record.as_ref());
    let at = match record.state {
        opilio_frontier::UriState::Queued { due, .. } => due.max(asked.now),
        _ => asked.now,
    };
    let issue = Issue::unissued(asked.uri.clone().without_userinfo(), record, at);
    let pipeline = Pipeline::new(issue, profile.clone(), stacks.clone(), asked.now);
    let (scope, accepted) = scope(&pipeline, known.record.is_some());
    let (pre_fetch, fetched) = pre_fetch(&pipeline);
    let (settings, stacks) = match asked.media_type {
        Some(media_type) => pipeline.for_response(media_type),
        None => (pipeline.settings.clone(), pipeline.stacks.clone()),
    };
    let queue = profile.queue_name(asked.uri);
    let of_queue = profile.queue_settings_at(&queue, asked.now);
    let robots = asked.uri.robots_txt().map(|_| {
        match settings.robots.policy.needs_robots_txt() {
            true => "not fetched here; URIs that it disallows are not fetched",
            false => "ignored, as robots.policy sets",
        }
        .to_owned()
    });
    let context = opilio_profile::UriContext {
        source: asked.source,
        media_type: asked.media_type,
        now: Some(asked.now),
        ..opilio_profile::UriContext::of(asked.uri)
    };
    let explained = profile.explain_with(&context).into_iter().map(|one| {
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
        in_scope: accepted,
        scope,
        fetched,
        pre_fetch,
        robots,
        waits: waits(&pipeline, (&settings, &stacks), at, asked.media_type, known),
        stacks: staged(&pipeline.stacks, (&settings, &stacks)),
        settings: explained.collect(),
    }
}

/// Returns the record of a URI on the requested path: the job's record with that path, or a new record.
pub(crate) fn subject(
    profile: &Profile,
    asked: &ExplainRequest<'_>,
    known: Option<&UriRecord>,
) -> UriRecord {
    let via = asked.via.map(Uri::as_str);
    let (uri, hops) = (asked.uri.clone(), asked.hops.clone());
    let mut seeds = profile.seeds.list.iter();
    let seed = seeds.any(|seed| seed.uri == *asked.uri);
    let found = Candidate {
        seed,
        ..policy::candidate(profile, uri, hops, via, asked.source)
    };
    let found = UriRecord::of(found, asked.now);
    let Some(known) = known else {
        return found;
    };
    let mut known = known.clone();
    if (&known.hop_path, &known.via, &known.source) == (&found.hop_path, &found.via, &found.source)
    {
        known.seed |= seed;
        return known;
    }
    known.link_attributes.clear();
    (known.hop_path, known.via, known.source) = (found.hop_path, found.via, found.source);
    (known.context, known.seed) = (found.context, found.seed);
    known
}

/// Returns the answers of the scope filters, and whether the URI is in scope. An unknown URI without hops is judged like a link.
fn scope(pipeline: &Pipeline, is_known: bool) -> (Vec<FilterAnswer>, bool) {
    let record = &pipeline.issue.record;
    let is_like_link = !record.seed && record.hop_path.is_empty() && !is_known;
    let (answers, accepted) = answers(&pipeline.stacks.scope, |heard| pipeline.judge_scope(heard));
    let is_exempt = pipeline.is_exempt_from_scope() && !is_like_link;
    (answers, is_exempt || accepted)
}

/// Returns the answers of the pre-fetch filters, and whether they let the URI be fetched. The address of its host is not looked
/// up.
fn pre_fetch(pipeline: &Pipeline) -> (Vec<FilterAnswer>, bool) {
    if pipeline.is_prerequisite() {
        let pass = |staged| not_asked(staged, "filters are not called for prerequisites");
        return (pipeline.stacks.pre_fetch.iter().map(pass).collect(), true);
    }
    answers(&pipeline.stacks.pre_fetch, |heard| {
        pipeline.judge_pre_fetch(None, heard)
    })
}

/// Returns the stacks of all stages: those before the media type is known, and those after it. Render filters are included only if
/// they are called.
fn staged(
    before: &Stacks,
    (settings, after): (&EffectiveSettings, &Stacks),
) -> Vec<ExplainedStack> {
    use opilio_profile::{Render, Stage};
    let plugins = |stage| match stage {
        Stage::Scope | Stage::Precedence | Stage::PreFetch | Stage::MidFetch => before.stage(stage),
        _ => after.stage(stage),
    };
    let is_called = |stage: &Stage| match stage {
        Stage::Render => settings.browser.render == Render::Auto,
        _ => true,
    };
    let stages = Stage::ALL.into_iter().filter(is_called);
    let stacks = stages.map(|stage| ExplainedStack {
        stage: stage.key().to_owned(),
        plugins: plugins(stage).iter().map(StackedPlugin::from).collect(),
    });
    stacks.filter(|stack| !stack.plugins.is_empty()).collect()
}

/// Returns the waits that would follow the next visit of a URI, at the time `at`.
fn waits(
    pipeline: &Pipeline,
    (settings, stacks): (&EffectiveSettings, &Stacks),
    at: Timestamp,
    media_type: Option<&str>,
    known: &Known,
) -> Vec<ExplainedWait> {
    let found: &[ContentState] = match pipeline.wait_rule(settings) {
        WaitRule::Never => &[],
        WaitRule::Fixed(wait) => {
            return vec![ExplainedWait {
                found: "any".to_owned(),
                wait_s: wait.as_secs_f64(),
                answers: Vec::new(),
            }];
        }
        WaitRule::Evaluators if pipeline.issue.record.visits > 0 => {
            &[ContentState::Unchanged, ContentState::Changed]
        }
        WaitRule::Evaluators => &[ContentState::New],
    };
    let wait = |state: &ContentState| {
        let record = &pipeline.issue.record;
        let found = VisitUpdate {
            status: if record.status > 0 {
                record.status
            } else {
                200
            },
            state: *state,
            size: record.history.first().and_then(|last| last.size),
            media_type: media_type.unwrap_or_default().to_owned(),
            ..VisitUpdate::default()
        };
        wait_after(pipeline, (settings, stacks), at, &found, known)
    };
    found.iter().map(wait).collect()
}

/// Returns the wait after a visit at the time `at` with the content state `found`.
fn wait_after(
    pipeline: &Pipeline,
    (settings, stacks): (&EffectiveSettings, &Stacks),
    at: Timestamp,
    found: &VisitUpdate,
    known: &Known,
) -> ExplainedWait {
    let record = &pipeline.issue.record;
    let memory = PluginMemory::new(&record.kept, &known.site);
    let mut visit = plugin_view::after(KnownUri::of(&pipeline.issue), at, found, &memory);
    visit.measures = known.measures.clone();
    let content_type = ("content-type".to_owned(), found.media_type.clone());
    let head = synthetic::head(
        u16::try_from(found.status).unwrap_or(200),
        vec![content_type],
    );
    let document = pipeline.document(&head, Bytes::new(), None, &memory);
    let guards = Guards::default();
    let evaluation = evaluate(&stacks.wait, &found.media_type, &visit, &document, &guards);
    let decision = evaluation.decide_wait(record, found.state, &settings.revisit);
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
        found: found.state.name().to_owned(),
        wait_s: decision.until_next.as_secs_f64(),
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

/// Calls a stack of filters. Returns the answer of each, with the deciding one marked, and whether the URI is accepted.
fn answers(
    stack: &[Staged],
    judge: impl FnOnce(&mut dyn FnMut(usize, FilterPart<'_>)) -> ScopeJudgement,
) -> (Vec<FilterAnswer>, bool) {
    let unhandled = |staged| not_asked(staged, "it does not handle such URIs");
    let mut answers: Vec<FilterAnswer> = stack.iter().map(unhandled).collect();
    let judged = judge(&mut |index, part| {
        let (answer, reason) = match part {
            FilterPart::Guarded => ("not-asked", "its own filters keep it from seeing it"),
            FilterPart::Ruled(Verdict::Accept, reason) => ("accept", reason),
            FilterPart::Ruled(Verdict::Reject, reason) => ("reject", reason),
            FilterPart::Ruled(_, reason) => ("pass", reason),
            FilterPart::Failed(reason) => ("failed", reason),
        };
        answers[index].answer = answer.to_owned();
        answers[index].reason = reason.to_owned();
    });
    let decision = judged.decisions.into_iter().next();
    let by = decision.as_ref().and_then(|decision| decision.by.as_ref());
    let has_say = |one: &&mut FilterAnswer| {
        Some(&one.filter) == by && matches!(one.answer.as_str(), "accept" | "reject" | "failed")
    };
    if let Some(last) = answers.iter_mut().rev().find(has_say) {
        last.decides = true;
    }
    let is_accepted = decision.is_some_and(|decision| decision.accepted);
    (answers, is_accepted)
}

fn not_asked(staged: &Staged, reason: &str) -> FilterAnswer {
    FilterAnswer {
        filter: staged.name.to_string(),
        answer: "not-asked".to_owned(),
        reason: reason.to_owned(),
        decides: false,
    }
}

#[cfg(test)]
mod tests {
    use opilio_profile::ProfileContext;
    use opilio_sandbox::NamedValue;

    use super::*;

    /// Links of `a.example` are in scope up to one hop from the seed, and are fetched up to two.
    const PROFILE: &str = r#"
seeds = ["http://a.example/"]

[stacks]
scope = ["surt-scope", "near"]
precedence = []
pre-fetch = ["far"]
mid-fetch = []
post-fetch = []
render = ["near"]
digest = []
change = []
pre-extract = []
extract = []
archive = []
behave = []
wait = []
observe = []

[plugins.near]
component = "builtin:hops"
settings = { max = 1 }

[plugins.far]
component = "builtin:hops"
settings = { max = 2 }

[[override]]
match.host = ["b.example"]
browser.render = "auto"
"#;

    fn profile() -> Arc<Profile> {
        let given = ProfileContext {
            builtins: opilio_stacks::builtin_plugins(),
            ..ProfileContext::default()
        };
        Arc::new(Profile::parse("p.toml", PROFILE, &given).unwrap())
    }

    fn asked<'a>(uri: &'a Uri, hops: &str) -> ExplainRequest<'a> {
        ExplainRequest {
            uri,
            via: None,
            hops: HopPath::parse(hops).unwrap(),
            source: None,
            media_type: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Explains each URI with these hops, known to the job or not.
    fn explained_each(all: &[(&str, &str, bool)]) -> Vec<ExplainedUri> {
        let profile = profile();
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let prefixes = profile.seeds.scope();
        let sources = sources(Path::new(""));
        let asking = || {
            let loaded = load(&engine, &profile, &prefixes, &sources, None);
            let (_, loaded) = loaded.unwrap();
            let explain = |&(uri, hops, is_known): &(&str, &str, bool)| {
                let uri = Uri::parse(uri).unwrap();
                let asked = asked(&uri, hops);
                let record = is_known.then(|| subject(&profile, &asked, None));
                let known = Known {
                    record,
                    ..Known::default()
                };
                explained(&profile, &loaded.stacks, &asked, &known)
            };
            all.iter().map(explain).collect()
        };
        on_plugin_thread("explain", asking).unwrap()
    }

    fn words(answers: &[FilterAnswer]) -> Vec<(&str, &str, bool)> {
        let answers = answers.iter();
        answers
            .map(|one| (&*one.filter, &*one.answer, one.decides))
            .collect()
    }

    #[test]
    fn every_filter_is_called_as_in_a_visit() {
        let page = "http://a.example/page";
        let explained = explained_each(&[
            (page, "L", false),
            (page, "LL", false),
            (page, "LLL", false),
            (page, "LLLP", false),
            ("http://b.example/", "", false),
            ("http://b.example/", "", true),
            ("http://a.example/", "", false),
        ]);
        let verdicts: Vec<_> = explained
            .iter()
            .map(|one| (one.in_scope, one.fetched))
            .collect();
        let expected = [
            (true, true),
            (false, true),
            (false, false),
            // The scope and pre-fetch filters let prerequisites pass.
            (true, true),
            // The URI may be meant as a link.
            (false, true),
            // The operator has added the URI.
            (true, true),
            (true, true),
        ];
        assert_eq!(verdicts, expected);
        let too_far = &explained[2];
        let scope = [("surt-scope", "accept", false), ("near", "reject", true)];
        assert_eq!(words(&too_far.scope), scope);
        assert_eq!(words(&too_far.pre_fetch), [("far", "reject", true)]);
        let prerequisite = words(&explained[3].pre_fetch);
        assert_eq!(prerequisite, [("far", "not-asked", false)]);
        assert_eq!(words(&explained[0].pre_fetch), [("far", "pass", false)]);
    }

    #[test]
    fn render_filters_are_listed_if_they_are_called() {
        let explained = explained_each(&[
            ("http://a.example/", "", false),
            ("http://b.example/", "", false),
        ]);
        let stages = explained.iter().map(|one| {
            let stages = one.stacks.iter().map(|stack| &*stack.stage);
            stages.collect::<Vec<_>>()
        });
        let expected = [
            vec!["scope", "pre-fetch"],
            vec!["scope", "pre-fetch", "render"],
        ];
        assert_eq!(stages.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_link_of_the_record_is_used_unless_another_path_is_requested() {
        let profile = profile();
        let uri = Uri::parse("http://a.example/page").unwrap();
        let attribute = NamedValue {
            name: "rel".to_owned(),
            value: "nofollow".to_owned(),
        };
        let mut record = subject(&profile, &asked(&uri, "L"), None);
        record.context = "a/@href".to_owned();
        record.link_attributes = opilio_visit::link_attributes::for_record(vec![attribute]);
        record.visits = 3;
        #[track_caller]
        fn check(record: &UriRecord, uri: &Uri, expected: (&str, usize)) {
            let seen = plugin_view::candidate(uri, record);
            assert_eq!((&*seen.context, seen.attributes.len()), expected);
            assert_eq!(record.visits, 3);
        }
        let as_found = subject(&profile, &asked(&uri, "L"), Some(&record));
        check(&as_found, &uri, ("a/@href", 1));
        let otherwise = subject(&profile, &asked(&uri, "LL"), Some(&record));
        check(&otherwise, &uri, ("", 0));
    }
}
