//! Measures how long it takes to find the captures of a URI among many small archive files, with catalogues and without.
//!
//! `cargo run --release -p opilio-archive --example look_up -- 20000`

#![allow(clippy::print_stdout, reason = "the result of a measurement")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use opilio_archive::{captures, catalogue};

/// Captures in each file, a tenth of them of pages that other files have too.
const CAPTURES: usize = 100;

/// Number of measured look-ups.
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let files = std::env::args().nth(1).map_or(Ok(2_000), |it| it.parse())?;
    let home = tempfile::tempdir()?;
    make(home.path(), files)?;
    println!("{files} files of {CAPTURES} captures");
    println!("without: {:?}", look_up(home.path(), files)?);
    let began = Instant::now();
    while catalogue(home.path(), &[], usize::MAX)? > 0 {}
    println!("catalogues made in {:?}", began.elapsed());
    println!("with:    {:?}", look_up(home.path(), files)?);
    Ok(())
}

/// Returns the median time of look-ups of pages that are in one file only.
fn look_up(directory: &Path, files: usize) -> Result<Duration, Box<dyn Error>> {
    let directories = [directory.to_owned()];
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let uri = format!("http://site{}.example/own/51", round * files / ROUNDS);
        let began = Instant::now();
        let found = captures(&directories, &[], &uri)?;
        times.push(began.elapsed());
        if found.entries.len() != 1 {
            return Err(format!("{uri} has {} captures", found.entries.len()).into());
        }
    }
    times.sort();
    Ok(times[ROUNDS / 2])
}

fn make(directory: &Path, files: usize) -> Result<(), Box<dyn Error>> {
    for file in 0..files {
        let name = format!("crawl-{file:06}");
        fs::write(directory.join(format!("{name}.warc.gz")), "")?;
        let mut lines: Vec<String> = (0..CAPTURES).map(|page| line(&name, file, page)).collect();
        lines.sort_unstable();
        fs::write(directory.join(format!("{name}.cdxj")), lines.concat())?;
    }
    Ok(())
}

fn line(name: &str, file: usize, page: usize) -> String {
    let (key, uri) = match page % 10 {
        0 => (
            format!("example,shared)/{page}"),
            format!("http://shared.example/{page}"),
        ),
        _ => (
            format!("example,site{file})/own/{page}"),
            format!("http://site{file}.example/own/{page}"),
        ),
    };
    format!(
        "{key} 20260101000000 {{\"url\":\"{uri}\",\"mime\":\"text/html\",\"status\":\"200\",\"digest\":\"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"length\":\"4711\",\"offset\":\"{}\",\"filename\":\"{name}.warc.gz\"}}\n",
        page * 5000
    )
}
