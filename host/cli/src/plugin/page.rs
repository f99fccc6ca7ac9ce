//! `opilio plugin run --page`: a page behaviour on a page in Chromium, step by step.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use opilio_crawl::page_trial::{PageTrial, PageTrialError, PageTrialSettings, TrialStep};
use opilio_profile::format_duration;
use opilio_sandbox::{BehaviorResult, CallResult, Kind, LoadedPage, PageFacts, Plugin};
use opilio_uri::Uri;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::answer::of_plan;
use super::fault::{fault_as_json, fault_as_text};
use super::trial::duration;
use super::{note, say, table};
use crate::{exit, terminal};

/// Longest cell of the table of actions, in characters.
const CELL_CHARS_MAX: usize = 160;
/// Number of failed requests that are shown.
const REFUSED_SHOWN: usize = 10;

/// A page in a browser.
#[derive(Clone, Debug, Args)]
pub(super) struct PageArgs {
    /// Open this page in Chromium for a page behaviour, and print each step.
    #[arg(long, value_name = "URL", conflicts_with = "what")]
    pub(super) page: Option<String>,
    /// Longest time for the page, as browser.page-time.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90s", requires = "page")]
    page_time: Duration,
    /// Maximum number of steps of the behaviour, as browser.page-steps.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 100, requires = "page")]
    page_steps: u32,
    /// Path of Chromium, as browser.executable [default: looked for in PATH].
    #[arg(long, value_name = "PATH", requires = "page")]
    chromium: Option<PathBuf>,
    /// Run Chromium without its own sandbox, as browser.sandbox = false. Only in a container.
    #[arg(long, requires = "page")]
    no_sandbox: bool,
}

impl Default for PageArgs {
    fn default() -> Self {
        Self {
            page: None,
            page_time: Duration::from_secs(90),
            page_steps: 100,
            chromium: None,
            no_sandbox: false,
        }
    }
}

/// Runs a behaviour on a page. `is_private` allows requests to this machine and private networks.
pub(super) fn run(
    url: &str,
    page: &PageArgs,
    is_private: bool,
    is_json: bool,
    plugin: &Plugin,
    runtime: &Handle,
) -> Result<u8> {
    ensure!(
        plugin.is(&Kind::PageBehavior),
        "{} is not a page behaviour; --page is for page behaviours only",
        plugin.name()
    );
    let uri = Uri::parse(url).with_context(|| format!("invalid --page {url}"))?;
    ensure!(
        uri.is_http(),
        "invalid --page {url}: write a URL of http or https"
    );
    let settings = PageTrialSettings {
        user_agent: format!("opilio/{} (plugin run)", env!("CARGO_PKG_VERSION")),
        chromium: page.chromium.clone(),
        sandbox: !page.no_sandbox,
        private: is_private,
        page_time: page.page_time,
        page_steps: page.page_steps,
    };
    if !plugin.handles("text/html", uri.as_str()) {
        note(&format!(
            "a crawl does not call {} for {uri}: it handles other URIs or media types",
            plugin.name()
        ));
    }
    runtime.block_on(operate(&uri, &settings, is_json, plugin))
}

async fn operate(
    uri: &Uri,
    settings: &PageTrialSettings,
    is_json: bool,
    plugin: &Plugin,
) -> Result<u8> {
    let trial = PageTrial::open(uri, settings).await;
    let mut trial = trial.map_err(|problem| with_advice(problem, settings))?;
    let mut code = exit::OK;
    let mut steps = 0;
    let ended = loop {
        match trial.step(plugin).await {
            Ok(None) => break Ok(()),
            Ok(Some(Ok(step))) => {
                steps += 1;
                say(&match is_json {
                    true => format!("{}\n", as_json(&step)),
                    false => as_text(&step),
                })?;
                if let Some(cut) = &step.cut {
                    note(&format!(
                        "{cut}: a crawl archives the page in its current state"
                    ));
                    break Ok(());
                }
            }
            Ok(Some(Err(fault))) => {
                code = exit::FAILED;
                say(&match is_json {
                    true => format!("{}\n", json!({"fault": fault_as_json(&fault)})),
                    false => fault_as_text(&fault),
                })?;
                break Ok(());
            }
            Err(problem) => break Err(problem),
        }
    };
    if ended.is_ok() && code == exit::OK && steps == settings.page_steps && !trial.has_finished() {
        note(&format!(
            "stopped after {steps} steps; --page-steps N allows more"
        ));
    }
    let refused = trial.refused();
    for line in refused.iter().take(REFUSED_SHOWN) {
        note(&format!("request {line}"));
    }
    if let Some(more) = refused.len().checked_sub(REFUSED_SHOWN).filter(|n| *n > 0) {
        note(&format!("{more} more requests had no response"));
    }
    trial.close().await;
    ended.map_err(|problem| with_advice(problem, settings))?;
    Ok(code)
}

