//! Answers about a job's settings, seeds and history, for people.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanCount;
use opilio_control::{
    AddedSeeds, Change, Changed, ChangedSettings, Effect, ExplainedStack, ExplainedUri,
    ExplainedWait, FaultFound, FilterAnswer, ListedOverride, OverrideAction, SeedReport,
    SettingInForce, StackedPlugin, TouchedUris, WaitAnswer, labelled_status,
};

use crate::terminal;

/// Names of the columns of [`seed_row`].
pub(crate) const SEED_COLUMNS: [&str; 8] = [
    "status",
    "first capture",
    "fetched",
    "changed",
    "pages",
    "seed",
    "redirects to",
    "why not fetched",
];

/// Longest aligned value of a column, in characters. After a longer value, the row continues unaligned.
const VALUE_WIDTH_MAX: usize = 48;

/// The sign for a missing value.
const NOTHING: &str = "-";

/// Suggestions for an unknown name.
const CLOSE_MAX: usize = 5;

/// The settings to show.
pub(crate) struct Choice {
    /// Prefix of their names.
    pub(crate) name: String,
    /// `true` to include expert settings.
    pub(crate) expert: bool,
}

impl Choice {
    /// Selects the settings. A setting in the profile is always shown. Expert settings are also shown if nothing else matches.
    ///
    /// # Errors
    /// Returns a sentence if no setting has this prefix.
    pub(crate) fn of(&self, settings: Vec<SettingInForce>) -> Result<Vec<SettingInForce>, String> {
        let is_usual = |one: &SettingInForce| self.expert || !one.expert || one.file.is_some();
        let (called, others): (Vec<_>, Vec<_>) = settings
            .into_iter()
            .partition(|one| one.key.starts_with(&self.name));
        if called.is_empty() {
            return Err(self.close(&others));
        }
        let all = !called.iter().any(is_usual);
        let chosen = called.into_iter().filter(|one| all || is_usual(one));
        Ok(chosen.collect())
    }

    /// Returns the message that no setting has this prefix, with suggestions: settings that contain the text, or that differ from
    /// it by a letter or so.
    fn close(&self, settings: &[SettingInForce]) -> String {
        let keys = || settings.iter().map(|one| one.key.as_str());
        let mut close: Vec<&str> = keys().filter(|key| key.contains(&self.name)).collect();
        if close.is_empty() {
            let parents = keys().filter_map(|key| key.rsplit_once('.'));
            let words = keys().chain(parents.map(|(table, _)| table));
            close.extend(opilio_profile::nearest(&self.name, words));
        }
        if close.is_empty() {
            let last = self.name.rsplit('.').next().unwrap_or_default();
            let last_of = |key: &'_ str| key.rsplit('.').next().unwrap_or_default().to_owned();
            let words: Vec<String> = keys().map(last_of).collect();
            let near = opilio_profile::nearest(last, words.iter().map(String::as_str));
            close = keys().filter(|key| near == Some(&last_of(key))).collect();
        }
        let name = &self.name;
        match &*close {
            [] => format!(
                "unknown setting {name:?}; opilio job settings JOB --expert lists all settings"
            ),
            _ => format!(
                "unknown setting {name:?}; similar names: {}",
                close[..close.len().min(CLOSE_MAX)].join(", ")
            ),
        }
    }
}

/// Prints name, value, place, and the time at which a change takes effect.
pub(crate) fn settings(settings: &[SettingInForce], out: &mut dyn Write) -> io::Result<()> {
    let rows = settings.iter().map(|one| {
        let place = place(one.file.as_deref(), one.line);
        let effect = match one.effect {
            Effect::AtOnce => String::new(),
            other => format!("  (a change takes effect {})", when(other)),
        };
        (one.key.clone(), one.toml.clone(), place + &effect)
    });
    out.write_all(table(&rows.collect::<Vec<_>>()).as_bytes())
}

/// Prints an error a line, in the form of compilers.
pub(crate) fn faults(faults: &[FaultFound], out: &mut dyn Write) -> io::Result<()> {
    faults
        .iter()
        .try_for_each(|one| writeln!(out, "{}", terminal::line(&fault_line(one))))
}

