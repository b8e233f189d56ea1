//! Which member of a group reads which partition: Kafka's range assignor, worked out by the group's leader.

use std::collections::BTreeMap;

use crate::tools::client::TopicPartition;

/// Gives each member a range of each topic that it subscribes to; the first ones get one more where it does not divide.
pub(super) fn range(
    subscriptions: &BTreeMap<String, Vec<String>>,
    partitions: &BTreeMap<String, i32>,
) -> BTreeMap<String, Vec<TopicPartition>> {
    let mut assigned: BTreeMap<String, Vec<TopicPartition>> = subscriptions
        .keys()
        .map(|member| (member.clone(), Vec::new()))
        .collect();
    for (topic, count) in partitions {
        let members: Vec<_> = subscriptions
            .iter()
            .filter(|(_, topics)| topics.contains(topic))
            .map(|(member, _)| member)
            .collect();
        let Ok(among @ 1..) = i32::try_from(members.len()) else {
            continue;
        };
        let mut next = 0;
        for (place, member) in (0..).zip(members) {
            let share = count / among + i32::from(place < count % among);
            let range = next..next + share;
            next += share;
            if let Some(own) = assigned.get_mut(member) {
                own.extend(range.map(|index| TopicPartition::new(topic.as_str(), index)));
            }
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_even_as_can_be() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let subscriptions = BTreeMap::from([
            ("a".to_owned(), texts(&["t", "u"])),
            ("b".to_owned(), texts(&["t"])),
            ("c".to_owned(), texts(&[])),
        ]);
        let partitions = BTreeMap::from([("t".to_owned(), 3), ("u".to_owned(), 1)]);
        let assigned = range(&subscriptions, &partitions);
        let of = |member: &str| -> Vec<String> {
            assigned[member].iter().map(ToString::to_string).collect()
        };
        assert_eq!(of("a"), ["t-0", "t-1", "u-0"]);
        assert_eq!(of("b"), ["t-2"]);
        assert!(of("c").is_empty());
    }
}
