//! Observers: plugins that receive finished URIs, in batches, on a separate lane.
//!
//! ```text
//! JOB/observers/NAME.memory   the observer's memory, written after each batch, whole or not at all
//! JOB/observers/NAME/FILE     the lines that it has written so far
//! JOB/reports/NAME/FILE       its reports, of the last request or of the crawl's end
//! ```
//! An observer receives events in the order in which URIs finish. A call gets at most [`BATCH_MAX`] events, at the latest after
//! [`BATCH_AFTER`]. Observers run on a separate lane, so that no fetch waits for them. If an observer has [`EVENTS_WAITING_MAX`]
//! waiting events, a worker that has finished a URI waits for it: statistics with gaps would have little value, and the profile can
//! limit the time of an observer's calls. Events on which an observer fails are lost and counted.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use opilio_sandbox::{Finished, Line, Observation, Report};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::context::CrawlContext;
use crate::lanes::LaneKind;
use crate::observers::{Message, Observers, reports_of};
use crate::stop::Stop;
use opilio_job::End;
use opilio_job::alerts::Severity;
use opilio_job::text_file::write_text;
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;

/// Maximum of events in one call.
const BATCH_MAX: usize = 256;

/// Time for which the first event of a batch waits for others.
const BATCH_AFTER: Duration = Duration::from_secs(5);

/// Maximum of events of one batch on which an observer may fail in single calls. After these, the rest of the batch is lost. Each
/// error may take the observer's time limit.
const FAULTS_ALONE_MAX: usize = 8;

/// Maximum of files of one observer, and of reports. Lines for further files are lost.
const FILES_MAX: usize = 64;

/// The tasks of running observers.
pub(crate) struct RunningObservers(JoinSet<()>);

/// Paths of an observer's files.
#[derive(Clone)]
struct Files {
    memory: PathBuf,
    lines: PathBuf,
    reports: PathBuf,
}

/// An observer between two calls.
struct ObserverTask {
    context: Arc<CrawlContext>,
    name: Arc<str>,
    files: Files,
    memory: Vec<u8>,
    lost: Arc<AtomicU64>,
    stop: Stop,
}

/// Result of calling an observer with events.
struct ObserverAnswer {
    memory: Vec<u8>,
    failures: Vec<Failure>,
    lost: u64,
    problem: Option<io::Error>,
}

/// Starts the observers of the profile.
///
/// # Errors
/// The memory of an observer cannot be read.
pub(crate) fn start(
    context: &Arc<CrawlContext>,
    job: &Path,
    stop: &Stop,
) -> io::Result<RunningObservers> {
    let mut tasks = JoinSet::new();
    for staged in &context.stacks().observe {
        let files = Files::of(job, &staged.name);
        let memory = match fs::read(&files.memory) {
            Ok(memory) => memory,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(problem) => return Err(problem),
        };
        let (messages, lost) = context.plugins.observers.add(staged.name.clone());
        let watcher = ObserverTask {
            context: context.clone(),
            name: staged.name.clone(),
            files,
            memory,
            lost,
            stop: stop.clone(),
        };
        tasks.spawn(watcher.watch(messages));
    }
    Ok(RunningObservers(tasks))
}

impl RunningObservers {
    /// Passes the remaining events to the observers, requests their reports, and ends their tasks.
    pub(crate) async fn finish(mut self, observers: &Observers) {
        observers.end();
        while let Some(ended) = self.0.join_next().await {
            if let Err(panic) = ended {
                tracing::error!("an observer's task: {panic}");
            }
        }
    }
}

impl ObserverTask {
    async fn watch(mut self, mut messages: mpsc::Receiver<Message>) {
        while let Some(first) = messages.recv().await {
            let until = Instant::now() + BATCH_AFTER;
            let (mut batch, mut report_request) = (Vec::new(), None);
            let mut next = Some(first);
            loop {
                match next {
                    Some(Message::Finished(event)) => batch.push(event),
                    Some(Message::Report(answer)) => report_request = Some(answer),
                    None => break,
                }
                if report_request.is_some() || batch.len() >= BATCH_MAX {
                    break;
                }
                next = timeout_at(until, messages.recv()).await.ok().flatten();
            }
            self.deliver(batch).await;
            if let Some(answer) = report_request {
                // The client may have disconnected.
                let _ = answer.send(self.report().await);
            }
        }
        if let Err(problem) = self.report().await {
            tracing::warn!("{problem}");
        }
    }

    /// Returns the plugin that is in effect now. It may have been replaced.
    fn staged(&self) -> Option<Staged> {
        let stacks = self.context.stacks();
        let mut observers = stacks.observe.iter();
        observers.find(|staged| staged.name == self.name).cloned()
    }