/// Prints the settings whose values have changed.
pub(crate) fn changed(set: &ChangedSettings, out: &mut dyn Write) -> io::Result<()> {
    faults(&set.notices, out)?;
    for one in &set.changed {
        let before = match &one.before {
            Some(before) => format!(" (was {before})"),
            None => String::new(),
        };
        let after = match &one.after {
            Some(after) => format!("= {after}"),
            None => "removed".to_owned(),
        };
        let line = format!("{} {after}{before}, {}", one.key, when(one.effect));
        writeln!(out, "{}", terminal::line(&line))?;
    }
    if let Some(touched) = &set.touched {
        out.write_all(terminal::lines(&touched_lines(touched)).as_bytes())?;
    }
    match (set.number, set.override_id) {
        (Some(number), Some(id)) => writeln!(out, "override {id}, change {number} of the job"),
        (Some(number), None) => writeln!(out, "change {number} of the job"),
        (None, _) => writeln!(out, "nothing was changed"),
    }
}

/// Formats the URIs that a change of an override touches.
fn touched_lines(touched: &TouchedUris) -> String {
    let mut lines = format!(
        "matches {} of {} URIs examined, {} of them queued; settings change for {}\n",
        HumanCount(touched.matched),
        HumanCount(touched.examined),
        HumanCount(touched.queued),
        HumanCount(touched.changed),
    );
    if touched.stopped {
        lines += &format!(
            "stopped after {} URIs; there may be more (--check examines up to 200,000)\n",
            HumanCount(touched.examined)
        );
    }
    for one in &touched.examples {
        let queued = if one.is_queued { ", queued" } else { "" };
        lines += &format!("  {}{queued}\n", one.uri);
        for value in &one.changes {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| NOTHING.to_owned());
            let (before, after) = (text(&value.before), text(&value.after));
            lines += &format!("    {}: {before} → {after}\n", value.key);
        }
        if one.changes.is_empty() {
            lines += "    no setting changes\n";
        }
    }
    lines
}

/// Prints an override.
pub(crate) fn listed_override(one: &ListedOverride, out: &mut dyn Write) -> io::Result<()> {
    let mut text = match one.id {
        Some(id) => format!("override {id}"),
        None => format!("fixed  {}:{}", one.file, one.line),
    };
    if let (Some(by), Some(at)) = (&one.by, one.at) {
        text += &format!("  {} {by}", at.strftime("%Y-%m-%d %H:%M:%S UTC"));
    }
    if let Some(reason) = &one.reason {
        text += &format!("  {}", terminal::line(reason));
    }
    text += &format!("\n    match {}\n", condition_words(&one.matching));
    for setting in &one.settings {
        let effect = match setting.effect {
            Effect::AtOnce => String::new(),
            other => format!("  (a change takes effect {})", when(other)),
        };
        text += &format!("    {} = {}{effect}\n", setting.key, setting.toml);
    }
    out.write_all(terminal::lines(&text).as_bytes())
}

