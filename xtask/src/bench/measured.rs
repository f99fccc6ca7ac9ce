//! Resources that a process used, as the system reports them. Other load on the machine is not included.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Resources that a process used.
pub(crate) struct Measured {
    /// Wall-clock time from its start to its end.
    pub(crate) time: Duration,
    /// Processor time in its own code, of all its threads.
    pub(crate) user: Duration,
    /// Processor time in the kernel on its behalf.
    pub(crate) system: Duration,
    /// Maximum memory.
    pub(crate) peak_rss_bytes: u64,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Processor time by thread name, without trailing numbers. Empty unless it was requested, and on systems without `/proc`. A
    /// thread that lives for less than [`SAMPLE_EVERY`] may be missing.
    pub(crate) threads: BTreeMap<String, Duration>,
}

impl Measured {
    /// The figures of one of so many equal parts of the work: times are divided, memory is not.
    pub(crate) fn part(self, parts: u64) -> Measured {
        let share = |time: Duration| time.div_f64(parts as f64);
        Measured {
            time: share(self.time),
            user: share(self.user),
            system: share(self.system),
            ..self
        }
    }
}

/// Runs a command to its end. A crawl that was ended by a limit of its profile is a success.
pub(crate) fn run(command: &mut Command) -> Result<Measured> {
    run_to(command, &[0, LIMIT_REACHED])
}

/// Like [`run`], but also measures each thread of the process.
pub(crate) fn run_with_threads(command: &mut Command) -> Result<Measured> {
    measure(command, &[0, LIMIT_REACHED], true)
}

/// Runs a command to its end. It must end with one of these exit codes.
pub(crate) fn run_to(command: &mut Command, done: &[libc::c_int]) -> Result<Measured> {
    measure(command, done, false)
}

fn measure(command: &mut Command, done: &[libc::c_int], by_thread: bool) -> Result<Measured> {
    let began = Instant::now();
    let mut process = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let id = process.id();
    let (stop, stopped) = mpsc::channel::<()>();
    let sampler = by_thread.then(|| thread::spawn(move || sample_threads(id, &stopped)));
    let mut stdout = String::new();
    let output = process.stdout.take();
    output.context("no output")?.read_to_string(&mut stdout)?;
    let (status, usage) = wait(id)?;
    drop(stop);
    let threads = sampler.map(thread::JoinHandle::join).transpose();
    let is_done = libc::WIFEXITED(status) && done.contains(&libc::WEXITSTATUS(status));
    ensure!(is_done, "{command:?} ended with wait status {status}");
    Ok(Measured {
        time: began.elapsed(),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss)? * RSS_UNIT_BYTES,
        stdout,
        threads: threads
            .map_err(|_| anyhow::anyhow!("the sampler of threads panicked"))?
            .unwrap_or_default(),
    })
}

/// Interval at which the threads of a process are sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// Reads the processor time of each thread of a process until the channel closes.
fn sample_threads(process: u32, stopped: &mpsc::Receiver<()>) -> BTreeMap<String, Duration> {
    let tasks = format!("/proc/{process}/task");
    let mut seen: HashMap<String, (String, Duration)> = HashMap::new();
    while stopped.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
        // The process may end between two reads. Then the last complete read counts.
        for task in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
            let (Some(name), Some(times)) = (read("comm"), read("schedstat")) else {
                continue;
            };
            let on_processor = times
                .split_whitespace()
                .next()
                .and_then(|it| it.parse().ok());
            let thread = task.file_name().to_string_lossy().into_owned();
            let time = Duration::from_nanos(on_processor.unwrap_or_default());
            seen.insert(thread, (name, time));
        }
    }
    let mut threads = BTreeMap::new();
    for (name, time) in seen.into_values() {
        let name = name
            .trim()
            .trim_end_matches(|it: char| it.is_ascii_digit() || it == '-');
        *threads.entry(name.to_owned()).or_default() += time;
    }
    threads
}

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: libc::c_int = 4;

/// macOS reports bytes, other systems kibibytes.
const RSS_UNIT_BYTES: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// Waits for a child. The standard library does not return the child's resource usage.
fn wait(id: u32) -> Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::uninit();
    let id = libc::pid_t::try_from(id)?;
    // SAFETY: both pointers are to values of the right type that outlive the call.
    let waited = unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) };
    ensure!(waited == id, std::io::Error::last_os_error());
    // SAFETY: wait4 initialises it if it succeeds.
    Ok((status, unsafe { usage.assume_init() }))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let microseconds = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_process_uses_processor_time() {
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i";
        let busy = run(Command::new("sh").args(["-c", count])).unwrap();
        assert_eq!(busy.stdout, "200000\n");
        assert!(busy.user > Duration::from_millis(5), "{:?}", busy.user);
        assert!(busy.peak_rss_bytes > 100_000, "{}", busy.peak_rss_bytes);
        let idle = run(Command::new("sh").args(["-c", ":"])).unwrap();
        assert!(idle.user + idle.system < busy.user + busy.system);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_are_measured_separately() {
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let busy = run_with_threads(Command::new("sh").args(["-c", count])).unwrap();
        let names: Vec<&String> = busy.threads.keys().collect();
        assert_eq!(names, ["sh"]);
        assert!(busy.threads["sh"] <= busy.user + busy.system + SAMPLE_EVERY);
    }

    #[test]
    fn a_failed_process_is_an_error() {
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
    }
}
