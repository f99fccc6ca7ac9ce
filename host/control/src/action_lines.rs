//! Lines of files that an operator put into the job's action directory, taken in parts. Invalid lines are reported by number and
//! do not affect other lines.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_frontier::{Candidate, Directive, ImportedUri, LastOutcome, ScheduleResult};
use opilio_profile::Seeds;
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{HopPath, Uri, surt_prefix_from_line};
use serde_json::json;

use super::settings::SetRequest;
use super::{Author, Command, CommandResponse, ControlError, DoneElsewhere, ErrorKind, JobAdmin};
use opilio_visit::plugin_view;
use opilio_visit::policy;
use opilio_visit::scope;

/// Plugins with the exclusions: SURT prefixes and regular expressions.
const EXCLUDED: [(&str, &str, &str); 2] = [
    ("excluded-surts", "surt-scope", "prefixes"),
    ("excluded-regexes", "regex-list", "patterns"),
];

/// Maximum number of invalid lines that a result lists.
const BAD_LINES_SHOWN: usize = 1_000;

/// Kind of a file, which selects the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its lines are seeds.
    Seeds,
    /// Its lines are URIs to be fetched unless they are known.
    Schedule,
    /// Its lines are URIs to be fetched, known or not.
    Force,
    /// Its lines are URIs that count as done.
    Include,
    /// The file is the journal, crawl log or export of another crawl.
    Recover,
    /// Its lines are rules for URIs that are refused from now on.
    Exclude,
}

/// Line of a file in the action directory.
pub(crate) struct ActionLine {
    /// Line number, from 1.
    pub(crate) number: u64,
    /// Text without surrounding blanks.
    pub(crate) text: String,
}

/// Result of processing a file.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Sentences about the result.
    pub(crate) sentences: Vec<String>,
    /// Invalid lines: number and reason.
    pub(crate) bad: Vec<(u64, String)>,
    bad_lines: u64,
    /// Reason why the file cannot be read to its end: it is damaged, or not compressed as its name indicates.
    pub(crate) damage: Option<String>,
}

impl Outcome {
    pub(crate) fn bad(&mut self, line: u64, why: String) {
        self.bad_lines += 1;
        if self.bad.len() < BAD_LINES_SHOWN {
            self.bad.push((line, why));
        }
    }

    pub(crate) fn text(&self, at: Timestamp) -> String {
        let mut text = format!("{at:.0} {}\n", self.sentences.join("; "));
        for (line, why) in &self.bad {
            text.push_str(&format!("line {line}: {why}\n"));
        }
        let more = self.bad_lines - self.bad.len() as u64;
        if more > 0 {
            text.push_str(&format!("and {more} more lines\n"));
        }
        text
    }

    pub(crate) fn words(&self) -> String {
        match self.bad_lines {
            0 => self.sentences.join("; "),
            bad => format!("{}; {bad} invalid lines", self.sentences.join("; ")),
        }
    }
}

