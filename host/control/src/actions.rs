//! The action directory. The crawl carries out files that an operator puts into `action/` of a running job. It then moves each
//! file to `actions-done/`, and writes the result beside it.
//!
//! ```text
//! action/NAME.seeds      seeds, one a line
//! action/NAME.schedule   URIs to be fetched unless they are known: URI, hop path, page it was found on
//! action/NAME.force      URIs to be fetched, known or not
//! action/NAME.include    URIs that count as done
//! action/NAME.recover    journal, crawl log or export of another crawl
//! action/NAME.exclude    SURT prefixes, or `regex EXPRESSION`, that are refused from now on
//! ```
//! Each may be compressed (`.gz`). `NAME.s.schedule` and similar names take only URIs that the scope accepts. Scripts are never
//! executed: they are moved like other files, and the result reports this.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::action_lines::{ActionLine, Kind, Outcome};
use super::{Author, JobAdmin, Running};
use opilio_job::text_file::write_text;
use opilio_stacks::on_plugin_thread;

/// Folder of files to be processed.
const FOLDER: &str = "action";
/// Folder of processed files.
const DONE: &str = "actions-done";

/// Lines that are processed at once.
const LINES_AT_ONCE: usize = 500;

/// Longest line, in bytes: a URI, its hops, and the page it was found on.
const LINE_BYTES_MAX: u64 = 256 * 1024;

/// Endings of files that are still being written.
const DRAFTS: [&str; 6] = ["tmp", "part", "draft", "filepart", "swp", "crdownload"];

/// Kind of a file and how to read it, from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileNameParts {
    kind: Kind,
    /// `true` if only URIs that the scope accepts are taken.
    is_scoped: bool,
    is_compressed: bool,
}

/// Files that are not yet processed, with modification time and size at the last check.
#[derive(Default)]
struct PendingFiles(HashMap<PathBuf, (SystemTime, u64)>);

/// Processes the files of the folder until the crawl ends.
pub(crate) async fn keep(running: Running, mut ended: watch::Receiver<()>) {
    let Some(interval) = running.context.profile.actions.interval else {
        return;
    };
    let folder = running.job.join(FOLDER);
    if let Err(problem) = fs::create_dir_all(&folder) {
        tracing::error!("cannot use {}: {problem}", folder.display());
        return;
    }
    let mut looked = PendingFiles::default();
    loop {
        let (running, folder) = (running.clone(), folder.clone());
        let handle = Handle::current();
        let looking = tokio::task::spawn_blocking(move || {
            let stable = looked.stable_files(&folder, interval);
            if stable.is_empty() {
                return looked;
            }
            // One guard for all files, so that the crawl does not end between two files: the first may remove all URIs from the
            // queues, and the next may add some. If the crawl has ended, the files stay for the next start.
            let Some(_guard) = running.live.begin_queue_command() else {
                return looked;
            };
            for path in stable {
                // Filters may be called, which needs a large stack.
                let done = on_plugin_thread("actions", || {
                    let _runtime = handle.enter();
                    process_file(&running, &path)
                });
                if let Err(problem) = done.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
                    let what = format!("action {}", path.display());
                    running
                        .log
                        .crawl(&what, &format!("not processed: {problem}"));
                }
            }
            looked
        });
        match looking.await {
            Ok(after) => looked = after,
            Err(panic) => {
                tracing::error!("{panic}");
                return;
            }
        }
        if tokio::time::timeout(interval, ended.changed())
            .await
            .is_ok()
        {
            return;
        }
    }
}

impl PendingFiles {
    /// Returns files with the same time and size at two checks, and new files that were last written at least one interval ago.
    fn stable_files(&mut self, folder: &Path, interval: Duration) -> Vec<PathBuf> {
        let mut stable = Vec::new();
        let mut seen = HashMap::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // Symbolic links are not followed.
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            let Ok(modified) = found.modified() else {
                continue;
            };
            if !found.is_file() || is_draft(&path) {
                continue;
            }
            let stamp = (modified, found.len());
            let is_old = modified.elapsed().is_ok_and(|age| age >= interval);
            if self.0.get(&path) == Some(&stamp) || is_old && !self.0.contains_key(&path) {
                stable.push(path.clone());
            }
            seen.insert(path, stamp);
        }
        self.0 = seen;
        stable.sort();
        stable
    }
}

