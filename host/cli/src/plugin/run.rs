//! `opilio plugin run`: runs a plugin on a document, or on every response of an archive.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::documents::{MaterialArgs, ReadSummary, each};
use super::fault::{fault_as_json, fault_as_text};
use super::page::{self, PageArgs};
use super::trial::{Outcome, Prepared, QuestionArgs, Trial};
use super::workbench::{Workbench, settings};
use super::{count, note, say, table};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Extractors: each line has the letter of the hop (L link, E embed, X speculative, R redirect, I inferred, M manifest, S
submit), the resolved link, and its context. Filters at the stages scope and pre-fetch, and precedence plugins, judge the links
that the shipped extractors find in the document. Several captures of one URI in an archive count as successive visits.
Page behaviours: with --page the command opens a page in Chromium, and prints each step with its view of the page, its actions and
their results. Otherwise it prints the first step on a page without content.")]
pub(super) struct RunArgs {
    /// Plugin to run.
    #[arg(value_name = "PLUGIN")]
    pub(super) plugin: String,
    /// File, - for standard input, URL to fetch, WARC file, or folder.
    #[arg(value_name = "FILE|-|URL|WARC|DIR", required_unless_present = "page")]
    pub(super) what: Option<String>,
    #[command(flatten)]
    pub(super) page: PageArgs,
    #[command(flatten)]
    pub(super) material: MaterialArgs,
    /// Settings of the plugin: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(super) settings: Option<String>,
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    /// Pass fragments to the shipped extractors, as a crawl does.
    #[arg(long)]
    pub(super) fragments: bool,
    /// Print JSON, one document per line.
    #[arg(long)]
    pub(super) json: bool,
}

/// Counts of documents and of the items found in them.
#[derive(Default)]
struct Totals {
    asked: u64,
    passed_over: u64,
    faults: u64,
    items: BTreeMap<&'static str, u64>,
}

/// Runs the command.
pub(super) fn run(args: &RunArgs, runtime: &Handle) -> Result<u8> {
    let workbench = Workbench::new()?;
    let subject = workbench.load(&args.plugin)?;
    subject.note_if_stale();
    let plugin = subject.configure(
        subject.sole()?,
        &settings(args.settings.as_deref())?,
        args.question.limits(),
    )?;
    if let Some(url) = &args.page.page {
        let private = args.material.private;
        return page::run(url, &args.page, private, args.json, &plugin, runtime);
    }
    let extractors = || workbench.extractors();
    let mut trial = Trial::new(plugin, &args.question, args.fragments, extractors)?;
    let mut totals = Totals::default();
    let handles = &trial.plugin.description().handles.media_types;
    let what = args.what.as_deref().unwrap_or_default();
    let material_args = args.material.with_type_of_input(what, handles);
    let reading = each(what, &material_args, runtime, &mut |material| {
        if !trial.handles(&material.sample) {
            totals.passed_over += 1;
            return Ok(());
        }
        totals.asked += 1;
        let place = material.place.clone();
        let mut prepared = trial.prepare(material);
        let outcomes = trial.call_all_kinds(&mut prepared);
        totals.add(&outcomes);
        show(args, Some((&prepared, place.as_deref())), &outcomes)
    })?;
    let last = trial.finish();
    totals.add(&last);
    show(args, None, &last)?;
    if reading.documents == 0 {
        let damage = reading.as_text();
        note(&format!("no documents in {what}{damage}"));
    } else if totals.asked == 0 {
        let handles = &trial.plugin.description().handles;
        let types = handles.media_types.join(", ");
        note(&format!(
            "{} handles none of the documents{}: it handles {}; set the type of a file with --content-type",
            trial.plugin.name(),
            reading.as_text(),
            if types.is_empty() {
                "certain URIs"
            } else {
                &types
            }
        ));
    } else if !args.json && (reading.documents > 1 || !reading.is_whole()) {
        say(&totals.as_text(reading))?;
    }
    Ok(match totals.faults == 0 && reading.is_whole() {
        true => exit::OK,
        false => exit::FAILED,
    })
}

impl Totals {
    fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            match &outcome.found {
                Ok(items) => {
                    for item in items {
                        *self.items.entry(item.what).or_default() += 1;
                    }
                }
                Err(_) => self.faults += 1,
            }
        }
    }

    fn as_text(&self, reading: ReadSummary) -> String {
        let mut text = count(self.asked, "document", "documents");
        if self.passed_over > 0 {
            text += &format!(" ({} not handled)", self.passed_over);
        }
        for (what, n) in &self.items {
            text += &format!("; {what}: {n}");
        }
        if self.faults > 0 {
            text += &format!("; {}", count(self.faults, "error", "errors"));
        }
        text + &reading.as_text() + "\n"
    }
}

fn show(
    args: &RunArgs,
    document: Option<(&Prepared, Option<&str>)>,
    outcomes: &[Outcome],
) -> Result<()> {
    if outcomes.is_empty() {
        return Ok(());
    }
    if args.json {
        let mut line = match document {
            Some((prepared, place)) => head(prepared, place),
            None => json!({}),
        };
        line["answers"] = outcomes.iter().map(as_json).collect();
        return say(&format!("{line}\n"));
    }
    let mut text = String::new();
    if let Some((prepared, place)) = document {
        let visit = &prepared.visit;
        text += &format!("{} {}", visit.status(), visit.uri().as_str());
        for more in [Some(visit.media_type()), place].into_iter().flatten() {
            if !more.is_empty() {
                text += &format!("  {}", terminal::line(more));
            }
        }
        text.push('\n');
    }
    for outcome in outcomes {
        text += &as_text(outcome);
    }
    say(&text)
}

/// Returns the facts of a document as JSON.
pub(super) fn head(prepared: &Prepared, place: Option<&str>) -> Value {
    let visit = &prepared.visit;
    json!({
        "uri": visit.uri().as_str(),
        "status": visit.status(),
        "media_type": visit.media_type(),
        "bytes": visit.bytes(),
        "at": visit.at.to_string(),
        "place": place,
    })
}

fn as_json(outcome: &Outcome) -> Value {
    let mut answer = json!({"kind": outcome.kind.word()});
    match &outcome.found {
        Ok(items) => {
            let mut found: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
            for item in items {
                found.entry(item.what).or_default().push(&item.json);
            }
            answer["found"] = json!(found);
        }
        Err(fault) => answer["fault"] = fault_as_json(fault),
    }
    answer["remarks"] = json!(outcome.remarks);
    answer["left"] = json!(outcome.left);
    answer
}

fn as_text(outcome: &Outcome) -> String {
    let mut text = match &outcome.found {
        Ok(items) if items.is_empty() => format!("  {}: nothing\n", outcome.kind.word()),
        Ok(items) => {
            let rows: Vec<Vec<String>> = items.iter().map(|item| item.cells.clone()).collect();
            table(&rows, 2)
        }
        Err(fault) => fault_as_text(fault),
    };
    for line in outcome.remarks.iter().chain(&outcome.left) {
        text += &format!("  {}\n", terminal::line(line));
    }
    text
}
