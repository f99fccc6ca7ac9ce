//! `opilio frontier`: what waits to be fetched, why, and in which order; and the hand that changes it.

pub(crate) mod show;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use flate2::{Compression, write::GzEncoder};
use opilio_crawl::control::{
    Command, DoneElsewhere, ExportFormat, QueueSort, QueueStateFilter, Which,
};

use crate::exit;
use crate::job::Asked;
use crate::job::ask::{ask, ask_to, count};
use crate::terminal;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    command: FrontierCommand,
}

#[derive(Debug, Subcommand)]
enum FrontierCommand {
    /// Show the crawl in numbers.
    Statistics(Asked),
    /// List queues by name.
    Queues(QueuesArgs),
    /// Show everything about one queue.
    Queue(QueueArgs),
    /// List the URIs of a queue in the order in which they would go.
    Uris(UrisArgs),
    /// Say why a URI was, or was not, fetched.
    Why(UriArgs),
    /// List URIs by SURT prefix and regular expression.
    List(ListArgs),
    /// Count URIs by SURT prefix and regular expression.
    Count(CountArgs),
    /// Take URIs out of their queues and keep them known, so that they are not found again.
    Delete(SweepArgs),
    /// Remove URIs, so that they may be found again.
    Forget(SweepArgs),
    /// Remove a seed, its prefix from the scope, and what waits that it alone brought in.
    RemoveSeed(UriArgs),
    /// A queue gives no URI any more, but takes them.
    Retire(QueueArgs),
    /// A retired queue gives URIs again; one retired by its budget needs a larger budget.
    Unretire(QueueArgs),
    /// A queue gives no URI for a while.
    Freeze(QueueArgs),
    /// A frozen queue gives URIs again.
    Thaw(QueueArgs),
    /// End a queue's rest or back-off, or all that are too long since a clock was ahead.
    Wake(WakeArgs),
    /// Break off the fetch of a URI; it counts as failed, with status -7000.
    Cancel(UriArgs),
    /// Fetch a URI now, even if it is known, done or out of scope.
    Force(UriArgs),
    /// Change the precedence of a URI or a queue; lower numbers go first.
    Precedence(PrecedenceArgs),
    /// Queues of this precedence or a higher number give no URI, as long as the crawl runs.
    Floor(FloorArgs),
    /// Write all URIs with what is known of them.
    Export(ExportArgs),
    /// Take over the URIs of another crawl: a recovery journal, a crawl log or an export.
    Import(ImportArgs),
    /// Verify every invariant of the store of a job that does not run.
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct QueuesArgs {
    #[command(flatten)]
    asked: Asked,
    /// Only those in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// In this order: by name, those with most URIs first, or those that can give a URI first.
    #[arg(long, value_name = "ORDER", default_value = "name")]
    sort: Sort,
    /// From the queue behind this one on.
    #[arg(long, value_name = "QUEUE", conflicts_with = "sort")]
    after: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct QueueArgs {
    #[command(flatten)]
    asked: Asked,
    /// The queue's name, as `opilio frontier queues` shows it.
    #[arg(value_name = "QUEUE")]
    queue: String,
}

#[derive(Debug, Args)]
struct WakeArgs {
    #[command(flatten)]
    asked: Asked,
    /// The queue's name, as `opilio frontier queues` shows it.
    #[arg(
        value_name = "QUEUE",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    queue: Option<String>,
    /// All queues that rest longer than politeness and back-off could have them; they rest as after one request.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
struct UrisArgs {
    #[command(flatten)]
    queue: QueueArgs,
    /// From the page behind this cursor on.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct UriArgs {
    #[command(flatten)]
    asked: Asked,
    /// The URI.
    #[arg(value_name = "URI")]
    uri: String,
}

/// Which URIs.
#[derive(Debug, Args)]
struct WhichArgs {
    /// Those that begin with a SURT prefix, such as 'http://(org,example,'.
    #[arg(long, value_name = "PREFIX")]
    surt: Option<String>,
    /// Those in which a regular expression is found.
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    which: WhichArgs,
    /// From the page behind this cursor on.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
struct CountArgs {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Debug, Args)]
struct SweepArgs {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    which: WhichArgs,
    /// Do it; without this they are only counted.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct PrecedenceArgs {
    #[command(flatten)]
    asked: Asked,
    /// Of this URI.
    #[arg(
        long,
        value_name = "URI",
        conflicts_with = "queue",
        required_unless_present = "queue"
    )]
    uri: Option<String>,
    /// Of this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// 0 to 255, 0 first; or, for a queue, `default`: what its settings say.
    #[arg(value_name = "N|default", value_parser = number_or("default"))]
    precedence: NumberOr,
}

#[derive(Debug, Args)]
struct FloorArgs {
    #[command(flatten)]
    asked: Asked,
    /// 0 to 255; or `none`: queues of every precedence give.
    #[arg(value_name = "N|none", value_parser = number_or("none"))]
    floor: NumberOr,
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// The job's directory.
    #[arg(value_name = "JOB")]
    job: PathBuf,
    #[command(flatten)]
    which: WhichArgs,
    /// An index of the archived versions instead of JSON lines.
    #[arg(long, conflicts_with = "journal")]
    cdxj: bool,
    /// A recovery journal of Heritrix 3 instead of JSON lines.
    #[arg(long)]
    journal: bool,
    /// Into this file instead of standard output; compressed with gzip where its name ends in `.gz`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    asked: Asked,
    /// A recovery journal, a crawl log, or an export; compressed or not.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What is fetched here: what the other crawl had not finished, or everything. What it had finished counts as done
    /// where neither is said.
    #[arg(long, value_name = "WHAT")]
    include: Option<Include>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    asked: Asked,
    /// Repair what can be.
    #[arg(long)]
    repair: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Include {
    /// What the other crawl had not finished; the rest may be found again.
    Pending,
    /// Everything.
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Ready,
    InProcess,
    Snoozed,
    Inactive,
    Ineligible,
    Retired,
    Frozen,
    Exhausted,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    Name,
    Size,
    Due,
}

impl From<Sort> for QueueSort {
    fn from(sort: Sort) -> QueueSort {
        match sort {
            Sort::Name => QueueSort::Name,
            Sort::Size => QueueSort::Size,
            Sort::Due => QueueSort::Due,
        }
    }
}

/// A number, or the word that stands for none.
#[derive(Clone, Copy, Debug)]
struct NumberOr(Option<u8>);

fn number_or(word: &'static str) -> impl Fn(&str) -> Result<NumberOr, String> + Clone {
    move |text| match text.parse() {
        Ok(number) => Ok(NumberOr(Some(number))),
        Err(_) if text == word => Ok(NumberOr(None)),
        Err(_) => Err(format!("write a number from 0 to 255, or {word}")),
    }
}

/// Runs the command.
pub(crate) fn run(args: FrontierArgs) -> Result<u8> {
    let queue =
        |args: QueueArgs, command: fn(String) -> Command| ask(&args.asked, command(args.queue));
    let uri = |args: UriArgs, command: fn(String) -> Command| ask(&args.asked, command(args.uri));
    match args.command {
        FrontierCommand::Statistics(asked) => ask(&asked, Command::Statistics),
        FrontierCommand::Queues(args) => {
            let command = Command::Queues {
                state: args.state.map(QueueStateFilter::from),
                sort: args.sort.into(),
                after: args.after,
                limit: args.limit,
            };
            ask(&args.asked, command)
        }
        FrontierCommand::Queue(args) => queue(args, |queue| Command::Queue { queue }),
        FrontierCommand::Uris(args) => {
            let command = Command::Uris {
                queue: args.queue.queue,
                after: args.after,
                limit: args.limit,
            };
            ask(&args.queue.asked, command)
        }
        FrontierCommand::Why(args) => uri(args, |uri| Command::Why { uri }),
        FrontierCommand::List(args) => {
            let command = Command::List {
                which: args.which.into(),
                after: args.after,
                limit: args.limit,
            };
            ask(&args.asked, command)
        }
        FrontierCommand::Count(args) => {
            let which = args.which.into();
            ask(&args.asked, Command::Count { which })
        }
        FrontierCommand::Delete(args) => sweep(args, "deleted", |which| Command::Delete { which }),
        FrontierCommand::Forget(args) => {
            sweep(args, "forgotten", |which| Command::Forget { which })
        }
        FrontierCommand::RemoveSeed(args) => uri(args, |uri| Command::RemoveSeed { uri }),
        FrontierCommand::Retire(args) => queue(args, |queue| Command::Retire { queue }),
        FrontierCommand::Unretire(args) => queue(args, |queue| Command::Unretire { queue }),
        FrontierCommand::Freeze(args) => queue(args, |queue| Command::Freeze { queue }),
        FrontierCommand::Thaw(args) => queue(args, |queue| Command::Thaw { queue }),
        FrontierCommand::Wake(args) => {
            let command = args.queue.map(|queue| Command::Wake { queue });
            ask(&args.asked, command.unwrap_or(Command::WakeOverlong))
        }
        FrontierCommand::Cancel(args) => uri(args, |uri| Command::Cancel { uri }),
        FrontierCommand::Force(args) => uri(args, |uri| Command::Force { uri }),
        FrontierCommand::Precedence(args) => precedence(args),
        FrontierCommand::Floor(args) => {
            let NumberOr(floor) = args.floor;
            ask(&args.asked, Command::Floor { floor })
        }
        FrontierCommand::Export(args) => export(args),
        FrontierCommand::Import(args) => {
            let command = Command::Import {
                // The process that runs the job may stand elsewhere.
                file: std::path::absolute(&args.file)?,
                done: match args.include {
                    None => DoneElsewhere::Known,
                    Some(Include::Pending) => DoneElsewhere::LeftOut,
                    Some(Include::All) => DoneElsewhere::Fetched,
                },
            };
            ask(&args.asked, command)
        }
        FrontierCommand::Check(args) => {
            let repair = args.repair;
            ask(&args.asked, Command::Check { repair })
        }
    }
}

/// Counts; with `--yes` does it at once.
fn sweep(args: SweepArgs, done: &str, command: fn(Which) -> Command) -> Result<u8> {
    let which = Which::from(args.which);
    if args.yes || which == Which::default() {
        return ask(&args.asked, command(which));
    }
    let (meant, in_process) = match count(&args.asked, Command::Count { which })? {
        Ok(counts) => counts,
        Err(code) => return Ok(code),
    };
    if args.asked.json {
        terminal::outln!(
            "{}",
            serde_json::json!({ "answer": "would-mean", "meant": meant, "in_process": in_process })
        );
    } else {
        let stay = match in_process {
            0 => String::new(),
            some => format!(", {some} in process would stay"),
        };
        terminal::outln!("{meant} URIs would be {done}{stay}; the same with --yes does it");
    }
    Ok(exit::OK)
}

#[expect(
    clippy::print_stderr,
    reason = "faults are for the person at the terminal"
)]
fn precedence(args: PrecedenceArgs) -> Result<u8> {
    let NumberOr(precedence) = args.precedence;
    let command = match (args.uri, args.queue, precedence) {
        (Some(uri), _, Some(precedence)) => Command::UriPrecedence { uri, precedence },
        (None, Some(queue), precedence) => Command::QueuePrecedence { queue, precedence },
        (_, _, _) => {
            eprintln!("opilio: a URI has no default precedence to go back to: give a number");
            return Ok(exit::USAGE);
        }
    };
    ask(&args.asked, command)
}

fn export(args: ExportArgs) -> Result<u8> {
    let asked = Asked {
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
        return ask(&asked, command);
    };
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(&path).with_context(cannot)?);
    let code = if path.extension().is_some_and(|ending| ending == "gz") {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        let code = ask_to(&asked, command, &mut packed)?;
        packed.finish().with_context(cannot)?;
        code
    } else {
        ask_to(&asked, command, &mut file)?
    };
    file.flush().with_context(cannot)?;
    Ok(code)
}

impl From<WhichArgs> for Which {
    fn from(args: WhichArgs) -> Which {
        Which {
            surt: args.surt,
            regex: args.regex,
        }
    }
}

impl From<State> for QueueStateFilter {
    fn from(state: State) -> QueueStateFilter {
        match state {
            State::Ready => QueueStateFilter::Ready,
            State::InProcess => QueueStateFilter::InProcess,
            State::Snoozed => QueueStateFilter::Snoozed,
            State::Inactive => QueueStateFilter::Inactive,
            State::Ineligible => QueueStateFilter::Ineligible,
            State::Retired => QueueStateFilter::Retired,
            State::Frozen => QueueStateFilter::Frozen,
            State::Exhausted => QueueStateFilter::Exhausted,
        }
    }
}
