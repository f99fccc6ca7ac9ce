//! The supervisor of all jobs that are ordered to crawl. It starts their processes, up to the maximum number of concurrent crawls,
//! restarts processes that died, and pauses and resumes jobs with their crawl windows. It also creates the jobs of the calendar.
//!
//! All of its state is in the jobs' directories. So a new daemon continues the work of the previous one, after an upgrade or a
//! crash of the machine.

mod calendar;
mod sharing;
mod shutdown;

use std::collections::{BTreeMap, HashMap};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use opilio_control::Command;
use opilio_crawl::{JobState, ProcessEndKind, ProcessRecord, Share};
use tokio::sync::OwnedSemaphorePermit;

use crate::calendar::HandledOccurrences;
use crate::config::Restart;
use crate::daemon::Daemon;
use crate::node::ClusterNode;
use crate::orders::Orders;
use crate::overview::{Jobs, KnownJob, Watcher, is_disk_low};
use crate::process::{self, Alive};
use crate::share::Shares;
use crate::window;
use sharing::ShareFailure;

/// Interval at which all jobs are examined.
const PERIOD: Duration = Duration::from_secs(1);

/// Time after which a crawl counts as stable: then the count of deaths starts again.
const STABLE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// The daemon's user name in the logs of jobs.
const DAEMON: &str = "daemon";

/// The exit code of a process whose profile has errors.
const EXIT_FAULTS: i32 = 2;

/// The exit code of a process whose job is held by another process.
const EXIT_IN_USE: i32 = 3;

/// Supervises all jobs.
pub(crate) struct Supervisor {
    daemon: Arc<Daemon>,
    watcher: Watcher,
    processes: HashMap<String, Process>,
    shares: Shares,
    /// Jobs that could not be given their share, with the failure that was logged.
    share_failures: HashMap<String, ShareFailure>,
    /// `true` if it was logged that the disk is too full to start jobs.
    is_disk_low: bool,
    handled: HandledOccurrences,
    /// Errors of calendar entries, which are retried at every examination.
    calendar_errors: HashMap<String, String>,
}

/// A process that this daemon has started.
struct Process {
    child: Child,
    /// Share with which the process started. It applies until the daemon sends another one.
    share: Share,
    /// Permit that keeps other tasks from opening the job before the process does.
    job_lock: Option<OwnedSemaphorePermit>,
}

/// The next step for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Start the process as soon as fewer than the maximum number of jobs crawl.
    Begin,
    /// Start the process again, for this reason. It has not died.
    Retry(&'static str),
    /// A process that this daemon has not started crawls the job, since this time.
    Adopt(Timestamp),
    /// The process had an orderly end, and is not restarted.
    Ended,
    /// The process died, and is restarted at this time.
    Died(Timestamp),
    /// The process died this number of times in a row, and is not restarted.
    GivenUp(u32),
    /// The process cannot start, because of errors in its profile.
    CannotStart,
    Pause,
    Resume,
    /// Stop the process that was starting when an operator stopped the job.
    Stop,
    /// The process that was starting has ended without being stopped.
    Unstarted,
    /// The process has crawled long enough to count as stable.
    Stable,
}

/// The facts that decide about the step.
struct SupervisedJob<'c> {
    alive: Alive,
    state: JobState,
    orders: Option<&'c Orders>,
    process_record: Option<&'c ProcessRecord>,
    process: ProcessState,
    is_open: bool,
    now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessState {
    /// This daemon has started no process.
    None,
    Alive,
    Exited(Option<i32>),
}

impl ProcessState {
    /// Describes the end of the process, if known.
    fn ending(self) -> Option<String> {
        match self {
            ProcessState::Exited(Some(code)) => Some(format!("with exit code {code}")),
            ProcessState::Exited(None) => Some("killed".to_owned()),
            ProcessState::None | ProcessState::Alive => None,
        }
    }
}

