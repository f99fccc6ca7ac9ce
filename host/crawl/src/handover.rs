//! Hand-over of closed archive files, with their checksums, to a command of the operator.
//!
//! The crawl never waits for the command. A failed hand-over is tried again at growing intervals. `handed-over.log` in the job
//! lists the files that the command has taken. Finished files that it does not list are handed over at the next start.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_archive::{Algorithm, Hasher, Writers};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::watch;

use opilio_job::job_log::JobLog;

/// First pause after a failure. Each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(10);

/// Longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// Interval at which finished files are collected, and files that are too old are finished.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum of a failing command's output that is kept, in bytes.
const WORDS_BYTES_MAX: u64 = 2048;

/// Files that wait for the command, and the log of files that it has taken.
pub(crate) struct Handover {
    command: Vec<String>,
    timeout: Duration,
    job: PathBuf,
    ledger: Mutex<File>,
    waiting: Mutex<VecDeque<Waiting>>,
}

/// A file to be handed over.
struct Waiting {
    file: PathBuf,
    /// Number of failed attempts.
    failures: u32,
    due: Instant,
}

/// Size and checksums of a file.
struct Checksums {
    size: u64,
    sha1: String,
    sha256: String,
}

impl Handover {
    /// Opens the hand-over of a job with these finished files. Returns `None` if the profile has no command.
    pub(crate) fn open(
        command: &[String],
        timeout: Duration,
        job: &Path,
        finished: impl IntoIterator<Item = PathBuf>,
    ) -> io::Result<Option<Handover>> {
        if command.is_empty() {
            return Ok(None);
        }
        let path = job.join("handed-over.log");
        let known = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(problem),
        };
        // Each line has time, size, checksum, and the path to the end of the line.
        let taken: HashSet<&str> = known
            .lines()
            .filter_map(|line| line.splitn(4, ' ').nth(3))
            .collect();
        let mut ledger = OpenOptions::new().create(true).append(true).open(path)?;
        if !known.is_empty() && !known.ends_with('\n') {
            // The process died within a line. The file of that line is handed over once more.
            ledger.write_all(b"\n")?;
        }
        let handover = Handover {
            command: command.to_vec(),
            timeout,
            job: job.to_owned(),
            ledger: Mutex::new(ledger),
            waiting: Mutex::default(),
        };
        let left = finished
            .into_iter()
            .filter(|file| !taken.contains(&*file.to_string_lossy()));
        handover.add(left);
        Ok(Some(handover))
    }

    fn add(&self, files: impl IntoIterator<Item = PathBuf>) {
        let due = Instant::now();
        let mut waiting = lock(&self.waiting);
        waiting.extend(files.into_iter().map(|file| Waiting {
            file,
            failures: 0,
            due,
        }));
    }

    /// Takes the first file that is due; at the end, the first file.
    fn take(&self, is_end: bool) -> Option<Waiting> {
        let mut waiting = lock(&self.waiting);
        let now = Instant::now();
        let at = waiting.iter().position(|one| is_end || one.due <= now)?;
        waiting.remove(at)
    }

    /// Hands a file over, and returns whether the command took it. A failure is logged, and the file is tried again later.
    async fn hand(&self, mut one: Waiting, log: &JobLog) -> bool {
        let name = one.file.display().to_string();
        match self.attempt(&one.file).await {
            Ok(()) => {
                log.crawl(&format!("handed over {name}"), "taken");
                true
            }
            Err(why) => {
                let pause = PAUSE_MIN.saturating_mul(1 << one.failures.min(10));
                let pause = pause.min(PAUSE_MAX);
                one.failures += 1;
                tracing::warn!("{name} was not handed over: {why}");
                log.crawl(
                    &format!("alert on-close {name}"),
                    &format!("{why}; the hand-over is retried"),
                );
                one.due = Instant::now() + pause;
                lock(&self.waiting).push_back(one);
                false
            }
        }
    }

    async fn attempt(&self, file: &Path) -> Result<(), String> {
        let path = file.to_owned();
        let sums = tokio::task::spawn_blocking(move || checksums(&path)).await;
        let sums = match sums {
            Ok(Ok(sums)) => sums,
            Ok(Err(problem)) => return Err(format!("cannot read the file: {problem}")),
            Err(panic) => return Err(panic.to_string()),
        };
        let mut words = filled(&self.command, file, &sums).into_iter();
        let Some(program) = words.next() else {
            return Ok(());
        };
        let mut child = Command::new(&program)
            .args(words)
            .current_dir(&self.job)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|problem| format!("cannot start {program}: {problem}"))?;
        let stderr = child.stderr.take();
        let ended = async {
            let said = match stderr {
                Some(mut stderr) => {
                    let mut said = Vec::new();
                    let _ = (&mut stderr)
                        .take(WORDS_BYTES_MAX)
                        .read_to_end(&mut said)
                        .await;
                    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
                    said
                }
                None => Vec::new(),
            };
            (child.wait().await, said)
        };
        match tokio::time::timeout(self.timeout, ended).await {
            Err(_) => Err(format!(
                "{program} was killed after {} s",
                self.timeout.as_secs()
            )),
            Ok((Err(problem), _)) => Err(format!("{program}: {problem}")),
            Ok((Ok(status), _)) if status.success() => self.taken(file, &sums),
            Ok((Ok(status), said)) => Err(format!(
                "{program} exited with {status}: {}",
                String::from_utf8_lossy(&said).trim()
            )),
        }
    }

    fn taken(&self, file: &Path, sums: &Checksums) -> Result<(), String> {
        let Checksums { size, sha256, .. } = sums;
        let line = format!(
            "{:.3} {size} sha256:{sha256} {}\n",
            Timestamp::now(),
            file.display()
        );
        let mut ledger = lock(&self.ledger);
        let written = ledger
            .write_all(line.as_bytes())
            .and_then(|()| ledger.sync_data());
        written.map_err(|problem| format!("cannot write handed-over.log: {problem}"))
    }
}

