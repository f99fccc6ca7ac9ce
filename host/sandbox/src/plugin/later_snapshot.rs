//! The snapshot of a plugin whose `configure` takes little time. It is compiled in the background once the plugin has been called
//! often; until then every call runs `configure`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::Key;
use crate::component::{Loaded, Program};
use crate::configure::{Configuration, snapshot_of};

/// Calls after which a plugin gets a snapshot. Compiling one takes some tenths of a second on one core.
const CALLS_WORTH_A_SNAPSHOT: u64 = 64;

/// A snapshot that is made later.
pub(crate) struct LaterSnapshot {
    component: Arc<Loaded>,
    key: Key,
    /// Calls so far.
    calls: AtomicU64,
    /// The program that starts from the snapshot.
    program: OnceLock<Program>,
}

impl LaterSnapshot {
    pub(crate) fn new(component: Arc<Loaded>, key: Key) -> Self {
        Self {
            component,
            key,
            calls: AtomicU64::new(0),
            program: OnceLock::new(),
        }
    }

    /// The program that starts from the snapshot; `None` until it is compiled.
    pub(super) fn program(&self) -> Option<&Program> {
        self.program.get()
    }

    /// Counts a call without the snapshot. Returns `true` at the call after which the snapshot is compiled.
    pub(super) fn count_call(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1 == CALLS_WORTH_A_SNAPSHOT
    }

    /// Compiles the snapshot. The next calls start from it.
    pub(super) fn compile(&self, configuration: &Configuration) {
        let component = &self.component;
        let contract = component.program.exports.contract();
        let program = snapshot_of(component, configuration, &self.key)
            .map_err(|problem| problem.to_string())
            .flatten()
            .and_then(|compiled| {
                let program = Program::new(&component.shared, contract, &compiled);
                program.map_err(|problem| format!("{problem:#}"))
            });
        match program {
            // No other code sets it.
            Ok(program) => drop(self.program.set(program)),
            Err(problem) => {
                let is_stopped = component.shared.compiler.is_stopped();
                if let Some(warning) = warning(&configuration.callee.name, &problem, is_stopped) {
                    tracing::warn!("{warning}");
                }
            }
        }
    }
}

/// Returns the warning that a plugin gets no snapshot. `None` if the crawl has stopped the compiler because it is ending: no call
/// would start from the snapshot any more.
fn warning(plugin: &str, problem: &str, is_stopped: bool) -> Option<String> {
    (!is_stopped).then(|| format!("plugin `{plugin}` runs `configure` in each call: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_crawl_gives_no_warning_of_missing_snapshots() {
        assert_eq!(warning("html", "the crawl is ending", true), None);
        let message = warning("html", "it takes too much memory", false);
        let expected = "plugin `html` runs `configure` in each call: it takes too much memory";
        assert_eq!(message.as_deref(), Some(expected));
    }
}
