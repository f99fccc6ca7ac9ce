//! Remedies for errors of the file system, by the error code of the system.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Returns the remedy for an error of the system, or for the system error among the causes of an error. Returns `None` without a
/// system error, or if the error explains itself.
pub fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.find_map(|cause| {
        let shared = || cause.downcast_ref::<Arc<io::Error>>().map(Arc::as_ref);
        cause.downcast_ref().or_else(shared).and_then(of)
    })
}

fn of(error: &io::Error) -> Option<&'static str> {
    /// These numbers are the same on Linux, macOS and the BSDs.
    const EPERM: i32 = 1;
    const EIO: i32 = 5;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    Some(match (error.kind(), error.raw_os_error()) {
        (ErrorKind::StorageFull, _) => "free space on that disk",
        (ErrorKind::QuotaExceeded, _) => "free space within the user's disk quota, or raise it",
        (ErrorKind::FileTooLarge, _) => {
            "raise the limit on file sizes (ulimit -f), which the file has reached"
        }
        (ErrorKind::ReadOnlyFilesystem, _) => "mount that file system as writable",
        (ErrorKind::PermissionDenied, Some(EPERM)) => {
            "the system denies access regardless of the file mode: check attributes such as immutable (lsattr), and sandbox rules"
        }
        (ErrorKind::PermissionDenied, _) => {
            "allow the user that runs opilio to read and write there"
        }
        (ErrorKind::OutOfMemory, _) => "give the process more memory",
        (_, Some(EIO)) => {
            "the disk or its connection fails: see the system's log (dmesg), and replace or remount the disk"
        }
        (_, Some(EMFILE)) => "raise the limit on open files (ulimit -n)",
        (_, Some(ENFILE)) => "raise the system's limit on open files (sysctl fs.file-max)",
        _ => return None,
    })
}

/// Returns an error with its causes, and with the remedy if there is one.
pub fn with_remedy(error: &(dyn Error + 'static)) -> String {
    let chain = opilio_stacks::chain(error);
    match remedy(error) {
        Some(remedy) => format!("{chain}; {remedy}"),
        None => chain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_system_error_code_has_no_remedy() {
        let odd = io::Error::other("no such spool");
        assert_eq!(remedy(&odd), None);
    }
}