/// Finishes files that are too old, and queues finished files for the command, until the crawl ends.
pub(crate) async fn look_after(
    writers: Arc<Writers>,
    handover: Option<Arc<Handover>>,
    mut ended: watch::Receiver<()>,
) {
    while ended.has_changed().is_ok() {
        let writers = writers.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let ticked = writers.tick(Timestamp::now());
            (ticked, writers.take_finished())
        });
        if let Ok((ticked, finished)) = looked.await {
            if let Err(problem) = ticked {
                // The file keeps its `.open`, and is tried again at the end.
                tracing::error!("{}", opilio_stacks::chain(&problem));
            }
            if let Some(handover) = &handover {
                handover.add(finished);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = ended.changed() => {}
        }
    }
}

/// Hands over queued files, one after another, until the crawl ends.
pub(crate) async fn hand_over(
    handover: Arc<Handover>,
    log: Arc<JobLog>,
    mut ended: watch::Receiver<()>,
) {
    while ended.has_changed().is_ok() {
        if let Some(one) = handover.take(false) {
            handover.hand(one, &log).await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = ended.changed() => {}
        }
    }
}

/// Tries each waiting file once more after the last file is closed. A file that fails then is handed over at the next start.
pub(crate) async fn finish(handover: &Handover, writers: &Writers, log: &JobLog) {
    handover.add(writers.take_finished());
    let count = lock(&handover.waiting).len();
    let mut left = 0;
    for _ in 0..count {
        if let Some(one) = handover.take(true) {
            left += u32::from(!handover.hand(one, log).await);
        }
    }
    if left > 0 {
        tracing::warn!("{left} files were not handed over; the next start of the job tries again");
    }
}

/// Fills the placeholders in the command's arguments. Appends the path if no argument names the file.
fn filled(command: &[String], file: &Path, sums: &Checksums) -> Vec<String> {
    let path = file.to_string_lossy();
    let names_file = command.iter().skip(1).any(|word| word.contains("{file}"));
    let mut words: Vec<String> = command
        .iter()
        .enumerate()
        .map(|(at, word)| match at {
            0 => word.clone(),
            // The path comes last, because it may contain braces of its own.
            _ => word
                .replace("{size}", &sums.size.to_string())
                .replace("{sha1}", &sums.sha1)
                .replace("{sha256}", &sums.sha256)
                .replace("{file}", &path),
        })
        .collect();
    if !names_file {
        words.push(path.into_owned());
    }
    words
}

/// Computes the checksums of a file, in hexadecimal as `sha256sum` writes them.
fn checksums(file: &Path) -> io::Result<Checksums> {
    let mut source = File::open(file)?;
    let (mut sha1, mut sha256) = (Hasher::new(Algorithm::Sha1), Hasher::new(Algorithm::Sha256));
    let mut buffer = vec![0; 256 * 1024];
    let mut size = 0;
    loop {
        let got = source.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        size += got as u64;
        sha1.update(&buffer[..got]);
        sha256.update(&buffer[..got]);
    }
    Ok(Checksums {
        size,
        sha1: hexadecimal(sha1.finish().bytes()),
        sha256: hexadecimal(sha256.finish().bytes()),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(command: &[&str], expected: &[&str]) {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        let sums = Checksums {
            size: 3,
            sha1: "s1".to_owned(),
            sha256: "s256".to_owned(),
        };
        let words = filled(&command, Path::new("/job/{size}.warc.gz"), &sums);
        assert_eq!(words, expected);
    }

    #[test]
    fn places_are_filled_in() {
        check(&["take"], &["take", "/job/{size}.warc.gz"]);
        check(
            &["take", "--sum={sha256}", "{file}.x", "{size}/{sha1}"],
            &["take", "--sum=s256", "/job/{size}.warc.gz.x", "3/s1"],
        );
        check(
            &["{file}", "{size}"],
            &["{file}", "3", "/job/{size}.warc.gz"],
        );
    }

    #[test]
    fn what_was_taken_is_not_handed_over_again() {
        let job = tempfile::tempdir().unwrap();
        let command = ["true".to_owned()];
        let (a, b) = (job.path().join("a b.warc.gz"), job.path().join("c.warc.gz"));
        let waiting = |files: &[&PathBuf]| {
            let files: Vec<_> = files.iter().map(|file| (*file).clone()).collect();
            let hour = Duration::from_secs(3600);
            let handover = Handover::open(&command, hour, job.path(), files)
                .unwrap()
                .unwrap();
            let names: Vec<_> = lock(&handover.waiting)
                .iter()
                .map(|one| one.file.clone())
                .collect();
            (handover, names)
        };
        let (handover, names) = waiting(&[&a, &b]);
        assert_eq!(names, [a.clone(), b.clone()]);
        let sums = Checksums {
            size: 1,
            sha1: String::new(),
            sha256: "00".to_owned(),
        };
        handover.taken(&a, &sums).unwrap();
        drop(handover);
        assert_eq!(waiting(&[&a, &b]).1, [b]);
    }

    #[test]
    fn checksums_are_those_everybody_knows() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let sums = checksums(file.path()).unwrap();
        assert_eq!(sums.size, 3);
        assert_eq!(sums.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            sums.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
