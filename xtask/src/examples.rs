//! `cargo xtask examples`: builds and tests everything about plugins in other languages.
//!
//! Installs toolchains from package registries into `target/toolchains` (Go's must be installed already) and runs the SDKs' own
//! tests. Builds every example, and new plugins of every kind in every language, and runs their golden cases natively and with the
//! components. Then crawls with them: plugins of all languages read one page as a chain, where each passes fragments to the next;
//! new plugins do what their templates describe; the examples archive a small site; and plugins cause every kind of plugin error.
//! Commands in the book and READMEs are run as printed. `--measure` instead prints the table in `docs/PLUGINS.md`: the same
//! extractor in all languages on the same pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use opilio_build::Language;

use crate::repository::root;

mod browser;
mod crawl;
mod crawls;
mod documented_commands;
mod measured;
mod native;
mod packed;
mod projects;
mod steps;
mod toolchains;

use steps::{Steps, run_quietly};

/// Projects in `tests/languages` that use clocks, files and sockets. Their cases check that a component gets none.
const INERT: [&str; 3] = ["inert-c", "inert-cpp", "inert-go"];

/// Options of `cargo xtask examples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only print the table that compares the languages.
    #[arg(long)]
    measure: bool,
    /// Use this program, such as a release build, instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Run only steps whose line, such as "C: link-scan", contains this text. The results of other steps that they need must exist.
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

    // Steps without downloads run while toolchains are installed.
    let mut first = Steps::default();
    toolchains::fetch(&mut first);
    native::sdk_of_c(&mut first);
    documented_commands::own_tests(&mut first, opilio, |language| language != Language::Python);
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

    // The longest steps first, so that none of them remains for the end: Rust's compile dependencies, and Python's compile
    // components of 18 MB.
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
    documented_commands::own_tests(&mut second, opilio, |language| language == Language::Python);
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
    documented_commands::first_plugin(&mut second, opilio, &home);
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
        "examples: {} built and their cases passed, natively and as components; new plugins of every kind in {} languages build and \
         passed theirs; the crawls succeeded, and plugin errors were reported",
        examples.len(),
        projects::TEMPLATES.len(),
    );
    Ok(())
}

/// Folders in `plugins/examples/LANGUAGE` that contain a project.
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

/// Makes a command compile Rust projects into one folder, so that they share their dependencies, and without debug information and
/// incremental builds.
fn sharing_crates(command: &mut Command) -> &mut Command {
    command
        .env("CARGO_TARGET_DIR", root().join("target/toolchains/crates"))
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
}

/// Name of a project's language in the list of steps.
fn language(folder: &Path) -> &'static str {
    Language::of(folder).map_or("other", Language::name)
}

/// Runs a project's cases natively, builds its component, and runs the cases again with the component.
fn project(steps: &mut Steps, opilio: &Path, folder: &Path) {
    let (opilio, project) = (opilio.to_owned(), folder.to_owned());
    steps.add(language(folder), named(folder), move || {
        native::cases(&project)?;
        build_and_test(&opilio, &project)
    });
}

/// Builds a project's component and runs its cases.
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
    run_quietly(sharing_crates(&mut build))?;
    run_quietly(Command::new(opilio).args(["plugin", "test"]).arg(folder))
}
