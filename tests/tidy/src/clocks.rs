//! Code that gets the time from its caller must not read a clock. Simulations run it in virtual time, and its tests set the time.

use crate::repository::{Source, sources};

/// Folders and files that must not read a clock.
const WITHOUT_CLOCK: [&str; 4] = [
    "host/cluster/src/control.rs",
    "host/cluster/src/control/",
    "host/frontier/src/",
    "host/visit/src/",
];

/// Functions that read a clock.
const CLOCKS: [&str; 4] = [
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
];

/// Fails if one of those files names such a function.
fn check(sources: &[Source]) -> Result<(), String> {
    let mut faults = Vec::new();
    for source in sources {
        if !WITHOUT_CLOCK
            .iter()
            .any(|beginning| source.path.starts_with(beginning))
        {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            if let Some(clock) = CLOCKS.iter().find(|clock| line.contains(**clock)) {
                faults.push(format!("{}:{}: {clock}", source.path, number + 1));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "clocks are read in code that gets the time from its caller:\n  {}\nfix: take the time, or a clock, as an argument",
        faults.join("\n  ")
    ))
}

#[test]
fn code_in_virtual_time_reads_no_clock() {
    if let Err(message) = check(&sources("rs")) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_folders_must_not_read_a_clock() {
        let text = "let a = 1;\nconfig(profile, Timestamp::now)\n";
        assert_eq!(
            check(&[Source::new("host/crawl/src/visit.rs", text)]),
            Ok(())
        );
        let message = check(&[Source::new("host/visit/src/policy.rs", text)])
            .expect_err("the visit reads a clock");
        assert!(
            message.contains("\n  host/visit/src/policy.rs:2: Timestamp::now\n"),
            "{message}"
        );
    }
}
