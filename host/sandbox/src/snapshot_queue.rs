//! Snapshots that are compiled one after another in the background, while their plugins are called.

use std::io;
use std::sync::mpsc;

use crate::lane::spawn_lane;
use crate::plugin::WeakPlugin;

/// Name of the thread that compiles.
const THREAD: &str = "plugin-snapshots";

/// Plugins whose snapshots are to be compiled. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct SnapshotQueue(mpsc::Sender<WeakPlugin>);

impl SnapshotQueue {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, plugins) = mpsc::channel::<WeakPlugin>();
        spawn_lane(THREAD, move || {
            for plugin in plugins.iter().filter_map(|plugin| plugin.upgrade()) {
                plugin.compile_snapshot();
            }
        })?;
        Ok(Self(sender))
    }

    pub(crate) fn push(&self, plugin: WeakPlugin) {
        // The thread does not end before the queue. Without it, calls run `configure`.
        let _ = self.0.send(plugin);
    }
}
