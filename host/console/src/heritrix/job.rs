//! A job in Heritrix's interface, and actions on it.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use opilio_control::{KeptCheckpoint, ReportKind};
use opilio_crawl::logs::read;
use opilio_crawl::{JobState, ProfileSource, builtin_plugins, stays_inside};
use opilio_profile::{NamedFiles, UnconvertedPart, import_heritrix};
use regex::Regex;
use serde::Deserialize;

use super::drafts::{BYTES_MAX, CONFIG, Draft, is_editable};
use super::model::{Files, HeritrixJob, Stage};
use super::{answer, see_other};
use crate::access::Caller;
use crate::api::job_folders::places;
use crate::api::jobs::{self, blocking};
use crate::api::statistics::{self, AsReport};
use crate::api::stop;
use crate::daemon::Daemon;
use crate::folder::NewJob;
use crate::input::{Form, Params, PathParams};
use crate::orders::Orders;
use crate::problem::Problem;
use crate::reach;

/// Lines of the log in a job's document.
const LOG_LINES: usize = 10;

/// Patterns of configurations whose crawl does not begin paused.
#[expect(
    clippy::unwrap_used,
    reason = "constants, compiled by every test that builds a job"
)]
static AT_ONCE: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        "(?s)<!--.*?-->",
        r#"pauseAtStart("\s+value)?\s*=\s*"?false"#,
    ]
    .map(|it| Regex::new(it).unwrap())
});

#[derive(Debug, Deserialize)]
pub(super) struct Action {
    action: Option<String>,
    checkpoint: Option<String>,
    #[serde(rename = "copyTo")]
    copy_to: Option<String>,
    #[serde(rename = "asProfile")]
    as_profile: Option<String>,
}

pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    PathParams(name): PathParams<String>,
) -> Result<Response, Problem> {
    let case = daemon.case(&name).await?;
    let files = match &case.known {
        Some(known) => {
            let directory = known.directory.clone();
            let is_active = matches!(case.stage(), Stage::Active(_));
            blocking(move || Ok(Files::of(&directory, is_active))).await?
        }
        None => Files::default(),
    };
    let value = case.whole(&daemon.engine_url(&headers), &files);
    Ok(answer(&headers, "job", &value))
}

/// Heritrix's names of reports, with ours.
const REPORTS: [(&str, ReportKind); 10] = [
    ("CrawlSummaryReport", ReportKind::Crawl),
    ("SeedsReport", ReportKind::Seeds),
    ("HostsReport", ReportKind::Hosts),
    ("SourceTagsReport", ReportKind::Source),
    ("MimetypesReport", ReportKind::Mimetype),
    ("ResponseCodeReport", ReportKind::Responsecode),
    ("ProcessorsReport", ReportKind::Processors),
    ("FrontierSummaryReport", ReportKind::FrontierSummary),
    ("FrontierNonemptyReport", ReportKind::FrontierNonempty),
    ("ToeThreadsReport", ReportKind::Threads),
];

/// Sends a current report as text.
pub(super) async fn report(
    State(daemon): State<Arc<Daemon>>,
    caller: Caller,
    PathParams((name, report)): PathParams<(String, String)>,
) -> Result<Response, Problem> {
    let Some((_, kind)) = REPORTS.iter().find(|(named, _)| *named == report) else {
        let all = REPORTS.map(|(named, _)| named).join(", ");
        return Err(Problem::not_found(format!(
            "unknown report {report:?}; available: {all}"
        )));
    };
    let params = PathParams((name, kind.name().to_owned()));
    statistics::report(State(daemon), caller, params, Params(AsReport::text())).await
}

impl Files {
    fn of(directory: &std::path::Path, is_active: bool) -> Files {
        // Errors in checkpoints are reported when a job is launched from one.
        let kept = match is_active {
            true => Vec::new(),
            false => opilio_control::checkpoints(directory).unwrap_or_default(),
        };
        Files {
            log: log_tail(directory),
            checkpoints: latest_first(kept),
        }
    }
}

/// The names of complete checkpoints, the latest first.
fn latest_first(mut kept: Vec<KeptCheckpoint>) -> Vec<String> {
    kept.retain(|kept| kept.is_whole);
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.made));
    kept.into_iter().map(|kept| kept.name).collect()
}

