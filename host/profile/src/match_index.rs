//! An index that finds the matching overrides among thousands without a check of each.

use std::collections::HashMap;

use regex::{RegexSet, RegexSetBuilder};

use crate::matching::{Conditions, Subject};

/// Most memory for the set of patterns in override conditions.
const REGEX_SET_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Overrides by their most selective condition. The other conditions of each candidate are checked afterwards.
#[derive(Debug, Default)]
pub(crate) struct MatchIndex {
    by_queue: HashMap<String, Vec<u32>>,
    by_host: HashMap<String, Vec<u32>>,
    by_domain: HashMap<String, Vec<u32>>,
    by_surt: PrefixTree,
    by_regex: (RegexSet, Vec<u32>),
    /// Overrides without any of these conditions.
    others: Vec<u32>,
}

impl MatchIndex {
    /// Makes the index of the conditions of overrides, by their numbers. `None` if the patterns together are too large.
    pub(crate) fn new<'c>(overrides: impl Iterator<Item = (u32, &'c Conditions)>) -> Option<Self> {
        let mut index = Self::default();
        let mut prefixes = Vec::new();
        let (mut patterns, mut numbers) = (Vec::new(), Vec::new());
        for (number, conditions) in overrides {
            let mut file =
                |names: &[String], map: fn(&mut Self) -> &mut HashMap<String, Vec<u32>>| {
                    for name in names {
                        map(&mut index)
                            .entry(name.clone())
                            .or_default()
                            .push(number);
                    }
                };
            if !conditions.queue.is_empty() {
                file(&conditions.queue, |index| &mut index.by_queue);
            } else if !conditions.host.is_empty() {
                file(&conditions.host, |index| &mut index.by_host);
            } else if !conditions.surt.is_empty() {
                prefixes.extend(
                    conditions
                        .surt
                        .iter()
                        .map(|prefix| (prefix.clone(), number)),
                );
            } else if !conditions.domain.is_empty() {
                file(&conditions.domain, |index| &mut index.by_domain);
            } else if let Some(regex) = &conditions.regex {
                patterns.push(regex.as_str());
                numbers.push(number);
            } else {
                index.others.push(number);
            }
        }
        index.by_surt = PrefixTree::new(prefixes);
        let set = RegexSetBuilder::new(patterns)
            .size_limit(REGEX_SET_BYTES_MAX)
            .build()
            .ok()?;
        index.by_regex = (set, numbers);
        Some(index)
    }

    /// The numbers of the overrides that match, in order.
    pub(crate) fn matching<'c>(
        &self,
        subject: &Subject<'_>,
        conditions: impl Fn(u32) -> Option<&'c Conditions>,
    ) -> Vec<u32> {
        let mut found = self.others.clone();
        let mut add = |numbers: Option<&Vec<u32>>| found.extend(numbers.into_iter().flatten());
        if let Some(queue) = subject.queue.filter(|_| !self.by_queue.is_empty()) {
            add(self.by_queue.get(queue));
        }
        if let Some(host) = &subject.host {
            add(self.by_host.get(host));
            let mut domain = Some(host.as_str()).filter(|_| !self.by_domain.is_empty());
            while let Some(name) = domain {
                add(self.by_domain.get(name));
                domain = name.split_once('.').map(|(_, above)| above);
            }
        }
        self.by_surt
            .prefixes_of(&subject.surt, |numbers| add(Some(numbers)));
        if let (Some(uri), (set, numbers)) = (subject.uri, &self.by_regex)
            && !set.is_empty()
        {
            found.extend(set.matches(uri).iter().map(|at| numbers[at]));
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|number| {
            conditions(*number).is_some_and(|conditions| conditions.matches(subject))
        });
        found
    }
}

/// Prefixes, each with the longest other prefix with which it begins.
#[derive(Debug, Default)]
struct PrefixTree {
    /// Nodes, sorted, each once.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    prefix: String,
    /// The node of the longest other prefix with which this one begins.
    above: Option<usize>,
    numbers: Vec<u32>,
}

impl PrefixTree {
    fn new(mut prefixes: Vec<(String, u32)>) -> Self {
        prefixes.sort();
        let mut nodes: Vec<Node> = Vec::new();
        for (prefix, number) in prefixes {
            if let Some(last) = nodes.last_mut().filter(|last| last.prefix == prefix) {
                last.numbers.push(number);
                continue;
            }
            let mut above = nodes.len().checked_sub(1);
            while let Some(at) = above.filter(|at| !prefix.starts_with(&nodes[*at].prefix)) {
                above = nodes[at].above;
            }
            nodes.push(Node {
                prefix,
                above,
                numbers: vec![number],
            });
        }
        Self { nodes }
    }

    /// Calls `found` with the numbers of every prefix with which `text` begins.
    fn prefixes_of(&self, text: &str, mut found: impl FnMut(&Vec<u32>)) {
        // Every prefix of the text is also a prefix of the last stored prefix at or before it in order.
        let after = self
            .nodes
            .partition_point(|node| node.prefix.as_str() <= text);
        let mut at = after.checked_sub(1);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            if text.starts_with(&node.prefix) {
                found(&node.numbers);
            }
            at = node.above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tree_finds_every_prefix(prefixes in prop::collection::vec("[ab,]{0,5}", 0..40), text in "[ab,]{0,8}") {
            let numbered = prefixes.iter().cloned().zip(0..).collect();
            let mut found: Vec<u32> = Vec::new();
            PrefixTree::new(numbered).prefixes_of(&text, |numbers| found.extend(numbers));
            found.sort_unstable();
            let expected: Vec<u32> = (0..).zip(&prefixes).filter(|(_, prefix)| text.starts_with(*prefix)).map(|(number, _)| number).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
