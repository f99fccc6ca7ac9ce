//! The supervisor of jobs that are to crawl. It begins their processes as places allow, restarts those that died, and pauses
//! and resumes them with their windows. It also makes the jobs of the calendar.
//!
//! All its knowledge is in the jobs' directories. So a new daemon continues the work of the last one, after an upgrade or a
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

/// Time between two looks at all jobs.
const PERIOD: Duration = Duration::from_secs(1);

/// Time after which a crawl counts as stable: an earlier death does not count with a later one.
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
    /// Jobs that could not be given their share, for which that was logged.
    share_failures: HashMap<String, ShareFailure>,
    /// `true` if the disk is too full to begin jobs, which was logged.
    is_disk_low: bool,
    handled: HandledOccurrences,
    /// Errors of calendar entries. They are retried at every look.
    hindered: HashMap<String, String>,
}

/// A process that this daemon has begun.
struct Process {
    child: Child,
    /// Its share, until it gets another one.
    share: Share,
    /// Permit that keeps others from opening the job before the process does.
    turn: Option<OwnedSemaphorePermit>,
}

/// The next step for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Begin it, as soon as there is a place.
    Begin,
    /// Try again, for this reason; it has not died.
    Again(&'static str),
    /// A process begun by somebody else carries out the orders, from this time on.
    Adopt(Timestamp),
    /// It ended as it should.
    Rest,
    /// It died, and restarts at this time.
    Died(Timestamp),
    /// It died too often in a row, and is not restarted.
    DiedOut(u32),
    /// It cannot begin.
    Faulty,
    Pause,
    Resume,
    /// Stop the process that was starting when an operator stopped the job.
    Stop,
    /// The process that was starting has ended without being stopped.
    Unstarted,
    /// It has crawled long enough to count as stable.
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
    /// Not begun by this daemon.
    None,
    Alive,
    Exited(Option<i32>),
}

