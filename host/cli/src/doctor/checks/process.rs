//! Limits of the process, and memory.

use indicatif::{HumanBytes, HumanCount};

use crate::doctor::environment::{Limits, Memory};
use crate::doctor::finding::{Finding, Needs, crawls, error, ok, warning};

/// Threads of a crawl besides those of plugins and runtime, which depend on the processors.
const OTHER_THREADS: u64 = 32;
/// Address space that the plugin engine reserves for each plugin that may run concurrently.
const PLUGIN_SPACE: u64 = 17 << 30;
/// Smallest limit for files: a WARC file of the default size, with room for its last record.
const FILE_SIZE_LEAST: u64 = 2 << 30;

pub(super) fn open_files(limits: &Limits, needs: &Needs) -> Finding {
    const NAME: &str = "open-files";
    let (least, most) = needs.open_files;
    let Some(limit) = limits.open_files else {
        return ok(NAME, "unlimited, or not reported by the system");
    };
    let found = format!(
        "{} open files allowed; a crawl uses at most {}",
        HumanCount(limit),
        HumanCount(most)
    );
    let remedy = match limits.open_files_hard {
        Some(hard) if hard < most => {
            format!(
                "raise the hard limit to {most}: in /etc/security/limits.conf, or LimitNOFILE of the unit"
            )
        }
        _ => format!("run ulimit -n {most} before the crawl, or set LimitNOFILE of the unit"),
    };
    match limit {
        _ if limit < least => error(NAME, found, remedy),
        _ if limit < most => warning(NAME, found, remedy),
        _ => ok(NAME, found),
    }
}

pub(super) fn processes(limits: &Limits, processors: u64, needs: &Needs) -> Finding {
    const NAME: &str = "processes";
    let Some(limit) = limits.processes else {
        return ok(NAME, "unlimited, or not reported by the system");
    };
    // The runtime, the store, the document lanes and the compiler process have a thread for each processor.
    let one = 4 * processors + OTHER_THREADS;
    let most = one * needs.crawls;
    let found = format!(
        "{} processes and threads allowed; {} use about {}",
        HumanCount(limit),
        crawls(needs),
        HumanCount(most)
    );
    let remedy = format!(
        "raise ulimit -u, TasksMax of the unit or the limit of the container to {}",
        most * 2
    );
    match limit {
        _ if limit < one => error(NAME, found, remedy),
        _ if limit < most * 2 => warning(NAME, found, remedy),
        _ => ok(NAME, found),
    }
}

pub(super) fn address_space(limits: &Limits, processors: u64) -> Finding {
    const NAME: &str = "address-space";
    let Some(limit) = limits.address_space else {
        return ok(NAME, "unlimited");
    };
    let most = (2 * processors + 8) * PLUGIN_SPACE;
    let found = format!(
        "{} allowed; the plugin engine reserves up to {}",
        HumanBytes(limit),
        HumanBytes(most)
    );
    let remedy = "remove the limit (ulimit -v unlimited); limit memory by the cgroup instead";
    match limit {
        _ if limit < PLUGIN_SPACE => error(NAME, found, remedy),
        _ if limit < most => warning(NAME, found, remedy),
        _ => ok(NAME, found),
    }
}

pub(super) fn file_size(limits: &Limits) -> Finding {
    const NAME: &str = "file-size";
    match limits.file_size {
        None => ok(NAME, "unlimited"),
        Some(limit) if limit < FILE_SIZE_LEAST => error(
            NAME,
            format!(
                "{} allowed for a file; a crawl halts at the limit",
                HumanBytes(limit)
            ),
            "remove the limit: ulimit -f unlimited",
        ),
        Some(limit) => ok(NAME, format!("{} allowed for a file", HumanBytes(limit))),
    }
}

pub(super) fn memory(memory: &Memory, needs: &Needs) -> Finding {
    const NAME: &str = "memory";
    let most = needs.memory * needs.crawls;
    let of_group = |found: String| match memory.cgroup {
        Some(limit) => format!("{found}, {} allowed by the cgroup", HumanBytes(limit)),
        None => found,
    };
    let Some(available) = memory.available else {
        return ok(NAME, "not reported by the system");
    };
    let total = memory.total.unwrap_or(available);
    let found = format!(
        "{} of {} available",
        HumanBytes(available),
        HumanBytes(total)
    );
    let found = format!(
        "{}; {} use up to {}",
        of_group(found),
        crawls(needs),
        HumanBytes(most)
    );
    let usable = memory
        .cgroup
        .map_or(available, |limit| limit.min(available));
    let remedy = "lower limits.memory and frontier.cache of the profile, or limits.jobs of the daemon; or add memory";
    match usable {
        _ if usable < needs.memory => error(NAME, found, remedy),
        _ if usable < most => warning(NAME, found, remedy),
        _ => ok(NAME, found),
    }
}
