//! Times in the form of stores: milliseconds since 1970, as a number that sorts.

use std::time::Duration;

use jiff::Timestamp;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

/// The last whole millisecond at or before `time`, which has certainly passed.
pub fn floor(time: Timestamp) -> Millis {
    let whole = time.as_millisecond();
    if time.subsec_nanosecond() % 1_000_000 < 0 {
        whole - 1
    } else {
        whole
    }
}

/// The first whole millisecond `wait` after `time`, so that rounding never shortens a wait.
pub fn after(time: Timestamp, wait: Duration) -> Millis {
    let start = floor(time);
    let partial = time > timestamp(start);
    let wait = millis(wait);
    // A time past the last that can be written (year 9999) means never.
    start
        .saturating_add(wait)
        .saturating_add(partial.into())
        .min(Timestamp::MAX.as_millisecond())
}

/// A duration in milliseconds, rounded up.
pub fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(Millis::MAX)
}

/// The timestamp of a stored time. Times out of jiff's range become its ends.
pub fn timestamp(millis: Millis) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// Eight bytes that sort as the times do.
pub fn sortable(millis: Millis) -> [u8; 8] {
    (millis.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// The time from which [`sortable`] made these bytes.
pub fn from_sortable(bytes: [u8; 8]) -> Millis {
    (u64::from_be_bytes(bytes) ^ (1 << 63)).cast_signed()
}

/// A `#[serde(with)]` module that stores a timestamp as its milliseconds.
pub mod serialised {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the milliseconds.
    pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        super::floor(*time).serialize(serializer)
    }

    /// Reads the milliseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        Ok(super::timestamp(super::Millis::deserialize(deserializer)?))
    }
}

/// A `#[serde(with)]` module that stores a timestamp, if there is one, as its milliseconds.
pub mod serialised_option {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the milliseconds.
    pub fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(super::floor).serialize(serializer)
    }

    /// Reads the milliseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<super::Millis>::deserialize(deserializer)?.map(super::timestamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shortened_by_rounding() {
        for (nanos, wait_nanos, millis) in [
            (0, 0, 0),
            (1, 0, 1),
            (0, 1, 1),
            (999_999, 1_000_000, 2),
            (1_000_000, 1_000_000, 2),
            (-1, 1_000_000, 1),
            (-1, 0, 0),
        ] {
            let time = Timestamp::from_nanosecond(nanos).unwrap();
            let end = after(time, Duration::from_nanos(wait_nanos));
            assert_eq!(end, millis, "{nanos} + {wait_nanos}");
            assert!(timestamp(end).duration_since(time).as_nanos() >= i128::from(wait_nanos));
        }
    }

    #[test]
    fn sortable_bytes_sort_as_times_do() {
        let times = [Millis::MIN, -2, -1, 0, 1, 1_700_000_000_000, Millis::MAX];
        for pair in times.windows(2) {
            assert!(sortable(pair[0]) < sortable(pair[1]), "{pair:?}");
        }
        for time in times {
            assert_eq!(from_sortable(sortable(time)), time);
        }
    }

    #[test]
    fn the_longest_wait_ends_at_the_last_time() {
        assert_eq!(
            timestamp(after(Timestamp::UNIX_EPOCH, Duration::MAX)).as_millisecond(),
            Timestamp::MAX.as_millisecond()
        );
    }
}