    async fn deliver(&mut self, batch: Vec<Arc<Finished>>) {
        let Some(staged) = self.staged() else { return };
        let handled = batch
            .into_iter()
            .filter(|event| staged.plugin.handles(&event.media_type, &event.uri));
        let events: Vec<Finished> = handled.map(|event| (*event).clone()).collect();
        if events.is_empty() {
            return;
        }
        let count = events.len() as u64;
        let (files, memory) = (self.files.clone(), std::mem::take(&mut self.memory));
        let answer = self
            .context
            .lanes
            .run(LaneKind::Observer, move || {
                call_observer(&staged, &files, memory, &events)
            })
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(panic) => {
                tracing::error!("observer {}: {panic}", self.name);
                self.lost.fetch_add(count, Ordering::Relaxed);
                // The memory stays as it was before this batch.
                self.memory = fs::read(&self.files.memory).unwrap_or_default();
                return;
            }
        };
        self.memory = answer.memory;
        self.lost.fetch_add(answer.lost, Ordering::Relaxed);
        if let Some(problem) = answer.problem {
            let folder = self.files.lines.display();
            let alert = format!("cannot write below {folder}: {problem}");
            self.context.alert(&self.name, Severity::Warning, &alert);
        }
        self.handle_failures(answer.failures);
    }

    /// Handles plugin errors. There is no visit here that a halt could end, so the crawl is stopped instead.
    fn handle_failures(&self, failures: Vec<Failure>) {
        if let Err(halt) = self.context.failures(&failures) {
            self.stop.end(End::Halted(halt.message()));
        }
    }

    /// Requests the observer's reports, and writes them.
    async fn report(&self) -> Result<Vec<Report>, String> {
        let Some(staged) = self.staged() else {
            return Ok(Vec::new());
        };
        let (files, memory) = (self.files.clone(), self.memory.clone());
        let reported = self
            .context
            .lanes
            .run(LaneKind::Observer, move || {
                let reports = staged.report(&memory, Timestamp::now());
                reports.map(|reports| (files.write_reports(&reports), reports))
            })
            .await
            .map_err(|panic| panic.to_string())?;
        match reported {
            Ok((Ok(()), reports)) => Ok(reports),
            Ok((Err(problem), _)) => Err(format!(
                "cannot write reports to {}: {problem}",
                self.files.reports.display()
            )),
            Err(unanswered) => {
                let reason = unanswered.reason();
                self.handle_failures(Vec::from_iter(unanswered.failure()));
                Err(format!("observer {} has no report: {reason}", self.name))
            }
        }
    }
}

/// Calls an observer with events. If the call with all events fails, the observer is called with each event alone. Blocks.
fn call_observer(
    staged: &Staged,
    files: &Files,
    memory: Vec<u8>,
    events: &[Finished],
) -> ObserverAnswer {
    let mut answer = ObserverAnswer {
        memory,
        failures: Vec::new(),
        lost: 0,
        problem: None,
    };
    let Err(is_open) = answer.call(staged, files, events) else {
        return answer;
    };
    let mut left_alone = match events.len() > 1 && !is_open {
        true => FAULTS_ALONE_MAX,
        false => 0,
    };
    for event in events {
        if left_alone == 0 {
            answer.lost += 1;
        } else if answer
            .call(staged, files, std::slice::from_ref(event))
            .is_err()
        {
            answer.lost += 1;
            left_alone -= 1;
        }
    }
    answer
}

impl ObserverAnswer {
    /// Makes one call. On failure, the error is `true` if the observer was left out.
    fn call(&mut self, staged: &Staged, files: &Files, events: &[Finished]) -> Result<(), bool> {
        match staged.observe(&self.memory, events) {
            Ok(observation) => {
                let written = files.write(&observation);
                self.problem = written.err().or(self.problem.take());
                self.memory = observation.memory;
                Ok(())
            }
            Err(unanswered) => {
                let is_open = !unanswered.was_called();
                self.failures.extend(unanswered.failure());
                Err(is_open)
            }
        }
    }
}

impl Files {
    fn of(job: &Path, name: &str) -> Files {
        let observers = job.join("observers");
        Files {
            memory: observers.join(format!("{name}.memory")),
            lines: observers.join(name),
            reports: reports_of(job, name),
        }
    }

    /// Writes the lines before the memory: after a crash in between, lines are repeated, but none are lost.
    ///
    /// # Errors
    /// The system's errors, and an error that names the first file beyond [`FILES_MAX`]. All other files and the memory are
    /// written then.
    fn write(&self, observation: &Observation) -> io::Result<()> {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for Line { file, text } in &observation.lines {
            let all = texts.entry(file).or_default();
            all.push_str(text);
            all.push('\n');
        }
        fs::create_dir_all(&self.lines)?;
        let mut files = None;
        let mut too_many = None;
        for (file, text) in texts {
            let path = self.lines.join(file);
            if !path.exists() {
                let count = files.get_or_insert(fs::read_dir(&self.lines)?.count());
                if *count >= FILES_MAX {
                    too_many.get_or_insert(file);
                    continue;
                }
                *count += 1;
            }
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(text.as_bytes())?;
        }
        write_text(&self.memory, &observation.memory)?;
        match too_many {
            None => Ok(()),
            Some(file) => Err(io::Error::other(format!(
                "{file} exceeds the maximum of {FILES_MAX} files of an observer"
            ))),
        }
    }

    fn write_reports(&self, reports: &[Report]) -> io::Result<()> {
        if reports.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.reports)?;
        for Report { file, content } in reports.iter().take(FILES_MAX) {
            write_text(&self.reports.join(file), content)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_files_and_the_memory_are_written_if_there_are_too_many_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(folder.path(), "counter");
        let line = |file: String| Line {
            file,
            text: "a line".to_owned(),
        };
        let observation = |names: Vec<String>, memory: &[u8]| Observation {
            memory: memory.to_vec(),
            lines: names.into_iter().map(line).collect(),
        };
        let all = (0..FILES_MAX).map(|n| format!("{n}.txt")).collect();
        files.write(&observation(all, b"1")).unwrap();

        let more = vec!["0-new.txt".to_owned(), "7.txt".to_owned()];
        let error = files.write(&observation(more, b"2")).unwrap_err();
        assert!(
            error.to_string().starts_with("0-new.txt exceeds"),
            "{error}"
        );
        assert_eq!(fs::read(&files.memory).unwrap(), b"2");
        let lines = fs::read_to_string(files.lines.join("7.txt")).unwrap();
        assert_eq!(lines, "a line\na line\n");
        assert!(!files.lines.join("0-new.txt").exists());
    }
}