fn with_advice(problem: PageTrialError, settings: &PageTrialSettings) -> anyhow::Error {
    let advice = match problem {
        PageTrialError::NoPage { .. } if !settings.private => {
            "the page cannot be opened (--private allows requests to this machine and private networks)"
        }
        PageTrialError::Browser(_) => {
            "the page cannot be opened in Chromium (--chromium PATH sets its path, --no-sandbox switches its sandbox off)"
        }
        _ => return problem.into(),
    };
    anyhow::Error::new(problem).context(advice)
}

fn as_text(step: &TrialStep) -> String {
    let seen = &step.seen;
    let mut text = format!(
        "step {} after {}: {}{}\n",
        seen.step,
        format_duration(rounded(seen.time_used)),
        terminal::line(&seen.uri),
        match seen.title.is_empty() {
            true => String::new(),
            false => format!("  {:?}", terminal::line(&seen.title)),
        }
    );
    text += &format!(
        "  {} elements, {} characters, {}–{} of {} px, {} requests in flight\n",
        seen.elements,
        seen.text_length,
        seen.scroll_top,
        seen.scroll_top + seen.window_height,
        seen.scroll_height,
        seen.requests_in_flight
    );
    let mut rows: Vec<Vec<String>> = seen
        .counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(selector, count)| vec![format!("{count} ×"), clipped(selector)])
        .collect();
    let mut results = step.results.iter().map(words);
    for item in of_plan(&step.plan) {
        let mut cells: Vec<String> = item.cells.iter().map(|cell| clipped(cell)).collect();
        if item.what == "actions" {
            cells.resize(2, String::new());
            cells.insert(
                1,
                results
                    .next()
                    .unwrap_or_else(|| "not carried out".to_owned()),
            );
        }
        rows.push(cells);
    }
    text + &table(&rows, 2)
}

/// Cuts a cell to a readable length. JSON output has the whole text.
fn clipped(cell: &str) -> String {
    match cell.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell.to_owned(),
    }
}

fn rounded(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The result of an action in words.
fn words(result: &BehaviorResult) -> String {
    match result {
        BehaviorResult::Done => "done".to_owned(),
        BehaviorResult::Clicked(elements) => format!("clicked {elements}"),
        BehaviorResult::Value(json) => format!("value {json}"),
        BehaviorResult::NoElement => "no element".to_owned(),
        BehaviorResult::NotIdle => "not idle".to_owned(),
        BehaviorResult::Invalid(problem) => format!("invalid: {problem}"),
        BehaviorResult::Exception(text) => format!("exception: {text}"),
        BehaviorResult::Refused(reason) => format!("refused: {reason}"),
        BehaviorResult::Other(name) => name.clone(),
    }
}

fn as_json(step: &TrialStep) -> Value {
    let after = LoadedPage {
        results: step.results.clone(),
        ..LoadedPage::default()
    };
    json!({
        "page": PageFacts::of(&step.seen),
        "plan": CallResult::step_plan(&step.plan),
        "results": json!(PageFacts::of(&after)).get("results").cloned().unwrap_or_else(|| json!([])),
        "cut": step.cut.as_ref().map(ToString::to_string),
    })
}
