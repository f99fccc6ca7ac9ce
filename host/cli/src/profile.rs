//! `opilio profile`: checks of a profile, and its effect on a URI.

mod import;
mod new;
mod store;

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use opilio_control::{ExplainRequest, FaultFound};
use opilio_crawl::{CrawlError, Diagnostics, ProfileSource};
use opilio_profile::{Diagnostic, Level, Profile, ProfileContext};
use opilio_uri::{HopPath, Uri};
use serde_json::json;

use crate::crawl::{component_cache, profile_source};
use crate::exit;
use crate::job::FoundArgs;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Check a profile and the settings of its plugins; list all errors. Creates nothing.
    #[command(after_help = "\
Seeds and a contact URL may be missing: only a job needs them.

Exit codes: 0 no errors, 2 errors.")]
    Check(CheckArgs),
    /// Explain how a profile handles a URI: every setting with the line it comes from, the answer of every filter, and the wait
    /// after a visit. Fetches nothing, not even robots.txt.
    Explain(ExplainArgs),
    /// Print the JSON Schema of profiles for editors, with the settings of the profile's plugins.
    Schema(SchemaArgs),
    /// Write a small profile; at a terminal, ask for missing values.
    New(new::NewArgs),
    /// Convert the crawler-beans.cxml of a Heritrix 3 job to a profile, and list the parts that cannot be converted.
    Import(import::ImportArgs),
    /// List the profiles that can be used by name: those of the daemon's store, and the shipped ones.
    List(store::ListArgs),
    /// Print the text of a profile, or of an earlier version.
    Show(store::ShowArgs),
    /// Save a file as a profile of the store, or as a new version of it.
    #[command(after_help = "\
Relative paths in the profile start at the folder of the store, not at that of the file.

Exit codes: 0 saved, 2 the profile has errors and was not saved.")]
    Save(store::SaveArgs),
    /// Make a profile of the store from another profile.
    Copy(store::CopyArgs),
    /// Compare two profiles, two versions, or the profile of a job with its newest version. Prints a unified diff.
    #[command(after_help = "\
Exit codes: 0 no differences, 1 differences, 2 there is no such profile, version or job.")]
    Compare(store::CompareArgs),
    /// List the versions of a profile with their authors and reasons.
    History(store::HistoryArgs),
    /// Delete a profile from the store. Its versions stay, and jobs have their own copies.
    Delete(store::DeleteArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Profile: TOML file, or name of a saved or shipped profile.
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Print JSON, one object for each error or note.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// URI; the scheme may be missing: example.org means http://example.org.
    #[arg(value_name = "URI")]
    uri: String,
    /// Profile: TOML file, or name of a saved or shipped profile.
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    profile: String,
    #[command(flatten)]
    found: FoundArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// Profile whose plugin settings the schema includes: TOML file, or name of a saved or shipped profile.
    #[arg(value_name = "PROFILE", default_value = "default")]
    profile: String,
    /// Let editors suggest rarely changed settings, too.
    #[arg(long)]
    expert: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ProfileArgs) -> Result<u8> {
    match &args.command {
        ProfileCommand::Check(args) => check(args),
        ProfileCommand::Explain(args) => explain(args),
        ProfileCommand::Schema(args) => schema(args),
        ProfileCommand::New(args) => new::run(args),
        ProfileCommand::Import(args) => import::run(args),
        ProfileCommand::List(args) => store::list(args),
        ProfileCommand::Show(args) => store::show(args),
        ProfileCommand::Save(args) => store::save(args),
        ProfileCommand::Copy(args) => store::copy(args),
        ProfileCommand::Compare(args) => store::compare(args),
        ProfileCommand::History(args) => store::history(args),
        ProfileCommand::Delete(args) => store::delete(args),
    }
}

/// Loads a profile by file, or by the name of a profile of the store or a built-in one. Its seeds are ignored.
pub(crate) fn load(name: &str) -> std::result::Result<Profile, Diagnostics> {
    let given = ProfileContext {
        builtins: opilio_builtin::all()
            .map(|builtin| builtin.plugin.to_owned())
            .collect(),
        seeds_elsewhere: true,
        ..ProfileContext::default()
    };
    match profile_source(name) {
        ProfileSource::Builtin(name) => Profile::builtin(&name, &given),
        ProfileSource::File(path) => Profile::load(&path, &given),
        ProfileSource::Text { file, text } => Profile::parse(&file, &text, &given),
        ProfileSource::Named(named) => named.load(&given),
        ProfileSource::Fetched(fetched) => fetched.load(&given),
        ProfileSource::Unknown(faults) => Err(faults),
    }
}

