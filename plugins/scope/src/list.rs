//! Lists in settings. Every fault is reported with the place of its entry.

use opilio_plugin::prelude::*;

/// Applies `read` to each entry of a setting. Returns all values, or a fault for each entry that `read` refuses.
pub fn each<T, P: Into<String>>(
    setting: &str,
    written: &[String],
    read: impl Fn(&str) -> Result<T, P>,
) -> Result<Vec<T>, Vec<SettingsFault>> {
    let mut faults = Vec::new();
    let mut entries = Vec::new();
    for (at, text) in written.iter().enumerate() {
        match read(text) {
            Ok(entry) => entries.push(entry),
            Err(problem) => faults.push(SettingsFault::new(format!("/{setting}/{at}"), problem)),
        }
    }
    none_or(faults, entries)
}

/// Combines two lists, or the faults of both.
pub fn both<A, B>(
    one: Result<A, Vec<SettingsFault>>,
    other: Result<B, Vec<SettingsFault>>,
) -> Result<(A, B), Vec<SettingsFault>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => {
            let mut faults = one.err().unwrap_or_default();
            faults.extend(other.err().unwrap_or_default());
            Err(faults)
        }
    }
}
