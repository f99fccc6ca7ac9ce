//! Sizes and durations in the messages of alerts.

use std::time::Duration;

/// Formats a size in one short unit.
pub(super) fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// Formats a duration in one short unit.
pub(super) fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_have_one_short_unit() {
        for (bytes, expected) in [
            (24_746_394, "23.6 MiB"),
            (4 << 30, "4.0 GiB"),
            (512, "512 B"),
        ] {
            assert_eq!(size_text(bytes), expected);
        }
        for (seconds, expected) in [(31, "31 s"), (4_000, "66 minutes"), (2_592_000, "30 days")] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), expected);
        }
    }
}