fn check(args: &CheckArgs) -> Result<u8> {
    let (faults, code) = match load(&args.profile) {
        Err(faults) => (faults, exit::USAGE),
        Ok(profile) => match opilio_crawl::check_plugins(&profile, component_cache()) {
            Ok(()) => {
                // Another machine may have Chromium, so the profile itself is valid.
                let browser = opilio_crawl::check_browser(&profile).map(|fault| Diagnostic {
                    level: Level::Info,
                    ..fault
                });
                let notices = profile.notices.into_iter().chain(browser);
                (notices.collect(), exit::OK)
            }
            Err(CrawlError::Profile(faults)) => (faults, exit::USAGE),
            Err(other) => return Err(other.into()),
        },
    };
    let answer = match (args.json, faults.is_empty()) {
        (true, _) => faults.iter().map(fault_as_json).collect(),
        (false, true) => format!("{} has no errors\n", args.profile),
        (false, false) => format!("{faults}\n"),
    };
    print(&answer)?;
    Ok(code)
}

/// Formats an error or a note as an object on a line, with the names of the API.
fn fault_as_json(fault: &Diagnostic) -> String {
    format!("{}\n", json!(FaultFound::from(fault)))
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn explain(args: &ExplainArgs) -> Result<u8> {
    let found = &args.found;
    let parsed = |name: &str, text: &str| {
        Uri::parse_seed(text).map_err(|problem| {
            eprintln!("opilio: invalid {name}: {problem}");
        })
    };
    let Ok(uri) = parsed("URI", &args.uri) else {
        return Ok(exit::USAGE);
    };
    let source = found.source.as_deref();
    let Ok(source) = source.map(|text| parsed("--source", text)).transpose() else {
        return Ok(exit::USAGE);
    };
    let profile = match load(&args.profile) {
        Ok(profile) => profile,
        Err(faults) => {
            eprintln!("{faults}");
            return Ok(exit::USAGE);
        }
    };
    let via = found.via.as_deref().map(|text| parsed("--via", text));
    let Ok(via) = via.transpose() else {
        return Ok(exit::USAGE);
    };
    let hops = match HopPath::parse(found.hops.as_deref().unwrap_or_default()) {
        Ok(hops) => hops,
        Err(problem) => {
            eprintln!("opilio: invalid --hops: {problem}");
            return Ok(exit::USAGE);
        }
    };
    let asked = ExplainRequest {
        uri: &uri,
        via: via.as_ref(),
        hops,
        source: source.as_ref().map(Uri::as_str),
        media_type: found.media_type.as_deref(),
        now: found.at.unwrap_or_else(jiff::Timestamp::now),
    };
    let profile = Arc::new(profile);
    let mut explained = match opilio_control::explain(&profile, &asked, component_cache()) {
        Ok(explained) => explained,
        Err(CrawlError::Profile(faults)) => {
            eprintln!("{faults}");
            return Ok(exit::USAGE);
        }
        Err(other) => return Err(other.into()),
    };
    if !found.expert {
        explained.leave_out_expert();
    }
    let answer = if args.json {
        format!("{}\n", serde_json::to_string(&explained)?)
    } else {
        let mut text = Vec::new();
        crate::job::show::explained(&explained, &mut text)?;
        String::from_utf8_lossy(&text).into_owned()
    };
    print(&answer)?;
    Ok(exit::OK)
}

fn schema(args: &SchemaArgs) -> Result<u8> {
    let loaded = match load(&args.profile) {
        Ok(profile) => opilio_crawl::settings_schemas(&profile, component_cache()),
        Err(faults) => Err(CrawlError::Profile(faults)),
    };
    let plugins = match loaded {
        Ok(plugins) => plugins,
        Err(CrawlError::Profile(faults)) => return Ok(refused(&faults)),
        Err(other) => return Err(other.into()),
    };
    let schema = opilio_profile::editor_schema(&plugins, args.expert);
    print(&format!("{}\n", serde_json::to_string_pretty(&schema)?))?;
    Ok(exit::OK)
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn refused(faults: &Diagnostics) -> u8 {
    eprintln!("{faults}");
    exit::USAGE
}

/// Prints the answer. The reader may close the output before its end.
fn print(answer: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(answer.as_bytes()).and_then(|()| out.flush()) {
        Err(problem) if problem.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write the answer"),
    }
}
