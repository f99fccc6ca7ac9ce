//! Snapshots that are compiled one after another in the background, while their plugins are called already.

use std::io;
use std::sync::mpsc;

use crate::cache::Key;
use crate::compiler::Task;
use crate::component::{Program, compile};
use crate::lane::spawn_lane;
use crate::plugin::WeakPlugin;

/// Name of the thread that compiles.
const THREAD: &str = "plugin-snapshots";

/// Snapshots to compile. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct SnapshotQueue(mpsc::Sender<Awaited>);

/// A snapshot to compile.
#[derive(Debug)]
pub(crate) struct Awaited {
    /// Its plugin. If the plugin is gone, its snapshot is not compiled.
    pub(crate) plugin: WeakPlugin,
    /// Its place in the cache.
    pub(crate) key: Key,
    /// The component with the memory that `configure` left.
    pub(crate) component: Vec<u8>,
}

impl SnapshotQueue {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, awaited) = mpsc::channel::<Awaited>();
        spawn_lane(THREAD, move || awaited.iter().for_each(Awaited::compile))?;
        Ok(Self(sender))
    }

    pub(crate) fn push(&self, awaited: Awaited) {
        // Without the thread, which does not end before the queue, calls run `configure`.
        let _ = self.0.send(awaited);
    }
}

impl Awaited {
    fn compile(self) {
        let Some(plugin) = self.plugin.upgrade() else {
            return;
        };
        let shared = plugin.shared();
        let contract = plugin.contract_version();
        let program = compile(shared, &self.key, Task::Compile, &self.component)
            .map_err(|refusal| refusal.problem())
            .and_then(|(compiled, _)| {
                Program::new(shared, contract, &compiled).map_err(|error| format!("{error:#}"))
            });
        match program {
            Ok(program) => plugin.set_snapshot(program),
            Err(problem) => tracing::warn!(
                plugin = plugin.instance(),
                "each call configures the plugin anew, because its snapshot cannot be compiled: {problem}"
            ),
        }
    }
}
