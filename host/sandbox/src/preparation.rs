//! Reports on the preparation of plugins, for a program that shows progress. Compiling a component may take many seconds.

use std::sync::OnceLock;

/// Step of the preparation of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation<'s> {
    /// The next plugin of a profile is being prepared.
    Plugin {
        /// Name of the plugin in the profile.
        name: &'s str,
        /// Its number, from 1.
        number: usize,
        /// Number of plugins in the profile.
        of: usize,
    },
    /// The plugins of the profile are ready, or have errors.
    Done,
    /// A component is being compiled: it is not in the cache. The name is that of its origin.
    Compiling(&'s str),
    /// The component is compiled, or refused.
    Compiled,
}

/// Receiver of the steps.
pub type PreparationObserver = fn(Preparation<'_>);

static OBSERVER: OnceLock<PreparationObserver> = OnceLock::new();

/// Passes the steps of all engines of this process to the observer, on the thread that prepares. Only the first call counts.
pub fn observe_preparation(observer: PreparationObserver) {
    // A second call has no effect: a program has one display.
    let _ = OBSERVER.set(observer);
}

/// Reports a step.
pub fn report_preparation(step: Preparation<'_>) {
    if let Some(observer) = OBSERVER.get() {
        observer(step);
    }
}
