//! The process of a job. It outlives the process that began it, and its state is known from the job's directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use opilio_crawl::{ProcessEnd, ProcessRecord, Share, stays_inside};

use crate::orders::Orders;

/// Output of the processes of a job, in its directory.
pub const PROCESS_LOG: &str = "process.log";

/// Beginning of the line before each process's output, followed by the time.
const BEGUN: &str = "== begun at ";

/// Size from which a new file is begun.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// Longest time between the begin of a process and its lock on the job: it loads its plugins before.
const ON_ITS_WAY_MAX: SignedDuration = SignedDuration::from_secs(60);

/// Bytes shown of the end of a process's output.
const TAIL_BYTES: u64 = 2_000;

/// The state of a job's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alive {
    /// The process takes commands.
    Yes,
    /// A process holds the job and takes no commands: it begins or ends.
    Silent,
    /// There is no process.
    No,
}

/// A job that is ordered to crawl, for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopTarget {
    /// It waits for its start or its restart. Without its order it does not start.
    Waiting,
    /// Its process is starting, and is to be stopped as soon as it accepts commands.
    Starting,
    /// Its process accepts commands.
    Running,
    /// Its process has died, has ended or is ending. Without its order it does not restart.
    Ended,
}

/// Begins a crawl in a process of its own, which outlives this one.
///
/// # Errors
/// The process cannot be begun.
pub fn begin(program: &Path, job: &Path) -> io::Result<Child> {
    begin_with(program, job, &[])
}

/// Begins a crawl with at most this share of the common limits. If it is paused, nothing is fetched until an operator resumes
/// it.
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
    // Signals to the process that begins it, as by Ctrl-C in a terminal, must not reach the crawl.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Opens the output file for a process that begins now.
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

/// The end of the last process's output, without that of earlier ones.
pub fn last_words(job: &Path) -> String {
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

/// Returns `true` if a job that is to crawl has no process: none was begun for it, or it has died. A process that only reads the
/// job does not count, although it holds the job's lock.
pub fn is_awaited(job: &Path, orders: &Orders) -> bool {
    let process_record = ProcessRecord::read(job).ok().flatten();
    let alive = is_alive(job, Some(orders), process_record.as_ref());
    !is_unreported(orders, process_record.as_ref()) && matches!(alive, Ok(Alive::No))
}

/// Returns `true` if a process was begun for a job and has not reported yet.
pub fn is_on_its_way(job: &Path, orders: &Orders) -> bool {
    is_unreported(orders, ProcessRecord::read(job).ok().flatten().as_ref())
}

/// Returns `true` if a process that was begun at this time, and of which nothing is known since, may still take its job.
pub(crate) fn may_be_on_its_way(begun: Timestamp, now: Timestamp) -> bool {
    let since = begun.duration_until(now);
    // A clock that was put back must not make it last.
    !since.is_negative() && since < ON_ITS_WAY_MAX
}

fn is_unreported(orders: &Orders, process_record: Option<&ProcessRecord>) -> bool {
    let reported = process_record.map(|process_record| process_record.began);
    orders.begun.is_some_and(|begun| reported < Some(begun))
}

/// Determines what a stop has to do with a job that is ordered to crawl. The caller has locked the orders, so that no process is
/// begun meanwhile.
pub(crate) fn stop_target(job: &Path, orders: &Orders) -> StopTarget {
    let process_record = ProcessRecord::read(job).ok().flatten();
    let process_record = process_record.as_ref();
    let has_ended = process_record.is_some_and(|process_record| process_record.ended.is_some());
    // A lock that cannot be checked may be that of a process.
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

/// The end of the process last begun for a job. `None` if it has not ended, or was not begun.
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

/// Determines from its directory whether a process runs a job.
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
    // A holder that is not the last process of the job only reads it, unless it is one that was begun and has not reported yet. The
    // last process may hold it after its end: it still writes reports.
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
    fn the_last_words_are_those_of_the_last_process_alone() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(last_words(job.path()), "");
        let mut first = output(job.path()).unwrap();
        writeln!(first, "alert bot-walls: 1 walls").unwrap();
        assert_eq!(last_words(job.path()), "alert bot-walls: 1 walls");
        let mut second = output(job.path()).unwrap();
        assert_eq!(last_words(job.path()), "");
        writeln!(second, "one\ntwo").unwrap();
        assert_eq!(last_words(job.path()), "one\ntwo");
        // Of a long output only the end.
        let long = "x".repeat(TAIL_BYTES as usize);
        writeln!(second, "{long}\nthree").unwrap();
        let words = last_words(job.path());
        assert!(
            words.starts_with('x') && words.ends_with("\nthree"),
            "{words}"
        );
    }

    #[test]
    fn who_reads_a_killed_job_is_not_taken_for_its_process() {
        let job = tempfile::tempdir().unwrap();
        let mut process_record = ProcessRecord::begin(job.path(), Default::default()).unwrap();
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::No
        ));
        let _reader = opilio_crawl::hold(job.path()).unwrap();
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::Silent
        ));
        // The process that crawled was another one. It was killed, so its record has no end.
        process_record.pid = 0;
        assert!(matches!(
            is_alive(job.path(), None, Some(&process_record)).unwrap(),
            Alive::No
        ));
        // Another process was begun since, and has not reported yet.
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
    fn a_process_that_takes_long_is_not_expected_any_more() {
        let begun = Timestamp::UNIX_EPOCH;
        for (second, expected) in [(-1, false), (0, true), (59, true), (60, false)] {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(may_be_on_its_way(begun, now), expected, "{second}");
        }
    }

    #[test]
    fn a_stop_finds_a_job_that_waits_whoever_holds_its_lock() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path();
        let mut orders = Orders::new(true, "anna");
        let check = |orders: &Orders, expected: StopTarget, is_expected: bool| {
            assert_eq!(stop_target(job, orders), expected);
            assert_eq!(is_awaited(job, orders), is_expected);
        };
        check(&orders, StopTarget::Waiting, true);
        // Another request reads the job, or a hand-over of its files holds it.
        let reader = opilio_crawl::hold(job).unwrap();
        check(&orders, StopTarget::Waiting, true);
        // The daemon begins a process, which waits for the lock.
        orders.begun = Some(Timestamp::now());
        check(&orders, StopTarget::Starting, false);
        drop(reader);
        check(&orders, StopTarget::Starting, false);
        // The process has the job and accepts no commands yet. The lock names this process, as the record does.
        let mut process_record = ProcessRecord::begin(job, Default::default()).unwrap();
        let process = opilio_crawl::hold(job).unwrap();
        check(&orders, StopTarget::Starting, false);
        // It ends: its record says so before it gives the lock back.
        process_record
            .end(job, Default::default(), &opilio_crawl::End::Finished)
            .unwrap();
        check(&orders, StopTarget::Ended, false);
        drop(process);
        check(&orders, StopTarget::Ended, true);
        // A process that was killed.
        ProcessRecord::begin(job, Default::default()).unwrap();
        check(&orders, StopTarget::Ended, true);
        // It rests before its restart.
        orders.begun = None;
        check(&orders, StopTarget::Waiting, true);
    }
}
