//! `opilio plugin build`: from a crate to a component, beside its `Cargo.toml`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::workbench::Workbench;
use super::{note, say};
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// The folder of a plugin crate.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// The component's file [default: DIR/CRATE.wasm].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &BuildArgs) -> Result<u8> {
    let folder = &args.folder;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("no folder {}", folder.display()))?;
    if let Some(language) = other_language(&folder) {
        ensure!(
            folder.join("Cargo.toml").is_file(),
            "{} looks like {language}; `plugin build` builds Rust so far",
            folder.display()
        );
    }
    let built = match opilio_build::build(&folder) {
        Ok(built) => built,
        // The compiler has said what is wrong with the crate.
        Err(problem @ opilio_build::BuildError::Compile { .. }) => {
            note(&format!("opilio: {problem}"));
            return Ok(exit::FAILED);
        }
        Err(problem) => return Err(problem.into()),
    };
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| args.folder.join(format!("{}.wasm", built.name)));
    // What a crawl would refuse is said now, and a file that was good stays.
    let component = Workbench::new()?
        .load_bytes(&built.component, &file.display().to_string())
        .context("nothing is written")?;
    let unfinished = file.with_extension("wasm.new");
    fs::write(&unfinished, &built.component)
        .and_then(|()| fs::rename(&unfinished, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let names = built.plugins.join(", ");
    let kilobytes = built.component.len().div_ceil(1024);
    let sha256 = component.sha256();
    say(&match args.json {
        true => format!(
            "{}\n",
            json!({"component": file, "bytes": built.component.len(), "sha256": sha256, "plugins": built.plugins})
        ),
        false => format!(
            "{}: {kilobytes} KB, with {names}\nsha256 {sha256}\n",
            file.display()
        ),
    })?;
    Ok(exit::OK)
}

/// What another language's project has in its folder.
fn other_language(folder: &std::path::Path) -> Option<&'static str> {
    let marks = [
        ("package.json", "JavaScript or TypeScript"),
        ("pyproject.toml", "Python"),
        ("go.mod", "Go"),
        ("Makefile", "C"),
    ];
    let found = marks
        .into_iter()
        .find(|(file, _)| folder.join(file).is_file());
    found.map(|(_, language)| language)
}
