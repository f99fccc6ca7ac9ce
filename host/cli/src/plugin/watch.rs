//! `opilio plugin watch`: after every change of a project, builds the component, runs the cases, compares the answers about
//! documents, and replaces the plugin in a job.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use opilio_build::{BuildError, Language, in_shell};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::build::{self, BuildArgs};
use super::diff::{self, DiffArgs};
use super::documents::MaterialArgs;
use super::page::PageArgs;
use super::replace::{self, ReplaceArgs};
use super::run::{self, RunArgs};
use super::sources::{self, FileStates};
use super::test::{self, TestArgs};
use super::trial::QuestionArgs;
use super::workbench::component_file;
use super::{note, say};
use crate::exit;
use crate::job::target::JobTarget;
use crate::job_directory::existing_job;

/// Interval between checks of the files. A changed file is used when it has not changed again for this time.
const INTERVAL: Duration = Duration::from_millis(250);

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
With --on, the command shows how the answers about these documents differ from those of the build before, or of --against. If
there is nothing to compare with, it shows the answers. With --job, the component replaces the plugin in the job after each build
whose cases pass, as `opilio plugin replace` does. Ctrl-C ends the command.")]
pub(super) struct WatchArgs {
    /// Folder of the plugin's project.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Documents whose answers are shown: file, URL, WARC file or folder; may be repeated.
    #[arg(long, value_name = "FILE|URL|WARC|DIR")]
    on: Vec<String>,
    /// Compare every build with this plugin, such as the one in use [default: the build before].
    #[arg(long, value_name = "PLUGIN", requires = "on")]
    against: Option<String>,
    /// Plugin of the component, if it holds several.
    #[arg(long, value_name = "NAME")]
    select: Option<String>,
    /// Settings of the plugin for --on: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON", requires = "on")]
    settings: Option<String>,
    /// Job in which the plugin is replaced: its directory, or its name in the folder `jobs`.
    #[arg(long, value_name = "JOB", value_parser = existing_job())]
    job: Option<PathBuf>,
    /// Name of the plugin in the job's profile [default: the name of the component].
    #[arg(long, value_name = "NAME", requires = "job")]
    plugin: Option<String>,
    /// Folder of another SDK, as for `opilio plugin build`.
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
    #[command(flatten)]
    material: MaterialArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// Print JSON, one object per line: changed files, and the answers of each command that runs.
    #[arg(long)]
    json: bool,
}

/// Runs the command. It ends only with an error of the command line.
pub(super) fn run(args: &WatchArgs, runtime: &Handle) -> Result<u8> {
    let folder = &args.folder;
    Language::of(folder).ok_or_else(|| BuildError::NoProject {
        folder: folder.clone(),
    })?;
    let mut watch = Watch {
        args,
        runtime,
        scratch: TempDir::new().context("cannot create a temporary folder")?,
        before: None,
    };
    let mut seen = WatchedFiles::now(args);
    let component = component_file(folder).ok();
    let is_current = component.is_some_and(|file| !sources::is_newer_than(&file));
    watch.round(!is_current);
    loop {
        note(&format!("watching {}", in_shell(folder)));
        let now = seen.changed(args);
        let names = seen.names(&now, folder);
        say(&match args.json {
            true => format!("{}\n", json!({ "changed": names })),
            false => format!("\nchanged: {}\n", names.join(", ")),
        })?;
        let is_source = seen.sources != now.sources;
        seen = now;
        watch.round(is_source);
    }
}

/// The states of all watched files at one time.
#[derive(PartialEq)]
struct WatchedFiles {
    sources: FileStates,
    /// Cases, and documents that are files.
    others: FileStates,
}

impl WatchedFiles {
    fn now(args: &WatchArgs) -> Self {
        let cases = sources::below(&args.folder.join("cases"));
        let documents = args.on.iter().map(PathBuf::from);
        Self {
            sources: sources::states(sources::of_project(&args.folder)),
            others: sources::states(cases.into_iter().chain(documents)),
        }
    }

    /// Waits until a file has changed and no file changes any more.
    fn changed(&self, args: &WatchArgs) -> Self {
        let mut last = Self::now(args);
        loop {
            thread::sleep(INTERVAL);
            let now = Self::now(args);
            if now == last && now != *self {
                return now;
            }
            last = now;
        }
    }

    /// Returns the names of the files that differ.
    fn names(&self, now: &Self, folder: &Path) -> Vec<String> {
        let pairs = [(&self.sources, &now.sources), (&self.others, &now.others)];
        let mut names: Vec<String> = Vec::new();
        for (old, new) in pairs {
            let all = old.keys().chain(new.keys());
            names.extend(
                all.filter(|file| old.get(*file) != new.get(*file))
                    .map(|file| {
                        let inside = file.strip_prefix(folder).unwrap_or(file);
                        inside.display().to_string()
                    }),
            );
        }
        names.sort();
        names.dedup();
        names
    }
}

