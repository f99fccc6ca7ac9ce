//! `opilio plugin bench`: time and memory of a plugin on documents, compared with another plugin if one is given.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::HumanBytes;
use opilio_sandbox::Plugin;
use serde_json::json;
use tokio::runtime::Handle;

use super::documents::{MaterialArgs, each};
use super::trial::{KindName, Prepared, QuestionArgs, Trial};
use super::workbench::{Workbench, settings};
use super::{note, say, table};
use crate::exit;
use crate::terminal::spinner;

/// Most content that is held in memory for measuring. Further documents are left out, with a note.
const CONTENT_BYTES_HELD: usize = 512 << 20;

/// The command line.
#[derive(Debug, Args)]
#[command(
    override_usage = "opilio plugin bench [OPTIONS] A [B] FILE|WARC|DIR",
    after_help = "\
Every call runs in a fresh instance, as in a crawl. Two plugins are called alternately, document by document, so that other
load of the machine affects both. The time of a document is the shortest of its rounds; memory is the maximum over all
calls. Build opilio with --release."
)]
pub(super) struct BenchArgs {
    /// Plugin to measure.
    #[arg(value_name = "A")]
    plugin: String,
    /// Second plugin to compare with; without a third argument, the documents.
    #[arg(value_name = "B|FILE")]
    second: String,
    /// Documents to measure on: file, WARC file or folder.
    #[arg(value_name = "FILE|WARC|DIR")]
    third: Option<String>,
    /// Number of rounds per document.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Settings of all plugins: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    settings: Option<String>,
    #[command(flatten)]
    material: MaterialArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// A plugin that is measured.
struct Runner {
    named: String,
    trial: Trial,
    documents: Vec<Prepared>,
    times: Vec<Duration>,
}

/// The measurements of a plugin.
struct Figures {
    named: String,
    kind: &'static str,
    documents: usize,
    bytes: usize,
    total: Duration,
    median: Duration,
    p90: Duration,
    max: Duration,
    memory: u64,
    faults: u64,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, runtime: &Handle) -> Result<u8> {
    // Three arguments of their own rather than a list, so that options may come between them.
    let (plugins, material) = match &args.third {
        Some(material) => (vec![&args.plugin, &args.second], material),
        None => (vec![&args.plugin], &args.second),
    };
    let workbench = Workbench::new()?;
    let mut runners = Vec::new();
    for named in plugins {
        let subject = workbench.load(named)?;
        let plugin = subject.configure(
            subject.sole()?,
            &settings(args.settings.as_deref())?,
            args.question.limits(),
        )?;
        runners.push(Runner {
            named: named.clone(),
            trial: Trial::new(plugin, &args.question, false, || workbench.extractors())?,
            documents: Vec::new(),
            times: Vec::new(),
        });
    }
    hold(args, material, runtime, &mut runners)?;
    for runner in &runners {
        ensure!(
            !runner.documents.is_empty(),
            "{} handles no document of {material}",
            runner.named
        );
    }
    let kind = runners[0].trial.kinds[0];
    if let Some(other) = runners.iter().find(|one| !one.trial.kinds.contains(&kind)) {
        anyhow::bail!(
            "{} is not of the kind {}: compare plugins of one kind, or select the kind with --kind",
            other.named,
            kind.word()
        );
    }
    measure(args.rounds, kind, &mut runners);
    let figures: Vec<Figures> = runners.iter().map(|one| one.figures(kind)).collect();
    let faults: u64 = figures.iter().map(|one| one.faults).sum();
    say(&match args.json {
        true => as_json(&figures),
        false => as_text(&figures),
    })?;
    Ok(match faults {
        0 => exit::OK,
        _ => exit::FAILED,
    })
}

/// Gives each plugin the documents that it handles.
fn hold(args: &BenchArgs, what: &str, runtime: &Handle, runners: &mut [Runner]) -> Result<()> {
    let (mut bytes, mut left_out) = (0, 0);
    each(what, &args.material, runtime, &mut |material| {
        let handling = runners.iter_mut();
        for runner in handling.filter(|one| one.trial.handles(&material.sample)) {
            let prepared = runner.trial.prepare(material.clone());
            if bytes + prepared.visit.bytes() > CONTENT_BYTES_HELD {
                left_out += 1;
                break;
            }
            bytes += prepared.visit.bytes();
            runner.trial.finish_visit(&prepared);
            runner.documents.push(prepared);
        }
        Ok(())
    })?;
    if left_out > 0 {
        let mib = CONTENT_BYTES_HELD >> 20;
        note(&format!(
            "left out {left_out} documents above the limit of {mib} MiB"
        ));
    }
    Ok(())
}

/// Runs all rounds on all documents, with the plugins in turn.
fn measure(rounds: u32, kind: KindName, runners: &mut [Runner]) {
    let spinner = spinner("measuring");
    let documents = runners.iter().map(|one| one.documents.len()).max();
    for at in 0..documents.unwrap_or(0) {
        let mut shortest = vec![None; runners.len()];
        for round in 0..=rounds {
            for (runner, shortest) in runners.iter_mut().zip(&mut shortest) {
                let Some(prepared) = runner.documents.get_mut(at) else {
                    continue;
                };
                prepared.visit.renew();
                let question = runner.trial.question(kind, prepared);
                // The host decodes, once for all plugins.
                question.decode();
                let begun = Instant::now();
                // The plugin's statistics count its errors.
                let _ = runner.trial.call(&question, prepared);
                let took = begun.elapsed();
                // The first round warms up.
                if round > 0 {
                    *shortest = Some(shortest.map_or(took, |known: Duration| known.min(took)));
                }
            }
        }
        for (runner, shortest) in runners.iter_mut().zip(shortest) {
            runner.times.extend(shortest);
        }
    }
    spinner.finish_and_clear();
}

impl Runner {
    fn figures(&self, kind: KindName) -> Figures {
        let plugin: &Plugin = &self.trial.plugin;
        let statistics = plugin.statistics();
        let mut times = self.times.clone();
        times.sort_unstable();
        let quantile = |percent: usize| {
            let at = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(at).copied().unwrap_or_default()
        };
        Figures {
            named: self.named.clone(),
            kind: kind.word(),
            documents: self.documents.len(),
            bytes: self.documents.iter().map(|one| one.visit.bytes()).sum(),
            total: times.iter().sum(),
            median: quantile(50),
            p90: quantile(90),
            max: quantile(100),
            memory: statistics.memory_max,
            faults: statistics.faults_all(),
        }
    }
}

impl Figures {
    fn bytes_a_second(&self) -> f64 {
        self.bytes as f64 / self.total.as_secs_f64().max(1e-9)
    }
}

fn ratio(one: &Figures, to: &Figures) -> f64 {
    let each = |of: &Figures| of.total.as_secs_f64() / of.documents.max(1) as f64;
    each(one) / each(to).max(1e-12)
}

fn as_text(figures: &[Figures]) -> String {
    let heading = [
        "plugin",
        "documents",
        "median",
        "p90",
        "longest",
        "MiB/s",
        "memory",
        "errors",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in figures {
        rows.push(vec![
            one.named.clone(),
            one.documents.to_string(),
            micros(one.median),
            micros(one.p90),
            micros(one.max),
            format!("{:.1}", one.bytes_a_second() / f64::from(1 << 20)),
            HumanBytes(one.memory).to_string(),
            one.faults.to_string(),
        ]);
    }
    let mut text = table(&rows, 0);
    if let [a, b] = figures {
        text += &format!(
            "B ({}) takes {:.2} times as long per document as A ({})\n",
            b.named,
            ratio(b, a),
            a.named
        );
    }
    text
}

fn micros(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        few if few < 100.0 => format!("{few:.1} µs"),
        some if some < 100_000.0 => format!("{some:.0} µs"),
        many => format!("{:.0} ms", many / 1000.0),
    }
}

/// Formats the figures as an object on a line for each component.
fn as_json(figures: &[Figures]) -> String {
    let first = figures.first();
    let lines = figures.iter().map(|one| {
        let object = json!({
            "plugin": one.named,
            "kind": one.kind,
            "documents": one.documents,
            "bytes": one.bytes,
            "median_s": one.median.as_secs_f64(),
            "p90_s": one.p90.as_secs_f64(),
            "longest_s": one.max.as_secs_f64(),
            "megabytes_per_second": one.bytes_a_second() / 1e6,
            "memory_bytes": one.memory,
            "faults": one.faults,
            "ratio": first.map(|first| ratio(one, first)),
        });
        format!("{object}\n")
    });
    lines.collect()
}
