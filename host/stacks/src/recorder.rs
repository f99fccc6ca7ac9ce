//! The recorder of plugin calls. It writes calls to files in the job's `recordings/`, as `[record]` of the profile sets.
//!
//! A call that is selected for recording is written before it is made, since it may leave notes in its input. A call that fails
//! unexpectedly is written afterwards: its recording begins with the notes that the call left.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use opilio_profile::RecordingSettings;
use opilio_sandbox::{
    Call, CallResult, Candidates, Fault, FaultKind, Plugin, Recording, looking_up,
};
use regex::RegexSet;

/// The recordings, in the job's directory.
const FOLDER: &str = "recordings";

/// Keeps calls of a job's plugins.
#[derive(Debug)]
pub struct Recorder {
    rule: RecordingSettings,
    folder: PathBuf,
    /// Count of the calls from which the sample is taken.
    calls: AtomicU64,
    files: AtomicU64,
    /// Number of errors that were recorded, by plugin and kind.
    faults: Mutex<HashMap<(Arc<str>, FaultKind), u32>>,
    is_out_of_order: AtomicBool,
}

/// The parts of a question to a plugin that the recorder needs.
pub struct Question<'q, C, A> {
    /// The plugin's name in the profile.
    pub name: &'q Arc<str>,
    /// The subject of the question.
    pub subject: Subject<'q>,
    /// Returns the recorded form of the call.
    pub call: C,
    /// Returns the recorded form of an answer.
    pub answer: A,
}

/// The subject of a question.
#[derive(Clone, Copy)]
pub enum Subject<'q> {
    /// No URI in particular.
    None,
    /// A URI.
    Uri(&'q str),
    /// Candidates, and the page that contains them.
    Candidates(&'q Candidates),
}

impl Subject<'_> {
    /// Returns `true` if one of its URIs matches.
    fn is_among(self, uris: &RegexSet) -> bool {
        match self {
            Subject::None => false,
            Subject::Uri(uri) => uris.is_match(uri),
            Subject::Candidates(candidates) => {
                let page = candidates.get(0).and_then(|first| first.via.as_deref());
                page.is_some_and(|page| uris.is_match(page))
                    || candidates.iter().any(|one| uris.is_match(&one.uri))
            }
        }
    }
}

impl Recorder {
    /// Creates the recorder for the job in this directory. Existing files count towards the limit.
    pub fn new(rule: RecordingSettings, job: &Path) -> Recorder {
        let folder = job.join(FOLDER);
        let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        Recorder {
            rule,
            folder,
            calls: AtomicU64::new(0),
            files: AtomicU64::new(files as u64),
            faults: Mutex::default(),
            is_out_of_order: AtomicBool::new(false),
        }
    }

    /// Makes a call and records it if it is selected.
    pub fn call<T, C, A>(
        &self,
        plugin: &Plugin,
        question: Question<'_, C, A>,
        make: impl FnOnce(&Plugin) -> Result<T, Fault>,
    ) -> Result<T, Fault>
    where
        C: Fn(&Plugin) -> Call,
        A: FnOnce(&T) -> CallResult,
    {
        let is_full = self.files.load(Ordering::Relaxed) >= u64::from(self.rule.files);
        if is_full || self.is_out_of_order.load(Ordering::Relaxed) {
            return make(plugin);
        }
        let Question {
            name,
            subject,
            call,
            answer,
        } = question;
        if self.wants(name, subject) {
            let call = call(plugin);
            let at = Timestamp::now();
            let (result, tables) = looking_up(|| make(plugin));
            let outcome = result.as_ref().map(answer);
            self.write(&Recording::new(plugin, at, call, tables, outcome));
            return result;
        }
        if self.rule.faults == 0 {
            return make(plugin);
        }
        let (result, tables) = looking_up(|| make(plugin));
        if let Err(fault) = &result
            && self.counts(name, fault.kind)
        {
            let call = call(plugin);
            self.write(&Recording::new(
                plugin,
                Timestamp::now(),
                call,
                tables,
                Err(fault),
            ));
        }
        result
    }

    /// Returns `true` if a call is recorded, whatever its result. Samples are taken at even distances, so that a repeated crawl
    /// records the same calls.
    fn wants(&self, name: &str, subject: Subject<'_>) -> bool {
        let rule = &self.rule;
        if !rule.is_on() || !(rule.plugins.is_empty() || rule.plugins.iter().any(|one| one == name))
        {
            return false;
        }
        if subject.is_among(&rule.uris) {
            return true;
        }
        let before = self.calls.fetch_add(1, Ordering::Relaxed) as f64;
        ((before + 1.0) * rule.sample).floor() > (before * rule.sample).floor()
    }

    /// Counts an error. Returns whether it is one of those that are recorded.
    fn counts(&self, name: &Arc<str>, kind: FaultKind) -> bool {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let count = faults.entry((name.clone(), kind)).or_default();
        *count += 1;
        *count <= self.rule.faults
    }

    fn write(&self, recording: &Recording) {
        match recording.write(&self.folder) {
            Ok(_) => {
                self.files.fetch_add(1, Ordering::Relaxed);
            }
            // A failed recording does not end the crawl. Other files that cannot be written are reported on their own.
            Err(problem) => {
                if !self.is_out_of_order.swap(true, Ordering::Relaxed) {
                    let problem = crate::chain(&problem);
                    tracing::error!("plugin calls are no longer recorded: {problem}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(uri: &str) -> opilio_sandbox::Candidate {
        opilio_sandbox::Candidate {
            uri: uri.to_owned(),
            surt: String::new(),
            hop_path: "L".to_owned(),
            via: Some("http://a.org/page".to_owned()),
            via_surt: None,
            context: String::new(),
            seed: false,
            source: None,
            address: None,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn a_call_about_links_is_selected_by_any_of_them_or_by_their_page() {
        let candidates: Candidates = ["http://a.org/1", "http://b.org/2"]
            .into_iter()
            .map(candidate)
            .collect();
        let is_meant = |pattern: &str| {
            Subject::Candidates(&candidates).is_among(&RegexSet::new([pattern]).unwrap())
        };
        assert!(is_meant("b.org") && is_meant("/page$"));
        assert!(!is_meant("c.org"));
        let all = RegexSet::new([""]).unwrap();
        assert!(!Subject::None.is_among(&all));
    }
}
