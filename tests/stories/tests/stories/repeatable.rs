//! Two crawls of one web produce the same archive and the same log, except for times and ids of records.

use opilio_stories::{Capture, FinishedCrawl, LoggedUri, crawl};
use opilio_test_web::Web;
use opilio_test_web::demo;

/// Header fields of records that differ between two crawls: times, ids of records, and values that depend on times in blocks.
const FIELDS_OF_ONE_CRAWL: [&str; 9] = [
    "warc-date",
    "warc-record-id",
    "warc-concurrent-to",
    "warc-refers-to",
    "warc-refers-to-date",
    "warc-warcinfo-id",
    "warc-filename",
    "warc-block-digest",
    "content-length",
];

/// Crawls the demo web with the snapshot strategy. Its answers depend on the number of requests, so each crawl needs a new web.
async fn crawl_demo(web: &Web) -> FinishedCrawl {
    let mut story = crawl().profile("strategy = 'snapshot'\nworkers = 1");
    for seed in demo::seeds(web) {
        story = story.seed(seed);
    }
    story.run().await.finished()
}

/// Returns `true` for a DNS look-up. Its record begins with a time, so its digest differs each time.
fn is_look_up(uri: &str) -> bool {
    uri.starts_with("dns:")
}

/// Formats a line of the log without times.
fn logged(line: &LoggedUri) -> String {
    let LoggedUri {
        status,
        size,
        uri,
        hops,
        via,
        digest,
        annotations,
        ..
    } = line;
    let digest = if is_look_up(uri) { "of a time" } else { digest };
    format!("{status} {size} {uri} {hops} {via} {digest} {annotations:?}")
}

/// Formats a record without times and ids of records. Lines of metadata records with durations are left out.
fn recorded(capture: &Capture) -> String {
    let mut text = format!("{} {}\n", capture.kind, capture.uri);
    let is_look_up = capture.kind == "resource" && is_look_up(&capture.uri);
    for (name, value) in &capture.headers {
        let name = name.to_ascii_lowercase();
        let is_of_time = is_look_up && name == "warc-payload-digest";
        if !is_of_time && !FIELDS_OF_ONE_CRAWL.contains(&name.as_str()) {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    let of_one_crawl = |line: &&str| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("date:") && !line.starts_with("fetchtimems")
    };
    let block = capture.text();
    let time_lines = usize::from(is_look_up);
    let lines = block.split_inclusive('\n').skip(time_lines);
    text.extend(lines.filter(of_one_crawl));
    text
}

/// Formats and sorts the items: the order of hosts depends on time.
fn sorted<T>(all: &[T], as_text: impl Fn(&T) -> String) -> Vec<String> {
    let mut texts: Vec<String> = all.iter().map(as_text).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn two_crawls_of_the_demo_web_produce_the_same_archive_and_log() {
    let web = demo::web().serve().await.unwrap();
    let first = crawl_demo(&web).await;
    let address = web.stopped().await;
    let web = demo::web().serve_on(address).await.unwrap();
    let second = crawl_demo(&web).await;
    let logs = [&first, &second].map(|result| sorted(&result.log, logged));
    assert!(logs[0].len() > 20, "{:?}", logs[0]);
    assert_eq!(logs[0], logs[1]);
    let archives = [&first, &second].map(|result| {
        let captures: Vec<Capture> = result.captures.clone();
        let content = captures.into_iter().filter(|one| one.kind != "warcinfo");
        sorted(&content.collect::<Vec<_>>(), recorded)
    });
    assert_eq!(archives[0].len(), archives[1].len());
    for (first, second) in archives[0].iter().zip(&archives[1]) {
        assert_eq!(first, second);
    }
}
