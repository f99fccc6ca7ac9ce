//! What a call costs before the plugin does anything: `cargo run --release -p opilio-sandbox --example call_cost`,
//! or with `-- COMPONENT [PLUGIN] [SETTINGS]` for a component of one's own. Prints the median and the 99th percentile
//! of a fresh instance and one call, for each kind that the component exports, and from as many threads as there
//! are processors.
#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidate, Candidates, Document, DocumentParts, Engine, EngineConfig, Kept, Kind, Notes,
    Plugin, PluginConfig, Stage, Visit, spawn_lane,
};

const ROUNDS: usize = 20_000;
const URI: &str = "http://example.org/";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let component = match arguments.first() {
        Some(path) => std::fs::read(path)?,
        None => empty_component()?,
    };
    let settings = match arguments.get(2) {
        Some(settings) => serde_json::from_str(settings)?,
        None => serde_json::json!({}),
    };

    let engine = Engine::new(EngineConfig::default())?;
    let began = Instant::now();
    let component = engine.load(&component, "component")?;
    println!("load, compile included: {:?}", began.elapsed());
    let config = PluginConfig {
        plugin: arguments.get(1).cloned(),
        settings,
        ..PluginConfig::default()
    };
    let began = Instant::now();
    let snapshotted = component.configure(config.clone())?;
    println!(
        "configure, compile included: {:?}, {:?}",
        began.elapsed(),
        snapshotted.start()
    );
    let each_call = component.configure_each_call(config)?;

    for (how, plugin) in [
        ("from a snapshot", snapshotted),
        ("configured in each call", each_call),
    ] {
        measure(how, &plugin)?;
    }
    Ok(())
}

fn measure(how: &str, plugin: &Plugin) -> Result<(), Failure> {
    let candidates = |n: usize| Candidates::new(vec![candidate(); n]);
    let (sole, hundred) = (candidates(1), candidates(100));
    let documents: Vec<_> = (0..2)
        .map(|n| document(&vec![b'a'; n * 40 * 1024]))
        .collect();
    let visit = Visit::of(candidate(), Timestamp::UNIX_EPOCH);
    let one = |what: &str, call: &(dyn Fn() -> Result<(), Failure> + Sync)| {
        report(&format!("{what}, {how}"), call)
    };
    if plugin.is(&Kind::Extractor) {
        for document in &documents {
            let what = format!("extract {} bytes", document.content().len());
            one(&what, &|| {
                Ok(plugin.extract(vec![document.clone()]).map(drop)?)
            })?;
        }
        let (plugin, document) = (plugin.clone(), documents[0].clone());
        throughput(how, move || plugin.extract(vec![document.clone()]).is_ok())?;
    }
    if plugin.is(&Kind::Filter) {
        one("judge 1 candidate", &|| {
            Ok(plugin.judge_candidates(Stage::Scope, &sole).map(drop)?)
        })?;
        one("judge 100 candidates", &|| {
            Ok(plugin.judge_candidates(Stage::Scope, &hundred).map(drop)?)
        })?;
    }
    if plugin.is(&Kind::DigestStripper) {
        one("strip 40 KB", &|| {
            Ok(plugin.strip(&documents[1]).map(drop)?)
        })?;
    }
    if plugin.is(&Kind::WaitEvaluator) {
        one("evaluate", &|| Ok(plugin.evaluate(&visit).map(drop)?))?;
    }
    Ok(())
}

fn report(what: &str, call: &dyn Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    let mut times = Vec::with_capacity(ROUNDS);
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        call()?;
        times.push(began.elapsed());
        if times.len() >= 100 && Duration::from_secs(5) < began.elapsed() {
            break;
        }
    }
    let took = began.elapsed();
    times.sort();
    let at = |hundredths: usize| times[(times.len() - 1) * hundredths / 100];
    println!(
        "{what}: median {:?}, 99th {:?}, mean {:?}",
        at(50),
        at(99),
        took / times.len() as u32
    );
    Ok(())
}

fn throughput(how: &str, call: impl Fn() -> bool + Send + Clone + 'static) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let lanes = (0..threads)
        .map(|n| {
            let call = call.clone();
            spawn_lane(&format!("lane {n}"), move || (0..ROUNDS).all(|_| call()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let answered = lanes.into_iter().all(|lane| lane.join().unwrap_or(false));
    let calls = (ROUNDS * threads) as u32;
    println!(
        "extract 0 bytes, {how}, {threads} threads: {:?} a call, all answered: {answered}",
        began.elapsed() / calls
    );
    Ok(())
}

/// An extractor that finds nothing and a filter that has no opinion.
fn empty_component() -> Result<Vec<u8>, Failure> {
    use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

    let mut resolve = wit_parser::Resolve::default();
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    resolve.push_dir(contract)?;
    let package = resolve.push_str(
        "empty.wit",
        "package opilio:empty; world both { include opilio:plugin/extractor-plugin@0.2.0; export opilio:plugin/filter@0.2.0; }",
    )?;
    let world = resolve.select_world(&[package], Some("both"))?;
    let mut module = wat::parse_file(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/empty.wat"),
    )?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    Ok(ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()?)
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
        kept: Kept::default(),
    })
}

fn candidate() -> Candidate {
    Candidate {
        uri: "http://example.org/path/to/a/page.html".to_owned(),
        surt: "http://(org,example,)/path/to/a/page.html".to_owned(),
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
