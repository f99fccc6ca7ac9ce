//! How fast the frontier is on this machine: candidates in bulk, then next and finished with outlinks.
//!
//! `cargo run --release -p opilio-frontier --example throughput [URIS] [QUEUES] [VISITS] [DIR]`
#![expect(clippy::print_stdout, reason = "a table is what it is for")]
#![allow(clippy::unwrap_used, reason = "an example: where it fails, it fails")]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, Config, ContentState, Frontier, Next, Outcome, Strategy, Success, Transfer, Visit,
};
use opilio_uri::{HopPath, Uri};

/// Candidates in one call.
const BATCH: u64 = 5_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        arguments
            .next()
            .map_or(default, |text| text.parse().unwrap())
    };
    let (uris, queues, visits) = (number(1_000_000), number(10_000), number(200_000));
    let temporary = tempfile::tempdir().unwrap();
    let dir = arguments
        .next()
        .map_or_else(|| temporary.path().to_owned(), std::path::PathBuf::from);

    let mut config = Config::default();
    config.queue.politeness.min_delay = Duration::ZERO;
    config.queue.politeness.max_delay = Duration::ZERO;
    let mut frontier = Frontier::open(&dir, config.clone()).unwrap();
    let mut random = Random(7);
    let mut now = 1_700_000_000_000;

    // Half of the candidates are new, the others known, as pages of a site link to each other.
    let (mut known, mut spent, mut in_round) = (0, Duration::ZERO, Instant::now());
    while known < uris {
        let mut candidates = Vec::new();
        for _ in 0..BATCH / 2 {
            candidates.push(candidate(known, queues, ""));
            known += 1;
            candidates.push(candidate(random.below(known), queues, "L"));
        }
        now += 1;
        let start = Instant::now();
        frontier.schedule(candidates, time(now)).unwrap();
        spent += start.elapsed();
        if known % (uris / 4).max(1) < BATCH / 2 {
            println!(
                "  {known} known, {:.0} s, {} MiB resident",
                in_round.elapsed().as_secs_f64(),
                resident_mib()
            );
            in_round = Instant::now();
        }
    }
    report("schedule, half known", "candidates", 2 * uris, spent);

    let (mut next, mut finish, mut longest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..visits {
        now += 1;
        let start = Instant::now();
        let Next::Issue(issue) = frontier.next(time(now)).unwrap() else {
            panic!("nothing to issue")
        };
        let between = Instant::now();
        // Nine known links of the same site and one new one anywhere.
        let here = index(issue.uri.as_str());
        let mut outlinks: Vec<_> = (1..10)
            .map(|step| candidate((here + step * queues) % known, queues, "L"))
            .collect();
        outlinks.push(candidate(known, queues, "L"));
        known += 1;
        let visit = Visit {
            status: 200,
            state: ContentState::New,
            size: Some(40_000),
            ..Visit::default()
        };
        let success = Success {
            visit,
            wait: None,
            outlinks,
            transfer: Transfer {
                duration: Duration::from_millis(100),
                bytes: 40_000,
            },
            ..Success::default()
        };
        let built = Instant::now();
        frontier
            .finished(
                issue.ticket,
                Outcome::Succeeded(Box::new(success)),
                time(now),
            )
            .unwrap();
        let end = Instant::now();
        next += between - start;
        finish += end - built;
        longest = longest.max((between - start) + (end - built));
    }
    report("next", "URIs", visits, next);
    report("finished, 10 outlinks, 9 known", "URIs", visits, finish);
    report("next + finished", "URIs", visits, next + finish);
    println!(
        "longest next + finished: {longest:.1?}, {} MiB resident",
        resident_mib()
    );

    drop(frontier);
    println!("on disk: {} bytes a URI", bytes_below(&dir) / known);
    let start = Instant::now();
    let mut frontier = Frontier::open(&dir, config).unwrap();
    let opened = start.elapsed();
    assert!(matches!(
        frontier.next(time(now + 1)).unwrap(),
        Next::Issue(_)
    ));
    println!(
        "open: {opened:.1?}, to the first URI: {:.1?}",
        start.elapsed()
    );
}

fn report(what: &str, unit: &str, count: u64, spent: Duration) {
    let seconds = spent.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "figures to be read")]
    let count = count as f64;
    println!(
        "{what}: {:.0} {unit}/s, {:.1} µs each",
        count / seconds,
        seconds * 1e6 / count
    );
}

/// The URI of a number: its host is the number's rest by the number of queues.
fn candidate(number: u64, queues: u64, hops: &str) -> Candidate {
    let host = number % queues;
    let text = format!(
        "http://www.site{host}.example.org/section{}/article-{number}.html",
        number % 97
    );
    let hop_path = HopPath::parse(hops).unwrap();
    let via =
        (!hops.is_empty()).then(|| format!("http://www.site{host}.example.org/section/index.html"));
    Candidate {
        // As the usual rules make it.
        canonical: text.replacen("www.", "", 1),
        via,
        context: "a/@href".to_owned(),
        ..Candidate::new(Uri::parse(&text).unwrap(), hop_path, Strategy::Snapshot)
    }
}

fn index(text: &str) -> u64 {
    text.rsplit_once('-')
        .unwrap()
        .1
        .trim_end_matches(".html")
        .parse()
        .unwrap()
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn bytes_below(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.path().is_dir() {
            true => bytes_below(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// A small generator, the same numbers every time (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}
