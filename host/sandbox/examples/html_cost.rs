//! Compares the html extractor as a component with the native crate, on real pages:
//! `cargo run --release -p opilio-sandbox --example html_cost -- [--component FILE] FILE|FOLDER…`. Both take turns page by
//! page, so that whatever else the machine does falls on both; the fastest of the rounds counts for each page.
#![allow(clippy::print_stdout, reason = "a program that prints")]

mod pages;

use std::path::Path;
use std::time::{Duration, Instant};

use opilio_plugin::testing;
use opilio_sandbox::{Engine, EngineConfig, PluginConfig};

use pages::{Failure, MEDIA_TYPE, URI, document, read};

/// Times that each page is read.
const ROUNDS: usize = 7;
/// A plugin's name, and the media type that it is asked for.
const HTML: &str = "html";

/// Least times of one page.
struct Least {
    bytes: usize,
    native: Duration,
    component: Duration,
}

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let shipped = opilio_builtin::find(HTML).ok_or("html does not ship")?;
    let mut component = shipped.component.to_vec();
    if arguments
        .first()
        .is_some_and(|first| first == "--component")
    {
        component = std::fs::read(arguments.get(1).ok_or("--component needs a file")?)?;
        arguments.drain(..2);
    }
    let mut pages = Vec::new();
    for path in &arguments {
        read(Path::new(path), &mut pages)?;
    }
    let engine = Engine::new(EngineConfig::default())?;
    let plugin = engine
        .load(&component, HTML)?
        .configure(PluginConfig::default())?;
    let native = opilio_html::plugins()
        .configure(HTML, "{}")
        .map_err(|faults| format!("{faults:?}"))?;

    let mut measured = Vec::new();
    for page in &pages {
        let theirs = testing::document(URI).media_type(MEDIA_TYPE).text(page);
        let ours = document(page);
        let mut least = Least {
            bytes: page.len(),
            native: Duration::MAX,
            component: Duration::MAX,
        };
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let natively = native.extract(std::slice::from_ref(&theirs));
            least.native = least.native.min(began.elapsed());
            let began = Instant::now();
            let contained = plugin.extract(vec![ours.clone()])?;
            least.component = least.component.min(began.elapsed());
            let links = |all: usize| all.min(plugin.limits().links);
            if links(natively[0].links.len()) != contained[0].links.len() {
                return Err("the component finds other links than its crate".into());
            }
        }
        measured.push(least);
    }
    println!(
        "{:<22}{:>8}{:>12}{:>14}{:>14}{:>8}",
        "pages", "number", "MB", "native MB/s", "component MB/s", "ratio"
    );
    for (what, from, to) in [
        ("up to 8 KB", 0, 8 << 10),
        ("8 to 40 KB", 8 << 10, 40 << 10),
        ("40 to 200 KB", 40 << 10, 200 << 10),
        ("larger", 200 << 10, usize::MAX),
        ("all", 0, usize::MAX),
    ] {
        summary(
            what,
            measured
                .iter()
                .filter(|least| (from..to).contains(&least.bytes)),
        );
    }
    Ok(())
}

fn summary<'a>(what: &str, pages: impl Iterator<Item = &'a Least>) {
    let (mut number, mut bytes) = (0, 0);
    let (mut native, mut component) = (Duration::ZERO, Duration::ZERO);
    for page in pages {
        number += 1;
        bytes += page.bytes;
        native += page.native;
        component += page.component;
    }
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{what:<22}{number:>8}{megabytes:>12.1}{:>14.0}{:>14.0}{:>8.2}",
        megabytes / native.as_secs_f64(),
        megabytes / component.as_secs_f64(),
        component.as_secs_f64() / native.as_secs_f64()
    );
}
