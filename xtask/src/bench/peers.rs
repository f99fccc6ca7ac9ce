//! `cargo xtask bench peers`: compares the cost of a crawl with other programs that fetch the same pages.
//!
//! Real pages (see `documentation`) are served from memory under two names of this machine. Opilio (the release build, the plugins
//! of the default profile, gzip WARC), wget (`-r --warc-file`) and, if its folder is given, Heritrix crawl them in alternation,
//! without politeness delays. A bare HTTP client fetches the URLs of Opilio's crawl log and discards the bodies. Each program runs
//! in a process of its own, apart from the web server, so that its processor time and memory can be measured.

mod heritrix;
mod wget;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::cost::{Cost, empty, median};
use super::measured;
use super::opilio;
use super::web::{Documentation, WebProcess};
use crate::{command, repository};

/// Rounds of the bare client in one run. More than one, because some kernels measure processor time in steps of 10 ms.
const CLIENT_ROUNDS: u64 = 10;

/// Options of `cargo xtask bench peers`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Alternating runs of each program; the medians are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Crawl with these binaries instead of building one. A second one is measured beside the first.
    #[arg(long, value_name = "FILE")]
    opilio: Vec<PathBuf>,
    /// The unpacked distribution of Heritrix 3; without it, Heritrix is not measured.
    #[arg(long, value_name = "FOLDER")]
    heritrix: Option<PathBuf>,
    /// Do not run wget.
    #[arg(long)]
    no_wget: bool,
    /// Run the programs on the first N processors only.
    #[arg(long, value_name = "N")]
    processors: Option<usize>,
    /// Serve each documentation package under N host names. A host gets one request at a time, so few hosts leave processors idle.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    copies: usize,
    /// TOML to insert into Opilio's profile, before its tables.
    #[arg(long, value_name = "TOML", default_value = "")]
    profile: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A program in the comparison.
enum Peer {
    Opilio { name: String, binary: PathBuf },
    Wget,
    Heritrix(PathBuf),
}

/// The inputs of one run.
struct Run<'a> {
    /// An empty folder.
    folder: &'a Path,
    seeds: &'a [String],
    options: &'a Options,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let home = repository::root().join("target/bench");
    fs::create_dir_all(&home)?;
    let binaries = match options.opilio.is_empty() {
        true => vec![command::release("opilio")?],
        false => options.opilio.clone(),
    };
    let peers = peers(options, binaries);
    let web = WebProcess::documentation(&Documentation {
        copies: options.copies,
        validators: false,
    })?;

    // Compiles components and loads files into memory. The first run of each program is not counted.
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); peers.len()];
    for round in 0..=options.rounds {
        for (peer, costs) in peers.iter().zip(&mut costs) {
            let folder = home.join(peer.name());
            empty(&folder)?;
            let run = Run {
                folder: &folder,
                seeds: &web.seeds,
                options,
            };
            let cost = peer
                .run(&run)
                .with_context(|| format!("running {}", peer.name()))?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let client = fetch(&web, &home.join(peers[0].name()))?;
    let mut rows: Vec<_> = peers
        .iter()
        .map(Peer::name)
        .zip(costs.iter().map(|it| median(it)))
        .collect();
    rows.push(("bare client".to_owned(), client));
    if options.json {
        let costs = rows.iter().map(|(name, cost)| (name.clone(), json!(cost)));
        let costs: serde_json::Map<_, _> = costs.collect();
        let report = &rows[0].1.report;
        println!(
            "{}",
            json!({"processors": processors(options), "peers": costs, "opilio": report})
        );
    } else {
        print!("{}", table(&rows));
        print!("\n{}", opilio::report(&rows[0].1));
        let crawls: Vec<PathBuf> = peers
            .iter()
            .filter(|peer| matches!(peer, Peer::Opilio { .. }))
            .map(|peer| home.join(peer.name()))
            .collect();
        if let [first, second, ..] = &crawls[..] {
            print!("\n{}", opilio::differences(first, second)?);
        }
    }
    Ok(())
}

fn processors(options: &Options) -> usize {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    options.processors.map_or(all, |some| some.min(all))
}

fn peers(options: &Options, binaries: Vec<PathBuf>) -> Vec<Peer> {
    let named = |(number, binary)| Peer::Opilio {
        name: match number {
            1 => "opilio".to_owned(),
            more => format!("opilio-{more}"),
        },
        binary,
    };
    let mut peers: Vec<_> = (1..).zip(binaries).map(named).collect();
    if !options.no_wget {
        peers.push(Peer::Wget);
    }
    peers.extend(options.heritrix.clone().map(Peer::Heritrix));
    peers
}

impl Peer {
    fn name(&self) -> String {
        match self {
            Peer::Opilio { name, .. } => name.clone(),
            Peer::Wget => "wget".to_owned(),
            Peer::Heritrix(_) => "heritrix".to_owned(),
        }
    }

    fn run(&self, run: &Run<'_>) -> Result<Cost> {
        match self {
            Peer::Opilio { binary, .. } => {
                let profile = opilio::profile(run.seeds, &run.options.profile);
                opilio::crawl(run.command(binary), run.folder, &profile)
            }
            Peer::Wget => wget::run(run),
            Peer::Heritrix(home) => heritrix::run(home, run),
        }
    }
}

impl Run<'_> {
    /// A command that runs on the chosen processors only.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        match self.options.processors {
            None => Command::new(program),
            Some(count) => {
                let mut command = Command::new("taskset");
                command
                    .args(["-c", &format!("0-{}", count.max(1) - 1)])
                    .arg(program);
                command
            }
        }
    }
}

/// Fetches the URLs of a crawl with the bare client.
fn fetch(web: &WebProcess, crawled: &Path) -> Result<Cost> {
    let list = crawled.join("urls.txt");
    fs::write(&list, opilio::urls(crawled)?.join("\n"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "bare-client"]).arg(list);
    command.args(["--port", &web.port.to_string()]);
    command.args(["--connections", &web.seeds.len().to_string()]);
    command.args(["--rounds", &CLIENT_ROUNDS.to_string()]);
    let measured = measured::run(&mut command)?.part(CLIENT_ROUNDS);
    let report: Value = serde_json::from_str(&measured.stdout).context("the client's report")?;
    let pages = report["pages"].as_u64().unwrap_or_default();
    Ok(Cost::of(&measured, pages, 0))
}

fn table(rows: &[(String, Cost)]) -> String {
    let mut text = format!(
        "{:<12} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n",
        "",
        "pages",
        "seconds",
        "pages/s",
        "CPU s",
        "ms/page",
        "RSS MB",
        "WARC MB",
        "CPU",
        "pages/s"
    );
    let first = rows.first().map(|(_, cost)| cost.clone());
    for (name, cost) in rows {
        let (cpu, speed) = first.as_ref().map_or((1.0, 1.0), |first| {
            (
                first.cpu_ms_per_page() / cost.cpu_ms_per_page(),
                first.pages_per_second() / cost.pages_per_second(),
            )
        });
        text.push_str(&format!(
            "{name:<12} {:>6} {:>8.2} {:>8.0} {:>8.2} {:>8.3} {:>8.1} {:>8.1} {:>8.2}x {:>8.2}x\n",
            cost.pages,
            cost.seconds,
            cost.pages_per_second(),
            cost.cpu_seconds,
            cost.cpu_ms_per_page(),
            cost.peak_rss_bytes as f64 / 1e6,
            cost.archive_bytes as f64 / 1e6,
            cpu,
            speed,
        ));
    }
    text.push_str("The last two columns: processor time a page and pages a second of the first row, divided by this row's.\n");
    text
}