impl Supervisor {
    pub(crate) fn new(daemon: Arc<Daemon>) -> std::io::Result<Supervisor> {
        let windows = Arc::new(daemon.config.window.clone());
        for entry in &daemon.config.calendar {
            if let Err(problem) = daemon.profile(&entry.profile) {
                let problem = problem.detail().to_owned();
                tracing::warn!(
                    entry = entry.name,
                    "cannot create jobs of this calendar entry: {problem}"
                );
                daemon.calendar_problem(&entry.name, Some(problem));
            }
        }
        Ok(Supervisor {
            watcher: Watcher::new(
                daemon.folder.clone(),
                Some(windows),
                daemon.config.limits.disk_free,
                daemon.clock.clone(),
            ),
            processes: HashMap::new(),
            shares: Shares::new(&daemon.config.limits),
            share_failures: HashMap::new(),
            is_disk_low: false,
            calendar_errors: HashMap::new(),
            handled: HandledOccurrences::read(&daemon.config.own().join("calendar.json"))?,
            daemon,
        })
    }

    /// Runs until the daemon ends; then ends the crawls too, if configured.
    pub(crate) async fn run(mut self) {
        let mut closing = self.daemon.closing.subscribe();
        loop {
            let jobs = Arc::new(self.watcher.look().await);
            let problem = self.watcher.problem().map(str::to_owned);
            self.daemon.jobs_problem.send_replace(problem);
            self.daemon.jobs.send_replace(jobs.clone());
            self.supervise(&jobs).await;
            self.create_calendar_jobs(self.daemon.clock.now()).await;
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = self.daemon.supervisor_wake.notified() => {}
                _ = closing.wait_for(|closing| *closing) => break,
            }
        }
        if self.daemon.config.end_crawls {
            self.end_crawls().await;
        }
    }

    async fn supervise(&mut self, jobs: &Jobs) {
        let now = Timestamp::now();
        let mut waiting = Vec::new();
        let mut busy = 0;
        let mut members = BTreeMap::new();
        for (name, known) in jobs {
            let process = self.process(name, known.alive);
            if known.alive != Alive::No || process == ProcessState::Alive {
                busy += 1;
            }
            let supervised = SupervisedJob {
                alive: known.alive,
                state: known.overview.state,
                orders: known.orders.as_ref(),
                process_record: known.process_record.as_ref(),
                process,
                is_open: window::is_open(&self.daemon.config.window, name, self.daemon.clock.now()),
                now,
            };
            if known.alive != Alive::No || process == ProcessState::Alive {
                members.insert(name.clone(), self.member(name, known));
            }
            match step(&supervised, &self.daemon.config.restart) {
                // The job starts when its files have been handed over.
                Step::Begin if self.daemon.file_tasks.holding(name).is_some() => {}
                Step::Begin => {
                    let orders = known.orders.as_ref();
                    let has_place = orders.is_some_and(|orders| orders.not_before.is_some());
                    waiting.push((!has_place, orders.map(|orders| orders.since), name));
                }
                step => {
                    if supervised.counts_as_crawling(&step) {
                        busy += 1;
                    }
                    self.take_step(name, known, step, process).await;
                }
            }
        }
        // Jobs whose process died come before other jobs; within both groups, the longest waiting come first.
        waiting.sort();
        let places = self.daemon.config.limits.jobs.saturating_sub(busy);
        let is_drained = self
            .daemon
            .node
            .as_ref()
            .is_some_and(ClusterNode::is_drained);
        if places == 0 || is_drained || waiting.is_empty() || !self.has_room_on_disk() {
            waiting.clear();
        }
        waiting.truncate(places);
        let begin: Vec<String> = waiting
            .into_iter()
            .map(|(_, _, name)| name.clone())
            .collect();
        let shares = self.divide(jobs, members, &begin).await;
        for (name, share) in shares {
            if let Err(problem) = self.begin(&name, share).await {
                tracing::error!(job = name, "{problem}");
                let why = format!("cannot start the process: {problem}");
                if let Some(known) = jobs.get(&name) {
                    give_up(&name, known, &why);
                }
                self.daemon.order(&name, |orders| {
                    orders.crawl = false;
                    orders.gave_up = Some(why);
                });
            }
        }
    }

    /// Returns the state of the process that this daemon has started for a job.
    fn process(&mut self, name: &str, alive: Alive) -> ProcessState {
        let Some(process) = self.processes.get_mut(name) else {
            return ProcessState::None;
        };
        if alive != Alive::No {
            process.job_lock = None;
        }
        match process.child.try_wait() {
            Ok(None) => ProcessState::Alive,
            Ok(Some(status)) => {
                let code = status.code();
                // The last examination may be older than the end, so the end is reported until an examination shows it.
                if alive == Alive::No || code == Some(EXIT_IN_USE) {
                    self.processes.remove(name);
                }
                ProcessState::Exited(code)
            }
            Err(problem) => {
                tracing::error!(job = name, "cannot check the process: {problem}");
                self.processes.remove(name);
                ProcessState::None
            }
        }
    }

    /// Returns `true` if there is enough free space. A lack of space is logged once, not at every examination.
    fn has_room_on_disk(&mut self) -> bool {
        let wanted = self.daemon.config.limits.disk_free;
        let is_low = is_disk_low(self.daemon.folder.path(), wanted);
        if is_low && !self.is_disk_low {
            tracing::warn!(wanted, "no job is started: the disk is nearly full");
        }
        self.is_disk_low = is_low;
        !is_low
    }

    async fn begin(&mut self, name: &str, share: Share) -> Result<(), String> {
        let words = |problem: &dyn std::fmt::Display| problem.to_string();
        let job = self
            .daemon
            .folder
            .job(name)
            .map_err(|problem| words(&problem))?;
        let job_lock = self.daemon.commands.lock_job(&job).await;
        let job_lock = job_lock.map_err(|problem| problem.detail().to_owned())?;
        let ordered = self.daemon.order(name, |orders| {
            // An operator may have stopped the job meanwhile.
            orders.crawl.then(|| {
                orders.begun = Some(Timestamp::now());
                orders.not_before = None;
                orders.start_at = None;
                orders.paused
            })
        });
        let Some(is_paused) = ordered else {
            return Ok(());
        };
        let program = &self.daemon.program;
        let begun = process::begin_with_share(program, &job, share, is_paused);
        let begun = begun.map_err(|problem| words(&problem))?;
        tracing::info!(job = name, pid = begun.id(), "started");
        let process = Process {
            child: begun,
            share,
            job_lock: Some(job_lock),
        };
        self.processes.insert(name.to_owned(), process);
        Ok(())
    }

    /// Logs that a job is not restarted, and notifies its operator. Returns the reason with the end of the last process's output.
    fn report_given_up(&self, name: &str, known: &KnownJob, why: String) -> String {
        let last_output = process::last_output(&known.directory);
        let why = match last_output.is_empty() {
            true => why,
            false => format!("{why}; process.log ends with: {last_output}"),
        };
        let result = format!("the job is not restarted: {why}");
        note(name, known, "process died", &result);
        give_up(name, known, &why);
        why
    }

    async fn take_step(&self, name: &str, known: &KnownJob, step: Step, process: ProcessState) {
        let note = |what: &str, result: &str| note(name, known, what, result);
        let send = async |command| {
            let directory = known.directory.clone();
            let asked = self
                .daemon
                .commands
                .send_here(directory, DAEMON, command)
                .await;
            asked.map_err(|problem| tracing::warn!(job = name, "{}", problem.detail()))
        };
        match step {
            Step::Nothing | Step::Begin => {}
            Step::Retry(why) => {
                tracing::info!(job = name, "{why}; the job is restarted");
                self.daemon.order(name, |orders| {
                    orders.begun = None;
                    // Restart at once, before other waiting jobs.
                    orders.not_before = Some(Timestamp::now());
                });
            }
            Step::Adopt(begun) => self.daemon.order(name, |orders| orders.begun = Some(begun)),
            Step::Ended => self.daemon.order(name, |orders| {
                orders.crawl = false;
                orders.deaths = 0;
            }),
            Step::Died(again) => {
                let again_at = format!("restart at {again:.0}");
                let result = match process.ending() {
                    Some(how) => format!("{how}; {again_at}"),
                    None => again_at,
                };
                note("process died", &result);
                self.daemon.order(name, |orders| {
                    orders.deaths += 1;
                    orders.not_before = Some(again);
                    orders.begun = None;
                });
            }
            Step::GivenUp(deaths) => {
                let why = match (deaths, process.ending()) {
                    (1, Some(how)) => format!("the process died once, {how}"),
                    (1, None) => "the process died once".to_owned(),
                    (_, Some(how)) => {
                        format!("the process died {deaths} times in a row, last {how}")
                    }
                    (_, None) => format!("the process died {deaths} times in a row"),
                };
                let why = self.report_given_up(name, known, why);
                self.daemon.order(name, |orders| {
                    orders.crawl = false;
                    orders.deaths = deaths;
                    orders.gave_up = Some(why);
                });
            }
            Step::CannotStart => {
                let why = "its profile or a plugin has errors".to_owned();
                let why = self.report_given_up(name, known, why);
                self.daemon.order(name, |orders| {
                    orders.crawl = false;
                    orders.gave_up = Some(why);
                });
            }
            Step::Pause => {
                if send(Command::Pause).await.is_ok() {
                    note("window", "closed");
                    self.daemon
                        .order(name, |orders| orders.window_closed = true);
                }
            }
            Step::Resume => {
                if send(Command::Resume).await.is_ok() {
                    note("window", "open");
                    self.daemon
                        .order(name, |orders| orders.window_closed = false);
                }
            }
            Step::Stop => {
                if send(Command::Stop).await.is_ok() {
                    self.daemon
                        .order(name, |orders| orders.stop_pending = false);
                }
            }
            Step::Unstarted => self.daemon.order(name, |orders| {
                // A new order may have been given meanwhile.
                if orders.stop_pending {
                    orders.stop_pending = false;
                    orders.begun = None;
                }
            }),
            Step::Stable => self.daemon.order(name, |orders| orders.deaths = 0),
        }
    }
}

