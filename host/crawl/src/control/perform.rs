//! Commands, carried out. Each in bounded parts, between which the frontier is free for the crawl.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{Candidate, Directive, QueueReport, Scheduled, SweepAction, Why};
use opilio_uri::{HopPath, Uri};
use serde_json::json;

use super::live::Cancelled;
use super::{
    Answer, By, Command, ControlError, Desk, DoneElsewhere, ExportFormat, Fault, QueueStateFilter,
    Request, Standing, Status, Which, WhyAnswer,
};
use crate::policy;
use crate::transfer::{
    self, DoneUris, Import, ImportProgress, ImportReport, Imported, SourceReport, TransferError,
    queue_as_json, uri_as_json,
};

/// URIs that a sweep looks at while it holds the frontier.
const SWEEP_PART: usize = 2_000;

/// Queues or URIs of a queue that are read while the frontier is held.
const LIST_PART: usize = 500;

/// URIs of an import that go to the frontier at once.
const IMPORT_PART: usize = 2_000;

/// Pieces of an export, in bytes.
const TEXT_BYTES: usize = 64 * 1024;

/// Fetches in flight that a status names.
const IN_FLIGHT_MAX: usize = 100;

/// Between two parts, so that workers who wait for the frontier get it first.
const BREATH: Duration = Duration::from_millis(1);

/// Takes an answer to whoever asked. False: nobody listens any more.
pub(super) type Say<'s> = &'s mut dyn FnMut(Answer) -> bool;

