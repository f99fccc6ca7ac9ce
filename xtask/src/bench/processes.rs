//! The processes of this machine at one moment, as `/proc` has them.

use std::fs;
use std::time::Duration;

/// Ticks of `/proc/PID/stat` in a second, on all architectures that Linux has today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Switch of a browser that a crawl has started.
const BROWSER_SWITCH: &str = "--remote-debugging-pipe";

/// Running processes at one moment.
pub(super) struct Processes(Vec<Process>);

struct Process {
    id: u32,
    parent: u32,
    group: u32,
    own_ticks: u64,
    /// Of children that have ended and were waited for.
    children_ticks: u64,
}

impl Processes {
    /// Reads all processes. A process that ends during the reading is omitted.
    pub(super) fn now() -> Processes {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Processes(names.filter_map(|name| read(name.parse().ok()?)).collect())
    }

    /// Processor time of a process itself.
    pub(super) fn own_time(&self, id: u32) -> Duration {
        let process = self.0.iter().find(|process| process.id == id);
        process.map_or(Duration::ZERO, |process| time(process.own_ticks))
    }

    /// Process groups of browsers that this process has started.
    pub(super) fn groups_under(&self, parent: u32) -> Vec<u32> {
        let is_leader =
            |process: &&Process| process.parent == parent && process.group == process.id;
        let leaders = self.0.iter().filter(is_leader).map(|process| process.id);
        let is_browser = |id: &u32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(BROWSER_SWITCH)
        };
        leaders.filter(is_browser).collect()
    }

    /// Processor time of a group, with that of its children that have ended.
    pub(super) fn time_of_group(&self, group: u32) -> Duration {
        let members = self.0.iter().filter(|process| process.group == group);
        time(members.map(|it| it.own_ticks + it.children_ticks).sum())
    }

    /// Processes of a group.
    pub(super) fn of_group(&self, group: u32) -> impl Iterator<Item = u32> {
        let members = self.0.iter().filter(move |process| process.group == group);
        members.map(|process| process.id)
    }
}

/// Private and shared memory of a process in bytes, without mapped files; 0 if it has ended.
pub(super) fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let of = |line: &str| -> Option<u64> {
        let kind = line
            .strip_prefix("RssAnon:")
            .or_else(|| line.strip_prefix("RssShmem:"))?;
        kind.trim().strip_suffix(" kB")?.parse().ok()
    };
    1024 * status.lines().filter_map(of).sum::<u64>()
}

fn read(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program may have blanks and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    if fields.first() == Some(&"Z") {
        return None;
    }
    Some(Process {
        id,
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        own_ticks: number(11)? + number(12)?,
        children_ticks: number(13)? + number(14)?,
    })
}

fn time(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND)
}
