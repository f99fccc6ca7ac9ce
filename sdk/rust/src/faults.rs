//! Faults of settings, each with its place.

use crate::SettingsFault;

impl SettingsFault {
    /// A fault. `pointer`: JSON Pointer such as `/patterns/0`, empty for the whole. `problem`: a lower-case fragment with the
    /// fault and the remedy.
    pub fn new(pointer: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            problem: problem.into(),
        }
    }
}

/// The instance, or the faults if there are any: the end of most `new` functions.
pub fn none_or<T>(faults: Vec<SettingsFault>, instance: T) -> Result<T, Vec<SettingsFault>> {
    if faults.is_empty() {
        Ok(instance)
    } else {
        Err(faults)
    }
}
