//! `opilio crawl`.

mod joining;

use std::future;
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::Result;
use opilio_console::DaemonConfig;
pub(crate) use opilio_crawl::component_cache;
use opilio_crawl::{
    Crawl, CrawlError, Diagnostics, End, JobError, Level, Order, ProfileSource, Share, Stop,
    Summary, is_job, plan,
};
use opilio_profile::Profile;

use crate::hangup::hangup;
use crate::job_directory::known_job;
use crate::live::{self, DisplayArgs};
use crate::summary::Resumption;
use crate::telemetry::Telemetry;
use crate::{CrawlArgs, NodesArgs, daemon_config, exit, preparing, summary};

/// The copy of the profile in the job's directory.
const PROFILE_COPY: &str = "profile.toml";

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) async fn run(args: CrawlArgs, telemetry: &Telemetry) -> Result<u8> {
    let order = match &args.what {
        Some(what) => {
            let path = Path::new(what);
            if path.is_dir() && known_job(path).is_none() {
                eprintln!(
                    "opilio: {} is a directory without a job; pass a profile, a URL or a job",
                    path.display()
                );
                return Ok(exit::USAGE);
            }
            if is_web(what)
                && let Err(problem) = opilio_uri::Uri::parse(what)
            {
                eprintln!("opilio: invalid URL {what}: {problem}");
                return Ok(exit::USAGE);
            }
            order(&args, what)
        }
        None => joining::order(&args).await?,
    };
    let conditions = StartConditions {
        is_paused: args.paused,
        share: args.share.unwrap_or_default(),
        nodes: args.nodes,
    };
    run_order(
        &order,
        conditions,
        Resumption::Possible,
        args.display,
        Some(telemetry),
        future::pending(),
    )
    .await
    .map(|done| done.code)
}

/// The result of a crawl that ran, or could not run.
pub(crate) struct Done {
    pub code: u8,
    pub summary: Option<Summary>,
}

impl Done {
    fn without_crawl(code: u8) -> Done {
        Done {
            code,
            summary: None,
        }
    }
}

/// The conditions under which the first fetch may be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartConditions {
    /// `true` if the job starts paused, until an operator resumes it.
    is_paused: bool,
    /// The crawl's share of the limits of the machine.
    share: Share,
    /// The nodes that share the crawl.
    nodes: NodesArgs,
}

/// Parses a share in the form in which the daemon passes it.
pub(crate) fn share(json: &str) -> Result<Share, serde_json::Error> {
    serde_json::from_str(json)
}

/// Prints the errors of an invalid profile. Returns the exit code.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn refused(faults: &Diagnostics) -> u8 {
    eprintln!("{faults}");
    if faults.worst() == Some(Level::Warning) {
        eprintln!(
            "a job cannot start with these warnings: fix the profile, or pass --contact-url URL"
        );
    }
    exit::USAGE
}