/// Writes to the logs of the job and of the daemon.
fn note(name: &str, known: &KnownJob, what: &str, result: &str) {
    tracing::info!(job = name, "{what}: {result}");
    if let Err(problem) = opilio_control::note(&known.directory, DAEMON, what, result) {
        tracing::error!(job = name, "{problem}");
    }
}

/// Notifies the job's operator, which may take a while.
fn give_up(name: &str, known: &KnownJob, why: &str) {
    let (job, name, why) = (known.directory.clone(), name.to_owned(), why.to_owned());
    tokio::spawn(async move {
        if let Err(problem) = opilio_crawl::give_up(job, why).await {
            tracing::error!(
                job = name,
                "cannot notify the operator that the job is not restarted: {problem}"
            );
        }
    });
}

impl SupervisedJob<'_> {
    /// Returns `true` if a job without a process counts among the concurrent crawls because it is to be restarted.
    fn counts_as_crawling(&self, step: &Step) -> bool {
        let waits_for_restart = self
            .orders
            .is_some_and(|it| it.crawl && it.begun.is_none() && it.not_before.is_some());
        let is_again = matches!(step, Step::Died(_) | Step::Retry(_)) || waits_for_restart;
        is_again && self.is_open && self.alive == Alive::No && self.process != ProcessState::Alive
    }

    /// Returns `true` if the process that was started for a job has locked it and written its process record.
    fn has_reported(&self) -> bool {
        let begun = self.orders.and_then(|orders| orders.begun);
        let record = self.process_record;
        record.is_some_and(|record| begun.is_none_or(|begun| record.began >= begun))
    }

    /// Returns `true` if the process that this daemon has started for a job has ended without a process record.
    fn has_exited_unreported(&self) -> bool {
        matches!(self.process, ProcessState::Exited(_)) && !self.has_reported()
    }

    /// Returns `true` if the process that was started for a job may still lock it. It is unknown whether a process of an earlier
    /// daemon lives.
    fn may_still_lock_job(&self) -> bool {
        let begun = self.orders.and_then(|orders| orders.begun);
        match self.process {
            ProcessState::Alive => true,
            ProcessState::Exited(_) => false,
            ProcessState::None => {
                let is_young = |begun| process::may_be_on_its_way(begun, self.now);
                !self.has_reported() && begun.is_some_and(is_young)
            }
        }
    }
}

