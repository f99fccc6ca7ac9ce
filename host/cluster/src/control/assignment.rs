//! Assignment of partitions to nodes: balanced to one partition, and with as few moves as possible. Rendezvous hashing chooses
//! among nodes that have room. Rendezvous hashing alone would leave a third of a thousand nodes without any of 1,024 partitions.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::partition::{Partition, PartitionCount};

/// The node of each partition, by the partition's number.
pub(super) type Assignment = Vec<Option<String>>;

/// Assigns all partitions to `nodes`. A partition stays where it is (`current`) unless its node is gone or has too many. The
/// result depends on the arguments alone, so every leader comes to the same.
#[must_use]
pub(super) fn assign(
    count: PartitionCount,
    nodes: &[&str],
    current: &dyn Fn(Partition) -> Option<String>,
) -> Assignment {
    let mut assignment: Assignment = vec![None; count.get().into()];
    if nodes.is_empty() {
        return assignment;
    }
    let mut held: BTreeMap<&str, Vec<Partition>> =
        nodes.iter().map(|node| (*node, Vec::new())).collect();
    let mut homeless = Vec::new();
    for partition in count.all() {
        match current(partition).and_then(|node| held.get_mut(node.as_str())) {
            Some(partitions) => partitions.push(partition),
            None => homeless.push(partition),
        }
    }
    let least = usize::from(count.get()) / held.len();
    let mut larger = usize::from(count.get()) % held.len();
    // The nodes with most partitions keep one more, so that fewer move.
    let mut by_size: Vec<&str> = held.keys().copied().collect();
    by_size.sort_by_key(|node| std::cmp::Reverse(held[node].len()));
    let mut room: BTreeMap<&str, usize> = BTreeMap::new();
    for node in by_size {
        let size = least + usize::from(larger > 0);
        larger = larger.saturating_sub(1);
        let partitions = held.entry(node).or_default();
        if partitions.len() > size {
            // Those move that the node was least likely to get.
            partitions.sort_by_key(|partition| std::cmp::Reverse(score(*partition, node)));
            homeless.extend(partitions.drain(size..));
        }
        room.insert(node, size - partitions.len());
    }
    room.retain(|_, places| *places > 0);
    homeless.sort();
    for partition in homeless {
        let best = room
            .keys()
            .copied()
            .max_by_key(|node| score(partition, node));
        if let Some(node) = best {
            held.entry(node).or_default().push(partition);
            if let Some(places) = room.get_mut(node) {
                *places -= 1;
                if *places == 0 {
                    room.remove(node);
                }
            }
        }
    }
    for (node, partitions) in held {
        for partition in partitions {
            assignment[partition.index()] = Some(node.to_owned());
        }
    }
    assignment
}

/// The rendezvous hash of a partition and a node.
fn score(partition: Partition, node: &str) -> u64 {
    xxh3_64_with_seed(node.as_bytes(), partition.number().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loads(assignment: &Assignment) -> BTreeMap<&str, usize> {
        let mut loads = BTreeMap::new();
        for node in assignment.iter().flatten() {
            *loads.entry(node.as_str()).or_default() += 1;
        }
        loads
    }

    fn moves(before: &Assignment, after: &Assignment) -> usize {
        before.iter().zip(after).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn a_thousand_nodes_are_all_in_use() {
        let names: Vec<String> = (0..1_000).map(|number| format!("n{number}")).collect();
        let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
        let count = PartitionCount::new(1_024).unwrap();
        let assignment = assign(count, &nodes, &|_| None);
        let loads = loads(&assignment);
        assert_eq!((loads.len(), loads.values().max()), (1_000, Some(&2)));
    }

    proptest! {
        #[test]
        fn loads_differ_by_one_and_moves_are_the_fewest(
            nodes in 1usize..40, gone in prop::collection::btree_set(0usize..40, 0..5), joined in 0usize..4,
        ) {
            let count = PartitionCount::new(256).unwrap();
            let names: Vec<String> = (0..nodes + joined).map(|number| format!("node-{number}")).collect();
            let before: Vec<&str> = names[..nodes].iter().map(String::as_str).collect();
            let first = assign(count, &before, &|_| None);
            let after: Vec<&str> = names
                .iter()
                .enumerate()
                .filter(|(number, _)| !gone.contains(number))
                .map(|(_, name)| name.as_str())
                .collect();
            prop_assume!(!after.is_empty());
            let second = assign(count, &after, &|partition| first[partition.index()].clone());
            let (old, new) = (loads(&first), loads(&second));
            prop_assert!(second.iter().all(Option::is_some));
            let most = new.values().max().copied().unwrap_or_default();
            let least = after.iter().map(|node| new.get(node).copied().unwrap_or_default()).min().unwrap_or_default();
            prop_assert!(most - least <= 1, "{new:?}");
            // A node that stays gives up only what it has more than its size.
            let needed: usize = after.iter().map(|node| {
                let had = old.get(node).copied().unwrap_or_default();
                new.get(node).copied().unwrap_or_default().saturating_sub(had)
            }).sum();
            prop_assert_eq!(moves(&first, &second), needed);
            // The same question has the same answer.
            let again = assign(count, &after, &|partition| second[partition.index()].clone());
            prop_assert_eq!(again, second);
        }
    }
}
