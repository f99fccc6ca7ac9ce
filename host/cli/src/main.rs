//! The `opilio` command.

mod crawl;
mod demo;
mod frontier;
mod hangup;
mod job;
mod judge;
mod live;
mod manual;
mod package;
mod plugin;
mod profile;
mod robots;
mod serve;
mod simulate;
mod summary;
mod telemetry;
mod terminal;
mod token;
mod uri;
mod warc;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use opilio_crawl::Share;

use crate::telemetry::{LogFormat, Telemetry};

/// Most of what a crawl does is to make and drop small things on many threads. Measured in docs/PERFORMANCE.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit codes, as `opilio --help` documents them.
mod exit {
    /// All went well.
    pub(crate) const OK: u8 = 0;
    /// It ran into something it cannot go on with; nothing is lost.
    pub(crate) const FAILED: u8 = 1;
    /// The command line, the profile or a component is at fault; nothing was created.
    pub(crate) const USAGE: u8 = 2;
    /// Another process has the job; nothing was done.
    pub(crate) const IN_USE: u8 = 3;
    /// A limit of the profile was reached before everything was fetched.
    pub(crate) const LIMIT: u8 = 4;
}

/// A web-archive crawler whose heuristics are WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "opilio",
    version,
    about,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done or stopped politely, 1 could not go on (nothing is lost), 2 faults in the command line, the profile
or a component (nothing was created), 3 another process has the job (nothing was done), 4 a limit of the profile was
reached before everything was fetched (the same command goes on), 130 ended at once by a third Ctrl-C."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How diagnostics on standard error are written; RUST_LOG says which.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Crawl by a profile, or just a URL.
    ///
    /// The first Ctrl-C ends politely: what is being fetched is finished, state is saved, WARC files are closed. A second
    /// cuts short what is being fetched, a third ends at once. The same command on the same job directory goes on where it stopped.
    Crawl(CrawlArgs),
    /// Crawl a small changing web on this machine, to see what Opilio does.
    Demo(DemoArgs),
    /// Crawl the demo web and judge the archive against what must be in it.
    Selftest(DemoArgs),
    /// Show what Opilio makes of URIs: how they are normalised or why refused, what they count as, where they queue.
    Uri(uri::UriArgs),
    /// Look after jobs: list, new, start, status, pause, resume, stop, checkpoint, restore, log.
    Job(job::JobArgs),
    /// Look into a job's frontier, and change what is in it; while it runs, too.
    Frontier(frontier::FrontierArgs),
    /// Show what a robots.txt says about URIs: whether they may be fetched, and by which line.
    Robots(robots::RobotsArgs),
    /// Check a profile, or show what it makes of a URI.
    Profile(profile::ProfileArgs),
    /// Look into archives: verify, list and print records; take out what must go.
    Warc(warc::WarcArgs),
    /// Put archives, their index and a list of pages into one WACZ file.
    Package(package::PackageArgs),
    /// Crawl a synthetic web in virtual time, to see what a profile's waits would come to.
    Simulate(simulate::SimulateArgs),
    /// Print a script that completes opilio's commands, for a shell to read.
    Completions(manual::CompletionsArgs),
    /// Print the manual page of opilio, or write those of all its commands.
    Man(manual::ManArgs),
    /// Run the daemon: many jobs, their API and the web console.
    Serve(serve::ServeArgs),
    /// Make, list and revoke tokens: who may use the daemon.
    Token(token::TokenArgs),
    /// Write plugins: make, build, check, test and try them; see who they are and where they come from.
    Plugin(plugin::PluginArgs),
}

#[derive(Debug, Args)]
struct CrawlArgs {
    /// A profile (TOML file, or the name of one that ships), or a URL to crawl with the default profile.
    #[arg(value_name = "PROFILE|URL")]
    what: String,
    /// A seed beside those of the profile; may be given often.
    #[arg(long, value_name = "URL")]
    seed: Vec<String>,
    /// The job's directory [default: jobs/NAME].
    #[arg(long, value_name = "DIR")]
    job: Option<PathBuf>,
    /// A page that says who crawls and why, in place of the profile's.
    #[arg(long, value_name = "URL")]
    contact_url: Option<String>,
    /// Begin paused: nothing is fetched before `opilio job resume`.
    #[arg(long)]
    paused: bool,
    /// What the daemon lets it take of what all crawls have together, to begin with.
    #[arg(long, hide = true, value_name = "JSON", value_parser = crawl::share)]
    share: Option<Share>,
    #[command(flatten)]
    display: DisplayArgs,
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// The job's directory [default: a new one in the system's temporary directory].
    #[arg(long, value_name = "DIR")]
    job: Option<PathBuf>,
    #[command(flatten)]
    display: DisplayArgs,
}

#[derive(Clone, Copy, Debug, Args)]
struct DisplayArgs {
    /// Say nothing but what went wrong.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print progress, notes and summary as JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// By this the program, run as its own child, is told to compile components; no command of people's.
const COMPILER: &str = "compile-components";

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == COMPILER)
    {
        return opilio_sandbox::run_compiler();
    }
    if let Some(program) = own_program() {
        opilio_sandbox::compile_in_child(program, COMPILER);
    }
    let cli = Cli::parse();
    let telemetry = Telemetry::start(cli.log_format);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(problem) => {
            return fail(&anyhow::Error::new(problem).context("cannot start the async runtime"));
        }
    };
    let result = runtime.block_on(async {
        take_no_signal_for_large_files();
        match cli.command {
            Command::Crawl(args) => crawl::run(args, &telemetry).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Selftest(args) => demo::selftest(args).await,
            Command::Job(args) => job::run(args).await,
            Command::Serve(args) => serve::run(args, &telemetry).await,
            Command::Token(args) => token::run(args),
            Command::Frontier(args) => frontier::run(args),
            Command::Uri(args) => uri::run(&args),
            Command::Robots(args) => robots::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Warc(args) => warc::run(&args),
            Command::Package(args) => package::run(&args),
            Command::Completions(args) => manual::completions::<Cli>(&args),
            Command::Man(args) => manual::man::<Cli>(&args),
            Command::Plugin(args) => plugin::run(args).await,
            Command::Simulate(args) => simulate::run(&args),
        }
    });
    telemetry.finish();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(problem) => fail(&problem),
    }
}

/// Has a file that reaches its limit (`ulimit -f`) be an error that is told, as a full disk is: the signal SIGXFSZ, which
/// nobody handles otherwise, would end the process without a word.
fn take_no_signal_for_large_files() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        const SIGXFSZ: i32 = 25;
        if let Err(problem) = signal(SignalKind::from_raw(SIGXFSZ)) {
            tracing::debug!(%problem, "a file that is too large will end the process");
        }
    }
}

/// The file that this process runs; on Linux by a name that holds when another version has taken its place.
fn own_program() -> Option<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    match own.exists() {
        true => Some(own),
        false => std::env::current_exe().ok(),
    }
}

#[expect(clippy::print_stderr, reason = "the last word of the process")]
fn fail(problem: &anyhow::Error) -> ExitCode {
    let remedy = opilio_crawl::remedy(problem.as_ref()).map(|remedy| format!("; {remedy}"));
    eprintln!("opilio: {problem:#}{}", remedy.unwrap_or_default());
    ExitCode::from(exit::FAILED)
}