impl Desk<'_> {
    /// Carries a command out. The last answer is [`Answer::End`] or [`Answer::Refused`].
    pub(super) fn perform(&self, request: &Request, say: Say<'_>) {
        let Request { by, command } = request;
        let result = self.carry_out(command, say);
        let logged = self.log_action(by, command, &result);
        let last = match result.and(logged) {
            Ok(()) => Answer::End,
            Err(ControlError { fault, message }) => Answer::Refused { fault, message },
        };
        say(last);
    }

    fn log_action(
        &self,
        by: &By,
        command: &Command,
        result: &Result<String, ControlError>,
    ) -> Result<(), ControlError> {
        if !command.changes() {
            return Ok(());
        }
        let words = match result {
            Ok(words) => words.clone(),
            Err(problem) => format!("refused: {problem}"),
        };
        self.log.action(by, command, &words).map_err(|problem| {
            ControlError::new(
                Fault::Failure,
                format!("done ({words}), but job.log cannot be written: {problem}"),
            )
        })
    }

    /// What came of it, in one sentence for the job's log.
    fn carry_out(&self, command: &Command, say: Say<'_>) -> Result<String, ControlError> {
        match command {
            Command::Status => self.status(say),
            Command::Pause => self.pause(true, say),
            Command::Resume => self.pause(false, say),
            Command::Stop => self.stop(say),
            Command::Checkpoint { to } => self.checkpoint(to.as_deref(), say),
            Command::Statistics => {
                let statistics = Box::new(self.frontier().statistics());
                say(Answer::Statistics { statistics });
                Ok(String::new())
            }
            Command::Queues {
                state,
                after,
                limit,
            } => self.queues(*state, after.clone(), *limit, say),
            Command::Queue { queue } => {
                let report = self.report(queue)?;
                say(Answer::Queue {
                    queue: queue_as_json(report),
                });
                Ok(String::new())
            }
            Command::Uris {
                queue,
                after,
                limit,
            } => self.uris(queue, after.as_deref(), *limit, say),
            Command::List { which, limit } => self.list(which, *limit, say),
            Command::Count { which } => self.sweep(SweepAction::Count, which, say),
            Command::Delete { which } => self.sweep(SweepAction::Delete, which, say),
            Command::Forget { which } => self.sweep(SweepAction::Forget, which, say),
            Command::RemoveSeed { uri } => self.remove_seed(&read_uri(uri)?, say),
            Command::Retire { queue } => self.alter(queue, say, |f, q, now| f.retire(q, true, now)),
            Command::Unretire { queue } => {
                self.alter(queue, say, |f, q, now| f.retire(q, false, now))
            }
            Command::Freeze { queue } => self.alter(queue, say, |f, q, now| f.freeze(q, true, now)),
            Command::Thaw { queue } => self.alter(queue, say, |f, q, now| f.freeze(q, false, now)),
            Command::Wake { queue } => self.alter(queue, say, |f, q, now| f.wake(q, now)),
            Command::QueuePrecedence { queue, precedence } => {
                self.alter(queue, say, |f, q, now| {
                    f.set_queue_precedence(q, *precedence, now)
                })
            }
            Command::Cancel { uri } => self.cancel(&read_uri(uri)?, say),
            Command::Force { uri } => self.force(&read_uri(uri)?, say),
            Command::UriPrecedence { uri, precedence } => {
                self.uri_precedence(&read_uri(uri)?, *precedence, say)
            }
            Command::Floor { floor } => self.floor(*floor, say),
            Command::Why { uri } => self.why(&read_uri(uri)?, say),
            Command::Export { format, which } => self.export(*format, which, say),
            Command::Import { file, done } => self.import(file, *done, say),
            // Whoever reaches a job that nobody runs checks it before it is opened.
            Command::Check { .. } => Err(ControlError::new(
                Fault::State,
                "the store of a running crawl cannot be checked: stop the crawl first",
            )),
        }
    }

    fn status(&self, say: Say<'_>) -> Result<String, ControlError> {
        let statistics = self.frontier().statistics();
        let job = self.job.to_owned();
        let status = match self.running {
            None => Status {
                job,
                state: Standing::Idle,
                pid: None,
                elapsed_s: None,
                uris: 0,
                bytes: 0,
                statistics,
                in_flight: Vec::new(),
            },
            Some(running) => {
                let progress = running.view.progress();
                let state = match running.stop.is_asked() {
                    true => Standing::Ending,
                    false => running.live.standing(),
                };
                Status {
                    job,
                    state,
                    pid: Some(std::process::id()),
                    elapsed_s: Some(progress.elapsed.as_secs_f64()),
                    uris: progress.uris,
                    bytes: progress.bytes,
                    statistics,
                    in_flight: running.live.in_flight(IN_FLIGHT_MAX),
                }
            }
        };
        say(Answer::Status(Box::new(status)));
        Ok(String::new())
    }

    fn pause(&self, is_pause: bool, say: Say<'_>) -> Result<String, ControlError> {
        let nothing = match is_pause {
            true => "there is nothing to pause",
            false => "opilio crawl goes on with it",
        };
        let running = self.running(nothing)?;
        let changed = running.live.pause(is_pause);
        let result = match (is_pause, changed) {
            (true, true) => "pausing: nothing new begins, what is in flight finishes",
            (true, false) => "it is pausing or paused already",
            (false, true) => "going on",
            (false, false) => "it was not paused",
        };
        Ok(done(result, say))
    }

    fn stop(&self, say: Say<'_>) -> Result<String, ControlError> {
        let running = self.running("there is nothing to stop")?;
        running.stop.stop();
        let result =
            "ending politely: what is in flight finishes; opilio crawl goes on with the job";
        Ok(done(result, say))
    }

    fn queues(
        &self,
        state: Option<QueueStateFilter>,
        mut after: Option<String>,
        limit: u64,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let mut left = limit;
        while left > 0 {
            let now = Timestamp::now();
            let part = self.frontier().queues(after.as_deref(), LIST_PART, now)?;
            let is_last = part.len() < LIST_PART;
            for report in part {
                after = Some(report.queue.clone());
                if state.is_some_and(|state| state.name() != report.state.name()) {
                    continue;
                }
                if left == 0 {
                    return Ok(String::new());
                }
                left -= 1;
                listened(say(Answer::Queue {
                    queue: queue_as_json(report),
                }))?;
                if left == 0 {
                    break;
                }
            }
            if is_last && left > 0 {
                return Ok(String::new());
            }
            std::thread::sleep(BREATH);
        }
        let behind = self
            .frontier()
            .queues(after.as_deref(), 1, Timestamp::now())?;
        if let Some(after) = after.filter(|_| !behind.is_empty()) {
            say(Answer::More { after });
        }
        Ok(String::new())
    }

    fn uris(
        &self,
        queue: &str,
        after: Option<&str>,
        limit: u64,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        self.report(queue)?;
        let mut after = after.map(|text| from_cursor(queue, text)).transpose()?;
        let mut left = limit;
        while left > 0 {
            let most = LIST_PART.min(usize::try_from(left).unwrap_or(LIST_PART));
            let part = self.frontier().queue_uris(queue, after.as_deref(), most)?;
            if part.is_empty() {
                return Ok(String::new());
            }
            left -= part.len() as u64;
            for queued in part {
                after = Some(queued.cursor);
                listened(say(Answer::Uri {
                    uri: uri_as_json(queued.record),
                    is_ready: Some(queued.is_ready),
                    in_process: Some(queued.in_process),
                }))?;
            }
            std::thread::sleep(BREATH);
        }
        let behind = self.frontier().queue_uris(queue, after.as_deref(), 1)?;
        if let Some(after) = after.filter(|_| !behind.is_empty()) {
            say(Answer::More {
                after: to_cursor(queue, &after),
            });
        }
        Ok(String::new())
    }

    fn list(&self, which: &Which, limit: u64, say: Say<'_>) -> Result<String, ControlError> {
        let selection = which.selection()?;
        // Reads a state of the store as it is now, without holding the frontier.
        let records = self.frontier().records(selection.key_prefix());
        let mut left = limit;
        for record in records {
            let record = record?;
            if !selection.takes(&record) {
                continue;
            }
            if left == 0 {
                say(Answer::More {
                    after: String::new(),
                });
                break;
            }
            left -= 1;
            listened(say(Answer::Uri {
                uri: uri_as_json(record),
                is_ready: None,
                in_process: None,
            }))?;
        }
        Ok(String::new())
    }

    fn sweep(
        &self,
        action: SweepAction,
        which: &Which,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        if action != SweepAction::Count && *which == Which::default() {
            return Err(ControlError::new(
                Fault::Request,
                "every URI would be meant: name a SURT prefix or a regular expression",
            ));
        }
        let name = match action {
            SweepAction::Count => "count",
            SweepAction::Delete => "delete",
            SweepAction::Forget => "forget",
        };
        let done = match action {
            SweepAction::Count => "counted",
            SweepAction::Delete => "deleted",
            SweepAction::Forget => "forgotten",
        };
        let swept = self.sweep_where(
            action,
            selection.key_prefix(),
            &|record| selection.takes(record),
            say,
        )?;
        let (meant, in_process) = (swept.meant, swept.in_process);
        say(Answer::Swept {
            action: name.to_owned(),
            examined: swept.examined,
            meant,
            in_process,
        });
        Ok(format!(
            "{meant} {done}, {in_process} in process left alone"
        ))
    }

    /// A sweep in parts, between which the frontier is free.
    pub(super) fn sweep_where(
        &self,
        action: SweepAction,
        key_prefix: &str,
        is_meant: &dyn Fn(&opilio_frontier::UriRecord) -> bool,
        say: Say<'_>,
    ) -> Result<opilio_frontier::Swept, ControlError> {
        let mut total = opilio_frontier::Swept::default();
        loop {
            let part = self.frontier().sweep(
                action,
                key_prefix,
                total.after.as_deref(),
                SWEEP_PART,
                is_meant,
                Timestamp::now(),
            )?;
            total.examined += part.examined;
            total.meant += part.meant;
            total.in_process += part.in_process;
            total.after = part.after;
            if total.after.is_none() {
                return Ok(total);
            }
            let (examined, meant) = (total.examined, total.meant);
            if !say(Answer::Progress { examined, meant }) {
                return Err(ControlError::new(
                    Fault::State,
                    format!(
                        "whoever asked has gone: ended after {examined} URIs, of which {meant} were meant"
                    ),
                ));
            }
            std::thread::sleep(BREATH);
        }
    }

    fn alter(
        &self,
        queue: &str,
        say: Say<'_>,
        alter: impl FnOnce(
            &mut opilio_frontier::Frontier,
            &str,
            Timestamp,
        ) -> Result<bool, opilio_frontier::Error>,
    ) -> Result<String, ControlError> {
        let is_known = alter(&mut self.frontier(), queue, Timestamp::now());
        match is_known {
            Ok(true) => {}
            Ok(false) | Err(opilio_frontier::Error::Name { .. }) => return Err(no_queue(queue)),
            Err(problem) => return Err(problem.into()),
        }
        self.nudge();
        let report = self.report(queue)?;
        Ok(done(&queue_sentence(&report), say))
    }

    fn report(&self, queue: &str) -> Result<QueueReport, ControlError> {
        let report = self.frontier().queue(queue, Timestamp::now())?;
        report.ok_or_else(|| no_queue(queue))
    }

    fn cancel(&self, uri: &Uri, say: Say<'_>) -> Result<String, ControlError> {
        let running = self.running("nothing is in flight")?;
        match running.live.cancel(uri.as_str()) {
            Cancelled::Asked => Ok(done(
                "its fetch is broken off; crawl.log has it with status -7000",
                say,
            )),
            Cancelled::TooLate => Err(ControlError::new(
                Fault::State,
                format!("the answer of {uri} has come already and is being dealt with"),
            )),
            Cancelled::NotInProcess => Err(ControlError::new(
                Fault::State,
                format!("{uri} is not being fetched; opilio job status shows what is"),
            )),
        }
    }

    fn force(&self, uri: &Uri, say: Say<'_>) -> Result<String, ControlError> {
        if !uri.is_http() && uri.scheme() != "dns" {
            return Err(ControlError::new(
                Fault::Request,
                format!("{uri} cannot be fetched: only http and https can"),
            ));
        }
        let now = Timestamp::now();
        let (answer, queue) = {
            let mut frontier = self.frontier();
            let record = frontier.record(uri)?;
            let candidate = match record {
                Some(record) => Candidate {
                    queue: record.queue,
                    context: record.context,
                    seed: record.seed,
                    ..policy::candidate(
                        self.profile,
                        uri.clone(),
                        record.hop_path,
                        record.via.as_deref(),
                        record.source.as_deref(),
                    )
                },
                // No hops: it is there because somebody wants it, whatever the scope says.
                None => policy::candidate(self.profile, uri.clone(), HopPath::new(), None, None),
            };
            let queue = candidate.queue.clone();
            let candidate = Candidate {
                directive: Directive::High,
                force: true,
                ..candidate
            };
            let answers = frontier.schedule(vec![candidate], now)?;
            (answers.into_iter().next(), queue)
        };
        if let Some(Scheduled::Refused(refusal)) = answer {
            return Err(ControlError::new(
                Fault::Request,
                format!("{uri} cannot be held: {refusal}"),
            ));
        }
        self.nudge();
        let report = self.report(&queue)?;
        let result = format!("goes before others; {}", queue_sentence(&report));
        Ok(done(&result, say))
    }

    fn uri_precedence(
        &self,
        uri: &Uri,
        precedence: u8,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let is_changed = self
            .frontier()
            .set_precedence(uri, precedence, Timestamp::now())?;
        if !is_changed {
            return Err(ControlError::new(
                Fault::State,
                format!("{uri} is unknown or being fetched; opilio frontier why tells which"),
            ));
        }
        self.nudge();
        Ok(done(&format!("its precedence is {precedence}"), say))
    }

    fn floor(&self, floor: Option<u8>, say: Say<'_>) -> Result<String, ControlError> {
        self.running(
            "the floor of a job at rest is frontier.precedence-floor of its profile.toml",
        )?;
        self.frontier().set_precedence_floor(floor);
        self.nudge();
        let result = match floor {
            Some(floor) => format!(
                "queues of precedence {floor} and up give no URI, until this process of the crawl ends"
            ),
            None => "queues of every precedence give URIs".to_owned(),
        };
        Ok(done(&result, say))
    }

    fn why(&self, uri: &Uri, say: Say<'_>) -> Result<String, ControlError> {
        let canonical = self.profile.canonical(uri);
        let why = self.frontier().why(uri, &canonical, Timestamp::now())?;
        let sentence = why.to_string();
        let mut answer = WhyAnswer {
            asked: uri.as_str().to_owned(),
            canonical,
            known: String::new(),
            sentence,
            uri: None,
            queue: None,
            is_ready: None,
            in_process: None,
            refused: None,
        };
        let (known, reason) = match why {
            Why::Unknown => ("unknown", None),
            Why::Refused(rejection) => {
                answer.refused = Some(json!({
                    "reason": rejection.reason,
                    "via": rejection.via,
                    "at": rejection.at,
                }));
                ("refused", None)
            }
            Why::SameAs(reason) => ("same-as", Some(reason)),
            Why::Known(reason) => ("known", Some(reason)),
        };
        known.clone_into(&mut answer.known);
        if let Some(reason) = reason {
            answer.is_ready = Some(reason.is_ready);
            answer.in_process = Some(reason.in_process);
            answer.queue = reason.queue.map(queue_as_json);
            answer.uri = Some(uri_as_json(reason.record));
        }
        say(Answer::Why(Box::new(answer)));
        Ok(String::new())
    }

    fn export(
        &self,
        format: ExportFormat,
        which: &Which,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        let records = self.frontier().records(selection.key_prefix());
        let mut out = Pieces {
            text: Vec::with_capacity(TEXT_BYTES),
            say,
        };
        let written = match format {
            ExportFormat::JsonLines => transfer::write_json_lines(records, &selection, &mut out),
            ExportFormat::Cdxj => {
                transfer::write_cdxj(records, &selection, &self.job.join("scratch"), &mut out)
            }
        };
        let count = written.map_err(|problem| transfer_error(&problem))?;
        Ok(done(&format!("{count} URIs"), say))
    }

    fn import(
        &self,
        file: &Path,
        elsewhere: DoneElsewhere,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let import = Import {
            sources: vec![(file.to_owned(), None)],
            folder: self.job.join("scratch"),
        };
        let mut gathered = import
            .gather(|progress| {
                if let ImportProgress::Read(_, lines) = progress {
                    say(Answer::Progress {
                        examined: lines,
                        meant: 0,
                    });
                }
            })
            .map_err(|problem| transfer_error(&problem))?;
        for source in &gathered.sources {
            say(source_answer(source));
        }
        let elsewhere = match elsewhere {
            DoneElsewhere::Known => DoneUris::Included,
            DoneElsewhere::Fetched => DoneUris::Scheduled,
            DoneElsewhere::LeftOut => DoneUris::LeftOut,
        };
        let mut total = ImportReport::default();
        let mut brought = 0;
        loop {
            // Read before the frontier is held.
            let part: Vec<Result<Imported, TransferError>> =
                gathered.by_ref().take(IMPORT_PART).collect();
            if part.is_empty() {
                break;
            }
            brought += part.len() as u64;
            let report = transfer::import(
                part,
                elsewhere,
                &mut self.frontier(),
                |uri, hops| Some(policy::candidate(self.profile, uri, hops, None, None)),
                Timestamp::now(),
                |_| {},
            )
            .map_err(|problem| transfer_error(&problem))?;
            add(&mut total, report);
            self.nudge();
            listened(say(Answer::Progress {
                examined: brought,
                meant: total.scheduled + total.included,
            }))?;
            std::thread::sleep(BREATH);
        }
        say(Answer::Imported {
            scheduled: total.scheduled,
            included: total.included,
            known: total.known,
            prerequisites: total.prerequisites,
            left_out: total.left_out,
            refused: total.refused,
            refusals: total
                .refusals
                .iter()
                .map(|(uri, why)| format!("{uri}: {why}"))
                .collect(),
        });
        Ok(format!(
            "{} scheduled, {} included, {} known before, {} left out, {} refused",
            total.scheduled,
            total.included,
            total.known,
            total.left_out + total.prerequisites,
            total.refused
        ))
    }
}

