//! Measures the frontier on this machine: candidates in bulk, `next` and `finished` with outlinks, memory, disk use, opening. For
//! comparison it also measures the store alone: the same number of bytes put into one keyspace of fjall.
//!
//! `cargo run --release -p opilio-frontier --example throughput -- [--uris N] [--queues N] [--visits N] [--batch N]
//! [--revisits N] [--idle N] [--dir DIR] [--json]`
#![expect(clippy::print_stdout, reason = "it prints a table")]
#![allow(clippy::unwrap_used, reason = "an example: errors end it")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, ContentState, Digests, Frontier, FrontierConfig, Issue, Next, Outcome, Strategy,
    Success, Transfer, Validators, VisitUpdate, WarcLocation,
};
use opilio_uri::{HopPath, Uri};

/// The same allocator as in the `opilio` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of key and value in the bare store for each URI. A new URI puts about as many into the frontier's store.
const BARE_BYTES: usize = 250;

struct Options {
    uris: u64,
    queues: u64,
    visits: u64,
    batch: u64,
    revisits: u64,
    idle: u64,
    dir: Option<String>,
    json: bool,
}

fn main() {
    if run_task() {
        return;
    }
    let options = options();
    let temporary = tempfile::tempdir().unwrap();
    let dir = options
        .dir
        .as_ref()
        .map_or_else(|| temporary.path().to_owned(), Into::into);
    let mut report = Report {
        json: options.json,
        entries: Vec::new(),
    };
    if options.uris > 0 {
        bare_store(&dir.join("bare"), options.uris.min(1_000_000), &mut report);
        measure_crawl(&dir.join("frontier"), &options, &mut report);
    }
    if options.revisits > 0 {
        measure_revisits(&dir.join("revisits"), options.revisits, &mut report);
    }
    if options.idle > 0 {
        idle_queues(&dir, options.idle, &mut report);
    }
    report.end();
}

/// Measures the memory of a process that crawls 1,000 queues, without and with `idle` other queues that wait. One process makes
/// each store and another crawls it, so that the memory used for making the store is not counted.
fn idle_queues(dir: &Path, idle: u64, report: &mut Report) {
    let run = |task: &str, dir: &Path, queues: u64| -> u64 {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([task, dir.to_str().unwrap(), &queues.to_string()])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse().unwrap()
    };
    let mut resident = Vec::new();
    for queues in [0, idle] {
        let dir = dir.join(format!("idle-{queues}"));
        run("make-idle", &dir, queues);
        let mib = run("crawl-beside-idle", &dir, queues);
        report.value(
            &format!("resident, 1,000 queues and {queues} idle"),
            "MiB",
            mib,
        );
        resident.push(mib);
        let _ = std::fs::remove_dir_all(&dir);
    }
    let more = (resident[1] * 100 / resident[0].max(1)).saturating_sub(100);
    report.value("additional memory", "%", more);
}

/// Runs a task of `idle_queues`, which has a process of its own. Returns `true` if the arguments name one.
fn run_task() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, task, dir, queues] = &arguments[..] else {
        return false;
    };
    let queues: u64 = match task.as_str() {
        "make-idle" | "crawl-beside-idle" => queues.parse().unwrap(),
        _ => return false,
    };
    let mut config = FrontierConfig::default();
    config.queue.politeness.min_delay = Duration::ZERO;
    config.queue.politeness.max_delay = Duration::ZERO;
    let mut frontier = Frontier::open(Path::new(dir), config).unwrap();
    let mut now = 1_700_000_000_000;
    if task == "make-idle" {
        let year = time(now + 365 * 24 * 3600 * 1000);
        for start in (0..queues).step_by(50_000) {
            let candidates = (start..(start + 50_000).min(queues)).map(|number| Candidate {
                due: Some(year),
                queue: format!("idle-{number}"),
                ..candidate(10_000_000 + number, 1_000_000, "L")
            });
            frontier.schedule(candidates.collect(), time(now)).unwrap();
        }
        let active = (0..200_000).map(|number| candidate(number, 1_000, "L"));
        frontier.schedule(active.collect(), time(now)).unwrap();
        println!("0");
        return true;
    }
    for _ in 0..150_000 {
        now += 1;
        let Next::Issue(issue) = frontier.next(time(now)).unwrap() else {
            panic!("nothing to issue")
        };
        let outcome = success(&issue, Vec::new(), None);
        frontier.finished(issue.ticket, outcome, time(now)).unwrap();
    }
    println!("{}", resident_mib());
    true
}

