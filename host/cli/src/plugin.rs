//! `opilio plugin`: tools for authors of plugins, from an empty folder to the effect of a new version on a real archive. Every
//! command runs components in the same sandbox as a crawl.

mod answer;
mod bench;
mod build;
mod check;
mod component_parts;
mod diff;
mod documents;
mod fault;
mod inspect;
mod new;
mod page;
mod replace;
mod replay;
mod run;
mod sdk;
mod settings_table;
mod sources;
mod store;
mod template;
mod test;
mod trial;
mod watch;
mod workbench;

use std::io::{self, Write};

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use opilio_sandbox::spawn_lane;

use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
PLUGIN is `builtin:NAME` (or just NAME) for a shipped plugin, the path of a component (`./p.wasm`, or `./p.wasm#name` if the
component holds several plugins), or the folder of a built project.

Exit codes: 0 done without findings, 1 findings (a failed check or case, a difference, an error of the plugin), 2 error in the
command line, or the command failed.")]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// Create the project of a new plugin: code, settings, a case, a README.
    New(new::NewArgs),
    /// Build the project of a plugin, in any supported language, into a component.
    Build(build::BuildArgs),
    /// Write the SDK of this program into a project, in place of an older one.
    Sdk(sdk::SdkArgs),
    /// Show the contents of a component: plugins, kinds, imports, size, settings.
    Inspect(inspect::InspectArgs),
    /// Check a component: contract, imports, size, settings schema, same answers to the same calls.
    Check(check::CheckArgs),
    /// Run the cases of a plugin.
    Test(test::TestArgs),
    /// Build, test and try a plugin after every change of its project.
    Watch(watch::WatchArgs),
    /// Run a plugin on a file, a URL or an archive.
    Run(run::RunArgs),
    /// Compare two versions of a plugin on an archive.
    Diff(diff::DiffArgs),
    /// Measure a plugin, or compare two plugins.
    Bench(bench::BenchArgs),
    /// Repeat recorded calls.
    Replay(replay::ReplayArgs),
    /// Replace a plugin of a job, also while the job runs.
    Replace(replace::ReplaceArgs),
    #[command(flatten)]
    Store(store::StoreCommand),
}

/// Runs the command.
///
/// # Errors
/// Fails if the answer could not be written. Usage errors are printed on standard error.
pub(crate) async fn run(args: PluginArgs) -> Result<u8> {
    // Guests block, and need a larger stack than the main thread may have.
    let runtime = tokio::runtime::Handle::current();
    let lane = spawn_lane("plugin", move || match args.command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Build(args) => build::run(&args),
        PluginCommand::Sdk(args) => sdk::run(&args),
        PluginCommand::Inspect(args) => inspect::run(&args),
        PluginCommand::Check(args) => check::run(&args),
        PluginCommand::Test(args) => test::run(&args),
        PluginCommand::Watch(args) => watch::run(&args, &runtime),
        PluginCommand::Run(args) => run::run(&args, &runtime),
        PluginCommand::Diff(args) => diff::run(&args, &runtime),
        PluginCommand::Bench(args) => bench::run(&args, &runtime),
        PluginCommand::Replay(args) => replay::run(&args),
        PluginCommand::Replace(args) => replace::run(&args),
        PluginCommand::Store(command) => store::run(command),
    });
    let lane = lane.context("cannot start a thread for plugins")?;
    let done = tokio::task::spawn_blocking(move || lane.join()).await?;
    match done.map_err(|_| anyhow!("the command panicked"))? {
        Err(problem) if terminal::is_broken_pipe(&problem) => Ok(exit::OK),
        Err(problem) => {
            note(&format!("opilio: {problem:#}"));
            Ok(exit::USAGE)
        }
        Ok(code) => Ok(code),
    }
}

/// Writes a text to standard output in one piece.
fn say(text: &str) -> Result<()> {
    let text = terminal::lines(text);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write the answer")
}

/// Prints a note on standard error, apart from the answer.
#[expect(clippy::print_stderr, reason = "for the person at the terminal")]
fn note(text: &str) {
    eprintln!("{}", terminal::lines(text));
}

/// Formats rows in columns; the last column is not padded. Control characters become blanks. Further lines of a row's last cell
/// are below its first line.
fn table(rows: &[Vec<String>], indent: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let chars = |cell: &String| cell.chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter(|row| row.len() > column + 1);
            cells.map(|row| chars(&row[column])).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (column, cell) in row.iter().enumerate() {
            if column + 1 < row.len() {
                line.push_str(&terminal::line(cell));
                line.push_str(&" ".repeat(widths[column].saturating_sub(chars(cell)) + 2));
                continue;
            }
            let below = format!("\n{}", " ".repeat(chars(&line)));
            let parts: Vec<String> = cell.lines().map(terminal::line).collect();
            line.push_str(&parts.join(&below));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a number with its noun.
fn count(n: u64, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}