fn is_draft(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.ends_with('~') || DRAFTS.contains(&&*ending)
}

/// Processes a file, moves it to `actions-done/`, and writes the result.
fn process_file(running: &Running, path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let by = Author {
        user: format!("action:{name}"),
        pid: 0,
    };
    let mut outcome = Outcome::default();
    match parse_file_name(&name) {
        Ok(named) => {
            let profile = running.context.current();
            let admin = running.admin(&profile);
            process_lines(&admin, named, path, &by, &mut outcome)?;
        }
        Err(why) => outcome.sentences.push(why.to_owned()),
    }
    let at = Timestamp::now();
    let done = running.job.join(DONE);
    fs::create_dir_all(&done)?;
    let kept = done.join(format!("{}-{name}", at.strftime("%Y%m%d%H%M%S%3f")));
    write_text(
        &kept.with_file_name(format!(
            "{}.result",
            kept.file_name().unwrap_or_default().to_string_lossy()
        )),
        outcome.text(at),
    )?;
    fs::rename(path, &kept)?;
    running
        .log
        .crawl(&format!("action {name}"), &outcome.words());
    Ok(())
}

fn process_lines(
    admin: &JobAdmin<'_>,
    named: FileNameParts,
    path: &Path,
    by: &Author,
    outcome: &mut Outcome,
) -> io::Result<()> {
    if named.kind == Kind::Recover {
        return admin
            .take_recovery(path, named.is_scoped, by, outcome)
            .map_err(io::Error::other);
    }
    let file = File::open(path)?;
    let reader: Box<dyn Read> = match named.is_compressed {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut reader = BufReader::new(reader);
    let mut number = 0;
    let mut taken = 0;
    loop {
        let part = lines(&mut reader, &mut number, outcome)?;
        if part.is_empty() {
            break;
        }
        taken += admin
            .take_lines(named.kind, named.is_scoped, part, by, outcome)
            .map_err(io::Error::other)?;
    }
    let lines = if taken == 1 { "line" } else { "lines" };
    outcome.sentences.push(format!("{taken} {lines} taken"));
    if let Some(damage) = outcome.damage.take() {
        let from = format!("cannot read the file from line {}: {damage}", number + 1);
        outcome.sentences.push(from);
    }
    Ok(())
}

/// Reads the next lines with content; empty at the end. A line that is not text is a bad line.
fn lines(
    reader: &mut impl BufRead,
    number: &mut u64,
    outcome: &mut Outcome,
) -> io::Result<Vec<ActionLine>> {
    let mut part = Vec::new();
    while part.len() < LINES_AT_ONCE {
        let mut line = Vec::new();
        let mut limited = reader.by_ref().take(LINE_BYTES_MAX);
        match limited.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // The next attempt would fail in the same way.
            Err(problem) if is_damage(&problem) => {
                outcome.damage = Some(problem.to_string());
                break;
            }
            Err(problem) => return Err(problem),
        }
        *number += 1;
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            outcome.bad(*number, format!("longer than {LINE_BYTES_MAX} bytes"));
            match reader.skip_until(b'\n') {
                Err(problem) if is_damage(&problem) => {}
                skipped => drop(skipped?),
            }
            continue;
        }
        match std::str::from_utf8(&line) {
            Ok(text) => {
                let text = text.trim_start_matches('\u{feff}').trim();
                if !text.is_empty() && !text.starts_with('#') {
                    part.push(ActionLine {
                        number: *number,
                        text: text.to_owned(),
                    });
                }
            }
            Err(_) => outcome.bad(*number, "not UTF-8".to_owned()),
        }
    }
    Ok(part)
}

