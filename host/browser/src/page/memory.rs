//! Watches the memory of a page's browser, and kills the browser when it exceeds the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::observer::Observer;
use crate::error::PageCut;
use crate::process::kill_group;
use crate::process_tree::GroupReader;

/// Interval of readings. A page can allocate some hundred megabytes in this time.
const INTERVAL: Duration = Duration::from_millis(250);

/// Memory watch of one browser during one page.
pub(super) struct MemoryWatch {
    peak: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl MemoryWatch {
    pub(super) fn start(group: u32, memory_max: u64, observer: Observer) -> MemoryWatch {
        let peak = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(watch(group, memory_max, peak.clone(), observer));
        MemoryWatch { peak, task }
    }

    /// Returns the maximum memory so far, in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

async fn watch(group: u32, memory_max: u64, peak: Arc<AtomicU64>, observer: Observer) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut reader = GroupReader::new(group);
    loop {
        interval.tick().await;
        let read = move || {
            let memory = reader.read().memory();
            (reader, memory)
        };
        let Ok((returned, memory)) = tokio::task::spawn_blocking(read).await else {
            return;
        };
        reader = returned;
        peak.fetch_max(memory, Ordering::Relaxed);
        if memory > memory_max {
            observer.cut(PageCut::Memory);
            kill_group(group);
            return;
        }
    }
}
