//! A process and what the system says it used: its processor time alone, whatever else runs.

use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// What a process used.
pub(crate) struct Measured {
    /// From its start to its end.
    pub(crate) time: Duration,
    /// Processor time in its own code, of all its threads.
    pub(crate) user: Duration,
    /// Processor time in the kernel on its behalf.
    pub(crate) system: Duration,
    /// Most memory it had at once.
    pub(crate) peak_rss_bytes: u64,
    /// What it wrote to its standard output.
    pub(crate) stdout: String,
}

impl Measured {
    /// One of so many equal parts of the work: times are shared, memory is not.
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

/// Runs a command to its end. A crawl that a limit of its profile has ended counts as done.
pub(crate) fn run(command: &mut Command) -> Result<Measured> {
    run_to(command, &[0, LIMIT_REACHED])
}

/// Runs a command to its end, which must be one of these exit codes.
pub(crate) fn run_to(command: &mut Command, done: &[libc::c_int]) -> Result<Measured> {
    let began = Instant::now();
    let mut process = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let mut stdout = String::new();
    let output = process.stdout.take();
    output.context("no output")?.read_to_string(&mut stdout)?;
    let (status, usage) = wait(process.id())?;
    let is_done = libc::WIFEXITED(status) && done.contains(&libc::WEXITSTATUS(status));
    ensure!(is_done, "{command:?} ended with wait status {status}");
    Ok(Measured {
        time: began.elapsed(),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss)? * RSS_UNIT_BYTES,
        stdout,
    })
}

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: libc::c_int = 4;

/// macOS counts in bytes, others in kibibytes.
const RSS_UNIT_BYTES: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// Waits for a child. The standard library waits without asking what it used.
fn wait(id: u32) -> Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::uninit();
    let id = libc::pid_t::try_from(id)?;
    // SAFETY: both pointers are to places of the right type that outlive the call.
    let waited = unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) };
    ensure!(waited == id, std::io::Error::last_os_error());
    // SAFETY: wait4 fills it where it succeeds.
    Ok((status, unsafe { usage.assume_init() }))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let microseconds = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_busy_process_costs_time_and_an_idle_one_does_not() {
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i";
        let busy = run(Command::new("sh").args(["-c", count])).unwrap();
        assert_eq!(busy.stdout, "200000\n");
        assert!(busy.user > Duration::from_millis(5), "{:?}", busy.user);
        assert!(busy.peak_rss_bytes > 100_000, "{}", busy.peak_rss_bytes);
        let idle = run(Command::new("sh").args(["-c", ":"])).unwrap();
        assert!(idle.user + idle.system < busy.user + busy.system);
    }

    #[test]
    fn a_process_that_fails_is_no_measurement() {
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
    }
}
