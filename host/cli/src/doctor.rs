//! `opilio doctor`: checks whether this machine is fit for a crawl, and prints a remedy for each problem.
//!
//! [`system`] collects facts about the machine. [`checks`] compares the facts with the needs of a profile and of the daemon's
//! configuration.

mod checks;
mod environment;
mod finding;
mod linux;
mod system;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use opilio_console::DaemonConfig;
use opilio_crawl::builtin_plugins;
use opilio_profile::{Diagnostics, Profile, ProfileContext};
use serde_json::json;

use self::finding::{Finding, Needs, State};
use crate::crawl::{profile_source, refused};
use crate::{daemon_config, exit, terminal};

/// Host that is looked up without a profile.
const KNOWN_HOST: &str = "example.org";

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Each check has a state: ok, warning or error. With --json, each line is an object with check, state, finding and remedy.
In the folders of jobs and of the cache, the command writes small files and removes them.

Exit codes: 0 no errors, 1 at least one error, 2 error in the command line or the profile.")]
pub(crate) struct DoctorArgs {
    /// Profile whose needs are checked.
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    profile: String,
    /// Configuration file of the daemon [default: opilio.toml, if present].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of jobs [default: that of the daemon, or jobs].
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
    /// Host name to look up [default: the host of the profile's first seed, or example.org].
    #[arg(long, value_name = "HOST")]
    resolve: Option<String>,
    /// Check only that the daemon runs and is ready, for the health check of a container.
    #[arg(long)]
    running: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(args: DoctorArgs) -> Result<u8> {
    let profile = match profile(&args.profile) {
        Ok(profile) => profile,
        Err(faults) => return Ok(refused(&faults)),
    };
    // An invalid configuration is reported as a finding, not as an error of the command.
    let (config, problem) = match daemon_config::config(args.config.as_deref()) {
        Ok(config) => (config, None),
        Err(problem) => (DaemonConfig::default(), Some(problem)),
    };
    let config = DaemonConfig {
        jobs: args.jobs.clone().unwrap_or(config.jobs),
        ..config
    };
    let configured = daemon_config::file(args.config.as_deref()).map(|file| (file, problem));
    let daemon = system::daemon(&config, configured).await;
    let findings = match args.running {
        true => vec![checks::daemon::running(&daemon)],
        false => {
            let host = args.resolve.or_else(|| {
                let seed = profile.seeds.list.first()?;
                Some(seed.uri.host()?.to_owned())
            });
            let host = host.unwrap_or_else(|| KNOWN_HOST.to_owned());
            let crawls = match daemon {
                Some(_) => config.limits.jobs,
                None => 1,
            };
            let needs = Needs::of(&profile, &config, crawls);
            let environment = system::examine(
                &profile,
                &config.jobs,
                &host,
                daemon,
                config.cluster.as_ref(),
            )
            .await;
            checks::all(&environment, &needs)
        }
    };
    for finding in &findings {
        print(finding, args.json);
    }
    match findings.iter().any(|finding| finding.state == State::Error) {
        true => Ok(exit::FAILED),
        false => Ok(exit::OK),
    }
}

fn profile(what: &str) -> Result<Profile, Diagnostics> {
    let given = ProfileContext {
        builtins: builtin_plugins(),
        seeds_elsewhere: true,
        ..ProfileContext::default()
    };
    match profile_source(what) {
        opilio_crawl::ProfileSource::Builtin(name) => Profile::builtin(&name, &given),
        opilio_crawl::ProfileSource::Named(named) => named.load(&given),
        opilio_crawl::ProfileSource::Unknown(faults) => Err(faults),
        _ => Profile::load(what.as_ref(), &given),
    }
}

fn print(finding: &Finding, as_json: bool) {
    let Finding {
        check,
        state,
        found,
        remedy,
    } = finding;
    if as_json {
        let line =
            json!({"check": check, "state": state.word(), "finding": found, "remedy": remedy});
        return terminal::outln!("{line}");
    }
    terminal::outln!("{:<8} {check:<14} {found}", state.word());
    if let Some(remedy) = remedy {
        terminal::outln!("{:24}{remedy}", "");
    }
}
