//! Processes of a browser, as `/proc` lists them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Name of the program that handles crashes of Chromium.
const CRASH_HANDLER: &[u8] = b"chrome_crashpad_handler";

/// Processes of one process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessGroup {
    /// Running processes, without those that have ended and wait for their parent.
    pub running: Vec<u32>,
}

/// Reads one process group repeatedly. It remembers processes of other groups, because these never join the group of a browser, and
/// process IDs are reused only after all others.
#[derive(Debug)]
pub(crate) struct GroupReader {
    group: u32,
    /// Processes of other groups at the last reading.
    others: HashSet<u32>,
}

impl GroupReader {
    pub(crate) fn new(group: u32) -> GroupReader {
        GroupReader {
            group,
            others: HashSet::new(),
        }
    }

    /// Reads the current processes of the group.
    pub(crate) fn read(&mut self) -> ProcessGroup {
        let (mut running, mut others) = (Vec::new(), HashSet::new());
        for pid in all() {
            if self.others.contains(&pid) {
                others.insert(pid);
                continue;
            }
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            match stat.ok().and_then(|stat| parse_stat(&stat)) {
                Some((State::Runs, group)) if group == self.group => running.push(pid),
                Some((State::Runs, _)) => {
                    others.insert(pid);
                }
                Some((State::Ended, _)) | None => {}
            }
        }
        self.others = others;
        ProcessGroup { running }
    }
}

impl ProcessGroup {
    /// Reads the group as it is now.
    pub(crate) fn read(group: u32) -> ProcessGroup {
        GroupReader::new(group).read()
    }

    /// Reads the crash handlers of a profile, which leave the group. Their command line contains the profile.
    pub(crate) fn crash_handlers(profile: &Path) -> ProcessGroup {
        let profile = profile.as_os_str().as_bytes();
        let names_it = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|it| it.ends_with(CRASH_HANDLER))
                && line.windows(profile.len()).any(|part| part == profile)
        };
        ProcessGroup {
            running: all().filter(names_it).collect(),
        }
    }

    /// Returns the bytes of private and shared memory of all processes, without mapped files. Shared memory counts for each
    /// process. It is read from `status`, because the exact value (`smaps_rollup`) cannot be read for sandboxed processes.
    pub(crate) fn memory(&self) -> u64 {
        let status = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/status"));
        let statuses = self.running.iter().filter_map(|pid| status(pid).ok());
        statuses.map(|status| parse_memory(&status)).sum()
    }
}

/// Returns the IDs of all processes of the machine.
fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Runs,
    Ended,
}

/// Parses state and process group. The name before them may contain blanks and parentheses (proc(5)).
fn parse_stat(stat: &str) -> Option<(State, u32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = match fields.next()? {
        "Z" | "X" => State::Ended,
        _ => State::Runs,
    };
    let group = fields.nth(1)?.parse().ok()?;
    Some((state, group))
}

/// Parses anonymous and shared memory in bytes, without mapped files such as the executable.
fn parse_memory(status: &str) -> u64 {
    let kilobytes = status.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("RssAnon:")
            .or_else(|| line.strip_prefix("RssShmem:"))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    kilobytes.sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn the_group_is_read_after_a_name_with_blanks_and_parentheses() {
        let stat = "32023 (a) Z (b) S 31975 32024 20156 0 -1 4194560";
        assert_eq!(parse_stat(stat), Some((State::Runs, 32024)));
        let stat = "32023 (chromium) Z 31975 32024 20156 0 -1 4194560";
        assert_eq!(parse_stat(stat), Some((State::Ended, 32024)));
        assert_eq!(parse_stat("32023"), None);
    }

    #[test]
    fn running_processes_of_a_group_are_found() {
        let start = |group: u32| {
            let mut command = std::process::Command::new("sleep");
            let group = i32::try_from(group).expect("a process number");
            let process = command.arg("1000").process_group(group).spawn();
            process.expect("sleep is installed")
        };
        let read = |reader: &mut GroupReader| {
            let mut running = reader.read().running;
            running.sort_unstable();
            running
        };
        let mut first = start(0);
        let group = first.id();
        let mut reader = GroupReader::new(group);
        assert_eq!(read(&mut reader), [group]);
        let mut second = start(group);
        let mut both = [group, second.id()];
        both.sort_unstable();
        assert_eq!(read(&mut reader), both);
        second.kill().expect("it runs");
        second.wait().expect("it is killed");
        assert_eq!(read(&mut reader), [group]);
        first.kill().expect("it runs");
        first.wait().expect("it is killed");
        assert_eq!(read(&mut reader), [0_u32; 0]);
    }

    #[test]
    fn mapped_files_do_not_count_as_memory() {
        let status =
            "VmRSS:\t  300 kB\nRssAnon:\t  100 kB\nRssFile:\t  150 kB\nRssShmem:\t   50 kB\n";
        assert_eq!(parse_memory(status), 150 * 1024);
    }
}
