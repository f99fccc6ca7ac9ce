//! `opilio simulate compare`: compares several profiles on the same webs.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use opilio_simulate::{Comparison, Report};

use super::{Crawled, Plots, print, profile, run_one, scenario};

/// The command line.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Two or more profiles: TOML files, or names of saved or shipped profiles.
    #[arg(value_name = "PROFILE", required = true, num_args = 2..)]
    profiles: Vec<String>,
    /// Scenario: TOML file, or name of a shipped scenario.
    #[arg(long, value_name = "SCENARIO")]
    scenario: String,
    /// Number of webs; they have the seeds 1 to N.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1000))]
    seeds: u64,
    #[command(flatten)]
    crawled: Crawled,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Draw plots of the first web into this folder, as SVG: freshness over time, and waits against true rates.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &CompareArgs) -> Result<u8> {
    let scenario = match scenario(&args.scenario, &args.crawled)? {
        Ok(scenario) => scenario,
        Err(refused) => return Ok(refused),
    };
    let mut profiles = Vec::new();
    for name in &args.profiles {
        match profile(name)? {
            Ok(profile) => profiles.push(profile),
            Err(refused) => return Ok(refused),
        }
    }
    let plots = args.plots.as_deref().map(Plots::new).transpose()?;
    let mut runs: Vec<Vec<Report>> = vec![Vec::new(); args.profiles.len()];
    for seed in 1..=args.seeds {
        let named = args.profiles.iter().zip(&profiles);
        for ((name, profile), runs) in named.zip(&mut runs) {
            writeln!(io::stderr(), "web {seed} of {}: {name}", args.seeds)?;
            match run_one(scenario.clone(), profile.clone(), seed)? {
                Ok(report) => runs.push(report),
                Err(refused) => return Ok(refused),
            }
        }
    }
    let comparison = Comparison::new(scenario.name, args.profiles.clone(), &runs);
    let answer = if args.json {
        format!("{}\n", comparison.as_json())
    } else {
        comparison.as_text()
    };
    let drawn = plots.map_or(Ok(()), |plots| {
        let named = args.profiles.iter().zip(&runs);
        let named = named.filter_map(|(name, runs)| Some((name.as_str(), runs.first()?)));
        plots.write(&named.collect::<Vec<_>>())
    });
    print(&answer, drawn)
}