fn step(supervised: &SupervisedJob<'_>, restart: &Restart) -> Step {
    let is_stop_pending = supervised.orders.is_some_and(|it| it.stop_pending);
    if supervised.process == ProcessState::Exited(Some(EXIT_IN_USE)) && !is_stop_pending {
        return Step::Retry("another process is using the job");
    }
    let closed_by_us = supervised.orders.is_some_and(|orders| orders.window_closed);
    if is_stop_pending {
        return match supervised.alive {
            Alive::Yes => Step::Stop,
            Alive::No if !supervised.may_still_lock_job() => Step::Unstarted,
            // Another process only reads the job.
            Alive::Silent if supervised.has_exited_unreported() => Step::Unstarted,
            Alive::Silent | Alive::No => Step::Nothing,
        };
    }
    if supervised.alive == Alive::Yes {
        let is_foreign = supervised
            .orders
            .is_some_and(|it| it.crawl && it.begun.is_none());
        if let Some(process_record) = supervised.process_record.filter(|_| is_foreign) {
            return Step::Adopt(process_record.began);
        }
        if !supervised.is_open && supervised.state == JobState::Running {
            return Step::Pause;
        }
        if supervised.is_open && closed_by_us {
            return Step::Resume;
        }
        let has_held = supervised.process_record.is_some_and(|process_record| {
            process_record.began.duration_until(supervised.now) > STABLE_AFTER
        });
        let has_died = supervised.orders.is_some_and(|orders| orders.deaths > 0);
        return match has_held && has_died {
            true => Step::Stable,
            false => Step::Nothing,
        };
    }
    let Some(orders) = supervised.orders.filter(|orders| orders.crawl) else {
        return Step::Nothing;
    };
    if supervised.alive == Alive::Silent || supervised.process == ProcessState::Alive {
        return Step::Nothing;
    }
    if orders.begun.is_none() {
        let is_time = |at: Option<Timestamp>| at.is_none_or(|at| at <= supervised.now);
        let is_time = is_time(orders.not_before) && is_time(orders.start_at);
        return match is_time && supervised.is_open {
            true => Step::Begin,
            false => Step::Nothing,
        };
    }
    let ended = process::end_of_begun(orders, supervised.process_record);
    match (ended, supervised.process) {
        (Some(ended), _) => match ended.how {
            ProcessEndKind::Finished | ProcessEndKind::Stopped | ProcessEndKind::Halted => {
                Step::Ended
            }
            ProcessEndKind::Terminated => Step::Retry("the system terminated the process"),
        },
        (None, ProcessState::Exited(Some(EXIT_FAULTS))) => Step::CannotStart,
        (None, _) if orders.deaths >= restart.attempts => Step::GivenUp(orders.deaths + 1),
        (None, _) => {
            let pause = restart
                .pause
                .saturating_mul(1 << orders.deaths.min(20))
                .min(restart.pause_max);
            let again = SignedDuration::try_from(pause)
                .ok()
                .and_then(|pause| supervised.now.checked_add(pause).ok());
            Step::Died(again.unwrap_or(supervised.now))
        }
    }
}

