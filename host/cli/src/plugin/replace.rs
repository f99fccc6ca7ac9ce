//! `opilio plugin replace`: replaces the component of a job's plugin.

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_control::Command;
use opilio_profile::ComponentReference;
use serde_json::Value;

use super::workbench::as_reference;
use crate::exit;
use crate::job::{send::send, target::JobTarget};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The command loads and checks the component, and configures it with the plugin's settings and with those of every override. If
all steps succeed, it copies the component into the job, records it in plugins.json and job.log, and uses it from the next
document on; documents in process finish with the old plugin. If a step fails, nothing changes. After a replacement, pages
are extracted again at their next visit, versions are compared again, and the scope of URIs is checked again.

Exit codes: 0 replaced, 1 nothing changed, 2 error in the command line, or the component cannot be read or is invalid.")]
pub(crate) struct ReplaceArgs {
    #[command(flatten)]
    pub(super) target: JobTarget,
    /// Name of the plugin in the job's profile.
    #[arg(value_name = "NAME")]
    pub(super) plugin: String,
    /// New component: path, folder, builtin:NAME (or NAME alone) or oci://registry/repository:tag; #NAME selects a plugin in it.
    #[arg(value_name = "COMPONENT")]
    pub(super) component: String,
    /// Settings that replace those in effect, as a JSON object.
    #[arg(long, value_name = "JSON")]
    pub(super) settings: Option<String>,
    /// Expected SHA-256 of the component.
    #[arg(long, value_name = "HEX")]
    pub(super) sha256: Option<String>,
}

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(super) fn run(args: &ReplaceArgs) -> Result<u8> {
    let here = std::env::current_dir().context("cannot determine the current folder")?;
    let component = match ComponentReference::parse(&as_reference(&args.component), &here) {
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
            eprintln!("opilio: invalid JSON in --settings: {problem}");
            return Ok(exit::USAGE);
        }
    };
    let command = Command::ReplacePlugin {
        plugin: args.plugin.clone(),
        component,
        sha256: args.sha256.clone(),
        settings,
    };
    send(&args.target, command)
}