impl ProcessState {
    /// Description of its end, if known.
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
            hindered: HashMap::new(),
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
            self.see_to(&jobs).await;
            self.see_to_calendar(self.daemon.clock.now()).await;
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = self.daemon.nudge.notified() => {}
                _ = closing.wait_for(|closing| *closing) => break,
            }
        }
        if self.daemon.config.end_crawls {
            self.end_crawls().await;
        }
    }

    async fn see_to(&mut self, jobs: &Jobs) {
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
                // It begins when its files have been handed over.
                Step::Begin if self.daemon.file_tasks.holding(name).is_some() => {}
                Step::Begin => {
                    let orders = known.orders.as_ref();
                    let has_place = orders.is_some_and(|orders| orders.not_before.is_some());
                    waiting.push((!has_place, orders.map(|orders| orders.since), name));
                }
                step => {
                    if supervised.keeps_place(&step) {
                        busy += 1;
                    }
                    self.take(name, known, step, process).await;
                }
            }
        }
        // Jobs that died come before those that never began, then those that have waited longest.
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

    /// The state of the process that this daemon began for a job.
    fn process(&mut self, name: &str, alive: Alive) -> ProcessState {
        let Some(process) = self.processes.get_mut(name) else {
            return ProcessState::None;
        };
        if alive != Alive::No {
            process.turn = None;
        }
        match process.child.try_wait() {
            Ok(None) => ProcessState::Alive,
            Ok(Some(status)) => {
                let code = status.code();
                // The last look may be older than the end: the end is reported until a look shows it.
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

    /// Returns `true` if there is enough free space. A lack is logged once, not at every look.
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
        let turn = self.daemon.commands.turn(&job).await;
        let turn = turn.map_err(|problem| problem.detail().to_owned())?;
        let ordered = self.daemon.order(name, |orders| {
            // An operator may have stopped it meanwhile.
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
            turn: Some(turn),
        };
        self.processes.insert(name.to_owned(), process);
        Ok(())
    }

    /// Reports in all places that a job is not restarted. The reason includes the end of its last process's output.
    fn given_up(&self, name: &str, known: &KnownJob, why: String) -> String {
        let last_words = process::last_words(&known.directory);
        let why = match last_words.is_empty() {
            true => why,
            false => format!("{why}; process.log ends with: {last_words}"),
        };
        let result = format!("the job is not restarted: {why}");
        note(name, known, "process died", &result);
        give_up(name, known, &why);
        why
    }

    async fn take(&self, name: &str, known: &KnownJob, step: Step, process: ProcessState) {
        let note = |what: &str, result: &str| note(name, known, what, result);
        let ask = async |command| {
            let directory = known.directory.clone();
            let asked = self
                .daemon
                .commands
                .ask_here(directory, DAEMON, command)
                .await;
            asked.map_err(|problem| tracing::warn!(job = name, "{}", problem.detail()))
        };
        match step {
            Step::Nothing | Step::Begin => {}
            Step::Again(why) => {
                tracing::info!(job = name, "{why}; the job is restarted");
                self.daemon.order(name, |orders| {
                    orders.begun = None;
                    // Restart at once, before others that wait.
                    orders.not_before = Some(Timestamp::now());
                });
            }
            Step::Adopt(begun) => self.daemon.order(name, |orders| orders.begun = Some(begun)),
            Step::Rest => self.daemon.order(name, |orders| {
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
            Step::DiedOut(deaths) => {
                let why = match (deaths, process.ending()) {
                    (1, Some(how)) => format!("the process died once, {how}"),
                    (1, None) => "the process died once".to_owned(),
                    (_, Some(how)) => {
                        format!("the process died {deaths} times in a row, last {how}")
                    }
                    (_, None) => format!("the process died {deaths} times in a row"),
                };
                let why = self.given_up(name, known, why);
                self.daemon.order(name, |orders| {
                    orders.crawl = false;
                    orders.deaths = deaths;
                    orders.gave_up = Some(why);
                });
            }
            Step::Faulty => {
                let why = "its profile or a plugin has errors".to_owned();
                let why = self.given_up(name, known, why);
                self.daemon.order(name, |orders| {
                    orders.crawl = false;
                    orders.gave_up = Some(why);
                });
            }
            Step::Pause => {
                if ask(Command::Pause).await.is_ok() {
                    note("window", "closed");
                    self.daemon
                        .order(name, |orders| orders.window_closed = true);
                }
            }
            Step::Resume => {
                if ask(Command::Resume).await.is_ok() {
                    note("window", "open");
                    self.daemon
                        .order(name, |orders| orders.window_closed = false);
                }
            }
            Step::Stop => {
                if ask(Command::Stop).await.is_ok() {
                    self.daemon
                        .order(name, |orders| orders.stop_pending = false);
                }
            }
            Step::Unstarted => self.daemon.order(name, |orders| {
                // A new order may have come since.
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
    /// Returns `true` if a job without a process keeps its place because it is to be restarted.
    fn keeps_place(&self, step: &Step) -> bool {
        let rests = self
            .orders
            .is_some_and(|it| it.crawl && it.begun.is_none() && it.not_before.is_some());
        let is_again = matches!(step, Step::Died(_) | Step::Again(_)) || rests;
        is_again && self.is_open && self.alive == Alive::No && self.process != ProcessState::Alive
    }

    /// Returns `true` if the process that was begun for a job has had the job.
    fn has_reported(&self) -> bool {
        let begun = self.orders.and_then(|orders| orders.begun);
        let record = self.process_record;
        record.is_some_and(|record| begun.is_none_or(|begun| record.began >= begun))
    }

    /// Returns `true` if the process that this daemon has begun for a job has ended without having had the job.
    fn has_exited_unreported(&self) -> bool {
        matches!(self.process, ProcessState::Exited(_)) && !self.has_reported()
    }

    /// Returns `true` if the process that was begun for a job may still take the job. Whether one of an earlier daemon lives is
    /// unknown.
    fn may_come(&self) -> bool {
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
        return Step::Again("another process is using the job");
    }
    let closed_by_us = supervised.orders.is_some_and(|orders| orders.window_closed);
    if is_stop_pending {
        return match supervised.alive {
            Alive::Yes => Step::Stop,
            Alive::No if !supervised.may_come() => Step::Unstarted,
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
                Step::Rest
            }
            ProcessEndKind::Terminated => Step::Again("the system terminated the process"),
        },
        (None, ProcessState::Exited(Some(EXIT_FAULTS))) => Step::Faulty,
        (None, _) if orders.deaths >= restart.attempts => Step::DiedOut(orders.deaths + 1),
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
    fn a_process_that_was_starting_when_the_job_was_stopped_is_stopped_and_not_begun_again() {
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
        // Another daemon began it.
        assert_eq!(step_of(Alive::Yes, none), Step::Stop);
        // That process may still load its plugins. Later it is not expected any more.
        assert_eq!(step_of(Alive::No, none), Step::Nothing);
        let late = step_at(100, Alive::No, none, None);
        assert_eq!(late, Step::Unstarted);
        // It had the job, and has ended or died.
        let reported = process_record(11, None);
        let ended = step_at(12, Alive::No, none, Some(&reported));
        assert_eq!(ended, Step::Unstarted);
        // Its profile has errors, or another process had the job.
        for code in [EXIT_FAULTS, EXIT_IN_USE] {
            let exited = ProcessState::Exited(Some(code));
            assert_eq!(step_of(Alive::No, exited), Step::Unstarted);
            // Somebody still reads the job.
            assert_eq!(step_of(Alive::Silent, exited), Step::Unstarted);
        }
        let ends = step_at(12, Alive::Silent, none, Some(&reported));
        assert_eq!(ends, Step::Nothing);
        // One of another daemon opens a large frontier.
        let opens = step_at(900, Alive::Silent, none, None);
        assert_eq!(opens, Step::Nothing);
    }

    #[test]
    fn what_is_to_crawl_is_begun_in_its_time() {
        let none = ProcessState::None;
        check(&orders(None, 0), None, none, true, Step::Begin);
        check(&orders(None, 0), None, none, false, Step::Nothing);
        let later = Orders {
            not_before: Some(at(101)),
            ..orders(None, 1)
        };
        check(&later, None, none, true, Step::Nothing);
        let rests = Orders {
            crawl: false,
            ..orders(None, 0)
        };
        check(&rests, None, none, true, Step::Nothing);
        // The orders are newer than its end.
        let before = process_record(-10, Some(ProcessEndKind::Finished));
        check(&orders(None, 0), Some(before), none, true, Step::Begin);
    }

    #[test]
    fn what_died_is_begun_again_later_and_later_and_not_for_ever() {
        let killed = ProcessState::Exited(None);
        let unended = || Some(process_record(11, None));
        for (deaths, pause) in [(0, 5), (1, 10), (4, 80)] {
            let again = Step::Died(at(100 + pause));
            check(&orders(Some(10), deaths), unended(), killed, true, again);
        }
        let given_up = Step::DiedOut(6);
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
    fn what_ended_rests_and_what_cannot_begin_is_not_tried_again() {
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
                Step::Rest,
            );
        }
        // The machine was shut down in good order, and the daemon with it.
        let terminated = Some(process_record(11, Some(ProcessEndKind::Terminated)));
        let again = Step::Again("the system terminated the process");
        check(
            &orders(Some(10), 0),
            terminated,
            ProcessState::None,
            true,
            again,
        );
        let faults = ProcessState::Exited(Some(EXIT_FAULTS));
        let given_up = Step::Faulty;
        check(&orders(Some(10), 0), None, faults, true, given_up);
    }

    #[test]
    fn a_process_that_could_not_have_the_job_has_not_died() {
        let late = ProcessState::Exited(Some(EXIT_IN_USE));
        let again = Step::Again("another process is using the job");
        check(&orders(Some(10), 5), None, late, true, again);
        // The holder may crawl: the job is not begun a second time when that process ends.
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
        check(&orders(Some(7), 0), Some(stopped), none, true, Step::Rest);
    }

    #[test]
    fn who_is_to_begin_again_keeps_its_place() {
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
        assert!(supervised.keeps_place(&died), "{died:?}");
        let rests = Orders {
            not_before: Some(at(105)),
            ..orders(None, 1)
        };
        (supervised.orders, supervised.process) = (Some(&rests), ProcessState::None);
        assert!(supervised.keeps_place(&step(&supervised, &restart)));
        // Outside its window it could not begin.
        supervised.is_open = false;
        assert!(!supervised.keeps_place(&step(&supervised, &restart)));
        supervised.is_open = true;
        let waits = orders(None, 0);
        supervised.orders = Some(&waits);
        assert!(!supervised.keeps_place(&Step::Nothing));
    }

    #[test]
    fn a_window_pauses_what_runs_and_resumes_only_what_it_paused() {
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