fn log_tail(directory: &std::path::Path) -> Vec<String> {
    let wanted = read::LogQuery {
        tail: true,
        lines: Some(LOG_LINES),
        ..read::LogQuery::default()
    };
    let log = places(directory)
        .ok()
        .map(|places| places.logs.join("crawl.log"));
    let log = log.filter(|log| stays_inside(directory, log).is_ok());
    let page = log.and_then(|log| read::page(&log, &wanted).ok());
    let lines = page.map(|page| page.lines).unwrap_or_default();
    lines.into_iter().map(|line| line.text).collect()
}

pub(super) async fn act(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    caller: Caller,
    PathParams(name): PathParams<String>,
    Form(asked): Form<Action>,
) -> Result<Response, Problem> {
    let url = daemon.engine_url(&headers);
    let case = daemon.case(&name).await?;
    if let Some(to) = asked.copy_to {
        let as_profile = asked.as_profile.as_deref() == Some("on");
        let copied = daemon.clone();
        let wanted = to.clone();
        blocking(move || copied.copy_case(&case, &wanted, as_profile)).await?;
        daemon.supervisor_wake.notify_one();
        return Ok(see_other(format!("{url}/job/{to}")));
    }
    match asked.action.as_deref() {
        Some("build" | "validate") => daemon.build(case, caller).await?,
        Some("launch") => {
            let checkpoint = asked.checkpoint.filter(|name| !name.is_empty());
            if let Some(checkpoint) = &checkpoint {
                daemon.go_back_to(&case, &caller, checkpoint).await?;
            }
            daemon.launch(case, caller, checkpoint.is_some()).await?;
        }
        Some("pause") => {
            jobs::pause(State(daemon), caller, PathParams(name.clone()))
                .await
                .map(drop)?;
        }
        Some("unpause") => daemon.unpause(case, caller).await?,
        Some("checkpoint") => {
            jobs::checkpoint(State(daemon), caller, PathParams(name.clone()))
                .await
                .map(drop)?;
        }
        Some("terminate") => daemon.terminate(&case, caller).await?,
        Some("teardown") => daemon.tear_down(case, caller).await?,
        Some("delete") => {
            return Err(Problem::forbidden(
                "jobs cannot be deleted here; an admin can delete them with `opilio job delete JOB`, which keeps the archive",
            ));
        }
        Some(other) => return Err(Problem::unusable(format!("unknown action {other:?}"))),
        None => return Err(Problem::unusable("action is missing")),
    }
    Ok(see_other(format!("{url}/job/{name}")))
}

impl Daemon {
    /// Finds a job's configuration and state.
    pub(super) async fn case(&self, name: &str) -> Result<HeritrixJob, Problem> {
        let drafts = self.drafts();
        let known = match self.folder.job(name) {
            Ok(_) => Some(self.known(name).await?),
            Err(_) => None,
        };
        let draft = drafts.find(name);
        if known.is_none() && draft.is_none() {
            return Err(Problem::not_found(format!("job {name:?} not found")));
        }
        Ok(HeritrixJob {
            name: name.to_owned(),
            is_torn_down: drafts.is_torn_down(name),
            draft,
            known,
        })
    }

    /// Creates a job from its configuration, unless the job exists.
    async fn build(self: Arc<Self>, case: HeritrixJob, caller: Caller) -> Result<(), Problem> {
        let built = self.clone();
        blocking(move || {
            let drafts = built.drafts();
            drafts.tear_down(&case.name, false)?;
            if case.known.is_some() {
                return Ok(());
            }
            if case.is_profile() {
                return Err(Problem::conflict(format!(
                    "{:?} is a profile: copy it, and build the copy",
                    case.name
                )));
            }
            let was = drafts.clear(&case.name)?;
            let draft = drafts
                .find(&case.name)
                .ok_or_else(|| Problem::not_found("its configuration no longer exists"))?;
            let made = built.make_of(&case.name, &draft, &caller);
            if let (Err(_), Some(was)) = (&made, was) {
                drafts.put_back(&case.name, &was)?;
            }
            made
        })
        .await?;
        self.supervisor_wake.notify_one();
        Ok(())
    }

