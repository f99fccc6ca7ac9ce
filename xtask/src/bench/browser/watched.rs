//! Observes the processes of a program that starts browsers, from its start to the end of its last browser.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::bench::processes::Processes;

/// Interval at which the processes of the program are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// Time for killed processes to disappear.
const END_TIME_MAX: Duration = Duration::from_secs(30);

/// Resources that a program and its browsers used.
pub(super) struct ProgramUsage {
    /// Exit status of the program.
    pub(super) status: ExitStatus,
    /// From the start of the program to its end.
    pub(super) time: Duration,
    /// Processor time of the program itself.
    pub(super) own_time: Duration,
    /// Processor time of its browsers.
    pub(super) browser_time: Duration,
}

impl ProgramUsage {
    /// Processor time of the program and its browsers.
    pub(super) fn processor_time(&self) -> Duration {
        self.own_time + self.browser_time
    }
}

/// The processes of the program at one time.
pub(super) struct ProcessSample {
    pub(super) all: Processes,
    /// The program.
    pub(super) program: u32,
    /// Process groups of its browsers.
    pub(super) groups: Vec<u32>,
}

/// Runs a command to its end, and passes its processes to `observe` at intervals.
pub(super) fn watch(
    command: &mut Command,
    mut observe: impl FnMut(&ProcessSample),
) -> Result<ProgramUsage> {
    let began = Instant::now();
    let mut process = command
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let program = process.id();
    let mut own_time = Duration::ZERO;
    // By process group: the time of ended processes is included in that of the processes that waited for them.
    let mut browsers: BTreeMap<u32, Duration> = BTreeMap::new();
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break status;
        }
        let all = Processes::now();
        own_time = own_time.max(all.own_time(program));
        let groups = all.groups_under(program);
        for group in &groups {
            let time = browsers.entry(*group).or_default();
            *time = all.time_of_group(*group).max(*time);
        }
        observe(&ProcessSample {
            all,
            program,
            groups,
        });
        thread::sleep(SAMPLE_INTERVAL);
    };
    let time = began.elapsed();
    let end = Instant::now() + END_TIME_MAX;
    let is_running = |all: &Processes| browsers.keys().any(|it| all.of_group(*it).next().is_some());
    while is_running(&Processes::now()) {
        ensure!(
            Instant::now() < end,
            "{:?} has ended, and its browsers have not",
            command.get_program()
        );
        thread::sleep(SAMPLE_INTERVAL);
    }
    Ok(ProgramUsage {
        status,
        time,
        own_time,
        browser_time: browsers.into_values().sum(),
    })
}
