//! Partitions: groups of sites, which are dealt out to the parts of a crawl. A politeness unit, with all its delays, quotas and
//! kept values of sites, is in one partition, so that one process at a time works on it. A partition never moves to another part.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Default number of partitions, enough for about sixty parts. Then each part has at least 17 partitions, and the largest part has
/// at most 6 % more than the mean.
pub const PARTITIONS_DEFAULT: u16 = 1_024;

/// Maximum number of partitions, and of parts of a job. Each part has a subject in the job's streams, named by a partition number.
pub const PARTITIONS_MAX: u16 = 32_768;

/// Number of partitions of a cluster. It is fixed when the cluster is created, because another number would move politeness units
/// to other partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct PartitionCount(u16);

/// A partition, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(u16);

/// A number of partitions that a cluster cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid number of partitions {0}; write a power of two from 1 to {PARTITIONS_MAX}")]
pub struct PartitionCountError(u16);

impl PartitionCount {
    /// Creates a valid number of partitions.
    ///
    /// # Errors
    /// The number is not a power of two, or exceeds [`PARTITIONS_MAX`].
    pub fn new(count: u16) -> Result<Self, PartitionCountError> {
        match count.is_power_of_two() && count <= PARTITIONS_MAX {
            true => Ok(Self(count)),
            false => Err(PartitionCountError(count)),
        }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }

    /// Returns the partition of a politeness unit: a registrable domain, or the operator's `queue.group`. The result is the same on
    /// all machines and in all versions.
    #[must_use]
    pub fn partition_of(self, politeness_unit: &str) -> Partition {
        let hash = xxh3_64(politeness_unit.as_bytes());
        // The remainder fits, because it is smaller than the count.
        Partition((hash % u64::from(self.0)) as u16)
    }

    /// Returns the partition with this number; `None` if the number is too large.
    #[must_use]
    pub fn partition(self, number: u16) -> Option<Partition> {
        (number < self.0).then_some(Partition(number))
    }
}

impl Default for PartitionCount {
    fn default() -> Self {
        Self(PARTITIONS_DEFAULT)
    }
}

impl TryFrom<u16> for PartitionCount {
    type Error = PartitionCountError;

    fn try_from(count: u16) -> Result<Self, PartitionCountError> {
        Self::new(count)
    }
}

impl From<PartitionCount> for u16 {
    fn from(count: PartitionCount) -> u16 {
        count.0
    }
}

impl Partition {
    /// Returns the number of the partition, counted from 0.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// Returns the index of the partition in a list of all partitions.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_of_a_domain_never_changes() {
        let count = PartitionCount::default();
        let partitions = ["example.org", "example.com", "bbc.co.uk"].map(|unit| {
            let partition = count.partition_of(unit);
            assert!(partition.number() < count.get());
            partition.number()
        });
        assert_eq!(partitions, [837, 883, 692]);
    }

    #[test]
    fn counts_are_powers_of_two() {
        for count in [0, 3, 1_000, 65_535] {
            assert_eq!(PartitionCount::new(count), Err(PartitionCountError(count)));
        }
        for count in [1, 2, 1_024, 32_768] {
            assert_eq!(
                PartitionCount::new(count).map(PartitionCount::get),
                Ok(count)
            );
        }
    }
}
