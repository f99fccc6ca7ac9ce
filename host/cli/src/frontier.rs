//! `opilio frontier`: queued URIs, their order and reasons, and the commands that change them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use flate2::{Compression, write::GzEncoder};
use opilio_control::{
    Command, DoneElsewhere, ExportFormat, QueueAction, QueueSort, QueueState, StateSelector,
    UriSelection,
};
use opilio_crawl::QueueStates;

use crate::exit;
use crate::job::send::{count, send, send_to};
use crate::job::target::JobTarget;
use crate::job_directory::existing_job;
use crate::named_values::one_of;
use crate::terminal;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    command: FrontierCommand,
}

#[derive(Debug, Subcommand)]
enum FrontierCommand {
    /// Show the counts of the crawl.
    Statistics(JobTarget),
    /// List queues.
    Queues(QueuesArgs),
    /// Show the state and the counts of one queue.
    Queue(QueueArgs),
    /// List the URIs of a queue in the order in which they would be issued.
    Uris(UrisArgs),
    /// Explain why a URI was or was not fetched.
    Why(UriArgs),
    /// List URIs by site, pattern and outcome.
    List(ListArgs),
    /// Count URIs by site, pattern and outcome.
    Count(CountArgs),
    /// Remove URIs from their queues and keep them known, so that they are not found again.
    Delete(SweepArgs),
    /// Remove the records of URIs, so that they may be found again.
    Forget(SweepArgs),
    /// Remove a seed, its scope prefix, and queued URIs found only through it.
    RemoveSeed(UriArgs),
    /// Retire a queue: it issues no URIs, but accepts new ones.
    Retire(QueueArgs),
    /// Reactivate a retired queue. A queue that its budget retired needs a larger budget.
    Unretire(QueueArgs),
    /// Freeze a queue: it issues no URIs until it is thawed.
    Freeze(QueueArgs),
    /// Thaw a frozen queue: it issues URIs again.
    Thaw(QueueArgs),
    /// End the politeness delay or back-off of a queue; with --all, shorten all delays that are too long because a clock was
    /// ahead.
    Wake(WakeArgs),
    /// Cancel the fetch of a URI. The URI counts as failed, with status -7000.
    Cancel(UriArgs),
    /// Fetch a URI now, even if it is known, done or out of scope.
    Force(UriArgs),
    /// Set the precedence of a URI or a queue; lower numbers come first.
    Precedence(PrecedenceArgs),
    /// Set the floor: queues of this precedence or a higher number issue nothing while the crawl runs.
    Floor(FloorArgs),
    /// Export URIs with their records.
    Export(ExportArgs),
    /// Import the URIs of another crawl from its recovery journals, crawl logs or exports.
    Import(ImportArgs),
    /// Check the store of a job that is not running: verify every invariant.
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct QueuesArgs {
    #[command(flatten)]
    target: JobTarget,
    /// List only queues in this state.
    #[arg(long, value_name = "STATE", value_parser = one_of(QueueStates::ALL.map(|one| (one, one.name()))))]
    state: Option<QueueState>,
    /// Order of the list: by name, by number of URIs (most first), or by the time of the next URI (earliest first).
    #[arg(long, value_name = "ORDER", default_value = "name", value_parser = one_of(QueueSort::ALL.map(|one| (one, one.name()))))]
    sort: QueueSort,
    /// Start after this queue.
    #[arg(long, value_name = "QUEUE", conflicts_with = "sort")]
    after: Option<String>,
    /// Maximum number of queues to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct QueueArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Name of the queue, as shown by `opilio frontier queues`.
    #[arg(value_name = "QUEUE")]
    queue: String,
}

#[derive(Debug, Args)]
struct WakeArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Name of the queue, as shown by `opilio frontier queues`.
    #[arg(
        value_name = "QUEUE",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    queue: Option<String>,
    /// Shorten every delay that is longer than politeness and back-off allow to the delay after one request.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
struct UrisArgs {
    #[command(flatten)]
    queue: QueueArgs,
    /// Start after this cursor, which the previous page of the list printed.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of URIs to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct UriArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Absolute URI.
    #[arg(value_name = "URI")]
    uri: String,
}

/// Selection of URIs.
#[derive(Debug, Args)]
struct WhichArgs {
    /// Select URIs with this SURT prefix, such as 'http://(org,example,'.
    #[arg(long, value_name = "PREFIX")]
    surt: Option<String>,
    /// Select URIs that contain a match of this regular expression.
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Select URIs of this host, without its subdomains.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Select URIs with these fetch statuses: 404, 5xx, 500-599, -2; several are separated by commas.
    #[arg(long, value_name = "STATUS", allow_hyphen_values = true)]
    status: Option<String>,
    /// Select URIs in this state: their place, or the result of their last completed visit.
    #[arg(long, value_name = "STATE", value_parser = one_of(StateSelector::ALL.map(|one| (one, one.name()))))]
    state: Option<StateSelector>,
    /// Select URIs of this media type, such as text/html or image/*; no-type selects URIs without a media type.
    #[arg(long, visible_alias = "type", value_name = "TYPE")]
    media_type: Option<String>,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    target: JobTarget,
    #[command(flatten)]
    which: WhichArgs,
    /// Start after this cursor, which the previous page of the list printed.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of URIs to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct CountArgs {
    #[command(flatten)]
    target: JobTarget,
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Debug, Args)]
struct SweepArgs {
    #[command(flatten)]
    target: JobTarget,
    #[command(flatten)]
    which: WhichArgs,
    /// Carry out the command; without this, the URIs are only counted.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct PrecedenceArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Set the precedence of this URI.
    #[arg(
        long,
        value_name = "URI",
        conflicts_with = "queue",
        required_unless_present = "queue"
    )]
    uri: Option<String>,
    /// Set the precedence of this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Precedence from 0 (first) to 255; for a queue also `default`, the precedence in its settings.
    #[arg(value_name = "N|default", value_parser = number_or("default"))]
    precedence: NumberOr,
}

