//! A crawl for a test, and its result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use opilio_control::{Author, Command, CommandRequest, CommandResponse};
use opilio_crawl::{Crawl, CrawlError, End, Order, ProfileSource, Summary, plan};
use opilio_test_web::Web;
use tempfile::TempDir;

use crate::{Capture, LoggedUri, captures, lines, sound};

/// Time after which a story counts as hung, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A port that refuses connections. A free port from the system could be taken by another test a moment later.
pub const CLOSED_PORT: u16 = 4;

/// Settings of all stories: no politeness delays, and only addresses of this machine.
const BASE_PROFILE: &str = r#"
name = "story"
workers = 4
[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"
[dns]
hosts = { "*.localhost" = "127.0.0.1" }
[fetch]
allow-addresses = ["loopback", "private"]
connect-timeout = "100s"
response-timeout = "100s"
[retry]
max-retries = 2
delay = "20ms"
[archive]
fsync = "none"
[alerts]
disk-warn = "none"
disk-pause = "none"
"#;

/// A crawl for a test. All runs of a story use one job, so a second run resumes it.
pub struct Story {
    profile: toml::Table,
    seeds: Vec<String>,
    home: Arc<TempDir>,
}

/// The result of a crawl that has ended.
pub struct FinishedCrawl {
    /// Counts, and the kind of the end.
    pub summary: Summary,
    /// Lines of the crawl log, those of earlier runs included.
    pub log: Vec<LoggedUri>,
    /// Records of the archive, those of earlier runs included.
    pub captures: Vec<Capture>,
    job: PathBuf,
    // The folder is removed with the last value that refers to it.
    _home: Arc<TempDir>,
}

/// Returns a crawl with default settings except for politeness and allowed addresses.
pub fn crawl() -> Story {
    Story {
        profile: BASE_PROFILE.parse().unwrap(),
        seeds: Vec::new(),
        home: Arc::new(tempfile::tempdir().unwrap()),
    }
}

/// Returns the folder of compiled components in cargo's target folder. All stories share it.
pub fn component_cache() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/PROFILE/deps/TEST
    test.ancestors()
        .nth(3)
        .unwrap()
        .join("tmp/cache/opilio/components")
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

impl Story {
    /// Merges settings into the profile key by key; lists are replaced.
    pub fn profile(mut self, toml: &str) -> Story {
        overlay(&mut self.profile, toml.parse().unwrap());
        self
    }

    /// Adds a plugin with this name. The component is written to a file of the story. `NAME#PLUGIN` selects a plugin if the
    /// component holds several.
    pub fn plugin(self, name: &str, component: &[u8]) -> Story {
        let (name, which) = match name.split_once('#') {
            None => (name, String::new()),
            Some((name, which)) => (name, format!("#{which}")),
        };
        let file = self.home.path().join(format!("{name}.wasm"));
        std::fs::write(&file, component).unwrap();
        self.profile(&format!(
            "[plugins.{name}]\ncomponent = '{}{which}'",
            file.display()
        ))
    }

    /// Adds a seed.
    pub fn seed(mut self, url: impl Into<String>) -> Story {
        self.seeds.push(url.into());
        self
    }

    /// Writes a file into the folder of the story, for use in the profile. Returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.home.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Merges settings into the job's copy of the profile, as an operator does between two runs; lists are replaced.
    pub fn amend(&self, toml: &str) {
        let copy = self.job().join("profile.toml");
        let mut profile: toml::Table = std::fs::read_to_string(&copy).unwrap().parse().unwrap();
        overlay(&mut profile, toml.parse().unwrap());
        std::fs::write(&copy, toml::to_string(&profile).unwrap()).unwrap();
    }

    /// Returns the job's directory.
    pub fn job(&self) -> PathBuf {
        self.home.path().join("job")
    }

    /// Returns the profile as TOML.
    pub fn profile_text(&self) -> String {
        toml::to_string(&self.profile).unwrap()
    }

    /// Plans and begins the crawl.
    ///
    /// # Errors
    /// As [`plan`] and `Plan::begin`.
    pub fn begin(&self) -> Result<Crawl, CrawlError> {
        plan(&self.order_of())?.begin()
    }

    /// Returns the notes for the operator before the start, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let plan = plan(&self.order_of()).unwrap_or_else(|error| panic!("{error}"));
        plan.notes().to_vec()
    }

    fn order_of(&self) -> Order {
        Order {
            profile: ProfileSource::Text {
                file: "story.toml".to_owned(),
                text: self.profile_text(),
            },
            seeds: self.seeds.clone(),
            contact_url: None,
            job: Some(self.job()),
            component_cache: Some(component_cache()),
        }
    }

    /// Crawls to the end.
    pub async fn run(&self) -> FinishedCrawl {
        let crawl = self.begin().unwrap_or_else(|error| panic!("{error}"));
        self.finish(opilio_control::run(crawl)).await
    }

    /// Crawls until `enough` returns `true`, then stops politely. `what` names the condition in a failure.
    pub async fn run_until(&self, what: &str, enough: impl FnMut() -> bool) -> FinishedCrawl {
        let crawl = self.begin().unwrap_or_else(|error| panic!("{error}"));
        let stop = crawl.stop();
        let stopping = async {
            until(what, enough).await;
            stop.stop();
        };
        let running = async { tokio::join!(opilio_control::run(crawl), stopping).0 };
        self.finish(running).await
    }

    /// Crawls to the end. Runs `operator` at the same time, and returns its result, too.
    pub async fn run_with<T>(&self, operator: impl Future<Output = T>) -> (FinishedCrawl, T) {
        let crawl = self.begin().unwrap_or_else(|error| panic!("{error}"));
        let mut done = None;
        let running = async {
            let (summary, answer) = tokio::join!(opilio_control::run(crawl), operator);
            done = Some(answer);
            summary
        };
        let finished = self.finish(running).await;
        (finished, done.unwrap())
    }

    /// Sends a command to the job, as the command line does. Returns the answers without the final one, or the message of a
    /// refusal.
    pub async fn order(&self, command: Command) -> Result<Vec<CommandResponse>, String> {
        let job = self.job();
        let asked = tokio::task::spawn_blocking(move || {
            let by = Author {
                user: "lena".to_owned(),
                pid: 0,
            };
            let mut answers = Vec::new();
            let request = CommandRequest {
                by,
                command,
                only_here: false,
            };
            opilio_control::carry_out(&job, &request, &mut |answer| {
                answers.push(answer);
                true
            })
            .map_err(|problem| problem.to_string())?;
            match answers.pop() {
                Some(CommandResponse::End) => Ok(answers),
                Some(CommandResponse::Refused { message, .. }) => Err(message),
                other => panic!("no end: {other:?}"),
            }
        });
        asked.await.unwrap()
    }

    async fn finish(&self, running: impl Future<Output = Summary>) -> FinishedCrawl {
        let job = self.job();
        let summary = tokio::time::timeout(PATIENCE, running).await;
        let summary = summary.unwrap_or_else(|_| panic!("hangs; so far: {:#?}", lines(&job)));
        sound(&job);
        FinishedCrawl {
            summary,
            log: lines(&job),
            captures: captures(&job),
            job,
            _home: self.home.clone(),
        }
    }
}

