//! A crawl of the test web in a folder of its own, and its output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_test_web::Web;
use serde_json::Value;

use super::steps::{TOOLCHAINS, toolchains};

/// Settings for a crawl of loopback without delays.
pub(super) const LOOPBACK_SETTINGS: &str = "[politeness]\ndelay-factor = 0.0\nmin-delay = \"0s\"\nmax-delay = \"0s\"\n\n\
     [fetch]\nallow-addresses = [\"loopback\"]\n";

/// A crawl in a folder of its own.
pub(super) struct Crawl {
    pub(super) opilio: PathBuf,
    pub(super) folder: PathBuf,
}

/// Output and job of a crawl.
pub(super) struct CrawlOutput {
    pub(super) job: PathBuf,
    pub(super) code: Option<i32>,
    pub(super) text: String,
}

impl Crawl {
    /// Runs a crawl to its end. The profile is the same for all crawls, with these lines added.
    pub(super) fn run(&self, seeds: &[String], lines: &str) -> Result<CrawlOutput> {
        make_empty_folder(&self.folder)?;
        let profile = self.folder.join("profile.toml");
        let text = format!("name = \"examples\"\nseeds = {seeds:?}\n{lines}\n{LOOPBACK_SETTINGS}");
        fs::write(&profile, text)?;
        let job = self.folder.join("job");
        let mut crawl = Command::new(&self.opilio);
        crawl.arg("crawl").arg(&profile).arg("--job").arg(&job);
        CrawlOutput::by(&mut crawl, job)
    }
}

impl CrawlOutput {
    /// Runs a command that crawls.
    pub(super) fn by(command: &mut Command, job: PathBuf) -> Result<Self> {
        let ended = command.env(TOOLCHAINS, toolchains()).output()?;
        let text =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Self {
            job,
            code: ended.status.code(),
            text: text.join("\n"),
        })
    }

    pub(super) fn ended_with(&self, code: i32) -> Result<()> {
        ensure!(
            self.code == Some(code),
            "the crawl ended with {:?}:\n{}",
            self.code,
            self.text
        );
        Ok(())
    }

    pub(super) fn file(&self, name: &str) -> Result<String> {
        let file = self.job.join(name);
        fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
    }

    /// The lines of the crawl log about a URI, in order.
    pub(super) fn log_of(&self, uri: &str) -> Result<Vec<String>> {
        let log = self.file("logs/crawl.log")?;
        let of_uri = log
            .lines()
            .filter(|line| line.split_whitespace().nth(3) == Some(uri));
        Ok(of_uri.map(str::to_owned).collect())
    }

    /// Statistics of a plugin.
    pub(super) fn figures(&self, plugin: &str) -> Result<Value> {
        let all: Vec<Value> = serde_json::from_str(&self.file("reports/plugins.json")?)?;
        let of = all.into_iter().find(|one| one["name"] == plugin);
        of.with_context(|| format!("the report on plugins has no {plugin}"))
    }
}

/// Requests that a web server received, in order.
pub(super) fn requested_paths(web: &Web) -> Vec<String> {
    web.requests().into_iter().map(|seen| seen.target).collect()
}

/// Creates an empty folder.
pub(super) fn make_empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