/// Plans and runs the crawl, shows its progress and prints the summary. The crawl stops politely when `enough`
/// completes.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) async fn run_order(
    order: &Order,
    conditions: StartConditions,
    resumption: Resumption,
    display: DisplayArgs,
    telemetry: Option<&Telemetry>,
    enough: impl Future<Output = ()>,
) -> Result<Done> {
    let plan = match plan(order) {
        Ok(plan) => plan,
        Err(CrawlError::Profile(faults)) => return Ok(Done::without_crawl(refused(&faults))),
        Err(other) => return Err(other.into()),
    };
    if !plan.profile().notices.is_empty() && !display.quiet {
        live::note(&plan.profile().notices.to_string(), display);
    }
    let is_new = !is_job(plan.directory());
    let takes_over = conditions.nodes.take_over.is_some() && is_new;
    if conditions.nodes.cluster_job.is_some() && is_new {
        // Before the part is claimed: afterwards no other directory can begin it.
        match plan.check_machine() {
            Err(CrawlError::Profile(faults)) => return Ok(Done::without_crawl(refused(&faults))),
            checked => checked?,
        }
    }
    let plan = match joining::job_part(conditions.nodes, order, &plan)? {
        Some((config, part)) if takes_over => {
            opilio_control::take_over(plan, order, config, part).await?
        }
        Some((config, part)) => plan.join(config, part).await?,
        None => plan,
    };
    for note in plan.notes() {
        live::note(&format!("note: {note}"), display);
    }
    let (name, traces) = (
        plan.profile().name.clone(),
        plan.profile().telemetry.clone(),
    );
    let crawl = match plan.begin() {
        Ok(crawl) => crawl,
        Err(CrawlError::Profile(faults)) => return Ok(Done::without_crawl(refused(&faults))),
        Err(CrawlError::Job(problem @ JobError::InUse { .. })) => {
            eprintln!("opilio: {problem}");
            return Ok(Done::without_crawl(exit::IN_USE));
        }
        Err(other) => return Err(other.into()),
    };
    if let Some(telemetry) = telemetry {
        let of_job = [
            ("opilio.job_name", name),
            ("opilio.job", crawl.job().directory().display().to_string()),
        ];
        if let Err(problem) = telemetry.trace(&traces, &of_job) {
            tracing::warn!("traces are off: {problem:#}");
        }
    }
    crawl.share(conditions.share);
    if conditions.is_paused {
        crawl.pause();
    }
    for repaired in crawl.repaired() {
        tracing::warn!("{}", summary::repaired(repaired));
    }
    let summary = run_with_live_view(crawl, display, enough).await;
    summary::print(&summary, resumption, display);
    let code = match &summary.end {
        End::Halted(_) => exit::FAILED,
        End::NoSeedFetched(_) => exit::NO_SEED,
        // A limit has its own exit code only if the crawl can be resumed.
        end if end.is_limit() && resumption == Resumption::Possible => exit::LIMIT,
        // The next start hands over the files that a terminated process has left.
        End::Terminated => exit::OK,
        _ if summary.handovers.iter().any(|total| total.left > 0) => exit::NOT_HANDED_OVER,
        _ => exit::OK,
    };
    Ok(Done {
        code,
        summary: Some(summary),
    })
}

/// Runs a crawl with the live view and the handling of repeated Ctrl-C, until it ends or `enough`
/// completes.
async fn run_with_live_view(
    crawl: Crawl,
    display: DisplayArgs,
    enough: impl Future<Output = ()>,
) -> Summary {
    let stop = crawl.stop();
    let interrupts = tokio::spawn(handle_interrupts(crawl.stop(), display));
    preparing::finish();
    let live = live::start(crawl.view(), crawl.job(), display);
    let mut running = pin!(opilio_control::run(crawl));
    let summary = tokio::select! {
        summary = &mut running => summary,
        () = enough => {
            stop.stop();
            running.await
        }
    };
    live.finish().await;
    interrupts.abort();
    summary
}

/// Handles interrupts. The first interrupt (or termination) ends the crawl politely. The second stops waiting for fetches in
/// flight. The third ends the process at once.
async fn handle_interrupts(stop: Stop, display: DisplayArgs) {
    let say = |words| {
        if !display.quiet {
            live::note(words, display);
        }
    };
    match interrupted().await {
        Ok(Interrupt::Key) => stop.stop(),
        Ok(Interrupt::Termination) => stop.terminate(),
        Err(_) => return,
    }
    say("\nstopping: current fetches finish; press Ctrl-C again to cut them short");
    if interrupted().await.is_err() {
        return;
    }
    stop.stop_without_waiting();
    say(
        "\ncurrent fetches are cut short and archived as truncated; press Ctrl-C again to exit at once",
    );
    if interrupted().await.is_ok() {
        std::process::exit(130);
    }
}

/// The source of a request to end a crawl.
enum Interrupt {
    /// An operator who pressed Ctrl-C.
    Key,
    /// The system, by SIGTERM, or a closed terminal.
    Termination,
}

#[cfg(unix)]
async fn interrupted() -> std::io::Result<Interrupt> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.map(|()| Interrupt::Key),
        _ = terminate.recv() => Ok(Interrupt::Termination),
        gone = hangup() => gone.map(|()| Interrupt::Termination),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> std::io::Result<Interrupt> {
    tokio::signal::ctrl_c().await.map(|()| Interrupt::Key)
}