#[cfg(test)]
mod tests {
    use opilio_crawl::ProcessEnd;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn orders(begun: Option<i64>, deaths: u32) -> Orders {
        Orders {
            start_at: None,
            since: at(0),
            begun: begun.map(at),
            deaths,
            ..Orders::new(true, "lena")
        }
    }

    fn process_record(began: i64, ended: Option<ProcessEndKind>) -> ProcessRecord {
        ProcessRecord {
            first_began: at(0),
            began: at(began),
            pid: 7,
            at: at(began),
            statistics: Default::default(),
            totals: Default::default(),
            undone: Duration::ZERO,
            ended: ended.map(|how| ProcessEnd {
                at: at(began + 1),
                how,
                why: String::new(),
            }),
        }
    }

    #[track_caller]
    fn check(
        orders: &Orders,
        process_record: Option<ProcessRecord>,
        process: ProcessState,
        is_open: bool,
        expected: Step,
    ) {
        let supervised = SupervisedJob {
            alive: Alive::No,
            state: JobState::Waiting,
            orders: Some(orders),
            process_record: process_record.as_ref(),
            process,
            is_open,
            now: at(100),
        };
        assert_eq!(step(&supervised, &Restart::default()), expected);
    }

    #[test]
    fn a_process_that_was_starting_at_a_stop_is_stopped_and_not_restarted() {
        let pending = Orders {
            crawl: false,
            stop_pending: true,
            ..orders(Some(10), 0)
        };
        let step_at = |now, alive, process, process_record: Option<&ProcessRecord>| {
            let supervised = SupervisedJob {
                alive,
                state: JobState::Ending,
                orders: Some(&pending),
                process_record,
                process,
                is_open: true,
                now: at(now),
            };
            step(&supervised, &Restart::default())
        };
        let step_of = |alive, process| step_at(12, alive, process, None);
        let none = ProcessState::None;
        assert_eq!(step_of(Alive::No, ProcessState::Alive), Step::Nothing);
        assert_eq!(step_of(Alive::Silent, ProcessState::Alive), Step::Nothing);
        assert_eq!(step_of(Alive::Yes, ProcessState::Alive), Step::Stop);
        // Another daemon has started the process.
        assert_eq!(step_of(Alive::Yes, none), Step::Stop);
        // That process may still load its plugins. Later it counts as ended.
        assert_eq!(step_of(Alive::No, none), Step::Nothing);
        let late = step_at(100, Alive::No, none, None);
        assert_eq!(late, Step::Unstarted);
        // The process had locked the job, and has ended or died.
        let reported = process_record(11, None);
        let ended = step_at(12, Alive::No, none, Some(&reported));
        assert_eq!(ended, Step::Unstarted);
        // The profile has errors, or another process had locked the job.
        for code in [EXIT_FAULTS, EXIT_IN_USE] {
            let exited = ProcessState::Exited(Some(code));
            assert_eq!(step_of(Alive::No, exited), Step::Unstarted);
            // Another process still reads the job.
            assert_eq!(step_of(Alive::Silent, exited), Step::Unstarted);
        }
        let ends = step_at(12, Alive::Silent, none, Some(&reported));
        assert_eq!(ends, Step::Nothing);
        // A process that another daemon has started opens a large frontier.
        let opens = step_at(900, Alive::Silent, none, None);
        assert_eq!(opens, Step::Nothing);
    }

