//! Prints the links of HTML files, or measures the extractor's speed.
//!
//! `html-links FILE…` prints one line for each link: file, hop, context and reference, separated by tabs.
//! `html-links --bench FILE…` reads all files ten times and prints the best speed in MB/s.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for measuring"
)]

use std::time::Instant;

use opilio_html::Settings;
use opilio_html::page::{self, Syntax};

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let bench = files.first().is_some_and(|first| first == "--bench");
    if bench {
        files.remove(0);
    }
    let settings = Settings::default();
    let pages: Vec<String> = files
        .iter()
        .map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned())
        .collect();
    if bench {
        const ROUNDS: usize = 10;
        let (mut links, mut best) = (0, f64::INFINITY);
        let bytes: usize = pages.iter().map(String::len).sum();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            links = pages
                .iter()
                .map(|text| page::read(text, Syntax::Html, &settings).links.len())
                .sum::<usize>();
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{} files, {bytes} bytes, {links} links, {:.0} MB/s",
            pages.len(),
            bytes as f64 / best / 1e6
        );
        return;
    }
    for (file, text) in files.iter().zip(&pages) {
        for link in page::read(text, Syntax::Html, &settings).links {
            println!("{file}\t{:?}\t{}\t{}", link.hop, link.context, link.uri);
        }
    }
}
