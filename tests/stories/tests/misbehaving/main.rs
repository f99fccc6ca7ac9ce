//! One crawl of many misbehaving servers and one good site.
//!
//! This is a separate test binary, because it measures descriptors and memory of its process.

#![allow(clippy::unwrap_used, reason = "tests")]

mod cases;

use std::time::Duration;

use opilio_stories::{FinishedCrawl, Rogues, crawl, html, site, until};
use opilio_test_web::{Gate, Web};

use cases::{Case, HOSTAGES, RESPONSE_TIMEOUT, Record, TOTAL_TIMEOUT, cases};

const GOOD: &str = "good.localhost";
const GOOD_PAGES: usize = 100;

/// Time by which a fetch may exceed its time limit on a busy machine.
const SLOWNESS: Duration = Duration::from_secs(30);

/// Memory that the crawl may use beyond a crawl of one page; half of it is usual. Servers and crawler share the process. A flood or
/// an unpacked gzip bomb in memory would use more.
const MEMORY_MAX: u64 = 256 << 20;

fn profile(cases: &[Case]) -> String {
    let seconds = |limit: Duration| limit.as_secs();
    let mut text = format!(
        r#"
        workers = 150
        retry.max-retries = 0
        [politeness]
        retry-after-max = "1s"
        [fetch]
        allow-addresses = ["loopback"]
        connect-timeout = "{}s"
        response-timeout = "{}s"
        total-timeout = "{}s"
        header-max = "16KiB"
        headers-max = 100
        body-max = "1MiB"
        redirects-max = 5
        [limits]
        plugin-content = "4MiB"
        outlinks = 150
        "#,
        seconds(RESPONSE_TIMEOUT),
        seconds(RESPONSE_TIMEOUT),
        seconds(TOTAL_TIMEOUT),
    );
    let patient = "fetch = { response-timeout = '250s', total-timeout = '250s' }";
    let mut overrides = vec![("good", patient)];
    for case in cases {
        let settings = case.settings.iter();
        overrides.extend(settings.map(|settings| (case.rogue.name(), *settings)));
    }
    for (name, settings) in overrides {
        text.push_str(&format!(
            "[[override]]\nmatch.host = ['{name}.localhost']\n{settings}\n"
        ));
    }
    text
}