    #[test]
    fn an_ordered_job_starts_when_its_time_has_come_and_its_window_is_open() {
        let none = ProcessState::None;
        check(&orders(None, 0), None, none, true, Step::Begin);
        check(&orders(None, 0), None, none, false, Step::Nothing);
        let later = Orders {
            not_before: Some(at(101)),
            ..orders(None, 1)
        };
        check(&later, None, none, true, Step::Nothing);
        let not_ordered = Orders {
            crawl: false,
            ..orders(None, 0)
        };
        check(&not_ordered, None, none, true, Step::Nothing);
        // The orders are newer than the end of the last process.
        let before = process_record(-10, Some(ProcessEndKind::Finished));
        check(&orders(None, 0), Some(before), none, true, Step::Begin);
    }

    #[test]
    fn a_dead_process_is_restarted_after_doubling_pauses_until_the_limit() {
        let killed = ProcessState::Exited(None);
        let unended = || Some(process_record(11, None));
        for (deaths, pause) in [(0, 5), (1, 10), (4, 80)] {
            let again = Step::Died(at(100 + pause));
            check(&orders(Some(10), deaths), unended(), killed, true, again);
        }
        let given_up = Step::GivenUp(6);
        check(&orders(Some(10), 5), unended(), killed, true, given_up);
        // The machine crashed, and the daemon with it.
        let reboot = Step::Died(at(105));
        check(
            &orders(Some(10), 0),
            unended(),
            ProcessState::None,
            true,
            reboot,
        );
    }