impl JobAdmin<'_> {
    /// Takes the lines into the job. Returns the number of lines taken.
    pub(crate) fn take_lines(
        &self,
        kind: Kind,
        is_scoped: bool,
        lines: Vec<ActionLine>,
        by: &Author,
        outcome: &mut Outcome,
    ) -> Result<usize, ControlError> {
        match kind {
            Kind::Seeds => self.take_seed_lines(&lines, by, outcome),
            Kind::Exclude => self.exclude(&lines, by, outcome),
            Kind::Schedule | Kind::Force | Kind::Include => {
                self.take_uris(kind, is_scoped, &lines, outcome)
            }
            // Recovery files are read as a whole: see `take_recovery`.
            Kind::Recover => Ok(0),
        }
    }

    /// Takes a journal, crawl log or export of another crawl.
    pub(crate) fn take_recovery(
        &self,
        path: &Path,
        is_scoped: bool,
        by: &Author,
        outcome: &mut Outcome,
    ) -> Result<(), ControlError> {
        if is_scoped {
            outcome
                .sentences
                .push("only URIs in scope are accepted".to_owned());
        }
        let mut problems = Vec::new();
        let mut hear = |answer: CommandResponse| {
            if let CommandResponse::Source(source) = answer {
                problems.extend(source.problems);
            }
            true
        };
        let done = DoneElsewhere::Known;
        let admits = |uri: &Uri, hops: &HopPath| {
            !is_scoped || self.is_in_scope(uri, hops, None).unwrap_or(false)
        };
        let files = vec![path.to_owned()];
        let words = self.import_those(&files, done, &admits, &mut hear);
        let command = Command::Import { files, done };
        let words = match words {
            Ok(words) => words,
            // A file in another format is moved away like any other file.
            Err(problem) if problem.kind == ErrorKind::Request => {
                outcome.sentences.push(format!("not imported: {problem}"));
                return Ok(());
            }
            Err(problem) => return Err(problem),
        };
        self.log_done(by, &command, &words)?;
        outcome.sentences.push(words);
        outcome.sentences.extend(problems);
        Ok(())
    }

    fn take_seed_lines(
        &self,
        lines: &[ActionLine],
        by: &Author,
        outcome: &mut Outcome,
    ) -> Result<usize, ControlError> {
        // Uses the current profile, because earlier parts of the file have changed it.
        let profile = self.running.map(|running| running.context.current());
        let admin = match (&profile, self.running) {
            (Some(profile), Some(running)) => &running.admin(profile),
            _ => self,
        };
        let mut good = String::new();
        let mut taken = 0;
        for line in lines {
            let (seeds, faults) = Seeds::parse("seeds", &line.text);
            let refused = || admin.check_seeds(&seeds.list).err();
            let refusal = match faults.iter().next() {
                Some(fault) => Some(fault.problem.clone()),
                None => refused().and_then(|faults| faults.into_iter().next().map(sentence)),
            };
            match refusal {
                Some(why) => outcome.bad(line.number, why),
                None => {
                    good.push_str(&line.text);
                    good.push('\n');
                    taken += 1;
                }
            }
        }
        let (seeds, _) = Seeds::parse("seeds", &good);
        let added = admin.take_seeds(&seeds, by, &mut |_| true)?;
        for notice in &added.notices {
            outcome.sentences.push(notice.problem.clone());
        }
        outcome.sentences.push(format!(
            "{} new seeds, {} known, {} new SURT prefixes in the scope",
            added.added, added.known, added.prefixes
        ));
        Ok(taken)
    }

    /// Takes lines with a URI, hop path and via, in the format of Heritrix's files.
    fn take_uris(
        &self,
        kind: Kind,
        is_scoped: bool,
        lines: &[ActionLine],
        outcome: &mut Outcome,
    ) -> Result<usize, ControlError> {
        let mut candidates = Vec::new();
        let mut numbers = Vec::new();
        for line in lines {
            match self.read(&line.text, kind) {
                Err(why) => outcome.bad(line.number, why),
                Ok((uri, hops, via)) => {
                    if is_scoped && !self.is_in_scope(&uri, &hops, via.as_deref())? {
                        outcome.bad(line.number, format!("{uri} is out of scope"));
                        continue;
                    }
                    let candidate =
                        policy::candidate(self.profile, uri, hops, via.as_deref(), None);
                    candidates.push(match kind {
                        Kind::Force => Candidate {
                            directive: Directive::High,
                            force: true,
                            ..candidate
                        },
                        _ => candidate,
                    });
                    numbers.push(line.number);
                }
            }
        }
        let now = Timestamp::now();
        let answers = match kind {
            Kind::Include => {
                let known = candidates.into_iter().map(|candidate| ImportedUri {
                    candidate,
                    last_outcome: LastOutcome::Succeeded,
                    status: 0,
                    at: now,
                    media_type: String::new(),
                    payload_digest: None,
                    size: None,
                });
                let known = known.collect();
                self.frontier().include(known, now)?
            }
            _ => self.frontier().schedule(candidates, now)?,
        };
        let mut taken = 0;
        for (number, answer) in numbers.into_iter().zip(answers) {
            match answer {
                ScheduleResult::Refused(refusal) => {
                    outcome.bad(number, format!("cannot be queued: {refusal}"));
                }
                _ => taken += 1,
            }
        }
        self.wake_dispatcher();
        Ok(taken)
    }

    fn read(&self, line: &str, kind: Kind) -> Result<(Uri, HopPath, Option<String>), String> {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or_default();
        // Skips the first word of a line from a journal.
        let word = match word {
            "F+" | "Fi" | "Fr" | "Fs" | "Ff" => words.next().unwrap_or_default(),
            word => word,
        };
        let uri = Uri::parse_seed(word).map_err(|problem| format!("{word:?}: {problem}"))?;
        let hops = words.next().unwrap_or_default();
        let path =
            HopPath::parse(hops).map_err(|problem| format!("hop path {hops:?}: {problem}"))?;
        let via = words
            .next()
            .map(|via| Uri::parse(via).map_err(|problem| format!("{via:?}: {problem}")))
            .transpose()?;
        let mut hops = path;
        if kind == Kind::Force
            && hops.as_str().is_empty()
            && let Some(record) = self
                .frontier()
                .record(&uri)
                .map_err(|problem| problem.to_string())?
        {
            hops = record.hop_path;
        }
        Ok((uri, hops, via.map(|via| via.as_str().to_owned())))
    }

    /// Returns `true` if the filters of the scope accept a URI. Must run on a thread that may call plugins.
    fn is_in_scope(
        &self,
        uri: &Uri,
        hops: &HopPath,
        via: Option<&str>,
    ) -> Result<bool, ControlError> {
        let running = self.running("files with scope checks need a running crawl")?;
        let stacks = running.context.stacks();
        let settings = self.profile.effective(uri);
        let stacks = stacks.selected(&settings, self.profile.settings());
        let mut candidate = plugin_view::seed(&Candidate {
            via: via.map(str::to_owned),
            ..policy::candidate(self.profile, uri.clone(), hops.clone(), via, None)
        });
        candidate.seed = false;
        hops.as_str().clone_into(&mut candidate.hop_path);
        candidate.via = via.map(str::to_owned);
        candidate.via_surt = via
            .and_then(|via| Uri::parse(via).ok())
            .map(|via| via.surt());
        let candidates = Candidates::new(vec![candidate]);
        let judged = scope::judge(&stacks.scope, &Stage::Scope, &candidates, false);
        Ok(judged.decisions.iter().all(|decision| decision.accepted))
    }

    /// Excludes URIs from now on. Exclusions are settings: they are checked, reported and stored like any other change.
    fn exclude(
        &self,
        lines: &[ActionLine],
        by: &Author,
        outcome: &mut Outcome,
    ) -> Result<usize, ControlError> {
        let running = self.running("set exclusions with `opilio job set JOB`")?;
        let profile: Arc<_> = running.context.current();
        let mut found: [Vec<String>; 2] = Default::default();
        let mut taken = 0;
        for line in lines {
            let read = match line.text.strip_prefix("regex ") {
                Some(pattern) => regex::Regex::new(pattern.trim())
                    .map(|_| (1, pattern.trim().to_owned()))
                    .map_err(|problem| {
                        let text = problem.to_string();
                        let last = text.lines().last().unwrap_or_default();
                        last.trim_start_matches("error: ").to_owned()
                    }),
                None => match surt_prefix_from_line(&line.text) {
                    Ok(Some(prefix)) => Ok((0, prefix)),
                    Ok(None) => Err("empty line".to_owned()),
                    Err(problem) => Err(format!("not a SURT prefix: {problem}")),
                },
            };
            match read {
                Err(why) => outcome.bad(line.number, why),
                Ok((place, text)) => {
                    found[place].push(text);
                    taken += 1;
                }
            }
        }
        let mut set = Vec::new();
        let mut names = Vec::new();
        for ((name, component, key), new) in EXCLUDED.into_iter().zip(found) {
            if new.is_empty() {
                continue;
            }
            let known = profile.plugins.get(name);
            let mut list: Vec<String> = known
                .and_then(|instance| instance.settings.get(key)?.as_array().cloned())
                .into_iter()
                .flatten()
                .filter_map(|text| Some(text.as_str()?.to_owned()))
                .collect();
            list.extend(new);
            list.sort();
            list.dedup();
            set.push(format!("plugins.{name}.settings.{key} = {}", json!(list)));
            if known.is_none() {
                set.push(format!(
                    "plugins.{name}.component = \"builtin:{component}\""
                ));
                set.push(format!("plugins.{name}.settings.then = \"reject\""));
                if component == "surt-scope" {
                    set.push(format!("plugins.{name}.settings.from-seeds = false"));
                }
                names.push(name);
            }
        }
        if !names.is_empty() {
            for stage in ["scope", "pre-fetch"] {
                set.push(format!("stacks.{stage}.after = {}", json!(names)));
            }
        }
        if set.is_empty() {
            return Ok(0);
        }
        let admin = running.admin(&profile);
        let request = SetRequest {
            set: &set,
            matching: None,
            only_check: false,
            reason: None,
        };
        let words = admin.set(&request, by, &mut |_| true)?;
        let command = Command::Set {
            set,
            matching: None,
            only_check: false,
            reason: None,
        };
        self.log_done(by, &command, &words)?;
        Ok(taken)
    }

    fn log_done(&self, by: &Author, command: &Command, words: &str) -> Result<(), ControlError> {
        let Some(line) = command.log_line() else {
            return Ok(());
        };
        let mut log = self.log.lock();
        log.action(by, &line, words)
            .map_err(|problem| ControlError::file(self.job, &problem))
    }
}

/// Formats the error and the suggested fix.
fn sentence(fault: opilio_profile::Diagnostic) -> String {
    match fault.suggestion {
        Some(suggestion) => format!("{}; {suggestion}", fault.problem),
        None => fault.problem,
    }
}