#[derive(Debug, Args)]
struct FloorArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Floor from 0 to 255; `none` lets queues of every precedence issue URIs.
    #[arg(value_name = "N|none", value_parser = number_or("none"))]
    floor: NumberOr,
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    #[command(flatten)]
    which: WhichArgs,
    /// Write an index (CDXJ) of the archived versions instead of JSON lines.
    #[arg(long, conflicts_with = "journal")]
    cdxj: bool,
    /// Write a recovery journal of Heritrix 3 instead of JSON lines.
    #[arg(long)]
    journal: bool,
    /// Write to this file instead of standard output; compressed with gzip if its name ends in `.gz`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Recovery journals, crawl logs or exports; plain or compressed with gzip. Pass all files of a crawl together: their order
    /// has no effect.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// URIs to fetch [default: URIs that the other crawl had not finished; the URIs it had finished count as done].
    #[arg(long, value_name = "WHAT")]
    include: Option<Include>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Repair the problems that can be repaired.
    #[arg(long)]
    repair: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Include {
    /// URIs that the other crawl had not finished; the others are left out and may be found again.
    Pending,
    /// All URIs.
    All,
}

/// A number, or the word for none.
#[derive(Clone, Copy, Debug)]
struct NumberOr(Option<u8>);

fn number_or(word: &'static str) -> impl Fn(&str) -> Result<NumberOr, String> + Clone {
    move |text| match text.parse() {
        Ok(number) => Ok(NumberOr(Some(number))),
        Err(_) if text == word => Ok(NumberOr(None)),
        Err(_) => Err(format!("expected a number from 0 to 255, or {word}")),
    }
}