    #[test]
    fn an_ended_job_and_one_with_errors_are_not_restarted() {
        for how in [
            ProcessEndKind::Finished,
            ProcessEndKind::Stopped,
            ProcessEndKind::Halted,
        ] {
            let ended = Some(process_record(11, Some(how)));
            check(
                &orders(Some(10), 0),
                ended,
                ProcessState::Exited(Some(0)),
                true,
                Step::Ended,
            );
        }
        // The machine was shut down, and the daemon with it.
        let terminated = Some(process_record(11, Some(ProcessEndKind::Terminated)));
        let again = Step::Retry("the system terminated the process");
        check(
            &orders(Some(10), 0),
            terminated,
            ProcessState::None,
            true,
            again,
        );
        let faults = ProcessState::Exited(Some(EXIT_FAULTS));
        let given_up = Step::CannotStart;
        check(&orders(Some(10), 0), None, faults, true, given_up);
    }

    #[test]
    fn a_process_that_could_not_lock_the_job_does_not_count_as_dead() {
        let late = ProcessState::Exited(Some(EXIT_IN_USE));
        let again = Step::Retry("another process is using the job");
        check(&orders(Some(10), 5), None, late, true, again);
        // The other process may crawl. Then the job is not started again when that process ends.
        let supervised = SupervisedJob {
            alive: Alive::Yes,
            state: JobState::Running,
            orders: Some(&orders(None, 0)),
            process_record: Some(&process_record(7, None)),
            process: ProcessState::None,
            is_open: true,
            now: at(100),
        };
        assert_eq!(step(&supervised, &Restart::default()), Step::Adopt(at(7)));
        let stopped = process_record(7, Some(ProcessEndKind::Stopped));
        let none = ProcessState::None;
        check(&orders(Some(7), 0), Some(stopped), none, true, Step::Ended);
    }

    #[test]
    fn a_job_to_be_restarted_counts_as_crawling() {
        let killed = ProcessState::Exited(None);
        let dead = orders(Some(10), 0);
        let unended = process_record(11, None);
        let mut supervised = SupervisedJob {
            alive: Alive::No,
            state: JobState::Waiting,
            orders: Some(&dead),
            process_record: Some(&unended),
            process: killed,
            is_open: true,
            now: at(100),
        };
        let restart = Restart::default();
        let died = step(&supervised, &restart);
        assert!(supervised.counts_as_crawling(&died), "{died:?}");
        let waits_for_restart = Orders {
            not_before: Some(at(105)),
            ..orders(None, 1)
        };
        (supervised.orders, supervised.process) = (Some(&waits_for_restart), ProcessState::None);
        assert!(supervised.counts_as_crawling(&step(&supervised, &restart)));
        // Outside its window the job could not start.
        supervised.is_open = false;
        assert!(!supervised.counts_as_crawling(&step(&supervised, &restart)));
        supervised.is_open = true;
        let waits = orders(None, 0);
        supervised.orders = Some(&waits);
        assert!(!supervised.counts_as_crawling(&Step::Nothing));
    }

    #[test]
    fn a_window_pauses_running_jobs_and_resumes_only_those() {
        let mut supervised = SupervisedJob {
            alive: Alive::Yes,
            state: JobState::Running,
            orders: None,
            process_record: None,
            process: ProcessState::None,
            is_open: false,
            now: at(0),
        };
        let restart = Restart::default();
        assert_eq!(step(&supervised, &restart), Step::Pause);
        supervised.state = JobState::Paused;
        assert_eq!(step(&supervised, &restart), Step::Nothing);
        supervised.is_open = true;
        assert_eq!(step(&supervised, &restart), Step::Nothing);
        let closed = Orders {
            window_closed: true,
            ..orders(None, 0)
        };
        supervised.orders = Some(&closed);
        assert_eq!(step(&supervised, &restart), Step::Resume);
    }
}
