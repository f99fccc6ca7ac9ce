//! The process of a job. It outlives the process that started it. Its state is determined from the job's directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use opilio_crawl::{ProcessEnd, ProcessRecord, Share, stays_inside};

use crate::orders::Orders;

/// File in the job's directory with the output of its processes.
pub const PROCESS_LOG: &str = "process.log";

/// Beginning of the line before each process's output, followed by the time.
const BEGUN: &str = "== begun at ";

/// Size from which the output continues in a new file.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// Maximum time from the start of a process to its lock on the job. It loads its plugins before it locks the job.
const ON_ITS_WAY_MAX: SignedDuration = SignedDuration::from_secs(60);

/// Bytes that are shown from the end of a process's output.
const TAIL_BYTES: u64 = 2_000;

/// The state of a job's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alive {
    /// The process accepts commands.
    Yes,
    /// A process has locked the job but accepts no commands: it is starting or ending.
    Silent,
    /// There is no process.
    No,
}

/// State of a job that is ordered to crawl, as a stop needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopTarget {
    /// The job waits for its start or restart. It does not start if the order is withdrawn.
    Waiting,
    /// The process is starting, and must be stopped as soon as it accepts commands.
    Starting,
    /// The process accepts commands.
    Running,
    /// The process has died, has ended or is ending. It is not restarted if the order is withdrawn.
    Ended,
}

/// Starts a crawl in a process of its own, which outlives this one.
///
/// # Errors
/// The process cannot be started.
pub fn begin(program: &Path, job: &Path) -> io::Result<Child> {
    begin_with(program, job, &[])
}

/// Starts a crawl with at most this share of the common limits. If `is_paused` is set, nothing is fetched until an operator resumes
/// the job.
pub(crate) fn begin_with_share(
    program: &Path,
    job: &Path,
    share: Share,
    is_paused: bool,
) -> io::Result<Child> {
    let mut flags = Vec::new();
    if share != Share::default() {
        flags.extend(["--share".to_owned(), serde_json::to_string(&share)?]);
    }
    if is_paused {
        flags.push("--paused".to_owned());
    }
    begin_with(program, job, &flags)
}

fn begin_with(program: &Path, job: &Path, flags: &[String]) -> io::Result<Child> {
    let output = output(job)?;
    let mut command = Command::new(program);
    command
        .args(["crawl", "--quiet"])
        .args(flags)
        .arg("--job")
        .arg(job)
        .arg(job.join("profile.toml"))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    // A separate process group: signals to the starting process, as by Ctrl-C in a terminal, must not reach the crawl.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Opens the output file for a process that is about to start.
fn output(job: &Path) -> io::Result<File> {
    let file = output_file(job);
    if fs::metadata(&file).is_ok_and(|now| now.len() > OUTPUT_BYTES_MAX) {
        fs::rename(&file, job.join("process.log.1"))?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{BEGUN}{:.3}", Timestamp::now())?;
    Ok(file)
}

fn output_file(job: &Path) -> PathBuf {
    job.join(PROCESS_LOG)
}

/// Returns the end of the last process's output, without output of earlier processes.
pub fn last_output(job: &Path) -> String {
    let read = || -> io::Result<String> {
        stays_inside(job, &output_file(job))?;
        let mut file = File::open(output_file(job))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let words = match text.rfind(BEGUN) {
            Some(at) => text[at..].split_once('\n').map_or("", |(_, words)| words),
            None => &text,
        };
        Ok(words.trim().to_owned())
    };
    read().unwrap_or_default()
}

/// Returns `true` if a job that is ordered to crawl has no process, because none was started or it has died. A process that only
/// reads the job does not count, although it has locked the job.
pub fn is_awaited(job: &Path, orders: &Orders) -> bool {
    let process_record = ProcessRecord::read(job).ok().flatten();
    let alive = is_alive(job, Some(orders), process_record.as_ref());
    !is_unreported(orders, process_record.as_ref()) && matches!(alive, Ok(Alive::No))
}

/// Returns `true` if a process was started for a job and has not written its process record yet.
pub fn is_starting(job: &Path, orders: &Orders) -> bool {
    is_unreported(orders, ProcessRecord::read(job).ok().flatten().as_ref())
}

/// Returns `true` if a process that was started at the time `begun`, and has written nothing since, may still lock its job.
pub(crate) fn may_be_on_its_way(begun: Timestamp, now: Timestamp) -> bool {
    let since = begun.duration_until(now);
    // A negative time means that the clock was set back.
    !since.is_negative() && since < ON_ITS_WAY_MAX
}

fn is_unreported(orders: &Orders, process_record: Option<&ProcessRecord>) -> bool {
    let reported = process_record.map(|process_record| process_record.began);
    orders.begun.is_some_and(|begun| reported < Some(begun))
}

/// Determines the state of a job that is to be stopped. The caller has locked the orders, so that no process is started meanwhile.
pub(crate) fn stop_target(job: &Path, orders: &Orders) -> StopTarget {
    let process_record = ProcessRecord::read(job).ok().flatten();
    let process_record = process_record.as_ref();
    let has_ended = process_record.is_some_and(|process_record| process_record.ended.is_some());
    // If the lock cannot be checked, a process may hold it.
    let alive = is_alive(job, Some(orders), process_record).unwrap_or(Alive::Silent);
    match alive {
        Alive::Yes => StopTarget::Running,
        _ if is_unreported(orders, process_record) => StopTarget::Starting,
        Alive::Silent if !has_ended => StopTarget::Starting,
        Alive::Silent | Alive::No => match orders.begun {
            None => StopTarget::Waiting,
            Some(_) => StopTarget::Ended,
        },
    }
}

/// Returns the end of the process that was last started for a job. `None` if it has not ended, or none was started.
pub(crate) fn end_of_begun<'c>(
    orders: &Orders,
    process_record: Option<&'c ProcessRecord>,
) -> Option<&'c ProcessEnd> {
    let begun = orders.begun?;
    process_record
        .filter(|process_record| process_record.began >= begun)?
        .ended
        .as_ref()
}

