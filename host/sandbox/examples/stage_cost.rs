//! Measures the extract stage of the default profile on real pages and their fragments: `cargo run --release -p opilio-sandbox
//! --example stage_cost -- FILE|FOLDER…`. Each page goes through every extractor that handles it, as in a crawl, but links are not
//! resolved. The fastest of the rounds counts for each page. For comparison, each round also makes one call of an extractor with an
//! empty document.
#![allow(clippy::print_stdout, reason = "a program that prints")]

mod pages;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use opilio_sandbox::{Document, Engine, EngineConfig, Plugin};

use pages::{Failure, URI, document, read, shipped};

/// Rounds: times that each page is extracted.
const ROUNDS: usize = 7;
/// The default profile's stack.
const STACK: [&str; 17] = [
    "http",
    "html",
    "css",
    "js",
    "robots",
    "sitemap",
    "feed",
    "manifest",
    "svg",
    "media",
    "office",
    "pdf",
    "swf",
    "ftp-listing",
    "whois",
    "json",
    "xml",
];
/// Levels of nested fragments that are extracted.
const DEPTH_MAX: usize = 4;

/// Least times of one page.
struct Least {
    bytes: usize,
    calls: usize,
    links: usize,
    stage: Duration,
    nothing: Duration,
}

fn main() -> Result<(), Failure> {
    let mut pages = Vec::new();
    for path in std::env::args().skip(1) {
        read(Path::new(&path), &mut pages)?;
    }
    let engine = Engine::new(EngineConfig::default())?;
    let stack: Vec<Plugin> = STACK
        .iter()
        .map(|name| shipped(&engine, name))
        .collect::<Result<_, _>>()?;

    let mut measured = Vec::new();
    for page in &pages {
        let mut least = Least {
            bytes: page.len(),
            calls: 0,
            links: 0,
            stage: Duration::MAX,
            nothing: Duration::MAX,
        };
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let (calls, links) = extract(&stack, page)?;
            least.stage = least.stage.min(began.elapsed());
            (least.calls, least.links) = (calls, links);
            let empty = document("");
            let began = Instant::now();
            stack[0].extract(vec![empty])?;
            least.nothing = least.nothing.min(began.elapsed());
        }
        measured.push(least);
    }
    println!(
        "{:<16}{:>8}{:>10}{:>8}{:>8}{:>12}{:>12}{:>12}{:>8}",
        "pages", "number", "KB each", "calls", "links", "stage µs", "90 % µs", "nothing µs", "MB/s"
    );
    for (what, from, to) in [
        ("up to 8 KB", 0, 8 << 10),
        ("8 to 20 KB", 8 << 10, 20 << 10),
        ("20 to 30 KB", 20 << 10, 30 << 10),
        ("30 to 100 KB", 30 << 10, 100 << 10),
        ("larger", 100 << 10, usize::MAX),
        ("all", 0, usize::MAX),
    ] {
        let of_size = |least: &&Least| (from..to).contains(&least.bytes);
        summary(what, measured.iter().filter(of_size).collect());
    }
    Ok(())
}

/// Calls every extractor with the page and its fragments. Returns the numbers of calls and links.
fn extract(stack: &[Plugin], page: &str) -> Result<(usize, usize), Failure> {
    let (mut calls, mut links) = (0, 0);
    let mut level = vec![document(page)];
    for _ in 0..=DEPTH_MAX {
        let mut by_type: BTreeMap<String, Vec<Document>> = BTreeMap::new();
        for document in level.drain(..) {
            let media_type = document.media_type().to_owned();
            by_type.entry(media_type).or_default().push(document);
        }
        for (media_type, documents) in by_type {
            for plugin in stack {
                if !plugin.handles(&media_type, URI) {
                    continue;
                }
                calls += 1;
                for (document, extraction) in
                    documents.iter().zip(plugin.extract(documents.clone())?)
                {
                    links += extraction.links.len();
                    let inner = extraction.fragments.iter();
                    level.extend(inner.filter_map(|inner| document.fragment_of(inner).ok()));
                }
            }
        }
        if level.is_empty() {
            break;
        }
    }
    Ok((calls, links))
}

fn summary(what: &str, mut pages: Vec<&Least>) {
    if pages.is_empty() {
        return;
    }
    pages.sort_by_key(|page| page.stage);
    let number = pages.len();
    let mean =
        |of: &dyn Fn(&Least) -> f64| pages.iter().map(|page| of(page)).sum::<f64>() / number as f64;
    let bytes = mean(&|page| page.bytes as f64);
    let stage = mean(&|page| page.stage.as_secs_f64() * 1e6);
    let most = pages[(number * 9 / 10).min(number - 1)].stage;
    println!(
        "{what:<16}{number:>8}{:>10.1}{:>8.1}{:>8.0}{stage:>12.1}{:>12.1}{:>12.1}{:>8.0}",
        bytes / 1024.0,
        mean(&|page| page.calls as f64),
        mean(&|page| page.links as f64),
        most.as_secs_f64() * 1e6,
        mean(&|page| page.nothing.as_secs_f64() * 1e6),
        bytes / stage,
    );
}
