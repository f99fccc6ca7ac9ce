//! `cargo xtask examples`: everything that is said of plugins in other languages, built and tried.
//!
//! Fetches toolchains from package registries into `target/toolchains` (Go's comes with the machine), runs the SDKs' own
//! tests, builds every example and a new plugin of every kind in every language, puts their golden cases to them natively
//! and to the components, and has them crawl: five languages read one page, each what the one before handed on; the
//! examples archive a small site; and plugins go wrong in every way there is. `--measure` prints the table in
//! `docs/PLUGINS.md` instead: the same extractor in all of them on the same pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use opilio_build::Language;

use crate::repository::root;

mod crawls;
mod measured;
mod native;
mod steps;
mod toolchains;

use steps::{Steps, quietly};

/// Languages as `plugin new` knows them, Rust aside: its template is built by the tests.
const TEMPLATES: [&str; 6] = ["c", "cpp", "go", "js", "ts", "python"];
const KINDS: [&str; 7] = [
    "extractor",
    "filter",
    "digest-stripper",
    "change-evaluator",
    "wait-evaluator",
    "precedence",
    "observer",
];

/// Projects in `tests/languages` that reach for clocks, files and sockets: their cases say that a component finds none.
const INERT: [&str; 2] = ["inert-c", "inert-go"];

/// Options of `cargo xtask examples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the table that compares the languages, and nothing else.
    #[arg(long)]
    measure: bool,
    /// A program to build and measure with, such as a release build, instead of one made for it.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
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
    let opilio = opilio.as_path();

    // What needs nothing that has to be fetched runs beside the fetching.
    let mut first = Steps::default();
    toolchains::fetch(&mut first);
    native::sdks_at_hand(&mut first);
    let (of_go, others): (Vec<_>, Vec<_>) = examples
        .iter()
        .partition(|folder| Language::of(folder) == Some(Language::Go));
    for folder in of_go {
        project(&mut first, opilio, folder);
    }
    template(&mut first, opilio, &home, "go");
    let first = first.run()?;

    // The longest first, so that none of them is left for the end: dependencies are compiled for Rust's, and components of
    // 18 MB for Python's.
    let mut second = Steps::default();
    let (of_rust, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|folder| Language::of(folder) == Some(Language::Rust));
    for folder in of_rust {
        project(&mut second, opilio, folder);
    }
    native::sdks_with_tools(&mut second, opilio);
    for folder in others {
        project(&mut second, opilio, folder);
    }
    let languages = root().join("tests/languages");
    project(&mut second, opilio, &languages.join("cpp"));
    for name in INERT {
        component(&mut second, opilio, &languages.join(name));
    }
    for language in TEMPLATES.into_iter().filter(|language| *language != "go") {
        template(&mut second, opilio, &home, language);
    }
    crawls::components(&mut second, opilio, &home);
    let second = second.run()?;

    let mut crawls = Steps::default();
    crawls::crawls(&mut crawls, opilio, &home);
    let crawls = crawls.run()?;

    print!("{}", steps::summary(&[first, second, crawls]));
    println!(
        "examples: {} built and their cases hold, natively and as components; new plugins of every kind in {} languages build and \
         hold theirs; they crawled, and what goes wrong is said",
        examples.len(),
        TEMPLATES.len(),
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

/// What a folder holds, by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

/// What steps call the language of a project.
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
    quietly(Command::new(opilio).args(["plugin", "build"]).arg(folder))?;
    quietly(Command::new(opilio).args(["plugin", "test"]).arg(folder))
}

/// A plugin of every kind as it is made: its cases as its README says, its component, its cases there.
fn template(steps: &mut Steps, opilio: &Path, home: &Path, language: &'static str) {
    let opilio = opilio.to_owned();
    let name = format!("every-kind-{language}");
    let folder = home.join("new").join(&name);
    steps.add(language_of_template(language), name.clone(), move || {
        fs::create_dir_all(home_of(&folder)?)?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut new = Command::new(&opilio);
        new.args(["plugin", "new", "--lang", language, "--dir"]);
        new.arg(&folder);
        for kind in KINDS {
            new.args(["--kind", kind]);
        }
        quietly(new.arg(&name))?;
        native::cases(&folder)?;
        build_and_test(&opilio, &folder)
    });
}

fn language_of_template(language: &str) -> &'static str {
    match language {
        "c" | "cpp" => Language::C.name(),
        "go" => Language::Go.name(),
        "js" => Language::JavaScript.name(),
        "ts" => Language::TypeScript.name(),
        _ => Language::Python.name(),
    }
}

fn home_of(folder: &Path) -> Result<&Path> {
    folder.parent().context("a project in no folder")
}