/// Serves the good site. Its first page is answered when all hostages have a request in flight; its last page releases the
/// hostages.
async fn good(held: &Gate, free: &Gate) -> Web {
    let links: String = (1..=GOOD_PAGES)
        .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
        .collect();
    let free = free.clone();
    site(GOOD)
        .page("/", html(&links).behind(held))
        .answer(&format!("/{GOOD_PAGES}.html"), move |_| {
            free.come();
            html("the last")
        })
        .rest(|_| html("a page"))
        .serve()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misbehaving_servers_have_the_expected_results_and_delay_no_other_site() {
    // A first crawl opens the descriptors that the process keeps, which are not leaks.
    let web = site("first.localhost")
        .page("/", html("a page"))
        .serve()
        .await;
    let first = crawl().seed(web.url("first.localhost", "/"));
    drop(first.run().await.finished());
    drop((first, web));
    let before = Process::now();

    let (held, free) = (Gate::of(HOSTAGES + 1), Gate::of(HOSTAGES + 1));
    let cases = cases(&held, &free);
    let rogues = Rogues::serve(cases.iter().map(|case| case.rogue.clone()));
    let web = good(&held, &free).await;
    let mut story = crawl().profile(&profile(&cases)).seed(web.url(GOOD, "/"));
    for case in &cases {
        let name = case.rogue.name();
        story = story
            .seed(rogues.url(name, "/"))
            .seed(rogues.url(name, "/next"));
    }
    let result = story.run().await.finished();

    let mut faults = Vec::new();
    for case in &cases {
        faults.extend(judge(case, &rogues, &result));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    let good: Vec<_> = (1..=GOOD_PAGES)
        .map(|n| result.sole(&web.url(GOOD, &format!("/{n}.html"))).status)
        .collect();
    assert_eq!(good, [200; GOOD_PAGES]);

    let log = result.log_file("crawl.log");
    let control = log.lines().find(|line| line.contains(char::is_control));
    assert_eq!(
        control, None,
        "the log contains control characters from a server"
    );

    let scratch = result.job().join("scratch");
    let left: Vec<_> = std::fs::read_dir(&scratch)
        .map(|left| left.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
    drop((result, story, rogues, web));
    before.assert_released().await;
}

/// Returns the differences between the result and the expectations of a case.
fn judge(case: &Case, rogues: &Rogues, result: &FinishedCrawl) -> Vec<String> {
    let name = case.rogue.name();
    let uri = |target: &str| match target.contains("://") {
        true => target.to_owned(),
        false => rogues.url(name, target),
    };
    let mut faults = Vec::new();
    let mut others = case.others.clone();
    others.push(("/", case.status));
    others.push(("/next", case.next));
    for (target, status) in others {
        let lines = result.of(&uri(target));
        let found: Vec<_> = lines.iter().map(|line| line.status).collect();
        if found != [status] {
            faults.push(format!(
                "{name}: {target} has {found:?} and not {status}: {lines:?}"
            ));
        }
    }
    if case.next == 200 {
        let next = result.records("response", &uri("/next"));
        let whole = next.iter().all(|record| {
            record
                .text()
                .ends_with(&format!("\r\n\r\na page of {name}"))
        });
        if next.len() != 1 || !whole {
            faults.push(format!("{name}: /next is not what was sent: {next:?}"));
        }
    }
    let about = uri(case.about);
    let records = result.records("response", &about);
    let found: Vec<_> = records
        .iter()
        .map(|record| record.header("warc-truncated"))
        .collect();
    let expected = match case.record {
        Record::Nothing => Vec::new(),
        Record::Whole => vec![None],
        Record::Cut(reason) => vec![Some(reason)],
    };
    if found != expected {
        faults.push(format!(
            "{name}: records of {about} have WARC-Truncated {found:?} and not {expected:?}"
        ));
    }
    let requests = result.records("request", &about).len();
    if requests != expected.len() {
        faults.push(format!("{name}: {requests} request records"));
    }
    let Some(line) = result.of(&about).pop() else {
        return faults;
    };
    for note in &case.notes {
        if !line.notes(note) {
            faults.push(format!("{name}: no {note} in {line:?}"));
        }
    }
    let ours = |note: &&String| note.contains("Trunc") || note.starts_with("excessBytes");
    let unexpected: Vec<_> = line
        .annotations
        .iter()
        .filter(ours)
        .filter(|note| !case.notes.iter().any(|known| note.starts_with(known)))
        .collect();
    if !unexpected.is_empty() {
        faults.push(format!("{name}: {unexpected:?} in {line:?}"));
    }
    if let Some(limit) = case.ended_by {
        let took = line.took.unwrap_or_default();
        if took < limit || took > limit + SLOWNESS {
            faults.push(format!("{name}: {took:?}, where {limit:?} ends it"));
        }
    }
    if let Some(text) = case.metadata {
        let metadata = result.records("metadata", &about);
        if !metadata.iter().any(|record| record.text().contains(text)) {
            faults.push(format!("{name}: no {text:?} in its metadata: {metadata:?}"));
        }
    }
    let asked: Vec<_> = rogues
        .asked()
        .into_iter()
        .filter(|asked| asked.name == name)
        .collect();
    if let Some(check) = case.asked {
        faults.extend(check(&asked).map(|fault| format!("{name}: {fault}")));
    }
    faults
}

/// Resources of this process.
struct Process {
    descriptors: usize,
    /// Peak memory in bytes.
    memory: u64,
}

impl Process {
    fn now() -> Process {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        Process {
            descriptors: descriptors().len(),
            memory: kilobytes << 10,
        }
    }

    /// Waits until background threads have released their resources. Asserts that the memory stayed within its limit.
    async fn assert_released(&self) {
        until("every descriptor is closed", || {
            let now = descriptors();
            now.len() <= self.descriptors
        })
        .await;
        let taken = Process::now().memory.saturating_sub(self.memory);
        assert!(taken < MEMORY_MAX, "{} MiB were taken", taken >> 20);
    }
}

/// Targets of the open descriptors of this process.
fn descriptors() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|target| target.display().to_string())
        .collect()
}
