//! The `opilio` command.

mod crawl;
mod daemon_config;
mod demo;
mod doctor;
mod exit;
mod figures;
mod frontier;
mod hangup;
mod job;
mod job_directory;
mod judge;
mod live;
#[cfg(test)]
mod logged_commands;
mod manual;
#[cfg(test)]
mod named_commands;
mod named_values;
mod node;
mod package;
mod plugin;
mod preparing;
mod profile;
mod robots;
mod serve;
mod simulate;
mod summary;
mod telemetry;
mod terminal;
mod token;
mod uri;
mod usage_error;
mod warc;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use opilio_crawl::Share;

use crate::live::DisplayArgs;
use crate::telemetry::{LogFormat, Telemetry};
use crate::usage_error::UsageError;

/// The global allocator. A crawl mostly allocates and frees small objects on many threads. Measured in docs/PERFORMANCE.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Web crawler for archives, with crawl policies as WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(
    name = "opilio",
    version,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done, or stopped on request; 1 failed (no data is lost); 2 error in the command line, the profile or a
component, or a file named on the command line cannot be read or has another format (nothing was created); 3 another process
runs the job (nothing was done); 4 a limit of the profile was reached before everything was fetched (the same command
resumes); 5 the crawl is finished, and none of its seeds could be fetched; 6 the crawl has ended, and files were not handed
over (`opilio job handover JOB` does so); 130 ended by a third Ctrl-C."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Format of the diagnostics on standard error; RUST_LOG selects their level.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Crawl with a profile, crawl one URL, or resume a job.
    ///
    /// The first Ctrl-C stops the crawl: current fetches finish, state is saved, and WARC files are closed. A second Ctrl-C
    /// cuts the current fetches short. A third exits at once. The same command on the same job directory resumes the crawl.
    Crawl(CrawlArgs),
    /// Crawl a small changing web on this machine, as a demonstration.
    Demo(DemoArgs),
    /// Crawl the demo web and check the archive record by record.
    Selftest(DemoArgs),
    /// Show the forms of URIs: normalised, canonical, SURT, domain and queue; or why a URI is refused.
    Uri(uri::UriArgs),
    /// Manage jobs: create, start, inspect, configure, stop and restore them.
    Job(job::JobArgs),
    /// Inspect and edit the frontier of a job, also while the job runs.
    Frontier(frontier::FrontierArgs),
    /// Check URIs against a robots.txt file.
    Robots(robots::RobotsArgs),
    /// Check, explain, create and import profiles.
    Profile(profile::ProfileArgs),
    /// Check, list, print, index and redact archives.
    Warc(warc::WarcArgs),
    /// Pack archives, their index and a list of pages into one WACZ file.
    Package(package::PackageArgs),
    /// Simulate a crawl of a synthetic web in virtual time.
    Simulate(simulate::SimulateArgs),
    /// Print a completion script for a shell.
    Completions(manual::CompletionsArgs),
    /// Print the manual page of opilio, or write the pages of all commands.
    Man(manual::ManArgs),
    /// Run the daemon: many jobs, their REST API and the web console.
    Serve(serve::ServeArgs),
    /// Check limits, disks, DNS, clock, certificates and the daemon of this machine, with remedies.
    Doctor(doctor::DoctorArgs),
    /// List, drain and remove the nodes of a cluster.
    Node(node::NodeArgs),
    /// Create, list and revoke access tokens of the daemon.
    Token(token::TokenArgs),
    /// Develop plugins, and manage the plugin store.
    Plugin(plugin::PluginArgs),
}

impl Command {
    /// Returns the form in which the command shows progress; `None` for the daemon, which has a log.
    fn display(&self) -> Option<DisplayArgs> {
        match self {
            Command::Crawl(args) => Some(args.display),
            Command::Demo(args) | Command::Selftest(args) => Some(args.display),
            Command::Serve(_) => None,
            _ => Some(DisplayArgs {
                quiet: false,
                json: false,
            }),
        }
    }
}

#[derive(Debug, Args)]
struct CrawlArgs {
    /// Profile (TOML file, or name of a saved or shipped profile); URL to crawl with the default profile; or job to resume, by its
    /// directory or its name in the folder `jobs`. Without it, --cluster-job joins a crawl that another node has started.
    #[arg(
        value_name = "PROFILE|URL|JOB",
        required_unless_present = "cluster_job"
    )]
    what: Option<String>,
    /// Additional seed; may be repeated.
    #[arg(long, value_name = "URL")]
    seed: Vec<String>,
    /// Directory of the job [default: jobs/NAME].
    #[arg(long, value_name = "DIR")]
    job: Option<PathBuf>,
    /// Page that says who crawls and why; replaces operator.contact-url of the profile.
    #[arg(long, value_name = "URL")]
    contact_url: Option<String>,
    /// Start paused: fetch nothing before `opilio job resume`.
    #[arg(long)]
    paused: bool,
    /// Initial share of the bandwidth and connections of this machine.
    #[arg(long, hide = true, value_name = "JSON", value_parser = crawl::share)]
    share: Option<Share>,
    #[command(flatten)]
    nodes: NodesArgs,
    #[command(flatten)]
    display: DisplayArgs,
}