fn options() -> Options {
    let mut options = Options {
        uris: 1_000_000,
        queues: 10_000,
        visits: 200_000,
        batch: 100_000,
        revisits: 100_000,
        idle: 0,
        dir: None,
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = |arguments: &mut dyn Iterator<Item = String>| {
            arguments.next().unwrap().replace('_', "").parse().unwrap()
        };
        match argument.as_str() {
            "--uris" => options.uris = number(&mut arguments),
            "--queues" => options.queues = number(&mut arguments),
            "--visits" => options.visits = number(&mut arguments),
            "--batch" => options.batch = number(&mut arguments),
            "--revisits" => options.revisits = number(&mut arguments),
            "--idle" => options.idle = number(&mut arguments),
            "--dir" => options.dir = arguments.next(),
            "--json" => options.json = true,
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// Puts random keys into an empty keyspace, in batches of the same size.
fn bare_store(dir: &Path, entries: u64, report: &mut Report) {
    let database = fjall::Database::builder(dir).open().unwrap();
    let keyspace = database
        .keyspace("bare", fjall::KeyspaceCreateOptions::default)
        .unwrap();
    let mut random = Random(11);
    let measure = Measure::start();
    for start in (0..entries).step_by(5_000) {
        let mut batch = database.batch();
        for _ in start..(start + 5_000).min(entries) {
            let key = random.next().to_be_bytes();
            batch.insert(&keyspace, key, vec![7; BARE_BYTES - key.len()]);
        }
        batch.commit().unwrap();
    }
    report.rate("bare fjall: puts of 250 bytes", "puts", entries, &measure);
    drop((keyspace, database));
    std::fs::remove_dir_all(dir).unwrap();
}

fn measure_crawl(dir: &Path, options: &Options, report: &mut Report) {
    let Options { uris, queues, .. } = *options;
    let mut config = FrontierConfig::default();
    config.queue.politeness.min_delay = Duration::ZERO;
    config.queue.politeness.max_delay = Duration::ZERO;
    let mut frontier = Frontier::open(dir, config.clone()).unwrap();
    let mut random = Random(7);
    let mut now = 1_700_000_000_000;
    report.value("resident at the beginning", "MiB", resident_mib());

    // Half of the candidates are new, the others known, as pages of a site link to each other.
    let (mut known, mut text_bytes) = (0, 0);
    let mut measure = Measure::default();
    while known < uris {
        let mut candidates = Vec::new();
        for _ in 0..(options.batch / 2).min(uris - known) {
            let new = candidate(known, queues, "");
            text_bytes += new.uri.as_str().len() as u64;
            candidates.push(new);
            known += 1;
            candidates.push(candidate(random.below(known), queues, "L"));
        }
        now += 1;
        let answers = measure.during_long(|| frontier.schedule(candidates, time(now)).unwrap());
        // The time to drop the answers is not counted.
        drop(answers);
        if !report.json && known % (uris / 4).max(1) < options.batch / 2 {
            println!("  … {known} known, {} MiB resident", resident_mib());
        }
    }
    report.rate("schedule, half known", "candidates", 2 * uris, &measure);
    report.value("resident after it", "MiB", resident_mib());

    let (mut next, mut finish) = (Measure::default(), Measure::default());
    let mut longest = Duration::ZERO;
    let making = candidate_cost(queues);
    let cpu = thread_cpu();
    for _ in 0..options.visits {
        now += 1;
        let before = next.wall + finish.wall;
        let issued = next.during(|| frontier.next(time(now)).unwrap());
        let Next::Issue(issue) = issued else {
            panic!("nothing to issue")
        };
        // Nine links to known URIs of the same site, and one to a new URI.
        let here = index(issue.uri.as_str());
        let mut outlinks: Vec<_> = (1..10)
            .map(|step| candidate((here + step * queues) % known, queues, "L"))
            .collect();
        outlinks.push(candidate(known, queues, "L"));
        text_bytes += outlinks[9].uri.as_str().len() as u64;
        known += 1;
        let outcome = success(&issue, outlinks, None);
        finish.during(|| frontier.finished(issue.ticket, outcome, time(now)).unwrap());
        longest = longest.max(next.wall + finish.wall - before);
    }
    let made = making * u32::try_from(10 * options.visits).unwrap();
    let both = Measure {
        cpu: (thread_cpu() - cpu).saturating_sub(made),
        ..next.and(&finish)
    };
    report.rate("next", "URIs", options.visits, &next);
    report.rate(
        "finished, 10 outlinks, 9 known",
        "URIs",
        options.visits,
        &finish,
    );
    report.rate("next + finished", "URIs", options.visits, &both);
    report.value("longest next + finished", "µs", longest.as_micros() as u64);
    report.value("resident after it", "MiB", resident_mib());
    report.value("resident at most", "MiB", peak_mib());

    drop(frontier);
    report.value(
        "on disk, all files but journals",
        "bytes/URI",
        on_disk(dir) / known,
    );
    let beyond = on_disk(dir).saturating_sub(text_bytes) / known;
    report.value("the same, beyond the URI's text", "bytes/URI", beyond);
    let opening = Measure::start();
    let mut frontier = Frontier::open(dir, config).unwrap();
    let first = frontier.next(time(now + 1)).unwrap();
    assert!(matches!(first, Next::Issue(_)));
    let millis = opening.elapsed().wall.as_millis() as u64;
    report.value("open, to the first URI", "ms", millis);
    drop(frontier);
    let _ = std::fs::remove_dir_all(dir);
}

/// Processor time of making one candidate, to be subtracted from the measured time.
fn candidate_cost(queues: u64) -> Duration {
    const MADE: u32 = 100_000;
    let cpu = thread_cpu();
    for number in 0..MADE {
        std::hint::black_box(candidate(number.into(), queues, "L"));
    }
    (thread_cpu() - cpu) / MADE
}

/// Visits every URI five times, and measures the time and the disk space.
fn measure_revisits(dir: &Path, uris: u64, report: &mut Report) {
    let mut config = FrontierConfig::default();
    config.queue.politeness.min_delay = Duration::ZERO;
    config.queue.politeness.max_delay = Duration::ZERO;
    let mut frontier = Frontier::open(dir, config).unwrap();
    let mut now = 1_700_000_000_000;
    let mut text_bytes = 0;
    for start in (0..uris).step_by(10_000) {
        let candidates: Vec<_> = (start..(start + 10_000).min(uris))
            .map(|number| Candidate {
                strategy: Strategy::Revisit,
                ..candidate(number, 1_000, "L")
            })
            .collect();
        text_bytes += candidates
            .iter()
            .map(|one| one.uri.as_str().len() as u64)
            .sum::<u64>();
        frontier.schedule(candidates, time(now)).unwrap();
    }
    let mut measure = Measure::default();
    for _ in 0..5 {
        now += 24 * 3600 * 1000;
        for _ in 0..uris {
            measure.during(|| {
                let Next::Issue(issue) = frontier.next(time(now)).unwrap() else {
                    panic!("nothing to issue")
                };
                let wait = Some(Duration::from_secs(12 * 3600));
                let outcome = success(&issue, Vec::new(), wait);
                frontier.finished(issue.ticket, outcome, time(now)).unwrap();
            });
        }
    }
    report.rate("revisits, next + finished", "URIs", 5 * uris, &measure);
    // A checkpoint has all entries once and in order, and no journal. Its size is that of the store after compaction.
    let copy = dir.with_extension("copy");
    frontier.checkpoint().write(&copy).unwrap();
    let beyond = on_disk(&copy).saturating_sub(text_bytes) / uris;
    report.value("beyond the text, five visits", "bytes/URI", beyond);
    drop(frontier);
    let _ = std::fs::remove_dir_all(dir);
    let _ = std::fs::remove_dir_all(&copy);
}

fn success(issue: &Issue, outlinks: Vec<Candidate>, wait: Option<Duration>) -> Outcome {
    let mut random = Random(index(issue.uri.as_str()) << 8 | issue.record.visits);
    let mut digest = [0; 20];
    for part in digest.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_be_bytes()[..part.len()]);
    }
    let visit = VisitUpdate {
        status: 200,
        state: ContentState::New,
        size: Some(random.below(200_000)),
        media_type: "text/html".to_owned(),
        digests: Some(Digests {
            payload: Some(digest),
            stripped: None,
        }),
        validators: Some(Validators {
            etag: Some(format!("\"{:x}\"", random.next())),
            last_modified: Some("Tue, 14 Nov 2023 22:13:20 GMT".to_owned()),
        }),
        archived: Some(WarcLocation {
            file: "WEB-20231114221320000-00001-1234~crawler~8443.warc.gz".to_owned(),
            offset: random.below(1 << 30),
            record_id: format!(
                "urn:uuid:{:08x}-2c3c-7c4e-9c3a-{:012x}",
                random.next() as u32,
                random.next() >> 16
            ),
            date: issue.due,
        }),
        extractor: Some(77),
        outlinks: Some(outlinks.len() as u64),
        ..VisitUpdate::default()
    };
    Outcome::Succeeded(Box::new(Success {
        visit,
        wait,
        outlinks,
        transfer: Transfer {
            duration: Duration::from_millis(100),
            bytes: 40_000,
        },
        ..Success::default()
    }))
}

/// The URI with a number. Its host is the number modulo `queues`.
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
        // The canonical form by the usual rules.
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

/// Time by the clock, and processor time of this thread.
#[derive(Default, Clone, Copy)]
struct Measure {
    wall: Duration,
    cpu: Duration,
    began: Option<(Instant, Duration)>,
}

impl Measure {
    fn start() -> Self {
        Self {
            began: Some((Instant::now(), thread_cpu())),
            ..Self::default()
        }
    }

    fn elapsed(&self) -> Self {
        let mut elapsed = *self;
        if let Some((at, cpu)) = elapsed.began.take() {
            elapsed.wall += at.elapsed();
            elapsed.cpu += thread_cpu().saturating_sub(cpu);
        }
        elapsed
    }

    fn during<T>(&mut self, run: impl FnOnce() -> T) -> T {
        // Only the clock: for a short call, reading the processor time costs more than the call.
        let start = Instant::now();
        let answer = run();
        self.wall += start.elapsed();
        answer
    }

    /// The same with processor time, which does not depend on other load of the machine.
    fn during_long<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let cpu = thread_cpu();
        let answer = self.during(run);
        self.cpu += thread_cpu().saturating_sub(cpu);
        answer
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
            began: None,
        }
    }
}

