//! `cargo xtask examples`: everything that is said of plugins in other languages, built and tried.
//!
//! Fetches toolchains from package registries into `target/toolchains` (Go's comes with the machine), runs the SDKs' own
//! tests, builds every example and new plugins of every kind in every language, puts their golden cases to them natively
//! and to the components, and has them crawl: every language reads one page, each what the one before handed on; new
//! plugins do what their templates say; the examples archive a small site; and plugins go wrong in every way there is.
//! What the book and READMEs tell people to type is run as it stands there. `--measure` prints the table in
//! `docs/PLUGINS.md` instead: the same extractor in all of them on the same pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use opilio_build::Language;

use crate::repository::root;

mod browser;
mod crawl;
mod crawls;
mod measured;
mod native;
mod packed;
mod projects;
mod steps;
mod toolchains;
mod written;

use steps::{Steps, quietly};

/// Projects in `tests/languages` that reach for clocks, files and sockets: their cases say that a component finds none.
const INERT: [&str; 3] = ["inert-c", "inert-cpp", "inert-go"];

/// Options of `cargo xtask examples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the table that compares the languages, and nothing else.
    #[arg(long)]
    measure: bool,
    /// A program to build and measure with, such as a release build, instead of one made for it.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Run those steps alone whose line, such as "C: link-scan", holds this text. What a step needs of others must be there.
    #[arg(long, value_name = "TEXT", conflicts_with = "measure")]
    only: Option<String>,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn run(options: &Options) -> Result<()> {
    let opilio = match &options.opilio {
        Some(file) => file
            .canonicalize()
            .with_context(|| format!("no program {}", file.display()))?,
        None => crate::judges::build_opilio()?,
    };
    if options.measure {
        let mut fetching = Steps::default();
        toolchains::fetch(&mut fetching);
        fetching.run()?;
        println!("{}", measured::table(&opilio)?);
        return Ok(());
    }
    let home = root().join("target/toolchains");
    let examples = examples()?;
    let (opilio, only) = (opilio.as_path(), options.only.as_deref());

    // What needs nothing that has to be fetched runs beside the fetching.
    let mut first = Steps::default();
    toolchains::fetch(&mut first);
    native::sdk_of_c(&mut first);
    written::own_tests(&mut first, opilio, |language| language != Language::Python);
    let (of_go, others): (Vec<_>, Vec<_>) = examples
        .iter()
        .partition(|folder| Language::of(folder) == Some(Language::Go));
    for folder in of_go {
        project(&mut first, opilio, folder);
    }
    let (of_go, new): (Vec<_>, Vec<_>) = projects::TEMPLATES
        .into_iter()
        .partition(|template| template.language == Language::Go);
    for of_go in of_go {
        projects::of_every_kind(&mut first, opilio, &home, of_go);
        projects::of_one_kind(&mut first, opilio, &home, of_go);
    }
    projects::formatted(&mut first, opilio, &home);
    let first = first.only(only).run()?;

    // The longest first, so that none of them is left for the end: dependencies are compiled for Rust's, and components of
    // 18 MB for Python's.
    let mut second = Steps::default();
    let (of_rust, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|folder| Language::of(folder) == Some(Language::Rust));
    for folder in of_rust {
        project(&mut second, opilio, folder);
    }
    let (of_rust, new): (Vec<_>, Vec<_>) = new
        .into_iter()
        .partition(|template| template.language == Language::Rust);
    for of_rust in of_rust {
        projects::of_every_kind(&mut second, opilio, &home, of_rust);
        projects::of_one_kind(&mut second, opilio, &home, of_rust);
    }
    written::own_tests(&mut second, opilio, |language| language == Language::Python);
    native::sdk_of_javascript(&mut second, opilio);
    for folder in others {
        project(&mut second, opilio, folder);
    }
    let languages = root().join("tests/languages");
    project(&mut second, opilio, &languages.join("cpp-library"));
    for name in INERT {
        component(&mut second, opilio, &languages.join(name));
    }
    for other in new {
        projects::of_every_kind(&mut second, opilio, &home, other);
        projects::of_one_kind(&mut second, opilio, &home, other);
    }
    packed::sdks(&mut second, opilio, &home);
    written::first_plugin(&mut second, opilio, &home);
    crawls::components(&mut second, opilio, &home);
    let second = second.only(only).run()?;

    let mut crawls = Steps::default();
    crawls::crawls(&mut crawls, opilio, &home);
    browser::crawl(&mut crawls, opilio, &home);
    projects::crawls(&mut crawls, opilio, &home);
    let crawls = crawls.only(only).run()?;

    print!("{}", steps::summary(&[first, second, crawls]));
    if only.is_some() {
        return Ok(());
    }
    println!(
        "examples: {} built and their cases hold, natively and as components; new plugins of every kind in {} languages build and \
         hold theirs; they crawled, and what goes wrong is said",
        examples.len(),
        projects::TEMPLATES.len(),
    );
    Ok(())
}

/// Folders in `plugins/examples/LANGUAGE` that hold a project.
fn examples() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for language in sorted(&root().join("plugins/examples"))? {
        if language.is_dir() {
            found.extend(sorted(&language)?);
        }
    }
    found.retain(|folder| Language::of(folder).is_some());
    Ok(found)
}

/// Entries of a folder, by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

/// Makes a command compile projects in Rust into one folder, so that they share their dependencies, and without what only
/// debuggers and later builds need.
fn sharing_crates(command: &mut Command) -> &mut Command {
    command
        .env("CARGO_TARGET_DIR", root().join("target/toolchains/crates"))
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
}

/// Name of a project's language in steps.
fn language(folder: &Path) -> &'static str {
    Language::of(folder).map_or("other", Language::name)
}

/// A project's cases, natively; its component, and the same cases again.
fn project(steps: &mut Steps, opilio: &Path, folder: &Path) {
    let (opilio, project) = (opilio.to_owned(), folder.to_owned());
    steps.add(language(folder), named(folder), move || {
        native::cases(&project)?;
        build_and_test(&opilio, &project)
    });
}

/// A project's component and its cases.
fn component(steps: &mut Steps, opilio: &Path, folder: &Path) {
    let (opilio, project) = (opilio.to_owned(), folder.to_owned());
    steps.add(language(folder), named(folder), move || {
        build_and_test(&opilio, &project)
    });
}

/// The name of its folder.
fn named(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn build_and_test(opilio: &Path, folder: &Path) -> Result<()> {
    let mut build = Command::new(opilio);
    build.args(["plugin", "build"]).arg(folder);
    quietly(sharing_crates(&mut build))?;
    quietly(Command::new(opilio).args(["plugin", "test"]).arg(folder))
}
