//! SIGHUP: the terminal of a process, or the connection to it, was closed. A process that is to continue without it (`nohup`) was
//! started with the signal ignored, and it stays ignored.

use std::io;

/// Waits until the terminal is closed. Never returns if the process was started with the signal ignored.
///
/// # Errors
/// Fails if the system does not accept a handler.
#[cfg(unix)]
pub(crate) async fn hangup() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    if is_ignored() {
        return std::future::pending().await;
    }
    signal(SignalKind::hangup())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
pub(crate) async fn hangup() -> io::Result<()> {
    std::future::pending().await
}

/// Returns `true` if the process was started with the signal ignored. It must be checked before a handler is set, which would hide
/// it. Only Linux reports it; elsewhere the signal counts as not ignored.
#[cfg(unix)]
fn is_ignored() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status))
}

/// Returns `true` if the mask contains signal 1, its lowest bit.
#[cfg(unix)]
fn ignores(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_read_from_the_process_status() {
        for (mask, expected) in [
            ("0000000000001001", true),
            ("0000000000001000", false),
            ("", false),
        ] {
            let status = format!("Name:\topilio\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
            assert_eq!(ignores(&status), expected, "{mask}");
        }
    }
}
