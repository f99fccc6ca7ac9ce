//! Measures calls of plugins: `cargo run --release -p opilio-sandbox --example call_cost`, or with `-- COMPONENT [PLUGIN]
//! [SETTINGS]` for another component. Prints the median, the 90th and the 99th percentile of the time for a fresh instance and one
//! call, and its ratio to an empty call. Then prints the time to load the built-in plugins, with and without a cache. The figures
//! in docs/PERFORMANCE.md come from this program.
#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidate, Candidates, Component, Document, DocumentParts, Engine, EngineConfig, Fault, Kind,
    Notes, Plugin, PluginConfig, SharedKeptValues, Stage, Table, Tables, Visit, spawn_lane,
};
use serde_json::{Value, json};

/// Most calls of one measurement. There are fewer if they take longer than `TIME_MAX` together.
const ROUNDS: usize = 20_000;
const TIME_MAX: Duration = Duration::from_secs(5);
/// Unmeasured calls before a measurement, so that memory is mapped.
const WARM_UP: usize = 200;
const URI: &str = "http://example.org/";
/// Rows of a table of SURT prefixes: about the number of sites of a national domain.
const TABLE_ROWS: usize = 1_000_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let engine = Engine::new(EngineConfig::default())?;
    let empty = configure(
        &engine.load(&empty_component()?, "empty")?,
        None,
        json!({}),
        &Tables::default(),
    )?;
    let mut report = Report::begin(&empty)?;
    if let Some(path) = arguments.first() {
        let component = engine.load(&std::fs::read(path)?, path)?;
        let settings = match arguments.get(2) {
            Some(settings) => serde_json::from_str(settings)?,
            None => json!({}),
        };
        let name = arguments.get(1).map(String::as_str);
        let plugin = configure(&component, name, settings, &Tables::default())?;
        return measure_all(&mut report, &plugin);
    }
    measure_all(&mut report, &empty)?;
    measure_shipped(&mut report, &engine)?;
    throughput(empty)?;
    loading()
}

/// Measures every kind of call that a plugin supports, with small inputs.
fn measure_all(report: &mut Report, plugin: &Plugin) -> Result<(), Failure> {
    let name = plugin.name();
    if plugin.is(&Kind::Extractor) {
        for bytes in [0, 40 * 1024] {
            let document = document(&page(bytes));
            report.row(&format!("{name}: extract {bytes} bytes"), || {
                plugin.extract(vec![document.clone()]).map(drop)
            })?;
        }
    }
    if plugin.is(&Kind::Filter) {
        for n in [1, 100] {
            let candidates = candidates(n);
            report.row(&format!("{name}: judge {n} candidates"), || {
                plugin.judge_candidates(Stage::Scope, &candidates).map(drop)
            })?;
        }
    }
    if plugin.is(&Kind::DigestStripper) {
        let document = document(&page(40 * 1024));
        report.row(&format!("{name}: strip 40 KB"), || {
            plugin.strip(&document).map(drop)
        })?;
    }
    if plugin.is(&Kind::WaitEvaluator) {
        let visit = Visit::of(candidate(0), Timestamp::UNIX_EPOCH);
        report.row(&format!("{name}: evaluate"), || {
            plugin.evaluate(&visit).map(drop)
        })?;
    }
    Ok(())
}

