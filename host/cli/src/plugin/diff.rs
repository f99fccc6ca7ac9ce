//! `opilio plugin diff`: the effect of another version of a plugin, or of other settings, on an archive, before the change is
//! deployed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::answer::Item;
use super::documents::{MaterialArgs, ReadSummary, each};
use super::run::head;
use super::trial::{Outcome, Prepared, QuestionArgs, Trial};
use super::workbench::{Workbench, settings};
use super::{count, say, table};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Current plugin.
    #[arg(value_name = "OLD")]
    pub(super) old: String,
    /// New plugin.
    #[arg(value_name = "NEW")]
    pub(super) new: String,
    /// Documents to compare the plugins on: WARC file, folder or file; may be repeated.
    #[arg(long, required = true, value_name = "FILE|DIR")]
    pub(super) warc: Vec<String>,
    /// Settings of both plugins: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(super) settings: Option<String>,
    /// Settings of NEW, if they differ from those of OLD.
    #[arg(long, value_name = "JSON")]
    pub(super) new_settings: Option<String>,
    #[command(flatten)]
    pub(super) material: MaterialArgs,
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    /// Print JSON: one line per document that differs, then the totals.
    #[arg(long)]
    pub(super) json: bool,
}

/// Items lost and gained in one document.
struct Change {
    kind: &'static str,
    lost: Vec<Item>,
    gained: Vec<Item>,
    /// Errors of only one of the two, and differing notes and remarks.
    besides: Vec<String>,
}

impl Change {
    fn is_none(&self) -> bool {
        self.lost.is_empty() && self.gained.is_empty() && self.besides.is_empty()
    }
}

#[derive(Default)]
struct Totals {
    documents: u64,
    differ: u64,
    lost: BTreeMap<&'static str, u64>,
    gained: BTreeMap<&'static str, u64>,
}

/// Runs the command.
pub(super) fn run(args: &DiffArgs, runtime: &Handle) -> Result<u8> {
    let workbench = Workbench::new()?;
    let trial = |named: &str, written: Option<&str>| {
        let subject = workbench.load(named)?;
        subject.note_if_stale();
        let plugin =
            subject.configure(subject.sole()?, &settings(written)?, args.question.limits());
        let plugin = plugin.with_context(|| named.to_owned())?;
        Trial::new(plugin, &args.question, false, || workbench.extractors())
    };
    let of_new = args.new_settings.as_deref().or(args.settings.as_deref());
    let mut old = trial(&args.old, args.settings.as_deref())?;
    let mut new = trial(&args.new, of_new)?;
    let mut totals = Totals::default();
    let mut reading = ReadSummary::default();
    for what in &args.warc {
        let read = each(what, &args.material, runtime, &mut |material| {
            let (old_handles, new_handles) =
                (old.handles(&material.sample), new.handles(&material.sample));
            if !old_handles && !new_handles {
                return Ok(());
            }
            totals.documents += 1;
            let place = material.place.clone();
            let (mut before, mut after) = (old.prepare(material.clone()), new.prepare(material));
            let call = |trial: &mut Trial, prepared: &mut Prepared, handles: bool| {
                if handles {
                    return trial.call_all_kinds(prepared);
                }
                trial.finish_visit(prepared);
                Vec::new()
            };
            let changes = compare(
                call(&mut old, &mut before, old_handles),
                call(&mut new, &mut after, new_handles),
            );
            if changes.is_empty() {
                return Ok(());
            }
            totals.add(&changes);
            match args.json {
                true => {
                    let mut line = head(&after, place.as_deref());
                    line["changes"] = changes.iter().map(as_json).collect();
                    say(&format!("{line}\n"))
                }
                false => say(&format!(
                    "{} {}\n{}",
                    after.visit.status(),
                    after.visit.uri().as_str(),
                    changes.iter().map(as_text).collect::<String>()
                )),
            }
        })?;
        reading = reading.and(read);
    }
    let last = compare(old.finish(), new.finish());
    totals.add(&last);
    ensure!(
        totals.documents > 0,
        "neither plugin handles a document of {}{}",
        args.warc.join(", "),
        reading.as_text()
    );
    if !args.json {
        say(&last.iter().map(as_text).collect::<String>())?;
    }
    say(&match args.json {
        true => format!("{}\n", totals.as_json(reading)),
        false => totals.as_text(reading),
    })?;
    Ok(match totals.differ == 0 && reading.is_whole() {
        true => exit::OK,
        false => exit::FAILED,
    })
}

