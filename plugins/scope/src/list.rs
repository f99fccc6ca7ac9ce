//! Lists in settings. Every fault is reported with the position of its entry.

use opilio_plugin::prelude::*;

/// Parses each entry of a setting. Returns all values, or a fault for each invalid entry.
pub fn parse_each<T, P: Into<String>>(
    setting: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, P>,
) -> Result<Vec<T>, Vec<SettingsFault>> {
    let mut faults = Vec::new();
    let mut values = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        match parse(text) {
            Ok(value) => values.push(value),
            Err(problem) => faults.push(SettingsFault::new(format!("/{setting}/{at}"), problem)),
        }
    }
    none_or(faults, values)
}

/// Returns both values, or the faults of both.
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
