//! Processes of a browser, as `/proc` lists them.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Name of the program that handles crashes of Chromium.
const CRASH_HANDLER: &[u8] = b"chrome_crashpad_handler";

/// Processes of one process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessGroup {
    /// Processes that run; those that ended and wait for their parent are left out.
    pub running: Vec<u32>,
}

impl ProcessGroup {
    /// Reads the group as it is now.
    pub(crate) fn read(group: u32) -> ProcessGroup {
        let is_member = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| parse_stat(&stat) == Some((State::Runs, group)))
        };
        ProcessGroup {
            running: all().filter(is_member).collect(),
        }
    }

    /// Reads the crash handlers of a profile, which leave the group. Their command line names the profile.
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

    /// Bytes of private and shared memory of all its processes, without mapped files. Shared memory counts for each process.
    /// `status` is readable for sandboxed processes, too; the exact figure (`smaps_rollup`) is not.
    pub(crate) fn memory(&self) -> u64 {
        let status = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/status"));
        let statuses = self.running.iter().filter_map(|pid| status(pid).ok());
        statuses.map(|status| parse_memory(&status)).sum()
    }
}

/// Numbers of all processes of the machine.
fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Runs,
    Ended,
}

/// State and process group. The name before them may hold blanks and parentheses (proc(5)).
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

/// Anonymous and shared memory in bytes, without mapped files such as the executable.
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
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_hides_no_group() {
        let stat = "32023 (a) Z (b) S 31975 32024 20156 0 -1 4194560";
        assert_eq!(parse_stat(stat), Some((State::Runs, 32024)));
        let stat = "32023 (chromium) Z 31975 32024 20156 0 -1 4194560";
        assert_eq!(parse_stat(stat), Some((State::Ended, 32024)));
        assert_eq!(parse_stat("32023"), None);
    }

    #[test]
    fn mapped_files_do_not_count_as_memory() {
        let status =
            "VmRSS:\t  300 kB\nRssAnon:\t  100 kB\nRssFile:\t  150 kB\nRssShmem:\t   50 kB\n";
        assert_eq!(parse_memory(status), 150 * 1024);
    }
}
