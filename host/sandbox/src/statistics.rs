//! Statistics of a plugin since it was configured.

use std::collections::BTreeMap;

use crate::FaultKind;
use crate::times::DurationHistogram;

/// Name for counts under too many or unfit names.
pub(crate) const OTHER_COUNTER: &str = "other";
/// Longest name of a counter, in bytes.
const COUNTER_NAME_BYTES_MAX: usize = 64;

/// Figures of one plugin since it was configured, all clones of a [`Plugin`](crate::Plugin) together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginStatistics {
    /// Calls, including those with plugin errors.
    pub calls: u64,
    /// Plugin errors by kind; kinds that did not occur are absent.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Wall-clock times of calls, with instantiation, without waiting for a free instance.
    pub times: DurationHistogram,
    /// Most linear memory of a call, in bytes.
    pub memory_max: u64,
    /// The plugin's own counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its answers by type: `links`, `fragments`, `spans`, `waits`, `lines`, `reports`, `ranks`. Verdicts and differences are
    /// counted under their names (`accept`, `unchanged`), and answers without an opinion under `pass`.
    pub outputs: BTreeMap<&'static str, u64>,
    /// Waits that the host changed or doubted, by the host's reason.
    pub odd_waits: BTreeMap<&'static str, u64>,
    /// Bytes of log messages past the limit.
    pub log_bytes_dropped: u64,
    /// Kept values that were past a limit or not declared.
    pub kept_dropped: u64,
}

impl PluginStatistics {
    /// Plugin errors of all kinds.
    pub fn faults_all(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Adds the figures of another plugin, such as its predecessor under the same name.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        for (kind, count) in &other.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        self.times.add_all(&other.times);
        self.memory_max = self.memory_max.max(other.memory_max);
        for (name, n) in &other.counters {
            let sum = self.counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
        for (what, n) in &other.outputs {
            *self.outputs.entry(what).or_default() += n;
        }
        for (why, n) in &other.odd_waits {
            *self.odd_waits.entry(why).or_default() += n;
        }
        self.log_bytes_dropped += other.log_bytes_dropped;
        self.kept_dropped += other.kept_dropped;
    }

    pub(crate) fn output(&mut self, what: &'static str, n: usize) {
        if n > 0 {
            *self.outputs.entry(what).or_default() += n as u64;
        }
    }

    pub(crate) fn count(&mut self, name: &str, n: u64, names_max: usize) {
        let fits =
            self.counters.contains_key(name) || (is_counter_name(name) && self.names() < names_max);
        let name = if fits { name } else { OTHER_COUNTER };
        match self.counters.get_mut(name) {
            Some(sum) => *sum = sum.saturating_add(n),
            None => {
                self.counters.insert(name.to_owned(), n);
            }
        }
    }

    fn names(&self) -> usize {
        self.counters.len() - usize::from(self.counters.contains_key(OTHER_COUNTER))
    }
}

/// Returns `true` if a text is a counter name: lower-case words joined by hyphens.
fn is_counter_name(name: &str) -> bool {
    name.len() <= COUNTER_NAME_BYTES_MAX && crate::describe::is_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_under_excess_or_invalid_names_go_to_other() {
        let mut statistics = PluginStatistics::default();
        for (name, n) in [
            ("a", 1),
            ("B", 10),
            ("b", 2),
            ("c", 20),
            ("a", 4),
            ("no blank", 40),
        ] {
            statistics.count(name, n, 2);
        }
        let counted: Vec<_> = statistics
            .counters
            .iter()
            .map(|(name, n)| (name.as_str(), *n))
            .collect();
        assert_eq!(counted, [("a", 5), ("b", 2), ("other", 70)]);
    }

    #[test]
    fn statistics_of_two_plugins_are_added() {
        let mut one = PluginStatistics {
            calls: 2,
            memory_max: 7,
            ..PluginStatistics::default()
        };
        one.count("a", 1, 2);
        one.output("links", 3);
        one.odd_waits.insert("zero", 5);
        one.faults.insert(FaultKind::Trap, 1);
        one.times.add(std::time::Duration::from_millis(1));
        let mut both = one.clone();
        let other = PluginStatistics {
            memory_max: 9,
            ..one.clone()
        };
        both.add(&other);
        assert_eq!((both.calls, both.memory_max), (4, 9));
        assert_eq!((both.counters["a"], both.outputs["links"]), (2, 6));
        assert_eq!(both.faults[&FaultKind::Trap], 2);
        assert_eq!(both.odd_waits["zero"], 10);
        assert_eq!(both.times.count(), 2);
        assert_eq!(both.times.total(), std::time::Duration::from_millis(2));
    }

    #[test]
    fn a_counter_stops_at_the_largest_number() {
        let mut statistics = PluginStatistics::default();
        statistics.count("a", u64::MAX, 2);
        statistics.count("a", 1, 2);
        assert_eq!(statistics.counters["a"], u64::MAX);
    }
}
