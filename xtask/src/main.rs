//! `cargo xtask …`: development tasks that cargo alone cannot do, with one file for each command.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[cfg(unix)]
mod bench;
mod bindings;
mod check;
mod command;
mod contract;
mod debian;
mod docs;
mod documentation;
#[cfg(unix)]
mod examples;
mod fuzz;
mod judges;
mod measure;
mod package;
mod plugins;
mod registries;
mod repository;
mod sdks;

/// Tasks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Check formatting, lints, house rules and generated files, as CI does.
    Check,
    /// Run tests of the whole workspace, or a part of them: `test stories robots`.
    Test(check::TestOptions),
    /// Build and check the shipped plugins.
    Plugins(plugins::Options),
    /// Check the plugin contract against its published versions.
    Contract(contract::Options),
    /// Write the generated parts of the SDKs of C and Go from the contract.
    Bindings(bindings::Options),
    /// Build the packages of a release: .deb, .rpm and a tarball.
    Package(package::Options),
    /// Build the packages of the SDKs for the registries of Rust, Node and Python, in target/sdks.
    Sdks,
    /// Write the tables in docs/PROFILE.md from the code.
    Docs(docs::Options),
    /// Check Opilio's output with third-party tools, which are installed from package registries into target/judges.
    Judges(judges::Options),
    /// Build and test plugins in other languages: SDKs, templates, examples, and crawls with all of them.
    #[cfg(unix)]
    Examples(examples::Options),
    /// Fuzz extractors.
    Fuzz(fuzz::Options),
    /// Measure the quality of extraction and of revisit schedules.
    #[command(subcommand)]
    Measure(measure::Measure),
    /// Measure resource usage.
    #[cfg(unix)]
    #[command(subcommand)]
    Bench(bench::Bench),
}

#[expect(clippy::print_stderr, reason = "a command's error")]
fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Check => check::check(),
        Task::Test(options) => check::test(&options),
        Task::Plugins(options) => plugins::run(&options),
        Task::Contract(options) => contract::run(&options),
        Task::Bindings(options) => bindings::run(&options),
        Task::Package(options) => package::run(&options),
        Task::Sdks => sdks::run(),
        Task::Docs(options) => docs::run(&options),
        Task::Judges(options) => judges::run(&options),
        #[cfg(unix)]
        Task::Examples(options) => examples::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Measure(measure) => measure::run(&measure),
        #[cfg(unix)]
        Task::Bench(bench) => bench::run(bench),
    }
}