/// Nanoseconds that this thread has run (Linux).
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

struct Report {
    json: bool,
    entries: Vec<String>,
}

impl Report {
    fn rate(&mut self, what: &str, unit: &str, count: u64, measure: &Measure) {
        let Measure { wall, cpu, .. } = measure.elapsed();
        let seconds = wall.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "figures to be read")]
        let count = count as f64;
        let (rate, micros) = (count / seconds, seconds * 1e6 / count);
        if self.json {
            self.entries.push(format!(
                "{{\"what\":\"{what}\",\"unit\":\"{unit}/s\",\"value\":{rate:.0}}}"
            ));
        } else if cpu.is_zero() {
            println!("{what:<36} {rate:>12.0} {unit}/s  {micros:>8.2} µs each");
        } else {
            let busy = cpu.as_secs_f64() * 1e6 / count;
            println!(
                "{what:<36} {rate:>12.0} {unit}/s  {micros:>8.2} µs each, {busy:.2} of them this thread's work"
            );
        }
    }

    fn value(&mut self, what: &str, unit: &str, value: u64) {
        if self.json {
            self.entries.push(format!(
                "{{\"what\":\"{what}\",\"unit\":\"{unit}\",\"value\":{value}}}"
            ));
        } else {
            println!("{what:<36} {value:>12} {unit}");
        }
    }

    fn end(&self) {
        if self.json {
            println!("[{}]", self.entries.join(","));
        }
    }
}

fn status_mib(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|text| text.strip_prefix(line));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn resident_mib() -> u64 {
    status_mib("VmRSS:")
}

fn peak_mib() -> u64 {
    status_mib("VmHWM:")
}

/// Bytes of the files below a folder; journals, which have a fixed size, left out.
fn on_disk(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.path().is_dir() {
            true => on_disk(&entry.path()),
            false if entry.path().extension().is_some_and(|end| end == "jnl") => 0,
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// A small generator, the same numbers every time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