/// Returns the differences, kind by kind.
fn compare(old: Vec<Outcome>, new: Vec<Outcome>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut new = new.into_iter().map(Some).collect::<Vec<_>>();
    for before in old {
        let after = new
            .iter_mut()
            .find(|after| {
                after
                    .as_ref()
                    .is_some_and(|after| after.kind == before.kind)
            })
            .and_then(Option::take);
        changes.push(change(Some(before), after));
    }
    for after in new.into_iter().flatten() {
        changes.push(change(None, Some(after)));
    }
    changes.retain(|change| !change.is_none());
    changes
}

fn change(old: Option<Outcome>, new: Option<Outcome>) -> Change {
    let kind = old
        .as_ref()
        .or(new.as_ref())
        .map_or("", |one| one.kind.word());
    let into_parts = |outcome: Option<Outcome>, name: &str| {
        let Some(outcome) = outcome else {
            return (Vec::new(), Vec::new());
        };
        let mut besides: Vec<String> = outcome.remarks.into_iter().chain(outcome.left).collect();
        match outcome.found {
            Ok(items) => (items, besides),
            Err(fault) => {
                besides.push(format!(
                    "ERROR of {name}: {}: {}",
                    fault.kind, fault.message
                ));
                (Vec::new(), besides)
            }
        }
    };
    let (mut lost, mut before) = into_parts(old, "OLD");
    let (mut gained, mut after) = into_parts(new, "NEW");
    cancel(&mut lost, &mut gained);
    cancel(&mut before, &mut after);
    let besides = before.into_iter().map(|line| format!("- {line}"));
    Change {
        kind,
        lost,
        gained,
        besides: besides
            .chain(after.into_iter().map(|line| format!("+ {line}")))
            .collect(),
    }
}

/// Removes the common items of both lists, as often as both have them.
fn cancel<T: PartialEq>(one: &mut Vec<T>, other: &mut Vec<T>) {
    // Most answers are equal.
    if one == other {
        one.clear();
        other.clear();
        return;
    }
    one.retain(|item| {
        let twin = other.iter().position(|candidate| candidate == item);
        if let Some(at) = twin {
            other.remove(at);
        }
        twin.is_none()
    });
}

impl Totals {
    fn add(&mut self, changes: &[Change]) {
        self.differ += u64::from(!changes.is_empty());
        for change in changes {
            for item in &change.lost {
                *self.lost.entry(item.what).or_default() += 1;
            }
            for item in &change.gained {
                *self.gained.entry(item.what).or_default() += 1;
            }
        }
    }

    fn as_text(&self, reading: ReadSummary) -> String {
        let documents = count(self.documents, "document", "documents");
        let mut text = match self.differ {
            0 => format!("no difference in {documents}"),
            1 => format!("1 of {documents} differs"),
            differ => format!("{differ} of {documents} differ"),
        };
        for (word, sums) in [("lost", &self.lost), ("gained", &self.gained)] {
            for (what, n) in sums {
                text += &format!("; {word} {what}: {n}");
            }
        }
        text + &reading.as_text() + "\n"
    }

    fn as_json(&self, reading: ReadSummary) -> Value {
        json!({
            "documents": self.documents, "differ": self.differ, "lost": self.lost, "gained": self.gained,
            "reading": reading.as_json(),
        })
    }
}

fn as_text(change: &Change) -> String {
    let rows = |items: &[Item], sign: &str| -> Vec<Vec<String>> {
        let cells = items.iter().map(|item| item.cells.clone());
        cells
            .map(|cells| [vec![sign.to_owned()], cells].concat())
            .collect()
    };
    let rows = [rows(&change.lost, "-"), rows(&change.gained, "+")].concat();
    let mut text = table(&rows, 2);
    for line in &change.besides {
        text += &format!("  {}\n", terminal::line(line));
    }
    text
}

fn as_json(change: &Change) -> Value {
    let list = |items: &[Item]| -> Value {
        let items = items.iter();
        items
            .map(|item| {
                let mut json = item.json.clone();
                json["what"] = item.what.into();
                json
            })
            .collect()
    };
    json!({
        "kind": change.kind, "lost": list(&change.lost), "gained": list(&change.gained),
        "besides": change.besides,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_items_are_removed_as_often_as_both_lists_have_them() {
        #[track_caller]
        fn check(one: &str, other: &str, left: (&str, &str)) {
            let (mut one, mut other): (Vec<char>, Vec<char>) =
                (one.chars().collect(), other.chars().collect());
            cancel(&mut one, &mut other);
            let text = |list: Vec<char>| list.into_iter().collect::<String>();
            assert_eq!(
                (text(one), text(other)),
                (left.0.to_owned(), left.1.to_owned())
            );
        }
        check("abc", "abc", ("", ""));
        check("abc", "cba", ("", ""));
        check("aab", "abb", ("a", "b"));
        check("", "x", ("", "x"));
    }
}
