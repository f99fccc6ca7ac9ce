//! Errors in settings, each with its position.

use crate::SettingsFault;

impl SettingsFault {
    /// An error in the settings. `pointer` is a JSON Pointer such as `/patterns/0`; empty for the settings as a whole. `problem`
    /// has the error and the remedy: a lower-case fragment without a full stop.
    pub fn new(pointer: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            problem: problem.into(),
        }
    }
}

/// Returns the instance, or the faults if there are any. Most `new` functions end with this call.
pub fn none_or<T>(faults: Vec<SettingsFault>, instance: T) -> Result<T, Vec<SettingsFault>> {
    if faults.is_empty() {
        Ok(instance)
    } else {
        Err(faults)
    }
}
