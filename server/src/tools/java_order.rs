//! The order in which Java goes through a hash map: some tools print in it.

use super::client::TopicPartition;
use crate::coordinator::group::java_hash;

/// The capacity of a map that nothing is said about.
pub(super) const DEFAULT_CAPACITY: usize = 16;

/// `TopicPartition.hashCode`.
pub(super) fn partition_hash(partition: &TopicPartition) -> i32 {
    31_i32
        .wrapping_add(partition.partition)
        .wrapping_mul(31)
        .wrapping_add(java_hash(&partition.topic))
}

/// As [`hash_map_order_by`], for keys that are texts.
pub(super) fn hash_map_order<T>(
    items: &mut [T],
    initial_capacity: usize,
    key: impl Fn(&T) -> &str,
) {
    hash_map_order_by(items, initial_capacity, |item| java_hash(key(item)));
}

/// Puts items into the order in which a `HashMap` of this initial capacity gives them back, when they were put in in
/// the order they come in, each key once. Exact but for buckets of eight and more, which Java turns into trees.
pub(super) fn hash_map_order_by<T>(
    items: &mut [T],
    initial_capacity: usize,
    hash: impl Fn(&T) -> i32,
) {
    let mut capacity = initial_capacity.max(1).next_power_of_two();
    while items.len() > capacity * 3 / 4 {
        capacity *= 2;
    }
    let mask = u32::try_from(capacity - 1).unwrap_or(u32::MAX);
    items.sort_by_key(|item| {
        let hash = hash(item).cast_unsigned();
        (hash ^ (hash >> 16)) & mask
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_configs_come_in_the_order_that_kafka_prints() {
        let mut keys = [
            "cleanup.policy",
            "compression.type",
            "min.insync.replicas",
            "segment.bytes",
        ];
        // A topic has so many settings that the map has grown.
        hash_map_order(&mut keys, 64, |key| key);
        assert_eq!(
            keys,
            [
                "compression.type",
                "min.insync.replicas",
                "cleanup.policy",
                "segment.bytes"
            ]
        );
    }

    #[test]
    fn partitions_come_in_the_order_that_kafka_prints() {
        let mut partitions = [0, 2].map(|index| TopicPartition::new("t1", index));
        hash_map_order_by(&mut partitions, DEFAULT_CAPACITY, partition_hash);
        assert_eq!(partitions.map(|partition| partition.partition), [2, 0]);
    }
}
