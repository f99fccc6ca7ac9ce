//! `opilio simulate`: a crawl of a synthetic web in virtual time.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use opilio_crawl::CrawlError;
use opilio_simulate::{Scenario, ScenarioError, Simulation, SimulationError};

use crate::crawl::component_cache;
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A TOML file, or the name of a scenario that ships.
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// A TOML file, or the name of a profile that ships.
    #[arg(long, value_name = "PROFILE", default_value = "continuous")]
    profile: String,
    /// Makes another web of the same kind.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The whole time in days, in place of the scenario's.
    #[arg(long, value_name = "DAYS")]
    days: Option<f64>,
    /// Visits per page and day, in place of the scenario's.
    #[arg(long, value_name = "VISITS")]
    budget: Option<f64>,
    /// Print JSON, one object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs) -> Result<u8> {
    let mut scenario = match Scenario::load(&args.scenario) {
        Ok(scenario) => scenario,
        Err(ScenarioError::Faults(faults)) => return refuse(&faults.to_string()),
        Err(other) => return Err(other.into()),
    };
    scenario.days = args.days.unwrap_or(scenario.days);
    scenario.budget = args.budget.unwrap_or(scenario.budget);
    let profile = match crate::profile::load(&args.profile) {
        Ok(profile) => profile,
        Err(faults) => return refuse(&faults.to_string()),
    };
    let simulation = Simulation {
        scenario,
        profile,
        seed: args.seed,
        component_cache: component_cache(),
    };
    let report = match simulation.run() {
        Ok(report) => report,
        Err(SimulationError::Crawl(CrawlError::Profile(faults))) => {
            return refuse(&faults.to_string());
        }
        Err(other) => return Err(other.into()),
    };
    let answer = if args.json {
        format!("{:#}\n", report.as_json())
    } else {
        report.as_text()
    };
    io::stdout().write_all(answer.as_bytes())?;
    Ok(exit::OK)
}

fn refuse(faults: &str) -> Result<u8> {
    writeln!(io::stderr(), "{faults}")?;
    Ok(exit::USAGE)
}