    fn make_of(&self, name: &str, draft: &Draft, caller: &Caller) -> Result<(), Problem> {
        let cannot = |what: &str, problem: &dyn std::fmt::Display| {
            Problem::unusable(format!("cannot use {what}: {problem}"))
        };
        let xml = std::fs::read_to_string(draft.config())
            .map_err(|problem| cannot("crawler-beans.cxml", &problem))?;
        let imported = import_heritrix(&xml, NamedFiles::Unread, &builtin_plugins())
            .map_err(|problem| cannot("crawler-beans.cxml", &problem))?;
        let mut profile: toml::Table = imported
            .toml
            .parse()
            .map_err(|problem| cannot("the profile made of crawler-beans.cxml", &problem))?;
        let mut seeds = Vec::new();
        if let Some(file) = &imported.seeds_file {
            // A seed list beside the configuration was sent with it.
            let path = draft.folder.join(file);
            let is_beside = is_editable(file)
                && path
                    .symlink_metadata()
                    .is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX);
            if !is_beside {
                return Err(Problem::forbidden(format!(
                    "seeds-file: {file:?} is not a seed list next to the configuration, and other files of this machine are not read: put it into jobdir/ with a name that ends in .txt, and name it without folders"
                )));
            }
            let text = std::fs::read_to_string(&path).map_err(|problem| cannot(file, &problem))?;
            seeds.extend(text.lines().map(str::to_owned));
        }
        reach::check(&profile.to_string(), None, caller)?;
        profile.insert("name".to_owned(), name.into());
        if let Some(below) = self
            .heritrix
            .as_ref()
            .and_then(|account| account.profile.as_ref())
        {
            let below = match self.profile(below) {
                Ok(ProfileSource::Named(named)) => named.file.display().to_string(),
                Ok(_) => below.clone(),
                Err(problem) => {
                    let problem = problem.detail();
                    return Err(Problem::unusable(format!(
                        "heritrix.profile in opilio.toml: {problem}"
                    )));
                }
            };
            profile.insert("extends".to_owned(), below.into());
        }
        let left: String = imported.left.iter().map(left_out).collect();
        let report = draft.folder.join("left-out.txt");
        crate::own_file::write(&report, left.as_bytes())
            .map_err(|problem| cannot("left-out.txt", &problem))?;
        self.folder.make(NewJob {
            name: name.to_owned(),
            profile: ProfileSource::Text {
                file: CONFIG.to_owned(),
                text: profile.to_string(),
            },
            seeds,
            contact_url: None,
        })?;
        Ok(())
    }

    /// Starts a job, paused unless its configuration sets otherwise, as Heritrix's clients expect.
    async fn launch(
        self: Arc<Self>,
        case: HeritrixJob,
        caller: Caller,
        was_reset: bool,
    ) -> Result<(), Problem> {
        match case.stage() {
            Stage::Unbuilt | Stage::Ready => {}
            Stage::Active(state) => {
                return Err(Problem::conflict(format!("the job is already {state}")));
            }
            // A restored job continues from its checkpoint, so it is not a job that has already ended.
            Stage::Finished(_) if was_reset => {}
            Stage::Finished(_) => {
                return Err(Problem::conflict(
                    "the job has ended; tear it down and launch it to resume it, or copy it to start anew",
                ));
            }
        }
        let at_once = case.draft.as_ref().is_some_and(begins_at_once);
        let name = case.name.clone();
        let user = caller.user.clone();
        self.clone().build(case, caller).await?;
        self.order(&name, |orders| {
            *orders = Orders {
                paused: !at_once,
                ..Orders::new(true, &user)
            };
        });
        self.wait_for_state(&name, |state| {
            !matches!(
                state,
                JobState::New
                    | JobState::Finished
                    | JobState::Stopped
                    | JobState::Failed
                    | JobState::Crashed
            )
        })
        .await
    }

    /// Restores a job's checkpoint before it is launched; `latest` is the most recent one.
    async fn go_back_to(
        &self,
        case: &HeritrixJob,
        caller: &Caller,
        checkpoint: &str,
    ) -> Result<(), Problem> {
        if let Stage::Active(state) = case.stage() {
            return Err(Problem::conflict(format!("the job is already {state}")));
        }
        let none = |what: &str| {
            Problem::not_found(format!(
                "{what}; checkpointFiles of the job lists its checkpoints"
            ))
        };
        let Some(known) = &case.known else {
            return Err(none("a job that was never built has no checkpoints"));
        };
        let directory = known.directory.clone();
        let kept = blocking(move || opilio_control::checkpoints(&directory).map_err(Problem::from))
            .await?;
        let name = match checkpoint {
            "latest" => latest_first(kept)
                .into_iter()
                .next()
                .ok_or_else(|| none("the job has no complete checkpoint"))?,
            name if kept.iter().any(|kept| kept.name == name) => name.to_owned(),
            name => return Err(none(&format!("checkpoint {name:?} not found"))),
        };
        self.reset_to_checkpoint(&case.name, caller, &name)
            .await
            .map(drop)
    }

    async fn unpause(self: Arc<Self>, case: HeritrixJob, caller: Caller) -> Result<(), Problem> {
        jobs::resume(State(self), caller, PathParams(case.name))
            .await
            .map(drop)?;
        Ok(())
    }

    async fn terminate(self: Arc<Self>, case: &HeritrixJob, caller: Caller) -> Result<(), Problem> {
        match case.stage() {
            // The job has ended, as wanted.
            Stage::Finished(_) | Stage::Active("STOPPING") => Ok(()),
            Stage::Unbuilt | Stage::Ready => Err(Problem::conflict("the job is not running")),
            Stage::Active(_) => {
                stop::stop(State(self), caller, PathParams(case.name.clone()))
                    .await
                    .map(drop)?;
                Ok(())
            }
        }
    }

    /// Ends a job that crawls. A job that never crawled is deleted, so that its configuration can be changed.
    async fn tear_down(self: Arc<Self>, case: HeritrixJob, caller: Caller) -> Result<(), Problem> {
        let stage = case.stage();
        if let Stage::Active(_) = stage {
            self.clone().terminate(&case, caller).await?;
        }
        let torn = self.clone();
        blocking(move || {
            let is_new = case.known.as_ref().is_some_and(|known| {
                known.overview.state == JobState::New && known.process_record.is_none()
            });
            match (stage, case.draft) {
                (Stage::Unbuilt, _) => Ok(()),
                (Stage::Ready, Some(_)) if is_new => {
                    torn.folder.delete(&case.name, true).map_err(Problem::from)
                }
                _ => torn.drafts().tear_down(&case.name, true),
            }
        })
        .await?;
        self.supervisor_wake.notify_one();
        Ok(())
    }

    fn copy_case(&self, case: &HeritrixJob, to: &str, as_profile: bool) -> Result<(), Problem> {
        let drafts = self.drafts();
        match &case.draft {
            Some(draft) => drafts.make(to, as_profile, &drafts.files(draft)?),
            None if as_profile => Err(Problem::unusable(
                "it has no crawler-beans.cxml and cannot be a profile; copy it as a job",
            )),
            None if drafts.find(to).is_some() => Err(Problem::conflict(format!(
                "{to:?} already exists; choose another name"
            ))),
            None => {
                self.folder.copy(&case.name, to)?;
                Ok(())
            }
        }
    }

    /// Waits until the job is in a matching state, according to the daemon's information.
    async fn wait_for_state(
        &self,
        name: &str,
        is_so: impl Fn(JobState) -> bool,
    ) -> Result<(), Problem> {
        let mut jobs = self.jobs.subscribe();
        loop {
            self.directory(name)?;
            let state = jobs
                .borrow_and_update()
                .get(name)
                .map(|known| known.overview.state);
            if state.is_some_and(&is_so) {
                return Ok(());
            }
            self.supervisor_wake.notify_one();
            if jobs.changed().await.is_err() {
                return Err(Problem::failure("the daemon is ending"));
            }
        }
    }
}

/// Formats a line of the list of settings that could not be imported. An error of the profile's check is not quoted, because it may
/// contain text of a file that the configuration names, which clients must not see.
fn left_out(left: &UnconvertedPart) -> String {
    match left.line {
        0 => {
            let setting = left.problem.split(": ").next().unwrap_or_default();
            format!("{CONFIG}: {setting}: cannot be used here\n")
        }
        line => format!("{CONFIG}:{line}: {}: {}\n", left.bean, left.problem),
    }
}

fn begins_at_once(draft: &Draft) -> bool {
    let [comments, at_once] = &*AT_ONCE;
    std::fs::read_to_string(draft.config())
        .is_ok_and(|xml| at_once.is_match(&comments.replace_all(&xml, "")))
}