impl FinishedCrawl {
    /// Asserts that nothing was left to fetch.
    #[track_caller]
    pub fn finished(self) -> FinishedCrawl {
        // Some stories are about seeds that cannot be fetched.
        let is_finished = matches!(self.summary.end, End::Finished | End::NoSeedFetched(_));
        assert!(is_finished, "{:?} {:#?}", self.summary.end, self.log);
        self
    }

    /// Returns the lines of the log about a URI.
    pub fn of(&self, uri: &str) -> Vec<&LoggedUri> {
        self.log.iter().filter(|line| line.uri == uri).collect()
    }

    /// Returns the only line of the log about a URI.
    #[track_caller]
    pub fn sole(&self, uri: &str) -> &LoggedUri {
        match self.of(uri)[..] {
            [sole] => sole,
            ref other => panic!("{} lines about {uri}: {:#?}", other.len(), self.log),
        }
    }

    /// Returns the records of a kind about a URI.
    pub fn records(&self, kind: &str, uri: &str) -> Vec<&Capture> {
        self.captures
            .iter()
            .filter(|capture| capture.kind == kind && capture.uri == uri)
            .collect()
    }

    /// Returns the only record of a kind about a URI.
    #[track_caller]
    pub fn record(&self, kind: &str, uri: &str) -> &Capture {
        match self.records(kind, uri)[..] {
            [sole] => sole,
            ref other => panic!(
                "{} records of {kind} about {uri}: {:#?}",
                other.len(),
                self.log
            ),
        }
    }

    /// Returns `STATUS URI HOPS` for every line of the log, sorted.
    pub fn statuses(&self) -> Vec<String> {
        let mut statuses: Vec<_> = self
            .log
            .iter()
            .map(|line| format!("{} {} {}", line.status, line.uri, line.hops))
            .collect();
        statuses.sort();
        statuses
    }

    /// Returns the text of a log of the job; empty if the log is missing.
    pub fn log_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.job.join("logs").join(name)).unwrap_or_default()
    }

    /// Returns the job's directory.
    pub fn job(&self) -> &Path {
        &self.job
    }
}

/// Returns `HOST TARGET` for every request so far except those for robots.txt, sorted.
pub fn asked(web: &Web) -> Vec<String> {
    let requests = web.requests();
    let pages = requests.iter().filter(|seen| seen.target != "/robots.txt");
    let mut asked: Vec<_> = pages
        .map(|seen| format!("{} {}", seen.host, seen.target))
        .collect();
    asked.sort();
    asked
}

fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