/// Runs the command.
pub(crate) fn run(args: FrontierArgs) -> Result<u8> {
    let uri = |args: UriArgs, command: fn(String) -> Command| send(&args.target, command(args.uri));
    match args.command {
        FrontierCommand::Statistics(target) => send(&target, Command::Statistics),
        FrontierCommand::Queues(args) => {
            let command = Command::Queues {
                state: args.state,
                sort: args.sort,
                after: args.after,
                limit: args.limit,
            };
            send(&args.target, command)
        }
        FrontierCommand::Queue(QueueArgs { target, queue }) => {
            send(&target, Command::Queue { queue })
        }
        FrontierCommand::Uris(args) => {
            let command = Command::Uris {
                queue: args.queue.queue,
                after: args.after,
                limit: args.limit,
            };
            send(&args.queue.target, command)
        }
        FrontierCommand::Why(args) => uri(args, |uri| Command::Why { uri }),
        FrontierCommand::List(args) => {
            let command = Command::List {
                which: args.which.into(),
                after: args.after,
                limit: args.limit,
            };
            send(&args.target, command)
        }
        FrontierCommand::Count(args) => {
            let which = args.which.into();
            send(&args.target, Command::Count { which })
        }
        FrontierCommand::Delete(args) => sweep(args, "deleted", |which| Command::Delete { which }),
        FrontierCommand::Forget(args) => {
            sweep(args, "forgotten", |which| Command::Forget { which })
        }
        FrontierCommand::RemoveSeed(args) => uri(args, |uri| Command::RemoveSeed { uri }),
        FrontierCommand::Retire(args) => change(args, QueueAction::Retire),
        FrontierCommand::Unretire(args) => change(args, QueueAction::Unretire),
        FrontierCommand::Freeze(args) => change(args, QueueAction::Freeze),
        FrontierCommand::Thaw(args) => change(args, QueueAction::Thaw),
        FrontierCommand::Wake(WakeArgs { target, queue, .. }) => match queue {
            Some(queue) => change(QueueArgs { target, queue }, QueueAction::Wake),
            None => send(&target, Command::WakeOverlong),
        },
        FrontierCommand::Cancel(args) => uri(args, |uri| Command::Cancel { uri }),
        FrontierCommand::Force(args) => uri(args, |uri| Command::Force { uri }),
        FrontierCommand::Precedence(args) => precedence(args),
        FrontierCommand::Floor(args) => {
            let NumberOr(floor) = args.floor;
            send(&args.target, Command::Floor { floor })
        }
        FrontierCommand::Export(args) => export(args),
        FrontierCommand::Import(args) => {
            // The process that runs the job may have another working directory.
            let files = args.files.iter().map(std::path::absolute);
            let command = Command::Import {
                files: files.collect::<std::io::Result<_>>()?,
                done: match args.include {
                    None => DoneElsewhere::Known,
                    Some(Include::Pending) => DoneElsewhere::LeftOut,
                    Some(Include::All) => DoneElsewhere::Fetched,
                },
            };
            send(&args.target, command)
        }
        FrontierCommand::Check(args) => {
            let repair = args.repair;
            send(&args.target, Command::Check { repair })
        }
    }
}

fn change(QueueArgs { target, queue }: QueueArgs, action: QueueAction) -> Result<u8> {
    send(&target, Command::ChangeQueue { queue, action })
}

/// Counts the matching URIs. With `--yes` the command is carried out at once.
fn sweep(args: SweepArgs, done: &str, command: fn(UriSelection) -> Command) -> Result<u8> {
    let which = UriSelection::from(args.which);
    if args.yes || which.is_everything() {
        return send(&args.target, command(which));
    }
    let (meant, in_process) = match count(&args.target, Command::Count { which })? {
        Ok(counts) => counts,
        Err(code) => return Ok(code),
    };
    if args.target.json {
        terminal::outln!(
            "{}",
            serde_json::json!({ "answer": "would-mean", "meant": meant, "in_process": in_process })
        );
    } else {
        let stay = match in_process {
            0 => String::new(),
            some => format!(", {some} in process would stay"),
        };
        terminal::outln!("{meant} URIs would be {done}{stay}; run the command again with --yes");
    }
    Ok(exit::OK)
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn precedence(args: PrecedenceArgs) -> Result<u8> {
    let NumberOr(precedence) = args.precedence;
    let command = match (args.uri, args.queue, precedence) {
        (Some(uri), _, Some(precedence)) => Command::UriPrecedence { uri, precedence },
        (None, Some(queue), precedence) => Command::QueuePrecedence { queue, precedence },
        (_, _, _) => {
            eprintln!("opilio: `default` is only for queues; give a number for a URI");
            return Ok(exit::USAGE);
        }
    };
    send(&args.target, command)
}

fn export(args: ExportArgs) -> Result<u8> {
    let target = JobTarget {
        job: args.job,
        json: false,
    };
    let command = Command::Export {
        format: match (args.cdxj, args.journal) {
            (true, _) => ExportFormat::Cdxj,
            (_, true) => ExportFormat::Journal,
            _ => ExportFormat::JsonLines,
        },
        which: args.which.into(),
    };
    let Some(path) = args.output else {
        return send(&target, command);
    };
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(&path).with_context(cannot)?);
    let code = if path.extension().is_some_and(|ending| ending == "gz") {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        let code = send_to(&target, command, &mut packed)?;
        packed.finish().with_context(cannot)?;
        code
    } else {
        send_to(&target, command, &mut file)?
    };
    file.flush().with_context(cannot)?;
    Ok(code)
}

impl From<WhichArgs> for UriSelection {
    fn from(args: WhichArgs) -> UriSelection {
        UriSelection {
            surt: args.surt,
            regex: args.regex,
            host: args.host,
            status: args.status,
            state: args.state,
            media_type: args.media_type,
        }
    }
}
