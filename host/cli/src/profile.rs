//! `opilio profile`: what is wrong with a profile, and what it makes of a URI.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use opilio_crawl::{CrawlError, Faults, Level, ProfileSource};
use opilio_profile::{Explained, Given, Profile};
use opilio_uri::Uri;
use serde_json::{Value, json};

use crate::crawl::{component_cache, profile_source};
use crate::exit;

/// Longest value that is shown in a column, in characters; what comes after it stands behind the longer ones.
const VALUE_WIDTH_MAX: usize = 48;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Print every fault of a profile, that of its plugins' settings included. Creates nothing.
    #[command(after_help = "\
Seeds and a contact URL need not be there: a job asks for them.

Exit codes: 0 there is none, 2 there are some.")]
    Check(CheckArgs),
    /// Print every setting that holds for a URI, with the line it comes from.
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// A TOML file, or the name of a profile that ships.
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Print JSON: the faults as a list.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// A URI, as people write seeds: example.org means http://example.org.
    #[arg(value_name = "URI")]
    uri: String,
    /// A TOML file, or the name of a profile that ships.
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    profile: String,
    /// The URI was found from this seed.
    #[arg(long, value_name = "URI")]
    source: Option<String>,
    /// Its response has this media type.
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,
    /// At this time, such as 2026-07-01T23:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    at: Option<jiff::Timestamp>,
    /// Print JSON, one object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ProfileArgs) -> Result<u8> {
    match &args.command {
        ProfileCommand::Check(args) => check(args),
        ProfileCommand::Explain(args) => explain(args),
    }
}

/// A profile by file, or by the name of one that ships. Seeds are no concern here.
pub(crate) fn load(name: &str) -> std::result::Result<Profile, Faults> {
    let given = Given {
        builtins: opilio_builtin::all()
            .map(|builtin| builtin.plugin.to_owned())
            .collect(),
        seeds_elsewhere: true,
        ..Given::default()
    };
    match profile_source(name) {
        ProfileSource::Builtin(name) => Profile::builtin(&name, &given),
        ProfileSource::File(path) => Profile::load(&path, &given),
        ProfileSource::Text { file, text } => Profile::parse(&file, &text, &given),
    }
}

fn check(args: &CheckArgs) -> Result<u8> {
    let (faults, code) = match load(&args.profile) {
        Err(faults) => (faults, exit::USAGE),
        Ok(profile) => match opilio_crawl::check_plugins(&profile, component_cache()) {
            Ok(()) => (profile.notices, exit::OK),
            Err(CrawlError::Profile(faults)) => (faults, exit::USAGE),
            Err(other) => return Err(other.into()),
        },
    };
    let answer = match (args.json, faults.is_empty()) {
        (true, _) => format!("{}\n", faults_as_json(&faults)),
        (false, true) => format!("{} has no faults\n", args.profile),
        (false, false) => format!("{faults}\n"),
    };
    print(&answer)?;
    Ok(code)
}

fn faults_as_json(faults: &Faults) -> Value {
    let fault = |fault: &opilio_profile::Fault| {
        json!({
            "level": match fault.level {
                Level::Info => "info",
                Level::Warning => "warning",
                Level::Error => "error",
            },
            "file": fault.file,
            "line": fault.place.as_ref().map(|place| place.line),
            "column": fault.place.as_ref().map(|place| place.column),
            "setting": fault.pointer,
            "problem": fault.problem,
            "suggestion": fault.suggestion,
        })
    };
    faults.iter().map(fault).collect()
}

#[expect(
    clippy::print_stderr,
    reason = "faults are for the person at the terminal"
)]
fn explain(args: &ExplainArgs) -> Result<u8> {
    let parsed = |name: &str, text: &str| {
        Uri::parse_seed(text).map_err(|problem| {
            eprintln!("opilio: {name} cannot be used: {problem}");
        })
    };
    let Ok(uri) = parsed("the URI", &args.uri) else {
        return Ok(exit::USAGE);
    };
    let source = args.source.as_deref();
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
    let explained = profile.explain_with(&opilio_profile::Context {
        source: source.as_ref().map(Uri::as_str),
        media_type: args.media_type.as_deref(),
        now: Some(args.at.unwrap_or_else(jiff::Timestamp::now)),
        ..opilio_profile::Context::of(&uri)
    });
    let (queue, canonical) = (profile.queue_name(&uri), profile.canonical(&uri));
    let answer = if args.json {
        let settings: Vec<Value> = explained.iter().map(as_json).collect();
        let whole = json!({
            "uri": uri,
            "canonical": canonical,
            "queue": queue,
            "settings": settings,
        });
        format!("{whole}\n")
    } else {
        let head = format!("{uri}\n  canonical  {canonical}\n  queue      {queue}\n\n");
        head + &as_table(&explained, folder_of(&args.profile).as_deref())
    };
    print(&answer)?;
    Ok(exit::OK)
}

fn as_json(one: &Explained) -> Value {
    let (file, line) = match &one.place {
        opilio_profile::Origin::Default => (None, None),
        opilio_profile::Origin::Written { file, line } => (Some(file), Some(line)),
    };
    json!({ "key": one.key, "value": one.value, "file": file, "line": line })
}

/// Name, value and place in columns. The folder of the profile is the same on every line, so it is left out.
fn as_table(explained: &[Explained], folder: Option<&Path>) -> String {
    let chars = |text: &str| text.chars().count();
    let rows: Vec<(&str, String, String)> = explained
        .iter()
        .map(|one| {
            let place = one.place.to_string();
            let short = folder.and_then(|folder| Path::new(&place).strip_prefix(folder).ok());
            let place = short
                .map(|short| short.display().to_string())
                .unwrap_or(place);
            (one.key.as_str(), one.toml(), place)
        })
        .collect();
    let key_width = rows.iter().map(|(key, ..)| chars(key)).max().unwrap_or(0);
    let value_width = rows
        .iter()
        .map(|(_, value, _)| chars(value))
        .filter(|width| *width <= VALUE_WIDTH_MAX)
        .max()
        .unwrap_or(0);
    rows.iter()
        .map(|(key, value, place)| format!("{key:<key_width$}  {value:<value_width$}  {place}\n"))
        .collect()
}

fn folder_of(profile: &str) -> Option<PathBuf> {
    let folder = Path::new(profile).parent()?;
    (!folder.as_os_str().is_empty()).then(|| folder.to_owned())
}

/// Whoever reads the answer may have seen enough before its end.
fn print(answer: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(answer.as_bytes()).and_then(|()| out.flush()) {
        Err(problem) if problem.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write the answer"),
    }
}
