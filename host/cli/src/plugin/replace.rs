//! `opilio plugin replace`: another component in the place of a job's plugin.

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_crawl::control::Command;
use opilio_profile::Component;
use serde_json::Value;

use super::workbench::as_reference;
use crate::exit;
use crate::job::{Asked, ask::ask};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The component is got, checked and configured with the plugin's settings, and with those of every override. Where all that
goes well it is copied into the job, noted in plugins.json and job.log, and asked from the next document on; what is under
way is finished by the one before. Where it does not, nothing changes. Pages are extracted again when they are visited next,
versions compared anew, and the scope is asked again.

Exit codes: 0 replaced, 1 nothing changed, 2 faults in the command line.")]
pub(crate) struct ReplaceArgs {
    #[command(flatten)]
    asked: Asked,
    /// The plugin, as the job's profile calls it.
    #[arg(value_name = "NAME")]
    plugin: String,
    /// A path, a folder, builtin:NAME (or NAME alone) or oci://registry/repository:tag; #NAME after it says which plugin.
    #[arg(value_name = "COMPONENT")]
    component: String,
    /// Settings in place of those in force, as a JSON object.
    #[arg(long, value_name = "JSON")]
    settings: Option<String>,
    /// What the SHA-256 of the component must be.
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
}

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "faults are for the person at the terminal"
)]
pub(super) fn run(args: &ReplaceArgs) -> Result<u8> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let component = match Component::parse(&as_reference(&args.component), &here) {
        Ok(component) => component.to_string(),
        Err(problem) => {
            eprintln!("opilio: {problem}");
            return Ok(exit::USAGE);
        }
    };
    let settings = args.settings.as_deref().map(serde_json::from_str::<Value>);
    let settings = match settings.transpose() {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("opilio: --settings is no JSON: {problem}");
            return Ok(exit::USAGE);
        }
    };
    let command = Command::ReplacePlugin {
        plugin: args.plugin.clone(),
        component,
        sha256: args.sha256.clone(),
        settings,
    };
    ask(&args.asked, command)
}
