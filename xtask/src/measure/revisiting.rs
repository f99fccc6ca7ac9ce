//! `cargo xtask measure revisiting`: results of wait evaluators on the shipped scenarios, as shares of the best plan's results. The
//! best plan knows the rate of change of each page. docs/REVISITING.md has the tables.
//!
//! Evaluators are the profiles in `host/simulate/evaluators`. `--profile` adds others.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::command;
use crate::repository::root;

/// In the table's order: first webs whose pages are all known, then webs that resemble real ones.
const SCENARIOS: [&str; 9] = [
    "poisson",
    "rhythm",
    "bursts",
    "feeds",
    "thesis",
    "government",
    "blogs",
    "dead-archive",
    "hostile",
];

/// Profiles in `host/simulate/evaluators`.
const EVALUATORS: [&str; 7] = [
    "budgeted-1",
    "budgeted-0",
    "poisson",
    "adaptive",
    "nutch",
    "stormcrawler",
    "fixed",
];

/// Visits per page and day.
const BUDGETS: [f64; 2] = [1.0, 0.1];

/// File in the report folder with the SHA-256 of the program that made the reports.
const PROGRAM_DIGEST: &str = "program.sha256";

/// Options of `cargo xtask measure revisiting`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure only these scenarios: names of shipped ones, or TOML files [default: all of the table].
    #[arg(value_name = "SCENARIO")]
    only: Vec<String>,
    /// Visits per page and day; several may be given [default: 1 and 0.1].
    #[arg(long, value_name = "VISITS")]
    budget: Vec<f64>,
    /// A profile to measure in addition to those of the table; several may be given.
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<PathBuf>,
    /// Days of each simulation, in place of the scenario's.
    #[arg(long)]
    days: Option<f64>,
    /// The web's seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Store each report in this folder, and reuse existing ones. All must be of one build of `opilio`.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// An `opilio` to measure [default: the release build].
    #[arg(long, value_name = "PROGRAM")]
    opilio: Option<PathBuf>,
}

/// The parts that are used of a report of `opilio simulate --json`.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    freshness: f64,
    captures: f64,
    pages: u64,
    starved: u64,
    longest_interval: f64,
    budget_used: f64,
    oracle: Oracle,
    visits: Visits,
}

