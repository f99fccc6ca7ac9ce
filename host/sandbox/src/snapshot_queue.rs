//! Snapshots that are compiled one after another in the background, while their plugins are called.

use std::io;
use std::sync::mpsc;

use crate::lane::spawn_lane;

/// Name of the thread that compiles.
const THREAD: &str = "plugin-snapshots";

/// Queue of snapshots to compile. Its thread ends with it.
pub(crate) struct SnapshotQueue(mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl SnapshotQueue {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, snapshots) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        spawn_lane(THREAD, move || {
            snapshots.iter().for_each(|compile| compile());
        })?;
        Ok(Self(sender))
    }

    pub(crate) fn push(&self, compile: impl FnOnce() + Send + 'static) {
        // The thread does not end before the queue. Without it, calls run `configure`.
        let _ = self.0.send(Box::new(compile));
    }
}