fn order(args: &CrawlArgs, what: &str) -> Order {
    let (profile, seed, job) = match as_url(what) {
        Some((url, host)) => {
            let job = args
                .job
                .clone()
                .unwrap_or_else(|| Path::new("jobs").join(host));
            (
                ProfileSource::Builtin("default".to_owned()),
                Some(url),
                Some(job),
            )
        }
        None => match job_to_resume(args, what) {
            Some(job) => {
                let profile = ProfileSource::File(job.join(PROFILE_COPY));
                (profile, None, Some(args.job.clone().unwrap_or(job)))
            }
            None => (source_of_crawl(what), None, args.job.clone()),
        },
    };
    Order {
        profile,
        seeds: seed.into_iter().chain(args.seed.iter().cloned()).collect(),
        contact_url: args.contact_url.clone(),
        job,
        component_cache: component_cache(),
    }
}

/// Returns the job that the command line names in place of a profile. A file of that name has precedence. A
/// profile of that name has precedence only with `--job`: without it, the name means the job of the same name.
fn job_to_resume(args: &CrawlArgs, what: &str) -> Option<PathBuf> {
    let path = Path::new(what);
    let is_builtin = Profile::builtin_text(what).is_some();
    let is_named = || is_builtin || matches!(profile_source(what), ProfileSource::Named(_));
    let is_profile = path.is_file() || args.job.is_some() && is_named();
    known_job(path).filter(|_| !is_profile)
}

/// Returns the source of a profile that is named in the place of a job or a URL, too.
fn source_of_crawl(what: &str) -> ProfileSource {
    find_profile(what, None, "profile, file or job named")
}

/// Returns the source of a profile: a file; or, if the file does not exist, a profile of the daemon's store or a built-in one. If
/// none exists, a text that looks like a name counts as a name, so that the error lists the profiles.
pub(crate) fn profile_source(what: &str) -> ProfileSource {
    find_profile(what, None, "profile or file named")
}

/// Returns the source of a profile for a job in this folder of jobs. The profile store is that of the folder, unless the daemon's
/// configuration names another.
pub(crate) fn profile_source_of(what: &str, jobs: &Path) -> ProfileSource {
    find_profile(what, Some(jobs), "profile or file named")
}

fn find_profile(what: &str, jobs: Option<&Path>, kinds: &str) -> ProfileSource {
    let is_name = !what.is_empty() && !what.contains(['/', '\\']);
    if !is_name || Path::new(what).exists() {
        return ProfileSource::File(what.into());
    }
    // A store that cannot be read has no profile of this name.
    let store = daemon_config::config(None).map(|config| {
        let jobs = jobs.map_or(config.jobs, Path::to_owned);
        let config = DaemonConfig { jobs, ..config };
        config.profile_store()
    });
    match store.as_ref().map(|store| store.get_for_job(what)) {
        Ok(Ok(found)) => ProfileSource::Named(found.named()),
        _ if what.contains('.') => ProfileSource::File(what.into()),
        _ if Profile::builtin_text(what).is_some() => ProfileSource::Builtin(what.to_owned()),
        _ => {
            let saved = store.map(|store| store.names()).unwrap_or_default();
            ProfileSource::Unknown(Profile::unknown(what, kinds, &saved))
        }
    }
}

/// Returns `true` for a text that is meant as a URL, valid or not.
fn is_web(what: &str) -> bool {
    what.starts_with("http://") || what.starts_with("https://")
}

/// Returns a URL with its host, for the name of the job.
fn as_url(what: &str) -> Option<(String, String)> {
    let uri = opilio_uri::Uri::parse(what).ok().filter(|_| is_web(what))?;
    Some((what.to_owned(), job_name(&uri)))
}

/// Returns host and port. A URL may contain a password, which must not appear in the name of a directory.
fn job_name(uri: &opilio_uri::Uri) -> String {
    let host = uri.host().unwrap_or_default();
    uri.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}-{port}"))
}
