//! Execution of commands. Each command works in bounded parts, and the frontier is free for the crawl between two parts.

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, Directive, Frontier, QueueReport, QueueState, ScheduleResult, SweepAction,
};
use opilio_uri::{HopPath, Uri};

use super::admin::{CommandOrigin, PART_PAUSE};
use super::answer::{Respond, done, listened};
use super::command::read_uri;
use super::queries::no_queue;
use super::settings::SetRequest;
use super::{
    Author, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, JobAdmin, JobState,
    QueueAction, QueueSort, Status,
};
use opilio_crawl::live::{Cancelled, QueueCommandGuard};
use opilio_job::census::Census;
use opilio_job::job_log::JobLogGuard;
use opilio_job::process_record::ProcessRecord;
use opilio_job::share::{Share, ShareTaken};
use opilio_job::transfer::queue_as_json;
use opilio_visit::policy;

/// Maximum number of fetches in flight that a status lists.
const IN_FLIGHT_MAX: usize = 100;

/// Maximum number of queues that are examined while the frontier is locked.
const QUEUES_PART: usize = 1_000;

impl JobAdmin<'_> {
    /// Carries out a command on this directory.
    pub(super) fn perform_here(&self, request: &CommandRequest, respond: Respond<'_>) {
        let CommandRequest { by, command, .. } = request;
        // The log stays locked, so that the crawl's own line about the pause follows the line of the command.
        let changes_pause = matches!(command, Command::Pause | Command::Resume);
        let held = changes_pause.then(|| self.log.lock());
        let result = self.carry_out(by, command, respond);
        let logged = self.log_action(held, by, command, &result);
        let last = match result.and(logged) {
            Ok(()) => CommandResponse::End,
            Err(ControlError { kind, message }) => CommandResponse::Refused { kind, message },
        };
        respond(last);
    }

    pub(super) fn log_action(
        &self,
        held: Option<JobLogGuard<'_>>,
        by: &Author,
        command: &Command,
        result: &Result<String, ControlError>,
    ) -> Result<(), ControlError> {
        let Some(line) = command.log_line() else {
            return Ok(());
        };
        let words = match result {
            Ok(words) => words.clone(),
            Err(problem) => format!("refused: {problem}"),
        };
        let mut log = held.unwrap_or_else(|| self.log.lock());
        log.action(by, &line, &words).map_err(|problem| {
            ControlError::new(
                ErrorKind::Failure,
                format!("done ({words}), but cannot write job.log: {problem}"),
            )
        })
    }

    /// Carries out the command. Returns the result for the job's log, as one sentence.
    pub(super) fn carry_out(
        &self,
        by: &Author,
        command: &Command,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let _queue_command = match command.queues_uris() {
            true => self.keep_running()?,
            false => None,
        };
        match command {
            Command::Status => self.status(respond),
            Command::Series { since, points } => self.series(*since, *points, respond),
            Command::Breakdown => self.breakdown(respond),
            Command::Hosts {
                which,
                after,
                limit,
            } => self.hosts(which, after.as_deref(), *limit, respond),
            Command::Report { report, text } => self.report_of(*report, *text, respond),
            Command::Alerts => self.alerts(respond),
            Command::Acknowledge { kind, subject } => {
                self.acknowledge(by, *kind, subject.as_deref(), respond)
            }
            Command::RotateLogs => self.rotate_logs(respond),
            Command::Pause => self.pause(true, respond),
            Command::Resume => self.pause(false, respond),
            Command::Stop => self.stop(respond),
            Command::Terminate => self.terminate(respond),
            Command::Share { share } => self.share(*share, respond),
            Command::Checkpoint { to } => self.checkpoint(to.as_deref(), respond),
            Command::Statistics => {
                let statistics = Box::new(self.frontier().statistics());
                respond(CommandResponse::Statistics { statistics });
                Ok(String::new())
            }
            Command::Plugins => self.plugins(respond),
            Command::Observe { observer } => self.observe(observer.as_deref(), respond),
            Command::Tables { reload } => self.tables(*reload, respond),
            Command::ReplacePlugin {
                plugin,
                component,
                sha256,
                settings,
            } => {
                let mut request = JobAdmin::replacement_request(
                    plugin,
                    component,
                    sha256.as_deref(),
                    settings.as_ref(),
                )?;
                if let CommandOrigin::Log { component, .. } = self.origin {
                    request.bytes = component.map(<[u8]>::to_vec);
                }
                self.replace_plugin(&request, by, respond)
            }
            Command::Queues {
                state,
                sort: QueueSort::Name,
                after,
                limit,
            } => self.queues(*state, after.clone(), *limit, respond),
            Command::Queues {
                state, sort, limit, ..
            } => self.sorted_queues(*state, *sort, *limit, respond),
            Command::Queue { queue } => {
                let report = self.report(queue)?;
                respond(CommandResponse::Queue {
                    queue: queue_as_json(&report),
                });
                Ok(String::new())
            }
            Command::Uris {
                queue,
                after,
                limit,
            } => self.uris(queue, after.as_deref(), *limit, respond),
            Command::List {
                which,
                after,
                limit,
            } => self.list(which, after.as_deref(), *limit, respond),
            Command::Count { which } => self.sweep(SweepAction::Count, which, by, respond),
            Command::Delete { which } => self.sweep(SweepAction::Delete, which, by, respond),
            Command::Forget { which } => self.sweep(SweepAction::Forget, which, by, respond),
            Command::RemoveSeed { uri } => self.remove_seed(&read_uri(uri)?, by, respond),
            Command::ChangeQueue { queue, action } => {
                self.alter(queue, respond, |frontier, queue, now| match action {
                    QueueAction::Retire => frontier.retire(queue, true, now),
                    QueueAction::Unretire => frontier.retire(queue, false, now),
                    QueueAction::Freeze => frontier.freeze(queue, true, now),
                    QueueAction::Thaw => frontier.freeze(queue, false, now),
                    QueueAction::Wake => frontier.wake(queue, now),
                })
            }
            Command::WakeOverlong => self.wake_overlong(respond),
            Command::QueuePrecedence { queue, precedence } => {
                self.alter(queue, respond, |f, q, now| {
                    f.set_queue_precedence(q, *precedence, now)
                })
            }
            Command::Cancel { uri } => self.cancel(&read_uri(uri)?, respond),
            Command::Force { uri } => self.force(&read_uri(uri)?, respond),
            Command::UriPrecedence { uri, precedence } => {
                self.uri_precedence(&read_uri(uri)?, *precedence, respond)
            }
            Command::Floor { floor } => self.floor(*floor, respond),
            Command::Why { uri } => self.why(&read_uri(uri)?, respond),
            Command::Export { format, which } => self.export(*format, which, respond),
            Command::Import { files, done } => self.import(files, *done, respond),
            Command::Settings => self.settings(respond),
            Command::Set {
                set,
                matching,
                only_check,
                reason,
            } => {
                let request = SetRequest {
                    set,
                    matching: matching.as_ref(),
                    only_check: *only_check,
                    reason: reason.as_deref(),
                };
                self.set(&request, by, respond)
            }
            Command::Overrides => self.overrides(respond),
            Command::ChangeOverride {
                id,
                change,
                reason,
                only_check,
            } => self.change_override(*id, change, (by, reason.as_deref()), *only_check, respond),
            Command::History { after, limit } => self.history(*after, *limit, respond),
            Command::AddSeeds { seeds } => self.add_seeds(seeds, by, respond),
            Command::Seeds { after, limit } => self.seeds(after.as_deref(), *limit, respond),
            Command::Explain { .. } => self.explain(command, respond),
            // [`super::carry_out`] checks a job that no process runs, before it opens the frontier.
            Command::Check { .. } => Err(ControlError::new(
                ErrorKind::State,
                "the store of a running crawl cannot be checked: stop the crawl first",
            )),
        }
    }

    /// Keeps a running crawl from ending while URIs are being queued. Returns `None` if no process runs the job.
    fn keep_running(&self) -> Result<Option<QueueCommandGuard>, ControlError> {
        let Some(running) = self.running else {
            return Ok(None);
        };
        let is_over = || {
            let why = "not queued: the crawl has no URIs left and is ending; try again when its process has ended";
            ControlError::new(ErrorKind::State, why)
        };
        running
            .live
            .begin_queue_command()
            .map(Some)
            .ok_or_else(is_over)
    }

    fn status(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let statistics = self.frontier().statistics();
        let job = self.job.to_owned();
        let status = match self.running {
            None => {
                let last = ProcessRecord::read(self.job).ok().flatten();
                Status {
                    job,
                    state: JobState::without_process(last.as_ref()),
                    last_end: last.and_then(|last| last.ended),
                    pid: None,
                    elapsed_s: None,
                    uris: 0,
                    bytes: 0,
                    statistics,
                    visits: self.counted().ok().map(|counted| counted.totals.visits()),
                    in_flight: Vec::new(),
                    browsers: None,
                    part: None,
                    alerts: self.active_alerts(),
                    census: Census::default(),
                    share: Share::default(),
                    taken: ShareTaken::default(),
                }
            }
            Some(running) => {
                let progress = running.view.progress();
                let throttle = running.context.network.fetchers.base().throttle();
                let state = match running.stop.is_requested() {
                    true => JobState::Ending,
                    false => running.live.crawl_state(),
                };
                Status {
                    job,
                    state,
                    last_end: None,
                    pid: Some(std::process::id()),
                    elapsed_s: Some(progress.elapsed.as_secs_f64()),
                    uris: progress.uris,
                    bytes: progress.bytes,
                    statistics,
                    visits: Some(progress.visits),
                    in_flight: running.live.in_flight(IN_FLIGHT_MAX),
                    browsers: running.context.browsers_status(),
                    part: running
                        .context
                        .membership
                        .as_ref()
                        .and_then(|it| it.status()),
                    alerts: self.active_alerts(),
                    census: running.context.figures.census.get(),
                    share: Share::of(&throttle),
                    taken: running.live.taken(throttle.taken()),
                }
            }
        };
        respond(CommandResponse::Status(Box::new(status)));
        Ok(String::new())
    }

    pub(super) fn pause(
        &self,
        is_pause: bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let nothing = match is_pause {
            true => "only a running job can be paused",
            false => "resume it with `opilio crawl JOB`",
        };
        let running = self.running(nothing)?;
        if running.stop.is_requested() {
            let what = "the crawl is stopping; current fetches finish";
            return Err(ControlError::new(ErrorKind::State, what));
        }
        let changed = running.live.pause(is_pause);
        let result = match (is_pause, changed) {
            (true, true) => "pausing; no new fetches start, current fetches finish",
            (true, false) => "already pausing or paused",
            (false, true) => "resumed",
            (false, false) => "not paused",
        };
        Ok(done(result, respond))
    }

    fn share(&self, share: Share, respond: Respond<'_>) -> Result<String, ControlError> {
        let running = self.running("it uses no share")?;
        let throttle = running.context.network.fetchers.base().throttle();
        throttle.allow(share.allowance());
        // A larger share may allow more fetches.
        running.live.wake_dispatcher();
        Ok(done(&format!("share: {share}"), respond))
    }

    fn stop(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let running = self.running("only a running job can be stopped")?;
        running.stop.stop();
        let result = "stopping; current fetches finish; `opilio crawl JOB` resumes the job";
        Ok(done(result, respond))
    }

    fn terminate(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let running = self.running("only a running job can be ended")?;
        running.stop.terminate();
        let result = "stopping; current fetches finish; the daemon restarts the job";
        Ok(done(result, respond))
    }

    fn alter(
        &self,
        queue: &str,
        respond: Respond<'_>,
        alter: impl FnOnce(
            &mut Frontier,
            &str,
            Timestamp,
        ) -> Result<bool, opilio_frontier::FrontierError>,
    ) -> Result<String, ControlError> {
        let is_known = alter(&mut self.frontier(), queue, Timestamp::now());
        match is_known {
            Ok(true) => {}
            Ok(false) | Err(opilio_frontier::FrontierError::Name { .. }) => {
                return Err(no_queue(queue));
            }
            Err(problem) => return Err(problem.into()),
        }
        self.wake_dispatcher();
        let report = self.report(queue)?;
        Ok(done(&queue_sentence(&report), respond))
    }

    fn wake_overlong(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let (mut examined, mut woken) = (0, 0);
        let mut after = None;
        loop {
            let part =
                self.frontier()
                    .wake_overlong(after.as_deref(), QUEUES_PART, Timestamp::now())?;
            examined += part.examined;
            woken += part.woken;
            after = part.after;
            if after.is_none() {
                break;
            }
            listened(respond(CommandResponse::Progress {
                examined,
                meant: woken,
            }))?;
            std::thread::sleep(PART_PAUSE);
        }
        self.wake_dispatcher();
        let result = format!(
            "{woken} of {examined} queues had too long a delay, and now wait as after one request"
        );
        Ok(done(&result, respond))
    }

    fn cancel(&self, uri: &Uri, respond: Respond<'_>) -> Result<String, ControlError> {
        let running = self.running("no fetch to cancel")?;
        match running.live.cancel(uri.as_str()) {
            Cancelled::Requested => Ok(done(
                "fetch cancelled; crawl.log has it with status -7000",
                respond,
            )),
            Cancelled::TooLate => Err(ControlError::new(
                ErrorKind::State,
                format!("{uri} has already been received and is being processed"),
            )),
            Cancelled::NotInProcess => Err(ControlError::new(
                ErrorKind::State,
                format!(
                    "{uri} is not being fetched; `opilio job status JOB` lists current fetches"
                ),
            )),
        }
    }

    fn force(&self, uri: &Uri, respond: Respond<'_>) -> Result<String, ControlError> {
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
                // The hop path is empty, because an operator has requested the URI, which may be out of scope.
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
        if let Some(ScheduleResult::Refused(refusal)) = answer {
            return Err(ControlError::new(
                ErrorKind::Request,
                format!("{uri} cannot be queued: {refusal}"),
            ));
        }
        self.wake_dispatcher();
        let report = self.report(&queue)?;
        let result = format!("queued before other URIs; {}", queue_sentence(&report));
        Ok(done(&result, respond))
    }

    fn uri_precedence(
        &self,
        uri: &Uri,
        precedence: u8,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let mut frontier = self.frontier();
        if !frontier.set_precedence(uri, precedence, Timestamp::now())? {
            let why = match frontier.record(uri)? {
                Some(_) => {
                    "is being fetched; try again when the fetch has ended, or cancel it first"
                }
                None => "is unknown",
            };
            return Err(ControlError::new(ErrorKind::State, format!("{uri} {why}")));
        }
        drop(frontier);
        self.wake_dispatcher();
        Ok(done(&format!("precedence set to {precedence}"), respond))
    }

    fn floor(&self, floor: Option<u8>, respond: Respond<'_>) -> Result<String, ControlError> {
        self.running(
            "without a process the floor is frontier.precedence-floor of its profile.toml",
        )?;
        self.frontier().set_precedence_floor(floor);
        self.wake_dispatcher();
        let result = match floor {
            Some(floor) => format!(
                "floor set to {floor}: queues of this precedence or a higher number issue no URIs, and the crawl waits for them, until the floor changes or this process ends"
            ),
            None => "floor removed: queues of every precedence issue URIs".to_owned(),
        };
        Ok(done(&result, respond))
    }
}

fn queue_sentence(report: &QueueReport) -> String {
    let state = match (report.is_frozen, report.retired_by) {
        (true, _) => QueueState::Frozen.name().to_owned(),
        (false, Some(by)) => format!("{} by {}", QueueState::Retired.name(), by.name()),
        (false, None) => report.state.name().to_owned(),
    };
    let mut sentence = format!("queue {} is {state}", report.queue);
    if report.state == QueueState::InProcess && (report.is_frozen || report.retired_by.is_some()) {
        sentence.push_str(" once current fetches have finished");
    }
    let more = format!(
        ", precedence {}, {} ready, {} waiting",
        report.precedence, report.ready, report.waiting
    );
    sentence + &more
}