/// Nodes that share a crawl.
#[derive(Clone, Debug, Default, Args)]
struct NodesArgs {
    /// Share the crawl with other nodes of a cluster, under this name. Start it on one node with a profile and --nodes. On the
    /// others the name is enough: they fetch profile, seeds and components from the cluster.
    #[arg(long, value_name = "NAME")]
    cluster_job: Option<String>,
    /// Nodes that share the crawl, including this one. Each node begins one part of the sites; the part has the name of the node.
    #[arg(
        long,
        value_name = "NODE,NODE",
        value_delimiter = ',',
        requires = "cluster_job"
    )]
    nodes: Vec<String>,
    /// Number of parts, if it is larger than the number of nodes. The further parts are named part-1, part-2 … and begin with
    /// --take-over.
    #[arg(long, value_name = "N", requires = "nodes")]
    parts: Option<usize>,
    /// Take over the part of a node that is gone, or begin a part that no node has. The newest snapshot of the part goes into a new
    /// job (--job). Needs checkpoint.publish-every in the profile of the crawl.
    #[arg(long, value_name = "PART", requires = "cluster_job")]
    take_over: Option<String>,
    /// Configuration file whose [cluster] names this node and the NATS servers [default: opilio.toml].
    #[arg(long, value_name = "FILE", requires = "cluster_job")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// Directory of the job [default: a new directory in the system's temporary directory].
    #[arg(long, value_name = "DIR")]
    job: Option<PathBuf>,
    #[command(flatten)]
    display: DisplayArgs,
}

/// The argument with which the program starts itself to compile components in a child process. It is not a command for users.
const COMPILER: &str = "compile-components";

/// Switches off transparent huge pages. A huge page is resident as a whole even if the allocator uses only a part of it. In the
/// crawl of docs/PERFORMANCE.md, this saves 40 of 230 MB at the same processor time.
#[cfg(target_os = "linux")]
fn without_huge_pages() {
    // SAFETY: the call changes no memory, only the size of later pages. A kernel without this option returns an error.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == COMPILER) {
        return compile_components(arguments.next());
    }
    #[cfg(target_os = "linux")]
    without_huge_pages();
    if let Some(program) = own_program() {
        opilio_sandbox::compile_in_child(program, COMPILER);
    }
    let cli = Cli::parse();
    let telemetry = Telemetry::start(cli.log_format);
    if let Some(display) = cli.command.display() {
        preparing::show(display);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(problem) => {
            return fail(&anyhow::Error::new(problem).context("cannot start the async runtime"));
        }
    };
    let result = runtime.block_on(async {
        ignore_signal_for_large_files();
        match cli.command {
            Command::Crawl(args) => crawl::run(args, &telemetry).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Selftest(args) => demo::selftest(args).await,
            Command::Job(args) => job::run(args).await,
            Command::Serve(args) => serve::run(args, &telemetry).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Node(args) => node::run(args).await,
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

/// Compiles components for the process that started this one. Compiled functions are kept in the directory `cache`.
fn compile_components(cache: Option<OsString>) -> ExitCode {
    // The handler of the signal can be set only within a runtime. The runtime has no other use here.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let _entered = runtime.as_ref().ok().map(|runtime| {
        let entered = runtime.enter();
        ignore_signal_for_large_files();
        entered
    });
    opilio_sandbox::run_compiler(cache)
}

/// Ignores the signal SIGXFSZ, so that a file at its size limit (`ulimit -f`) causes an error like a full disk. The signal would
/// otherwise end the process without a message.
fn ignore_signal_for_large_files() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        const SIGXFSZ: i32 = 25;
        if let Err(problem) = signal(SignalKind::from_raw(SIGXFSZ)) {
            tracing::debug!(%problem, "a file that is too large will end the process");
        }
    }
}

/// Returns the program file of this process. On Linux the name stays valid after another version has replaced the file.
fn own_program() -> Option<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    match own.exists() {
        true => Some(own),
        false => std::env::current_exe().ok(),
    }
}

#[expect(clippy::print_stderr, reason = "the process ends with this message")]
fn fail(problem: &anyhow::Error) -> ExitCode {
    let remedy = opilio_crawl::remedy(problem.as_ref()).map(|remedy| format!("; {remedy}"));
    eprintln!("opilio: {problem:#}{}", remedy.unwrap_or_default());
    let is_usage = is_about_name(problem)
        || problem.is::<UsageError>()
        || problem.is::<opilio_console::ConfigError>();
    ExitCode::from(match is_usage {
        true => exit::USAGE,
        false => exit::FAILED,
    })
}

/// Returns `true` for errors of the command line about names: a job or profile cannot have the given name, or does not exist.
fn is_about_name(problem: &anyhow::Error) -> bool {
    use opilio_console::{JobsFolderError as Job, ProfileStoreError as Profile};
    let of_job = problem.downcast_ref::<Job>();
    let of_profile = problem.downcast_ref::<Profile>();
    matches!(of_job, Some(Job::Name(_) | Job::Unknown(_) | Job::Taken(_)))
        || matches!(
            of_profile,
            Some(
                Profile::Name(_)
                    | Profile::Shipped(_)
                    | Profile::Unknown { .. }
                    | Profile::Version { .. }
                    | Profile::Taken(_)
            )
        )
}