struct Watch<'a> {
    args: &'a WatchArgs,
    runtime: &'a Handle,
    scratch: TempDir,
    /// Copy of the component before the last build.
    before: Option<PathBuf>,
}

impl Watch<'_> {
    /// Builds, tests, compares and replaces after a change. Errors are shown, so that the command can wait for the next change.
    fn round(&mut self, needs_build: bool) {
        if let Err(problem) = self.steps(needs_build) {
            self.show_message("problem", &format!("opilio: {problem:#}"));
        }
    }

    /// Shows a message that is not the answer of a command: as a note, or with `--json` as an object with this key.
    fn show_message(&self, key: &str, words: &str) {
        if !self.args.json {
            note(words);
        } else if let Err(problem) = say(&format!("{}\n", json!({ key: words }))) {
            note(&format!("opilio: {problem:#}"));
        }
    }

    fn steps(&mut self, needs_build: bool) -> Result<()> {
        if needs_build && !self.build()? {
            // The text output of `plugin build` contains this message already.
            if self.args.json {
                self.show_message(
                    "problem",
                    "the project does not build; the errors of the compiler are on standard error",
                );
            }
            return Ok(());
        }
        let component = component_file(&self.args.folder)?;
        let passed = self.test()?;
        for document in &self.args.on {
            self.show(&component, document)?;
        }
        match &self.args.job {
            Some(job) if needs_build => self.replace(job, &component, passed),
            _ => Ok(()),
        }
    }

    /// Builds the component. The one before it is kept for the comparison.
    fn build(&mut self) -> Result<bool> {
        let args = self.args;
        let current = component_file(&args.folder).ok();
        let kept = self.scratch.path().join("before.wasm");
        if let Some(current) = current {
            fs::copy(&current, &kept)
                .with_context(|| format!("cannot copy {}", current.display()))?;
        }
        let code = build::run(&BuildArgs {
            folder: args.folder.clone(),
            out: None,
            sdk: args.sdk.clone(),
            json: args.json,
        })?;
        if code == exit::OK && kept.is_file() {
            self.before = Some(kept);
        }
        Ok(code == exit::OK)
    }

    fn test(&self) -> Result<bool> {
        let folder = &self.args.folder;
        if !folder.join("cases").is_dir() {
            self.show_message("note", "no cases found: folder `cases` is missing");
            return Ok(true);
        }
        let code = test::run(&TestArgs {
            component: folder.display().to_string(),
            cases: None,
            bless: false,
            only: Vec::new(),
            json: self.args.json,
        })?;
        Ok(code == exit::OK)
    }

    /// Shows the difference that the build makes for a document, or the answers about it.
    fn show(&self, component: &Path, document: &str) -> Result<()> {
        let args = self.args;
        let new = self.selected(component);
        let before = self.before.as_deref().map(|before| self.selected(before));
        match args.against.clone().or(before) {
            Some(old) => diff::run(
                &DiffArgs {
                    old,
                    new,
                    warc: vec![document.to_owned()],
                    settings: args.settings.clone(),
                    new_settings: None,
                    material: args.material.clone(),
                    question: args.question.clone(),
                    json: args.json,
                },
                self.runtime,
            )?,
            None => run::run(
                &RunArgs {
                    plugin: new,
                    what: Some(document.to_owned()),
                    page: PageArgs::default(),
                    material: args.material.clone(),
                    settings: args.settings.clone(),
                    question: args.question.clone(),
                    fragments: false,
                    json: args.json,
                },
                self.runtime,
            )?,
        };
        Ok(())
    }

    /// Replaces the plugin in the job, unless a case has failed.
    fn replace(&self, job: &Path, component: &Path, passed: bool) -> Result<()> {
        if !passed {
            self.show_message("note", "the job keeps its plugin: cases fail");
            return Ok(());
        }
        let stem = component.file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        replace::run(&ReplaceArgs {
            target: JobTarget {
                job: job.to_owned(),
                json: self.args.json,
            },
            plugin: self.args.plugin.clone().unwrap_or(name),
            component: self.selected(component),
            settings: None,
            sha256: None,
        })?;
        Ok(())
    }

    /// Returns the argument that names the plugin in a component.
    fn selected(&self, component: &Path) -> String {
        // A bare file name could be that of a shipped plugin.
        let component = component.canonicalize();
        let path = component.unwrap_or_default().display().to_string();
        match &self.args.select {
            Some(name) => format!("{path}#{name}"),
            None => path,
        }
    }
}