/// Returns `true` if compressed data is damaged, or is not compressed at all.
fn is_damage(problem: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(problem.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Parses the name of a file, or returns the reason why the file is not processed.
fn parse_file_name(name: &str) -> Result<FileNameParts, &'static str> {
    let (name, is_compressed) = match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let kind = match ending {
        "seeds" => Kind::Seeds,
        "schedule" => Kind::Schedule,
        "force" => Kind::Force,
        "include" => Kind::Include,
        "recover" => Kind::Recover,
        "exclude" => Kind::Exclude,
        "bsh" | "beanshell" | "groovy" | "js" | "py" | "sh" => {
            return Err("not processed: scripts are never executed");
        }
        _ => {
            return Err(
                "not processed: the name must end in .seeds, .schedule, .force, .include, .recover or .exclude",
            );
        }
    };
    Ok(FileNameParts {
        kind,
        is_scoped: stem.ends_with(".s") || stem == "s",
        is_compressed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_selects_the_action() {
        let check = |name: &str, kind, is_scoped, is_compressed| {
            let expected = FileNameParts {
                kind,
                is_scoped,
                is_compressed,
            };
            assert_eq!(parse_file_name(name), Ok(expected), "{name}");
        };
        check("monday.seeds", Kind::Seeds, false, false);
        check("a.s.schedule", Kind::Schedule, true, false);
        check("a.force.gz", Kind::Force, false, true);
        check("frontier.s.recover.gz", Kind::Recover, true, true);
        check("ads.exclude", Kind::Exclude, false, false);
        check("s.include", Kind::Include, true, false);
        for name in ["fix.groovy", "fix.bsh", "notes.txt", "seeds"] {
            assert!(parse_file_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_is_processed_after_its_last_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.seeds");
        fs::write(&file, "one").unwrap();
        fs::write(folder.path().join("b.seeds.part"), "half").unwrap();
        fs::write(folder.path().join(".c.seeds"), "half").unwrap();
        fs::create_dir(folder.path().join("d.seeds")).unwrap();
        let mut looked = PendingFiles::default();
        let interval = Duration::from_secs(3600);
        assert!(looked.stable_files(folder.path(), interval).is_empty());
        fs::write(&file, "one and two").unwrap();
        assert!(looked.stable_files(folder.path(), interval).is_empty());
        assert_eq!(
            looked.stable_files(folder.path(), interval),
            std::slice::from_ref(&file)
        );
        // An old file is processed at the first check.
        let mut looked = PendingFiles::default();
        assert_eq!(looked.stable_files(folder.path(), Duration::ZERO), [file]);
    }

    #[test]
    fn bad_lines_are_reported_by_number_and_affect_no_other() {
        let text = b"\xef\xbb\xbfa\n\n# no\n\xff\nb\n".to_vec();
        let mut outcome = Outcome::default();
        let mut number = 0;
        let taken = lines(&mut BufReader::new(&text[..]), &mut number, &mut outcome).unwrap();
        let taken: Vec<(u64, &str)> = taken
            .iter()
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(taken, [(1, "a"), (5, "b")]);
        assert_eq!(outcome.bad, [(4, "not UTF-8".to_owned())]);
    }

    #[test]
    fn lines_before_the_damage_of_a_file_are_processed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        io::Write::write_all(&mut encoder, b"a\nb\nc\n").unwrap();
        let whole = encoder.finish().unwrap();
        // The last line and everything after it are missing.
        let cut = &whole[..whole.len() - 10];
        let mut outcome = Outcome::default();
        let mut number = 0;
        let mut reader = BufReader::new(MultiGzDecoder::new(cut));
        let taken = lines(&mut reader, &mut number, &mut outcome).unwrap();
        assert_eq!(taken.len(), 2);
        assert!(outcome.damage.is_some());
        let again = lines(&mut reader, &mut number, &mut outcome).unwrap();
        assert_eq!(again.len(), 0);
    }
}