#[derive(Clone, Debug, Deserialize)]
struct Oracle {
    freshness: f64,
    captures: f64,
    freshness_tried: f64,
    captures_tried: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Visits {
    too_soon: u64,
    overdue: f64,
    faults: u64,
}

/// Results with one budget: a row for each scenario, with a report for each evaluator.
struct Table {
    budget: f64,
    evaluators: Vec<String>,
    rows: Vec<(String, Vec<Report>)>,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let opilio = match &options.opilio {
        Some(opilio) => opilio.clone(),
        None => command::release("opilio")?,
    };
    if let Some(folder) = &options.keep {
        reserve_folder(folder, &opilio)?;
    }
    let names = SCENARIOS.map(str::to_owned);
    let scenarios = or_all(&options.only, &names);
    let budgets = or_all(&options.budget, &BUDGETS);
    let folder = root().join("host/simulate/evaluators");
    let ours = EVALUATORS.map(|name| folder.join(name).with_extension("toml"));
    let profiles: Vec<&PathBuf> = ours.iter().chain(&options.profile).collect();
    for budget in budgets {
        let mut table = Table {
            budget: *budget,
            evaluators: profiles.iter().map(|path| stem(path)).collect(),
            rows: Vec::new(),
        };
        for scenario in scenarios {
            let reports = profiles
                .iter()
                .map(|profile| report(&opilio, scenario, *budget, profile, options));
            let reports = reports.collect::<Result<Vec<_>>>()?;
            table.rows.push((stem(Path::new(scenario)), reports));
        }
        println!("{}", table.as_markdown());
    }
    Ok(())
}

/// Reserves a folder for reports of one program. Rows of several builds cannot be compared.
fn reserve_folder(folder: &Path, program: &Path) -> Result<()> {
    let content =
        fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let digest: String = Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    fs::create_dir_all(folder)?;
    let file = folder.join(PROGRAM_DIGEST);
    if !file.exists() {
        fs::write(&file, &digest)?;
    }
    let known = fs::read_to_string(&file)?;
    ensure!(
        known == digest,
        "{} has reports of another build of opilio; name another folder, or that build with --opilio",
        folder.display()
    );
    Ok(())
}

fn or_all<'a, T>(some: &'a [T], all: &'a [T]) -> &'a [T] {
    if some.is_empty() { all } else { some }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Simulates one scenario with one profile, or reads the stored report.
#[expect(clippy::print_stderr, reason = "progress of the command")]
fn report(
    opilio: &Path,
    scenario: &str,
    budget: f64,
    profile: &Path,
    options: &Options,
) -> Result<Report> {
    let name = options.report_name(scenario, budget, profile);
    let kept = options.keep.as_ref().map(|folder| folder.join(&name));
    let text = match &kept {
        Some(kept) if kept.exists() => fs::read_to_string(kept)?,
        _ => {
            eprintln!("{scenario}, {budget} visits: {}", stem(profile));
            let mut simulate = Command::new(opilio);
            simulate.args(["simulate", scenario, "--json", "--profile"]);
            simulate.arg(profile);
            simulate.args(["--budget", &budget.to_string()]);
            simulate.args(["--seed", &options.seed.to_string()]);
            if let Some(days) = options.days {
                simulate.args(["--days", &days.to_string()]);
            }
            command::output(&mut simulate)?
        }
    };
    let report: Report = serde_json::from_str(&text).with_context(|| format!("in {name}"))?;
    ensure!(
        report.visits.faults == 0,
        "{name}: plugin calls failed, so the report does not show what the evaluator can do"
    );
    if let Some(kept) = kept.filter(|kept| !kept.exists()) {
        fs::write(kept, text)?;
    }
    Ok(report)
}

impl Options {
    /// Returns the file name of a stored report. It differs for all options that change the simulation.
    fn report_name(&self, scenario: &str, budget: f64, profile: &Path) -> String {
        let scenario = stem(Path::new(scenario));
        let profile = stem(profile);
        let days = self
            .days
            .map(|days| format!("-{days}-days"))
            .unwrap_or_default();
        format!(
            "{scenario}-{budget}-{profile}-seed-{}{days}.json",
            self.seed
        )
    }
}

impl Report {
    /// Freshness and captured versions, as shares of those of the best plan, simulated on the same web. Formula results are not an
    /// upper bound if changes are not Poisson processes.
    fn of_best(&self) -> (f64, f64) {
        (
            self.freshness / self.oracle.freshness_tried,
            self.captures / self.oracle.captures_tried,
        )
    }
}

impl Table {
    /// Two tables: the evaluators' shares of the best plan, and their costs.
    fn as_markdown(&self) -> String {
        let mut text = format!("{} visits per page and day\n\n", self.budget);
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let evaluators = self.evaluators.join(" | ");
        let _ = writeln!(text, "| | formula, % | best, % | {evaluators} |");
        let _ = writeln!(
            text,
            "|---|---|---|{}",
            "---|".repeat(self.evaluators.len())
        );
        for (scenario, reports) in &self.rows {
            let _ = write!(text, "| {scenario} |");
            if let Some(Report { oracle, .. }) = reports.first() {
                for (fresh, captured) in [
                    (oracle.freshness, oracle.captures),
                    (oracle.freshness_tried, oracle.captures_tried),
                ] {
                    let _ = write!(text, " {} / {} |", percent(fresh), percent(captured));
                }
            }
            for report in reports {
                let (fresh, captured) = report.of_best();
                let _ = write!(text, " {} / {} |", percent(fresh), percent(captured));
            }
            text.push('\n');
        }
        text.push_str(
            "\n| | budget used, % | overdue, days | starved, % | longest interval, days | too soon |\n|---|---|---|---|---|---|\n",
        );
        for (index, evaluator) in self.evaluators.iter().enumerate() {
            let reports = self.rows.iter().map(|(_, reports)| &reports[index]);
            let most = |value: fn(&Report) -> f64| reports.clone().map(value).fold(0.0, f64::max);
            let used = reports.clone().map(|report| report.budget_used);
            let least = used.fold(f64::INFINITY, f64::min);
            let too_soon: u64 = reports.clone().map(|report| report.visits.too_soon).sum();
            let _ = writeln!(
                text,
                "| {evaluator} | {:.0} to {:.0} | {:.2} | {} | {:.0} | {too_soon} |",
                100.0 * least,
                100.0 * most(|report| report.budget_used),
                most(|report| report.visits.overdue),
                percent(most(
                    |report| report.starved as f64 / report.pages.max(1) as f64
                )),
                most(|report| report.longest_interval),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64, days: Option<f64>) -> Options {
        Options {
            only: Vec::new(),
            budget: Vec::new(),
            profile: Vec::new(),
            days,
            seed,
            keep: None,
            opilio: None,
        }
    }

    #[test]
    fn report_names_differ_for_different_simulations() {
        let profile = Path::new("evaluators/budgeted-0.toml");
        let name = |seed, days| options(seed, days).report_name("webs/my-web.toml", 0.1, profile);
        assert_eq!(name(1, None), "my-web-0.1-budgeted-0-seed-1.json");
        assert_eq!(name(2, None), "my-web-0.1-budgeted-0-seed-2.json");
        assert_eq!(
            name(1, Some(45.0)),
            "my-web-0.1-budgeted-0-seed-1-45-days.json"
        );
    }

    #[test]
    fn a_report_folder_belongs_to_one_build() {
        let home = tempfile::tempdir().unwrap();
        let [program, other] = ["one", "other"].map(|build| {
            let program = home.path().join(build);
            fs::write(&program, build).unwrap();
            program
        });
        let folder = home.path().join("new/reports");
        reserve_folder(&folder, &program).unwrap();
        reserve_folder(&folder, &program).unwrap();
        let error = reserve_folder(&folder, &other).unwrap_err().to_string();
        assert!(error.contains("another build of opilio"), "{error}");
    }

    fn report(freshness: f64, captures: f64, too_soon: u64) -> Report {
        let text = format!(
            r#"{{"freshness": {freshness}, "captures": {captures}, "pages": 200, "starved": 3, "longest_interval": 41.5,
                "budget_used": 0.97, "versions": 7,
                "oracle": {{"freshness": 0.8, "captures": 0.5, "freshness_tried": 0.75, "captures_tried": 0.6}},
                "visits": {{"too_soon": {too_soon}, "overdue": 0.25, "faults": 0, "requests": 9}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_table_has_shares_of_the_best_plan_and_maximum_costs() {
        let table = Table {
            budget: 0.1,
            evaluators: vec!["one".to_owned(), "other".to_owned()],
            rows: vec![
                (
                    "poisson".to_owned(),
                    vec![report(0.72, 0.3, 0), report(0.4, 0.6, 2)],
                ),
                (
                    "bursts".to_owned(),
                    vec![report(0.8, 0.6, 0), report(0.2, 0.15, 3)],
                ),
            ],
        };
        let expected = "\
0.1 visits per page and day

| | formula, % | best, % | one | other |
|---|---|---|---|---|
| poisson | 80.0 / 50.0 | 75.0 / 60.0 | 96.0 / 50.0 | 53.3 / 100.0 |
| bursts | 80.0 / 50.0 | 75.0 / 60.0 | 106.7 / 100.0 | 26.7 / 25.0 |

| | budget used, % | overdue, days | starved, % | longest interval, days | too soon |
|---|---|---|---|---|---|
| one | 97 to 97 | 0.25 | 1.5 | 42 | 0 |
| other | 97 to 97 | 0.25 | 1.5 | 42 | 5 |
";
        assert_eq!(table.as_markdown(), expected);
    }
}