/// Measures the built-in plugins as a crawl uses them.
fn measure_shipped(report: &mut Report, engine: &Engine) -> Result<(), Failure> {
    let none = Tables::default();
    let shipped = |name: &str, settings: Value, tables: &Tables| {
        configure(&builtin(engine, name)?, Some(name), settings, tables)
    };
    let elsewhere = json!({"seed-prefixes": ["http://(is,", "http://(org,archive,"]});
    let here = json!({"seed-prefixes": ["http://(is,", "http://(org,example,"]});
    let hundred = candidates(100);
    let mut judge = |what: &str, plugin: &Plugin| {
        report.row(what, || {
            plugin.judge_candidates(Stage::Scope, &hundred).map(drop)
        })
    };
    judge(
        "surt-scope: 100 candidates, none in scope",
        &shipped("surt-scope", elsewhere.clone(), &none)?,
    )?;
    judge(
        "surt-scope: 100 candidates, all in scope",
        &shipped("surt-scope", here, &none)?,
    )?;
    let began = Instant::now();
    let table = Table::surt_prefixes(
        (0..TABLE_ROWS).map(|n| format!("http://(is,{:x},", n.wrapping_mul(2_654_435_761))),
    )?;
    let made = began.elapsed();
    let tables = Tables::default();
    tables.set("sites", table);
    judge(
        "surt-scope: 100 candidates, a table of 1,000,000",
        &shipped("surt-scope", json!({"tables": ["sites"]}), &tables)?,
    )?;
    for name in ["hops", "repeating-path"] {
        let plugin = shipped(name, json!({}), &none)?;
        judge(&format!("{name}: 100 candidates"), &plugin)?;
    }
    let each = builtin(engine, "surt-scope")?.configure_each_call(PluginConfig {
        plugin: Some("surt-scope".to_owned()),
        settings: elsewhere,
        ..PluginConfig::default()
    })?;
    judge("surt-scope: 100 candidates, configured in each call", &each)?;
    for name in ["html", "adaptive"] {
        measure_all(report, &shipped(name, json!({}), &none)?)?;
    }
    println!("\na table of {TABLE_ROWS} SURT prefixes: made in {made:.1?}");
    Ok(())
}

/// Prints one line for each measurement.
struct Report {
    /// The median time of an empty call.
    empty: Duration,
}

impl Report {
    fn begin(empty: &Plugin) -> Result<Self, Failure> {
        let document = document(&[]);
        let times = times_of(|| empty.extract(vec![document.clone()]).map(drop))?;
        println!(
            "{:<58}{:>10}{:>10}{:>10}{:>8}",
            "a fresh instance, and", "median", "90 %", "99 %", "× empty"
        );
        Ok(Self {
            empty: at(&times, 50),
        })
    }

    fn row(&mut self, what: &str, call: impl Fn() -> Result<(), Fault>) -> Result<(), Failure> {
        let times = times_of(call)?;
        let median = at(&times, 50);
        println!(
            "{what:<58}{:>10.1?}{:>10.1?}{:>10.1?}{:>8.1}",
            median,
            at(&times, 90),
            at(&times, 99),
            median.as_secs_f64() / self.empty.as_secs_f64()
        );
        Ok(())
    }
}

fn times_of(call: impl Fn() -> Result<(), Fault>) -> Result<Vec<Duration>, Failure> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..WARM_UP + ROUNDS {
        let start = Instant::now();
        call()?;
        if round >= WARM_UP {
            times.push(start.elapsed());
        }
        if began.elapsed() > TIME_MAX && times.len() >= 100 {
            break;
        }
    }
    times.sort();
    Ok(times)
}

fn at(times: &[Duration], hundredths: usize) -> Duration {
    times[(times.len() - 1) * hundredths / 100]
}

