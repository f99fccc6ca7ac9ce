//! `cargo xtask measure …`. `revisiting` measures wait evaluators (`revisiting.rs`).
//!
//! `cargo xtask measure extraction`: recall and precision of the extractors on real documents (`corpus`).
//!
//! The extractors run natively here, from the crates that the components are built from (`ours`). Scripts in
//! `tests/judges/extraction` read the same files with third-party parsers, and print the links that these find. Both lists are
//! compared as multisets of lines (`comparison`).

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use self::comparison::{Comparison, Facts};
use self::corpus::Kind;
use crate::registries;
use crate::repository::root;

mod comparison;
mod corpus;
mod ours;
mod revisiting;

/// Third-party parsers for Python.
const PYTHON_PACKAGES: [&str; 2] = ["lxml==6.1.3", "pypdf==7.1.0"];

/// Third-party parsers for Node.
const NODE_PACKAGES: [&str; 4] = [
    "parse5@8.0.1",
    "parse-srcset@1.0.2",
    "css-tree@3.2.1",
    "acorn@8.15.0",
];

/// Measurements.
#[derive(clap::Subcommand)]
pub(crate) enum Measure {
    /// Recall and precision of the extractors on real documents, compared with third-party parsers.
    Extraction(Options),
    /// Results of wait evaluators on synthetic webs, as shares of the best plan's results.
    Revisiting(revisiting::Options),
}

/// Options of `cargo xtask measure extraction`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure only these kinds [default: all].
    #[arg(value_name = "KIND")]
    only: Vec<Kind>,
    /// Documents of each kind, if the packages have that many.
    #[arg(long, default_value_t = 2_000)]
    documents: usize,
    /// Number of disagreements that are shown of each class.
    #[arg(long, default_value_t = 3)]
    samples: usize,
    /// Write all lines of both sides to this folder, one file for each kind.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<std::path::PathBuf>,
}

/// Runs the command.
pub(crate) fn run(measure: &Measure) -> Result<()> {
    match measure {
        Measure::Extraction(options) => extraction(options),
        Measure::Revisiting(options) => revisiting::run(options),
    }
}

#[expect(clippy::print_stdout, reason = "the result of the command")]
fn extraction(options: &Options) -> Result<()> {
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| options.only.is_empty() || options.only.contains(kind))
        .collect();
    let mut comparisons = Vec::new();
    for kind in kinds {
        comparisons.push((kind, compare(kind, options)?));
    }
    println!("{}", comparison::HEAD);
    for (kind, comparison) in &comparisons {
        print!("{}", comparison.rows(kind.name()));
    }
    for (kind, comparison) in &comparisons {
        print!("{}", comparison.disagreements(kind.name(), options.samples));
    }
    Ok(())
}

fn compare(kind: Kind, options: &Options) -> Result<Comparison> {
    let documents = corpus::documents(kind, options.documents)?;
    ensure!(
        !documents.is_empty(),
        "the packages have no document of kind {}",
        kind.name()
    );
    let theirs = judged(kind, &documents)?;
    let mut comparison = Comparison::default();
    let mut kept = match &options.keep {
        Some(folder) => {
            fs::create_dir_all(folder)?;
            Some(fs::File::create(
                folder.join(format!("{}.txt", kind.name())),
            )?)
        }
        None => None,
    };
    for (document, theirs) in documents.iter().zip(theirs) {
        let bytes = fs::read(&document.path)?;
        let ours = ours::facts(kind, &bytes)?;
        if let Some(kept) = &mut kept {
            for (side, facts) in [("ours", &ours), ("theirs", &theirs.facts)] {
                for fact in facts {
                    writeln!(kept, "{}\t{side}\t{fact}", document.name)?;
                }
            }
        }
        comparison.add(&document.name, bytes.len(), &ours, &theirs);
    }
    Ok(comparison)
}

/// The facts about each document from the third-party parser.
fn judged(kind: Kind, documents: &[corpus::Document]) -> Result<Vec<Facts>> {
    let scripts = root().join("tests/judges/extraction");
    let script = kind.judge();
    let mut judge = if Path::new(script).extension().is_some_and(|it| it == "mjs") {
        let folder = registries::node(&NODE_PACKAGES)?;
        // Modules look for packages in their own folder.
        for file in fs::read_dir(&scripts)? {
            let file = file?;
            fs::copy(file.path(), folder.join(file.file_name()))?;
        }
        let mut judge = Command::new("node");
        judge.arg(folder.join(script));
        judge
    } else {
        let mut judge = Command::new(registries::python(&PYTHON_PACKAGES)?);
        judge.arg(scripts.join(script));
        judge
    };
    let list: String = documents
        .iter()
        .map(|document| format!("{}\t{}\n", document.path.display(), document.root.display()))
        .collect();
    let mut process = judge
        .arg(kind.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {:?}", judge.get_program()))?;
    let mut input = process.stdin.take().context("the judge has no input")?;
    let writer = std::thread::spawn(move || input.write_all(list.as_bytes()));
    let output = process.wait_with_output()?;
    ensure!(
        output.status.success(),
        "the judge {script} ended with {}",
        output.status
    );
    // The script has succeeded, so it has read all input. An error of the writer does not matter.
    let _ = writer.join();
    let text = String::from_utf8(output.stdout)?;
    let answers: Vec<Facts> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| format!("reading the output of {script}"))?;
    ensure!(
        answers.len() == documents.len(),
        "{script} judged {} of {} documents",
        answers.len(),
        documents.len()
    );
    Ok(answers)
}