/// A URI as an operator types it.
fn read_uri(text: &str) -> Result<Uri, ControlError> {
    Uri::parse_seed(text).map_err(|problem| {
        ControlError::new(
            Fault::Request,
            format!("{text:?} is no URI: {}", crate::stacks::chain(&problem)),
        )
    })
}

pub(super) fn done(result: &str, say: Say<'_>) -> String {
    say(Answer::Done {
        result: result.to_owned(),
    });
    result.to_owned()
}

fn no_queue(queue: &str) -> ControlError {
    ControlError::new(
        Fault::State,
        format!("there is no queue {queue:?}; opilio frontier queues lists them"),
    )
}

fn listened(is_heard: bool) -> Result<(), ControlError> {
    match is_heard {
        true => Ok(()),
        false => Err(ControlError::new(Fault::State, "whoever asked has gone")),
    }
}

fn queue_sentence(report: &QueueReport) -> String {
    let mut sentence = format!("queue {} is {}", report.queue, report.state.name());
    if let Some(by) = report.retired_by {
        sentence.push_str(&format!(" by {}", by.name()));
    }
    let more = format!(
        ", precedence {}, {} ready, {} waiting",
        report.precedence, report.ready, report.waiting
    );
    sentence + &more
}

/// A queue's cursors begin with its name, which whoever asks knows.
fn to_cursor(queue: &str, cursor: &[u8]) -> String {
    let (order, key) = cursor.split_first().map_or((0, cursor), |(o, k)| (*o, k));
    let key = key.get(queue.len() + 1..).unwrap_or_default();
    std::iter::once(order)
        .chain(key.iter().copied())
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn from_cursor(queue: &str, text: &str) -> Result<Vec<u8>, ControlError> {
    let bytes: Option<Vec<u8>> = (text.is_ascii() && text.len().is_multiple_of(2))
        .then(|| {
            text.as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect()
        })
        .flatten();
    match bytes.as_deref().and_then(<[u8]>::split_first) {
        Some((order @ (0 | 1), key)) => {
            let mut cursor = vec![*order];
            cursor.extend(queue.as_bytes());
            cursor.push(0);
            cursor.extend(key);
            Ok(cursor)
        }
        _ => Err(ControlError::new(
            Fault::Request,
            format!("{text:?} is no cursor: take the one that an earlier page ended with"),
        )),
    }
}

fn transfer_error(problem: &TransferError) -> ControlError {
    let fault = match problem {
        TransferError::Unrecognised { .. } => Fault::Request,
        TransferError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe => Fault::State,
        _ => Fault::Failure,
    };
    ControlError::new(fault, crate::stacks::chain(problem))
}

fn source_answer(source: &SourceReport) -> Answer {
    let bad = source
        .shown
        .iter()
        .map(|bad| format!("line {}: {}", bad.line, bad.problem));
    let damages = source.extent.damages.iter().map(ToString::to_string);
    Answer::Source {
        file: source.path.clone(),
        format: source.format.name().to_owned(),
        lines: source.extent.lines,
        bad_lines: source.bad_lines,
        problems: bad.chain(damages).collect(),
    }
}

fn add(total: &mut ImportReport, part: ImportReport) {
    total.scheduled += part.scheduled;
    total.included += part.included;
    total.known += part.known;
    total.prerequisites += part.prerequisites;
    total.left_out += part.left_out;
    total.refused += part.refused;
    let room = transfer::BAD_LINES_SHOWN.saturating_sub(total.refusals.len());
    total.refusals.extend(part.refusals.into_iter().take(room));
}

/// An export on its way, in pieces of whole lines.
struct Pieces<'s> {
    text: Vec<u8>,
    say: Say<'s>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= TEXT_BYTES && self.text.ends_with(b"\n") {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        match (self.say)(Answer::Text { text }) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn cursors_come_back_as_they_went() {
        for (queue, cursor) in [
            ("org,a,", &b"\x00org,a,\0\x03\x01\xff"[..]),
            ("q", b"\x01q\0\x00"),
        ] {
            let text = to_cursor(queue, cursor);
            assert_eq!(from_cursor(queue, &text).unwrap(), cursor, "{text}");
        }
        for bad in ["", "0", "zz", "07aa", "é0", "00é"] {
            assert_eq!(
                from_cursor("q", bad).unwrap_err().fault,
                Fault::Request,
                "{bad}"
            );
        }
    }
}
