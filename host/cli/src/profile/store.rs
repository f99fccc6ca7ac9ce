//! `opilio profile list|show|save|copy|compare|history|delete`: the store of named profiles that the daemon uses.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use opilio_console::{
    ChangeNote, ExpectedProfile, ProfileChange, ProfileStore, ProfileStoreError, ProfileSummary,
    ProfileVersion, profile_difference,
};
use opilio_crawl::{CrawlError, Diagnostics, is_job};
use opilio_profile::{Profile, ProfileContext};
use serde_json::json;

use crate::crawl::component_cache;
use crate::daemon_config::ConfigArgs;
use crate::job::send::user;
use crate::job_directory::existing_job;
use crate::usage_error::UsageError;
use crate::{exit, terminal};

/// The command line of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    at: ConfigArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the profile; NAME@3 is its version 3.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The command line of `save`.
#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// TOML file; - reads standard input, and needs --name.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the profile [default: the file's name without .toml].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Reason for the change, for the history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The command line of `copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// Name of a saved or shipped profile; NAME@3 is its version 3.
    #[arg(value_name = "NAME")]
    name: String,
    /// Name of the new profile.
    #[arg(value_name = "NEW")]
    new: String,
    /// Reason for the change, for the history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The command line of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Name of a saved or shipped profile; NAME@3 is its version 3. With --job it may be missing: then it is the profile from
    /// which the job was made.
    #[arg(value_name = "NAME", required_unless_present = "job")]
    from: Option<String>,
    /// The other profile or version [default: the newest version of the first].
    #[arg(value_name = "OTHER", conflicts_with = "job")]
    to: Option<String>,
    /// Compare the profile of this job: its directory, or its name in the folder `jobs`.
    #[arg(long, value_name = "JOB", value_parser = existing_job())]
    job: Option<PathBuf>,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The command line of `history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Name of the profile.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Name of the profile.
    #[arg(value_name = "NAME")]
    name: String,
    /// Reason for the change, for the history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Delete without confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Lists saved and shipped profiles.
pub(super) fn list(args: &ListArgs) -> Result<u8> {
    let store = store(&args.at)?;
    let profiles = store.summaries();
    let width = profiles.iter().map(|it| it.name.len()).max().unwrap_or(0);
    for profile in profiles {
        match args.json {
            true => terminal::outln!("{}", serde_json::to_string(&profile)?),
            false => {
                let line = terminal::line(&summary_line(&store, &profile));
                terminal::outln!("{:width$}  {line}", profile.name);
            }
        }
    }
    Ok(exit::OK)
}

/// Formats the newest version of a profile, and the number of its errors.
fn summary_line(store: &ProfileStore, profile: &ProfileSummary) -> String {
    if profile.ships {
        return "shipped".to_owned();
    }
    if let Some(problem) = &profile.problem {
        return problem.clone();
    }
    let last = store.versions(&profile.name).ok();
    let last = last.and_then(|mut versions| versions.pop());
    let line = last.map(|last| version_line(&last)).unwrap_or_default();
    let errors = profile.faults.iter().filter(|it| it.level == "error");
    match errors.count() {
        0 => line,
        1 => format!("{line}  1 error: opilio profile check {}", profile.name),
        errors => format!(
            "{line}  {errors} errors: opilio profile check {}",
            profile.name
        ),
    }
}

/// Prints the text of a profile.
pub(super) fn show(args: &ShowArgs) -> Result<u8> {
    let (found, text) = text(&store(&args.at)?, &args.name)?;
    if args.json {
        // A shipped profile has no versions.
        let (name, version) = match found.split_once('@') {
            Some((name, version)) => (name, version.parse::<u64>().ok()),
            None => (found.as_str(), None),
        };
        let object = json!({ "name": name, "version": version, "toml": text });
        terminal::outln!("{}", terminal::lines(&object.to_string()));
    } else {
        terminal::out!("{text}");
    }
    Ok(exit::OK)
}

/// Saves a file as a profile.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(super) fn save(args: &SaveArgs) -> Result<u8> {
    let is_input = args.file == Path::new("-");
    let name = match (&args.name, args.file.file_stem()) {
        (Some(name), _) => name.clone(),
        (None, Some(stem)) if !is_input => stem.to_string_lossy().into_owned(),
        _ => return Err(UsageError::new("pass the name of the profile: --name NAME").into()),
    };
    let text = match is_input {
        true => {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.context("cannot read standard input")?;
            text
        }
        false => {
            fs::read_to_string(&args.file).with_context(|| UsageError::unreadable(&args.file))?
        }
    };
    let store = store(&args.at)?;
    let file = match is_input {
        true => "standard input".to_owned(),
        false => args.file.display().to_string(),
    };
    match check(&file, &text, &store)? {
        Err(faults) => {
            eprintln!("{faults}\nopilio: the profile was not saved");
            return Ok(exit::USAGE);
        }
        Ok(notes) if notes.is_empty() => {}
        Ok(notes) => eprintln!("{notes}"),
    }
    let before = store.find(&name)?.map(|before| before.version);
    let saved = noted(args.reason.as_deref(), |note| {
        store.save(&name, &text, ExpectedProfile::Any, note)
    })?;
    let version = saved.version;
    let is_changed = before != Some(version);
    let words = match is_changed {
        true => format!("saved version {version} of profile {name}"),
        false => format!("profile {name} has not changed; its version is {version}"),
    };
    let object =
        json!({ "answer": "saved", "name": name, "version": version, "is_changed": is_changed });
    terminal::print_result(args.json, &object, &words);
    Ok(exit::OK)
}

/// Makes a profile from another one.
pub(super) fn copy(args: &CopyArgs) -> Result<u8> {
    let store = store(&args.at)?;
    let (of, text) = text(&store, &args.name)?;
    let saved = noted(args.reason.as_deref(), |note| {
        store.copy(&args.new, &text, of.clone(), note)
    })?;
    let (name, version) = (&saved.name, saved.version);
    let words = format!("saved version {version} of profile {name} as a copy of {of}");
    let object = json!({ "answer": "saved", "name": name, "version": version, "copied_from": of });
    terminal::print_result(args.json, &object, &words);
    Ok(exit::OK)
}

/// Compares two texts. Texts that cannot be compared are an error of the command line, because exit code 1 means
/// differences.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(super) fn compare(args: &CompareArgs) -> Result<u8> {
    let (from, to) = match compared(args) {
        Ok(texts) => texts,
        Err(problem) => {
            eprintln!("opilio: {}", terminal::line(&format!("{problem:#}")));
            return Ok(exit::USAGE);
        }
    };
    let diff = profile_difference((&from.0, &from.1), (&to.0, &to.1));
    if args.json {
        let object = json!({ "from": from.0, "to": to.0, "diff": diff });
        terminal::outln!("{}", terminal::lines(&object.to_string()));
    } else {
        terminal::out!("{}", terminal::lines(&diff));
    }
    Ok(match diff.is_empty() {
        true => exit::OK,
        false => exit::FAILED,
    })
}

/// The two texts to compare, each with its name.
fn compared(args: &CompareArgs) -> Result<((String, String), (String, String))> {
    let store = store(&args.at)?;
    Ok(match (&args.job, &args.from) {
        (Some(job), _) if !is_job(job) => bail!(
            "{} is not a job; opilio job list lists the jobs",
            job.display()
        ),
        (Some(job), other) => {
            let file = job.join("profile.toml");
            let own = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let origin = opilio_crawl::origin_of_job(job)?.named;
            let Some(other) = other.clone().or(origin.map(|origin| origin.name)) else {
                bail!(
                    "job {} was made from a file or a text; pass the profile to compare it with",
                    job.display()
                );
            };
            ((file.display().to_string(), own), text(&store, &other)?)
        }
        (None, Some(from)) => {
            let from_text = text(&store, from)?;
            let to = match (&args.to, from.split_once('@')) {
                (Some(to), _) => to.as_str(),
                (None, Some((newest, _))) => newest,
                (None, None) => bail!(
                    "{from} is the newest version; pass an earlier one, such as {from}@1, or another profile to compare it with"
                ),
            };
            (from_text, text(&store, to)?)
        }
        (None, None) => bail!("pass a profile, or --job JOB"),
    })
}

/// Lists versions.
pub(super) fn history(args: &HistoryArgs) -> Result<u8> {
    for version in own(&args.name, store(&args.at)?.versions(&args.name))? {
        match args.json {
            true => terminal::outln!("{}", serde_json::to_string(&version)?),
            false => terminal::outln!("{}", terminal::line(&version_line(&version))),
        }
    }
    Ok(exit::OK)
}

/// Deletes a profile.
pub(super) fn delete(args: &DeleteArgs) -> Result<u8> {
    let store = store(&args.at)?;
    own(&args.name, store.get(&args.name))?;
    if !args.yes {
        let question = format!("Delete profile {}? Its versions stay.", args.name);
        if !terminal::confirm(&question)? {
            return Ok(exit::FAILED);
        }
    }
    noted(args.reason.as_deref(), |note| {
        store.delete(&args.name, ExpectedProfile::Any, note)
    })?;
    let name = &args.name;
    let words = format!("deleted profile {name}; its versions stay: opilio profile history {name}");
    terminal::print_result(
        args.json,
        &json!({ "answer": "deleted", "name": name }),
        &words,
    );
    Ok(exit::OK)
}

fn store(at: &ConfigArgs) -> Result<ProfileStore> {
    Ok(at.load()?.profile_store())
}

/// Returns the error for shipped profiles if the store does not have a profile of this name and one is shipped.
fn own<T>(name: &str, found: Result<T, ProfileStoreError>) -> Result<T, ProfileStoreError> {
    match found {
        Err(ProfileStoreError::Unknown { .. }) if Profile::builtin_text(name).is_some() => {
            Err(ProfileStoreError::Shipped(name.to_owned()))
        }
        found => found,
    }
}

/// Reads a saved or shipped profile by its name, or a version of it as `NAME@3`. Returns it with its full name.
fn text(store: &ProfileStore, what: &str) -> Result<(String, String)> {
    if let Some((name, version)) = what.split_once('@') {
        let version = version.parse::<u64>();
        let version = version.map_err(|_| {
            let problem = format!("invalid version in {what:?}; write a number, as in {name}@3");
            UsageError::new(problem)
        })?;
        return Ok((what.to_owned(), own(name, store.text(name, version))?));
    }
    match store.get(what) {
        Ok(found) => Ok((format!("{what}@{}", found.version), found.text)),
        Err(problem @ ProfileStoreError::Unknown { .. }) => match Profile::builtin_text(what) {
            Some(text) => Ok((what.to_owned(), text.to_owned())),
            None if store.versions(what).is_ok() => {
                let problem = format!(
                    "profile {what} was deleted; opilio profile history {what} lists its versions, such as {what}@1"
                );
                Err(UsageError::new(problem).into())
            }
            None => Err(problem.into()),
        },
        Err(problem) => Err(problem.into()),
    }
}

/// Checks a text and the settings of its plugins. Relative paths start at the folder of the store. Returns notes, or errors.
fn check(file: &str, text: &str, store: &ProfileStore) -> Result<Result<Diagnostics, Diagnostics>> {
    let given = ProfileContext {
        builtins: opilio_crawl::builtin_plugins(),
        seeds_elsewhere: true,
        base: Some(store.folder().to_owned()),
        ..ProfileContext::default()
    };
    let profile = match Profile::parse(file, text, &given) {
        Ok(profile) => profile,
        Err(faults) => return Ok(Err(faults)),
    };
    match opilio_crawl::check_plugins(&profile, component_cache()) {
        Ok(()) => Ok(Ok(profile.notices)),
        Err(CrawlError::Profile(faults)) => Ok(Err(faults)),
        Err(other) => Err(other.into()),
    }
}

/// Changes the store in the name of this process's user.
fn noted<T>(
    reason: Option<&str>,
    change: impl FnOnce(ChangeNote<'_>) -> Result<T, ProfileStoreError>,
) -> Result<T> {
    let by = user();
    Ok(change(ChangeNote { by: &by, reason })?)
}

fn version_line(version: &ProfileVersion) -> String {
    let ProfileVersion {
        number, at, reason, ..
    } = version;
    let mut line = format!("version {number}  {at:.0}  ");
    line += version.by.as_deref().unwrap_or("-");
    match (version.change, &version.copied_from) {
        (ProfileChange::Save, _) => {}
        (ProfileChange::Copy, of) => {
            line += &format!("  copied from {}", of.as_deref().unwrap_or("?"));
        }
        (ProfileChange::File, _) => line += "  file changed by other means",
        (ProfileChange::Delete, _) => line += "  deleted",
    }
    if let Some(reason) = reason {
        line += &format!("  {reason}");
    }
    line
}
