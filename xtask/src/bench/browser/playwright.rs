//! A loop in Playwright that opens the pages of the site in the same Chromium and keeps only the bodies of the responses. It shows
//! the minimum cost of a rendered page on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::watched::{ProgramUsage, watch};
use crate::{command, registries};

/// The package of Playwright without its own browser.
const PLAYWRIGHT: &str = "playwright-core@1.65.1";

/// The script of the loop.
const SCRIPT: &str = include_str!("playwright.mjs");

/// Playwright, and the Chromium that it starts.
pub(super) struct Playwright {
    script: PathBuf,
    chromium: PathBuf,
}

/// The pages to open.
pub(super) struct Pages<'a> {
    pub(super) urls: &'a [String],
    /// Browsers at the same time.
    pub(super) workers: usize,
}

impl Playwright {
    /// Installs Playwright.
    ///
    /// # Errors
    /// Node, npm or Chromium is missing.
    pub(super) fn install() -> Result<Self> {
        for program in ["node", "npm"] {
            let mut version = Command::new(program);
            command::output(version.arg("--version")).with_context(|| {
                format!(
                    "--playwright needs {program}: install Node.js 20 or later with npm, \
                     such as `apt-get install nodejs npm`"
                )
            })?;
        }
        let chromium = command::chromium()?;
        let folder = registries::node(&[PLAYWRIGHT])?;
        // Modules look for packages in their own folder.
        let script = folder.join("playwright.mjs");
        fs::write(&script, SCRIPT)?;
        Ok(Self { script, chromium })
    }

    /// Opens each page once. `folder` is for files of the loop.
    pub(super) fn open(&self, folder: &Path, pages: &Pages<'_>) -> Result<ProgramUsage> {
        let (input, output) = (folder.join("input.json"), folder.join("output.json"));
        let request = json!({
            "executable": self.chromium,
            "sandbox": !command::is_root(),
            "workers": pages.workers,
            "urls": pages.urls,
        });
        fs::write(&input, request.to_string())?;
        let mut node = Command::new("node");
        node.arg(&self.script).args([&input, &output]);
        let watched = watch(&mut node, |_| ())?;
        ensure!(
            watched.status.success(),
            "the loop in Playwright ended with {}",
            watched.status
        );
        let done = fs::read(&output).context("the loop in Playwright left no result")?;
        let done: Value = serde_json::from_slice(&done)?;
        let (opened, bodies) = (done["pages"].as_u64(), done["bodies"].as_u64());
        let all = Some(pages.urls.len() as u64);
        ensure!(
            opened == all && bodies >= all,
            "the loop in Playwright opened {opened:?} of {all:?} pages, and kept {bodies:?} bodies"
        );
        ensure!(
            !watched.browser_time.is_zero(),
            "the browsers of Playwright were not found among the processes of node"
        );
        Ok(watched)
    }
}