/// Determines from a job's directory whether a process runs the job.
pub(crate) fn is_alive(
    job: &Path,
    orders: Option<&Orders>,
    process_record: Option<&ProcessRecord>,
) -> io::Result<Alive> {
    if opilio_control::is_reachable(job) {
        return Ok(Alive::Yes);
    }
    if !opilio_crawl::is_held(job)? {
        return Ok(Alive::No);
    }
    // The holder of the lock crawls if it was started and has no process record yet, or if the last process record names it. The
    // latter may hold the lock after its recorded end, while it writes reports. Any other holder only reads the job.
    let begins = orders.is_some_and(|orders| {
        (orders.crawl || orders.stop_pending) && is_unreported(orders, process_record)
    });
    let crawls = process_record
        .is_some_and(|process_record| opilio_crawl::holder(job) == Some(process_record.pid));
    match begins || crawls {
        true => Ok(Alive::Silent),
        false => Ok(Alive::No),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_output_of_the_last_process_is_returned() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(last_output(job.path()), "");
        let mut first = output(job.path()).unwrap();
        writeln!(first, "alert bot-walls: 1 walls").unwrap();
        assert_eq!(last_output(job.path()), "alert bot-walls: 1 walls");
        let mut second = output(job.path()).unwrap();
        assert_eq!(last_output(job.path()), "");
        writeln!(second, "one\ntwo").unwrap();
        assert_eq!(last_output(job.path()), "one\ntwo");
        // Only the end of a long output is returned.
        let long = "x".repeat(TAIL_BYTES as usize);
        writeln!(second, "{long}\nthree").unwrap();
        let words = last_output(job.path());
        assert!(
            words.starts_with('x') && words.ends_with("\nthree"),
            "{words}"
        );
    }

    #[test]
    fn a_reader_of_a_killed_job_does_not_count_as_its_process() {
        let job = tempfile::tempdir().unwrap();
        let mut process_record = ProcessRecord::begin(job.path(), Default::default()).unwrap();
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::No
        ));
        let _reader = opilio_crawl::lock_job(job.path()).unwrap();
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::Silent
        ));
        // The crawl ran in another process. It was killed, so its record has no end.
        process_record.pid = 0;
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::No
        ));
        // Another process was started since, and has not written its record yet.
        let mut orders = Orders::new(true, "anna");
        orders.begun = Some(Timestamp::now());
        assert!(matches!(
            is_alive(job.path(), Some(&orders), Some(&process_record)).unwrap(),
            Alive::Silent
        ));
        process_record.began = Timestamp::now();
        assert!(matches!(
            is_alive(job.path(), Some(&orders), Some(&process_record)).unwrap(),
            Alive::No
        ));
    }

    #[test]
    fn a_process_may_lock_its_job_within_a_minute() {
        let begun = Timestamp::UNIX_EPOCH;
        for (second, expected) in [(-1, false), (0, true), (59, true), (60, false)] {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(may_be_on_its_way(begun, now), expected, "{second}");
        }
    }

    #[test]
    fn a_stop_finds_a_waiting_job_even_if_a_reader_has_locked_it() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path();
        let mut orders = Orders::new(true, "anna");
        let check = |orders: &Orders, expected: StopTarget, is_expected: bool| {
            assert_eq!(stop_target(job, orders), expected);
            assert_eq!(is_awaited(job, orders), is_expected);
        };
        check(&orders, StopTarget::Waiting, true);
        // Another request reads the job, or a hand-over of its files has locked it.
        let reader = opilio_crawl::lock_job(job).unwrap();
        check(&orders, StopTarget::Waiting, true);
        // The daemon starts a process, which waits for the lock.
        orders.begun = Some(Timestamp::now());
        check(&orders, StopTarget::Starting, false);
        drop(reader);
        check(&orders, StopTarget::Starting, false);
        // The process has locked the job and accepts no commands yet. Lock and record both name this process.
        let mut process_record = ProcessRecord::begin(job, Default::default()).unwrap();
        let process = opilio_crawl::lock_job(job).unwrap();
        check(&orders, StopTarget::Starting, false);
        // The process ends. It writes its end to its record before it releases the lock.
        process_record
            .end(
                job,
                Default::default(),
                Default::default(),
                &opilio_crawl::End::Finished,
            )
            .unwrap();
        check(&orders, StopTarget::Ended, false);
        drop(process);
        check(&orders, StopTarget::Ended, true);
        // A process that was killed.
        ProcessRecord::begin(job, Default::default()).unwrap();
        check(&orders, StopTarget::Ended, true);
        // The job waits for its restart.
        orders.begun = None;
        check(&orders, StopTarget::Waiting, true);
    }
}
