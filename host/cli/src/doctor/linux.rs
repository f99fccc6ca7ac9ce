//! Facts from the files in which Linux reports them. On other systems these files are missing, and the facts are not known.

use std::fs;
use std::path::Path;

use super::environment::{Limits, Memory};

/// Larger values mean that there is no limit: the first version of cgroups writes the largest number of pages.
const UNLIMITED: u64 = 1 << 62;

/// Parses `/proc/self/limits`.
pub(super) fn limits(text: &str) -> Limits {
    let columns = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    };
    let soft = |name| columns(name).and_then(|(soft, _)| soft);
    Limits {
        open_files: soft("Max open files"),
        open_files_hard: columns("Max open files").and_then(|(_, hard)| hard),
        processes: soft("Max processes"),
        address_space: soft("Max address space"),
        file_size: soft("Max file size"),
    }
}

/// Parses `/proc/meminfo`.
pub(super) fn memory(text: &str) -> Memory {
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let bytes = |name| kibibytes(name).map(|number| number << 10);
    Memory {
        total: bytes("MemTotal:"),
        available: bytes("MemAvailable:"),
        cgroup: None,
    }
}

/// The smallest limit of this process' cgroup and those above it.
///
/// `own` is the text of `/proc/self/cgroup`, and `mounted` is `/sys/fs/cgroup`. Each version of cgroups has its own file name for
/// a limit.
pub(super) fn cgroup_limit(
    mounted: &Path,
    own: &str,
    controller: &str,
    files: [&str; 2],
) -> Option<u64> {
    let mut smallest = None;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (top, file) = match controllers {
            "" => (mounted.to_owned(), files[1]),
            _ if controllers.split(',').any(|name| name == controller) => {
                (mounted.join(controllers), files[0])
            }
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let text = fs::read_to_string(top.join(group).join(file));
            let limit = text.ok().and_then(|text| text.trim().parse::<u64>().ok());
            let limit = limit.filter(|limit| *limit < UNLIMITED);
            smallest = [smallest, limit].into_iter().flatten().min();
        }
    }
    smallest
}

/// The name servers in `/etc/resolv.conf`.
pub(super) fn name_servers(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver"));
    lines.map(|server| server.trim().to_owned()).collect()
}

/// Returns whether the kernel reports that a time service synchronises the clock.
#[cfg(target_os = "linux")]
pub(super) fn is_clock_synchronised() -> Option<bool> {
    // SAFETY: all bytes of a timex may be zero.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid, and modes of zero change nothing.
    match unsafe { libc::adjtimex(&raw mut state) } {
        -1 => None,
        _ => Some(state.status & libc::STA_UNSYNC == 0),
    }
}

/// Returns `None`: this system does not report it.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_clock_synchronised() -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_table_of_the_process() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units
Max file size             unlimited            unlimited            bytes
Max processes             95963                95963                processes
Max open files            1024                 1048576              files
Max address space         8589934592           unlimited            bytes
";
        let expected = Limits {
            open_files: Some(1024),
            open_files_hard: Some(1_048_576),
            processes: Some(95_963),
            address_space: Some(8 << 30),
            file_size: None,
        };
        assert_eq!(limits(text), expected);
        assert_eq!(limits(""), Limits::default());
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let memory =
            memory("MemTotal:       24562132 kB\nMemFree: 1 kB\nMemAvailable:   22000000 kB\n");
        assert_eq!(memory.total, Some(24_562_132 << 10));
        assert_eq!(memory.available, Some(22_000_000 << 10));
    }

    #[test]
    fn the_smallest_limit_of_a_cgroup_and_its_ancestors_applies() {
        let mounted = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = mounted.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let files = ["memory.limit_in_bytes", "memory.max"];
        let limit = |own: &str| cgroup_limit(mounted.path(), own, "memory", files);
        write("system.slice/opilio.service/memory.max", "max\n");
        write("system.slice/memory.max", "3000\n");
        write("memory.max", "9000\n");
        assert_eq!(limit("0::/system.slice/opilio.service\n"), Some(3000));
        write("memory/pod/memory.limit_in_bytes", "4000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("5:cpu:/pod\n4:memory:/pod\n"), Some(4000));
        assert_eq!(limit("4:memory:/\n"), None);
        assert_eq!(limit(""), None);
    }

    #[test]
    fn name_servers_are_read_from_resolv_conf() {
        assert_eq!(
            name_servers("# one\nnameserver 192.0.2.1\noptions ndots:1\nnameserver  ::1\n"),
            ["192.0.2.1", "::1"]
        );
    }
}
