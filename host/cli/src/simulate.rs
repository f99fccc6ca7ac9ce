//! `opilio simulate`: a crawl of a synthetic web in virtual time, comparisons of profiles, and scenarios fitted to a crawl's log.

mod compare;
mod fit;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use opilio_crawl::CrawlError;
use opilio_profile::Profile;
use opilio_simulate::{
    Report, Scenario, ScenarioChanges, Simulation, SimulationError, freshness_over_time,
    waits_by_rate,
};

use crate::crawl::component_cache;
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    command: Option<SimulateCommand>,
    /// Scenario: TOML file, or name of a shipped scenario.
    #[arg(value_name = "SCENARIO", required = true)]
    scenario: Option<String>,
    /// Profile: TOML file, or name of a saved or shipped profile.
    #[arg(long, value_name = "PROFILE", default_value = "continuous")]
    profile: String,
    /// Seed of the random numbers; another seed makes another web of the same kind.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    crawled: Crawled,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Draw freshness over time, and waits against true rates, into this folder as SVG.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum SimulateCommand {
    /// Run several profiles on the same webs and compare the results.
    Compare(compare::CompareArgs),
    /// Create a scenario from a crawl log, with the same number of pages and the same rates of change.
    Fit(fit::FitArgs),
    /// Print the JSON Schema of scenarios for editors.
    Schema,
}

/// Duration of the simulation, and number of visits.
#[derive(Clone, Copy, Debug, Args)]
struct Crawled {
    /// Whole time in days; replaces the value of the scenario.
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    days: Option<f64>,
    /// Time at the beginning that is not measured, in days; replaces the value of the scenario.
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    warm_up: Option<f64>,
    /// Visits per page and day; replaces the value of the scenario.
    #[arg(long, value_name = "VISITS", allow_negative_numbers = true)]
    budget: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs) -> Result<u8> {
    match &args.command {
        Some(SimulateCommand::Compare(args)) => compare::run(args),
        Some(SimulateCommand::Fit(args)) => fit::run(args),
        Some(SimulateCommand::Schema) => {
            terminal::outln!("{:#}", Scenario::schema());
            Ok(exit::OK)
        }
        None => run_scenario(args),
    }
}

fn run_scenario(args: &SimulateArgs) -> Result<u8> {
    let name = args.scenario.as_deref().unwrap_or_default();
    let scenario = match scenario(name, &args.crawled)? {
        Ok(scenario) => scenario,
        Err(refused) => return Ok(refused),
    };
    let profile = match profile(&args.profile)? {
        Ok(profile) => profile,
        Err(refused) => return Ok(refused),
    };
    let plots = args.plots.as_deref().map(Plots::new).transpose()?;
    let report = match run_one(scenario, profile, args.seed)? {
        Ok(report) => report,
        Err(refused) => return Ok(refused),
    };
    let answer = if args.json {
        format!("{}\n", report.as_json())
    } else {
        report.as_text()
    };
    let drawn = plots.map_or(Ok(()), |plots| plots.write(&[(&report.profile, &report)]));
    print(&answer, drawn)
}

/// Prints the results after the plots were drawn, even if drawing failed. Printing ends the process if the output is closed.
fn print(answer: &str, drawn: Result<()>) -> Result<u8> {
    if drawn.is_err() {
        // A closed output is the lesser error.
        let _ = io::stdout().write_all(answer.as_bytes());
    }
    drawn?;
    terminal::out!("{answer}");
    Ok(exit::OK)
}

/// Returns the scenario to crawl. Its errors have been printed if the inner result is an exit code.
fn scenario(name: &str, crawled: &Crawled) -> Result<Result<Scenario, u8>> {
    let scenario = match Scenario::load(name) {
        Ok(scenario) => scenario,
        Err(faults) => return refuse(&faults.to_string()),
    };
    let instead = ScenarioChanges {
        days: crawled.days,
        warm_up: crawled.warm_up,
        budget: crawled.budget,
    };
    match scenario.instead(&instead) {
        Ok(scenario) => Ok(Ok(scenario)),
        Err(faults) => refuse(&faults.to_string()),
    }
}

/// Returns a profile. Its errors have been printed if the inner result is an exit code.
fn profile(name: &str) -> Result<Result<Profile, u8>> {
    match crate::profile::load(name) {
        Ok(profile) => Ok(Ok(profile)),
        Err(faults) => refuse(&faults.to_string()),
    }
}

/// Runs one profile on one web. Errors of its plugins have been printed if the inner result is an exit code.
fn run_one(scenario: Scenario, profile: Profile, seed: u64) -> Result<Result<Report, u8>> {
    let simulation = Simulation {
        scenario,
        profile,
        seed,
        component_cache: component_cache(),
    };
    let mut bar: Option<ProgressBar> = None;
    let ran = simulation.run(|progress| {
        // Before that, the compilation of plugins shows its own progress.
        let bar = bar.get_or_insert_with(|| days_bar(progress.days));
        bar.set_position(progress.day);
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    match ran {
        Ok(report) => Ok(Ok(report)),
        Err(SimulationError::Crawl(CrawlError::Profile(faults))) => refuse(&faults.to_string()),
        Err(other) => Err(other.into()),
    }
}

/// Shows the days of a simulation, if there is a terminal.
fn days_bar(days: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner:.green} [{bar:20}] day {pos} of {len}");
    let bar = ProgressBar::new(days);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The folder of plots.
struct Plots<'d>(&'d Path);

impl<'d> Plots<'d> {
    /// Checks the folder before the simulation runs, which may take hours.
    fn new(dir: &'d Path) -> Result<Self> {
        let remedy = || {
            format!(
                "cannot write plots to the folder {}; pass a writable folder with --plots",
                dir.display()
            )
        };
        std::fs::create_dir_all(dir).with_context(remedy)?;
        tempfile::tempfile_in(dir).with_context(remedy)?;
        Ok(Self(dir))
    }

    /// Writes `freshness` and `waits`, as SVG, with a colour and a mark for each named run.
    fn write(self, runs: &[(&str, &Report)]) -> Result<()> {
        let drawings = [
            ("freshness", freshness_over_time(runs)),
            ("waits", waits_by_rate(runs)),
        ];
        for (name, drawing) in drawings {
            let path = self.0.join(name).with_extension("svg");
            std::fs::write(&path, drawing)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn refuse<T>(faults: &str) -> Result<Result<T, u8>> {
    writeln!(io::stderr(), "{faults}")?;
    Ok(Err(exit::USAGE))
}
