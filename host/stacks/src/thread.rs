//! A thread with the stack size that plugins need, for rare work that would delay other work, such as compiling.

use std::thread;

/// Runs `work` on a thread of its own, with the stack that plugins need, and blocks until it is done.
///
/// # Errors
/// Returns the reason if the system provides no thread, or if `work` panicked.
pub fn on_plugin_thread<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(opilio_sandbox::LANE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|problem| format!("cannot start a thread: {problem}"))?;
        thread
            .join()
            .map_err(|panic| format!("a plugin lane panicked: {}", panic_message(panic.as_ref())))
    })
}

/// The text of a panic.
#[must_use]
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
