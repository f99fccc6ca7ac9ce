//! `opilio crawl`.

use std::path::Path;

use anyhow::Result;
pub(crate) use opilio_crawl::component_cache;
use opilio_crawl::{
    Crawl, CrawlError, End, Faults, JobError, Level, Order, ProfileSource, Share, Stop, Summary,
    plan,
};

use crate::hangup::hangup;
use crate::summary::Sequel;
use crate::telemetry::Telemetry;
use crate::{CrawlArgs, DisplayArgs, exit, live, summary};

/// Runs the command.
pub(crate) async fn run(args: CrawlArgs, telemetry: &Telemetry) -> Result<u8> {
    let order = order(&args);
    let opening = Opening {
        is_paused: args.paused,
        share: args.share.unwrap_or_default(),
    };
    run_order(
        &order,
        opening,
        Sequel::Resume,
        args.display,
        Some(telemetry),
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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Whether the job starts paused, until an operator resumes it.
    is_paused: bool,
    /// The crawl's share of the limits of the machine.
    share: Share,
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
pub(crate) fn refused(faults: &Faults) -> u8 {
    eprintln!("{faults}");
    if faults.worst() == Some(Level::Warning) {
        eprintln!(
            "a job cannot start with these warnings: fix the profile, or pass --contact-url URL"
        );
    }
    exit::USAGE
}

/// Plans and runs the crawl, shows its progress and prints the summary.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) async fn run_order(
    order: &Order,
    opening: Opening,
    sequel: Sequel,
    display: DisplayArgs,
    telemetry: Option<&Telemetry>,
) -> Result<Done> {
    let plan = match plan(order) {
        Ok(plan) => plan,
        Err(CrawlError::Profile(faults)) => return Ok(Done::without_crawl(refused(&faults))),
        Err(other) => return Err(other.into()),
    };
    if !plan.profile().notices.is_empty() && !display.quiet {
        live::note(&plan.profile().notices.to_string(), display);
    }
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
    crawl.share(opening.share);
    if opening.is_paused {
        crawl.pause();
    }
    for repaired in crawl.repaired() {
        tracing::warn!("{}", summary::repaired(repaired));
    }
    let summary = watched(crawl, display).await;
    summary::print(&summary, sequel, display);
    let code = match &summary.end {
        End::Halted(_) => exit::FAILED,
        // If the crawl cannot be resumed, its limit is its end.
        end if end.is_limit() && sequel == Sequel::Resume => exit::LIMIT,
        _ => exit::OK,
    };
    Ok(Done {
        code,
        summary: Some(summary),
    })
}

/// Runs a crawl with the live view and the handling of repeated Ctrl-C.
async fn watched(crawl: Crawl, display: DisplayArgs) -> Summary {
    let stop = crawl.stop();
    let interrupts = tokio::spawn(heed_interrupts(stop, display));
    let live = live::start(crawl.view(), crawl.job(), display);
    let summary = opilio_control::run(crawl).await;
    live.finish().await;
    interrupts.abort();
    summary
}

/// Handles interrupts. The first interrupt (or termination) ends the crawl politely. The second stops waiting for fetches in
/// flight. The third ends the process at once.
async fn heed_interrupts(stop: Stop, display: DisplayArgs) {
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
    stop.cut();
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

fn order(args: &CrawlArgs) -> Order {
    let (profile, seed, job) = match as_url(&args.what) {
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
        None => (profile_source(&args.what), None, args.job.clone()),
    };
    Order {
        profile,
        seeds: seed.into_iter().chain(args.seed.iter().cloned()).collect(),
        contact_url: args.contact_url.clone(),
        job,
        component_cache: component_cache(),
    }
}

/// Returns the source of a profile: a file, or a built-in profile if the file does not exist. If neither exists, a text that
/// looks like a name counts as a name, so that the error lists the built-in profiles.
pub(crate) fn profile_source(what: &str) -> ProfileSource {
    let is_name = !what.is_empty() && !what.contains(['/', '\\', '.']);
    if is_name && !Path::new(what).exists() {
        ProfileSource::Builtin(what.to_owned())
    } else {
        ProfileSource::File(what.into())
    }
}

/// Returns a URL with its host, for the name of the job.
fn as_url(what: &str) -> Option<(String, String)> {
    let url = what.starts_with("http://") || what.starts_with("https://");
    let uri = opilio_uri::Uri::parse(what).ok().filter(|_| url)?;
    Some((what.to_owned(), job_name(&uri)))
}

/// Returns host and port. A URL may contain a password, which must not appear in the name of a directory.
fn job_name(uri: &opilio_uri::Uri) -> String {
    let host = uri.host().unwrap_or_default();
    uri.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}-{port}"))
}