/// Formats conditions as on the command line, such as `host a.org, b.org; time 22:00-06:00`.
fn condition_words(conditions: &serde_json::Map<String, serde_json::Value>) -> String {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let words = conditions.iter().map(|(name, value)| match value {
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("{name} {}", items.join(", "))
        }
        value => format!("{name} {}", text(value)),
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Prints an entry of the history.
pub(crate) fn change(change: &Change, out: &mut dyn Write) -> io::Result<()> {
    let at = change.at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = match &change.what {
        Changed::Set { toml } => toml.trim_end().to_owned(),
        Changed::Override { id, action, toml } => {
            let action = match action {
                OverrideAction::Add => "added",
                OverrideAction::Change => "changed",
                OverrideAction::Move => "moved",
                OverrideAction::Remove => "removed",
            };
            format!("override {id} {action}\n{}", toml.trim_end())
        }
        Changed::AddSeeds { seeds } => format!("seeds: {}", seeds.join(", ")),
        Changed::Restore { checkpoint, made } => {
            format!("restored to checkpoint {checkpoint} of {made:.0}")
        }
    };
    let reason = change.reason.as_deref().map(terminal::line);
    let reason = reason.map_or_else(String::new, |reason| format!("  {reason}"));
    writeln!(out, "{} {at} {}{reason}", change.number, change.by)?;
    terminal::lines(&what)
        .lines()
        .try_for_each(|line| writeln!(out, "    {line}"))
}

/// Prints the number of added seeds, with notes on them.
pub(crate) fn seeds_added(seeds: &AddedSeeds, out: &mut dyn Write) -> io::Result<()> {
    faults(&seeds.notices, out)?;
    writeln!(
        out,
        "seeds: {} added, {} known before; SURT prefixes added to the scope: {}",
        HumanCount(seeds.added),
        HumanCount(seeds.known),
        HumanCount(seeds.prefixes)
    )
}

/// Returns a seed as columns.
pub(crate) fn seed_row(seed: &SeedReport) -> Vec<String> {
    let time = |at: &Option<jiff::Timestamp>| {
        at.map_or_else(
            || NOTHING.to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        )
    };
    vec![
        match seed.status {
            0 => NOTHING.to_owned(),
            status => labelled_status(status),
        },
        time(&seed.first_captured.or(seed.redirect_first_captured)),
        time(&seed.fetched),
        time(&seed.changed),
        seed.pages.to_string(),
        seed.uri.clone(),
        seed.redirect.clone().unwrap_or_default(),
        terminal::line(seed.why.as_deref().unwrap_or_default()),
    ]
}

/// Prints the settings and decisions for a URI.
pub(crate) fn explained(explained: &ExplainedUri, out: &mut dyn Write) -> io::Result<()> {
    let verdict = |yes: bool| if yes { "yes" } else { "no" };
    writeln!(out, "{}", explained.uri)?;
    if let Some(via) = &explained.via {
        let found = format!("on {via}, hops {}", explained.hops);
        writeln!(out, "  {:<10} {}", "found", terminal::line(&found))?;
    }
    for (name, value) in [
        ("canonical", explained.canonical.clone()),
        ("queue", explained.queue.clone()),
        (
            "politeness",
            format!("{} s after a fetch of one second", explained.rest_s),
        ),
        ("in scope", verdict(explained.in_scope).to_owned()),
        ("fetched", verdict(explained.fetched).to_owned()),
    ] {
        writeln!(out, "  {name:<10} {}", terminal::line(&value))?;
    }
    if let Some(robots) = &explained.robots {
        writeln!(out, "  {:<10} {}", "robots.txt", terminal::line(robots))?;
    }
    for (stage, answers) in [
        ("scope", &explained.scope),
        ("pre-fetch", &explained.pre_fetch),
    ] {
        if !answers.is_empty() {
            writeln!(out, "\n{stage}")?;
        }
        for answer in answers {
            writeln!(out, "  {}", terminal::line(&filter_line(answer)))?;
        }
    }
    for wait in &explained.waits {
        writeln!(out, "\n{}", wait_line(wait))?;
        for answer in &wait.answers {
            writeln!(out, "  {}", terminal::line(&wait_answer_line(answer)))?;
        }
    }
    if !explained.stacks.is_empty() {
        writeln!(out, "\nstacks")?;
    }
    for ExplainedStack { stage, plugins } in &explained.stacks {
        let line = format!("{stage:<16} {}", plugin_names(plugins));
        writeln!(out, "  {}", terminal::line(&line))?;
    }
    writeln!(out)?;
    let rows = explained.settings.iter().map(|one| {
        (
            one.key.clone(),
            one.toml.clone(),
            place(one.file.as_deref(), one.line),
        )
    });
    out.write_all(table(&rows.collect::<Vec<_>>()).as_bytes())
}

fn filter_line(answer: &FilterAnswer) -> String {
    let reason = match answer.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let decides = if answer.decides { " (decides)" } else { "" };
    format!("{:<16} {}{reason}{decides}", answer.filter, answer.answer)
}

fn wait_line(wait: &ExplainedWait) -> String {
    let found = match wait.found.as_str() {
        "any" => "a visit".to_owned(),
        "new" => "a first visit".to_owned(),
        found => format!("a visit that finds the document {found}"),
    };
    let whose = match wait.answers.iter().find(|answer| answer.decides) {
        Some(by)
            if by
                .wait_s
                .is_some_and(|expected| (expected - wait.wait_s).abs() < 0.001) =>
        {
            ""
        }
        Some(_) => ", within the profile's limits",
        None if wait.answers.iter().any(|answer| answer.answer == "failed") => {
            ", the previous wait, because a wait evaluator failed"
        }
        None if wait.answers.is_empty() => ", set by the profile",
        None => ", set by the profile, because no wait evaluator answered",
    };
    format!("wait after {found}: {}{whose}", duration(wait.wait_s))
}

fn wait_answer_line(answer: &WaitAnswer) -> String {
    let mut line = format!("{:<16} {}", answer.evaluator, answer.answer);
    if let Some(seconds) = answer.wait_s {
        line += &format!(" {}", duration(seconds));
    }
    if !answer.reason.is_empty() {
        line += &format!(": {}", answer.reason);
    }
    if let Some(seconds) = answer.ask_again_s {
        line += &format!(", reconsideration in {}", duration(seconds));
    }
    if answer.decides {
        line += " (decides)";
    }
    line
}

/// Formats a duration in its largest unit and the next: `8d 3h`, `1m 30s`, `40ms`.
fn duration(seconds: f64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let whole = duration.as_secs();
    let Some(largest) = UNITS.iter().position(|(size, _)| whole >= *size) else {
        return format!("{}ms", duration.as_millis());
    };
    let (size, name) = UNITS[largest];
    let first = format!("{}{name}", whole / size);
    match UNITS.get(largest + 1) {
        Some((next, name)) if whole % size >= *next => {
            format!("{first} {}{name}", whole % size / next)
        }
        _ => first,
    }
}

/// Returns the plugins of a stack in order, with their versions, and with their own names if the profile has other ones.
pub(crate) fn plugin_names(plugins: &[StackedPlugin]) -> String {
    let named = plugins.iter().map(|one| match one.name == one.plugin {
        true => format!("{} {}", one.name, one.version),
        false => format!("{} ({} {})", one.name, one.plugin, one.version),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn fault_line(fault: &FaultFound) -> String {
    let place = match (fault.setting_in_change(), fault.line, fault.column) {
        (Some(setting), ..) => setting,
        (None, Some(line), Some(column)) => format!("{}:{line}:{column}", fault.file),
        (None, ..) => fault.file.clone(),
    };
    let level = match fault.level.as_str() {
        "error" => "",
        "info" => " note:",
        _ => " warning:",
    };
    let suggestion = match &fault.suggestion {
        Some(suggestion) => format!(" ({suggestion})"),
        None => String::new(),
    };
    format!("{place}:{level} {}{suggestion}", fault.problem)
}

fn place(file: Option<&str>, line: Option<usize>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        (None, _) => "default".to_owned(),
    }
}

fn when(effect: Effect) -> &'static str {
    match effect {
        Effect::AtOnce => "at once",
        Effect::NextStart => "when the job resumes",
        Effect::Never => "never",
    }
}

/// Returns a table of three columns; a long value is not aligned.
pub(crate) fn table(rows: &[(String, String, String)]) -> String {
    let chars = |text: &str| text.chars().count();
    let key_width = rows.iter().map(|(key, ..)| chars(key)).max().unwrap_or(0);
    let value_width = rows
        .iter()
        .map(|(_, value, _)| chars(value))
        .filter(|width| *width <= VALUE_WIDTH_MAX)
        .max()
        .unwrap_or(0);
    rows.iter()
        .map(|(key, value, place)| {
            let line = format!("{key:<key_width$}  {value:<value_width$}  {place}");
            format!("{}\n", terminal::line(line.trim_end()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_seed_is_followed_by_its_meaning() {
        for (status, shown) in [
            (0, "-"),
            (200, "200"),
            (404, "404 not found"),
            (-2, "-2 no connection to the server"),
            (-5001, "-5001 refused by a setting or a filter"),
            (-9998, "-9998 forbidden by robots.txt"),
        ] {
            let seed = serde_json::json!({
                "uri": "http://a.org/", "origin": "job", "captured": false, "status": status,
                "crawled": false, "pages": 0, "visits": 0,
            });
            let seed: SeedReport = serde_json::from_value(seed).unwrap();
            assert_eq!(seed_row(&seed)[0], shown);
        }
    }

    #[test]
    fn a_seed_that_was_not_fetched_has_the_reason_in_its_last_column() {
        let why = "no connection to the server: cannot connect; check the server";
        let seed = serde_json::json!({
            "uri": "http://a.org/", "origin": "job", "captured": false, "status": -2, "why": why,
            "crawled": false, "pages": 0, "visits": 0,
        });
        let seed: SeedReport = serde_json::from_value(seed).unwrap();
        let row = seed_row(&seed);
        assert_eq!(row.len(), SEED_COLUMNS.len());
        assert_eq!(row[7], why);
    }

    #[test]
    fn a_wait_is_shown_in_at_most_two_units() {
        for (seconds, expected) in [
            (0.0, "0ms"),
            (0.04, "40ms"),
            (5.2, "5s"),
            (90.0, "1m 30s"),
            (3_601.0, "1h"),
            (702_000.0, "8d 3h"),
            (f64::INFINITY, "213503982334601d 7h"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