fn throughput(empty: Plugin) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let lanes = (0..threads)
        .map(|n| {
            let (plugin, document) = (empty.clone(), document(&[]));
            spawn_lane(&format!("lane {n}"), move || {
                (0..ROUNDS).all(|_| plugin.extract(vec![document.clone()]).is_ok())
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let answered = lanes.into_iter().all(|lane| lane.join().unwrap_or(false));
    let calls = (ROUNDS * threads) as u32;
    println!(
        "empty calls from {threads} threads at once: one in {:.1?}, all answered: {answered}",
        began.elapsed() / calls
    );
    Ok(())
}

/// Loads and configures every built-in plugin in engines of their own: first with an empty cache, then with the cache that the
/// first engine wrote.
fn loading() -> Result<(), Failure> {
    let cache = tempfile::tempdir()?;
    for how in ["cold", "warm"] {
        let (began, spent) = (Instant::now(), processor_time());
        let engine = Engine::new(EngineConfig {
            cache_dir: Some(cache.path().to_owned()),
            ..EngineConfig::default()
        })?;
        let mut plugins = 0;
        let mut components = std::collections::BTreeMap::new();
        for shipped in opilio_builtin::all() {
            let component = match components.get(shipped.name) {
                Some(component) => component,
                None => components
                    .entry(shipped.name)
                    .or_insert(engine.load(shipped.component, shipped.name)?),
            };
            // Some plugins have required settings.
            let settings = match shipped.plugin {
                "regex-strip" => json!({"patterns": ["a"]}),
                _ => json!({}),
            };
            if configure(
                component,
                Some(shipped.plugin),
                settings,
                &Tables::default(),
            )
            .is_ok()
            {
                plugins += 1;
            }
        }
        println!(
            "{plugins} plugins of {} components loaded and configured, {how}: {:.0?}, {:.1?} of processor time",
            components.len(),
            began.elapsed(),
            processor_time().saturating_sub(spent)
        );
    }
    Ok(())
}

/// CPU time of the process on all processors, in steps of 10 ms. Zero if the system does not report it.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are the 12th and 13th field after the name in brackets.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum::<u64>();
    Duration::from_millis(ticks * 10)
}

fn builtin(engine: &Engine, plugin: &str) -> Result<Component, Failure> {
    let shipped = opilio_builtin::find(plugin).ok_or_else(|| format!("no plugin {plugin}"))?;
    Ok(engine.load(shipped.component, shipped.name)?)
}

fn configure(
    component: &Component,
    plugin: Option<&str>,
    settings: Value,
    tables: &Tables,
) -> Result<Plugin, Failure> {
    Ok(component.configure(PluginConfig {
        plugin: plugin.map(str::to_owned),
        settings,
        tables: tables.clone(),
        ..PluginConfig::default()
    })?)
}

/// A component with an extractor that finds nothing and a filter that passes everything.
fn empty_component() -> Result<Vec<u8>, Failure> {
    use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

    let mut resolve = wit_parser::Resolve::default();
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    resolve.push_dir(contract)?;
    let package = resolve.push_str(
        "empty.wit",
        "package opilio:empty; world both { include opilio:plugin/extractor-plugin@0.3.0; export opilio:plugin/filter@0.3.0; }",
    )?;
    let world = resolve.select_world(&[package], Some("both"))?;
    let mut module = wat::parse_file(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/empty.wat"),
    )?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()?)
}

/// HTML text of about this many bytes, with some links.
fn page(bytes: usize) -> Vec<u8> {
    let paragraph = "<p>Text of a paragraph that goes on for a while, as paragraphs do, and then has \
        <a href=\"/path/to/another/page.html\">a link</a> to another page, and goes on again.</p>\n";
    paragraph
        .repeat(bytes.div_ceil(paragraph.len()))
        .into_bytes()
}

fn document(content: &[u8]) -> Document {
    Document::new(DocumentParts {
        uri: URI.to_owned(),
        base: URI.to_owned(),
        status: 200,
        headers: Arc::new([]),
        media_type: "text/html".to_owned(),
        charset: Some(encoding_rs::UTF_8),
        fragment: None,
        content: Bytes::copy_from_slice(content),
        notes: Notes::new(),
        kept: SharedKeptValues::default(),
    })
}

fn candidates(n: usize) -> Candidates {
    (0..n).map(candidate).collect()
}

fn candidate(n: usize) -> Candidate {
    Candidate {
        uri: format!("http://example.org/path/to/a/page-{n}.html"),
        surt: format!("http://(org,example,)/path/to/a/page-{n}.html"),
        hop_path: "LLL".to_owned(),
        via: Some(URI.to_owned()),
        via_surt: Some("http://(org,example,)/".to_owned()),
        context: "a/@href".to_owned(),
        seed: false,
        source: None,
        address: None,
        attributes: Vec::new(),
    }
}
