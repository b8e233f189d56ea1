//! Throttles of replication while replicas move.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::plan::Assignment;
use super::{Failure, Reassignment};
use crate::tools::client::{Cluster, ConfigChanges, ResourceType, TopicPartition};
use crate::tools::java_order::{DEFAULT_CAPACITY, hash_map_order};
use crate::tools::lists::joined;

const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
const DIRECTORY_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
const LEADER_REPLICAS: &str = "leader.replication.throttled.replicas";
const FOLLOWER_REPLICAS: &str = "follower.replication.throttled.replicas";

/// The brokers that have a partition's records, and those that get them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Move {
    sources: BTreeSet<i32>,
    destinations: BTreeSet<i32>,
}

/// The moves that are under way, and those that the proposal begins.
fn moves(
    under_way: &BTreeMap<TopicPartition, Reassignment>,
    proposed: &Assignment,
    current: &Assignment,
) -> BTreeMap<TopicPartition, Move> {
    let under_way = under_way.iter().map(|(partition, reassignment)| {
        let adding = BTreeSet::from_iter(reassignment.adding.iter().copied());
        let replicas = reassignment.replicas.iter().copied();
        let sources = replicas.filter(|id| !adding.contains(id)).collect();
        let destinations = adding;
        (
            partition.clone(),
            Move {
                sources,
                destinations,
            },
        )
    });
    let mut moves: BTreeMap<_, _> = under_way.collect();
    for (partition, replicas) in proposed {
        let sources = match moves.get(partition) {
            Some(begun) => begun.sources.clone(),
            None => {
                let replicas = current.get(partition).map_or(&[][..], Vec::as_slice);
                replicas.iter().copied().collect()
            }
        };
        let destinations = replicas.iter().copied();
        let destinations = destinations.filter(|id| !sources.contains(id)).collect();
        let begun = Move {
            sources,
            destinations,
        };
        moves.insert(partition.clone(), begun);
    }
    moves
}

/// `partition:broker` pairs by topic, in the order of the texts.
fn throttled(
    moves: &BTreeMap<TopicPartition, Move>,
    brokers: impl Fn(&Move) -> &BTreeSet<i32>,
) -> BTreeMap<&str, BTreeSet<String>> {
    let mut topics: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (partition, begun) in moves {
        let pairs = topics.entry(&partition.topic).or_default();
        let ids = brokers(begun).iter();
        pairs.extend(ids.map(|id| format!("{}:{id}", partition.partition)));
    }
    topics
}

/// Throttles the replication of what moves between brokers.
pub(super) async fn between_brokers(
    cluster: &Cluster,
    under_way: &BTreeMap<TopicPartition, Reassignment>,
    proposed: &Assignment,
    current: &Assignment,
    rate: i64,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let moves = moves(under_way, proposed, current);
    let followers = throttled(&moves, |begun| &begun.destinations);
    let leaders = throttled(&moves, |begun| &begun.sources);
    let resources = leaders.into_iter().map(|(topic, leaders)| {
        let followers = followers.get(topic).map(joined).unwrap_or_default();
        let configs = changes([
            (LEADER_REPLICAS, Some(joined(&leaders))),
            (FOLLOWER_REPLICAS, Some(followers)),
        ]);
        (topic.to_owned(), configs)
    });
    let resources: Vec<_> = resources.collect();
    cluster
        .alter_configs(ResourceType::Topic, &resources)
        .await?;
    let brokers: BTreeSet<_> = moves
        .values()
        .flat_map(|begun| begun.sources.iter().chain(&begun.destinations))
        .collect();
    let rate_text = Some(rate.to_string());
    let resources = brokers.into_iter().map(|id| {
        let configs = changes([
            (LEADER_RATE, rate_text.clone()),
            (FOLLOWER_RATE, rate_text.clone()),
        ]);
        (id.to_string(), configs)
    });
    let resources: Vec<_> = resources.collect();
    cluster
        .alter_configs(ResourceType::Broker, &resources)
        .await?;
    writeln!(out, "The inter-broker throttle limit was set to {rate} B/s")?;
    Ok(())
}

/// Throttles moves between the directories of these brokers.
pub(super) async fn between_directories(
    cluster: &Cluster,
    brokers: &BTreeSet<i32>,
    rate: i64,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let resources = brokers.iter().map(|id| {
        let configs = changes([(DIRECTORY_RATE, Some(rate.to_string()))]);
        (id.to_string(), configs)
    });
    let resources: Vec<_> = resources.collect();
    cluster
        .alter_configs(ResourceType::Broker, &resources)
        .await?;
    writeln!(
        out,
        "The replica-alter-dir throttle limit was set to {rate} B/s"
    )?;
    Ok(())
}

/// Takes all throttles away: of every broker, since nobody knows which took part, and of the topics.
pub(super) async fn clear(
    cluster: &Cluster,
    entries: &[(TopicPartition, Vec<i32>)],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let nodes = cluster.nodes().await?;
    let mut brokers: BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
    brokers.extend(entries.iter().flat_map(|(_, replicas)| replicas));
    writeln!(
        out,
        "Clearing broker-level throttles on broker{} {}",
        if brokers.len() == 1 { "" } else { "s" },
        joined(&brokers)
    )?;
    let keys = [LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE];
    let resources = brokers
        .iter()
        .map(|id| (id.to_string(), changes(keys.map(|key| (key, None)))));
    let resources: Vec<_> = resources.collect();
    cluster
        .alter_configs(ResourceType::Broker, &resources)
        .await?;
    let topics = topics_of(entries);
    writeln!(
        out,
        "Clearing topic-level throttles on topic{} {}",
        if topics.len() == 1 { "" } else { "s" },
        joined(&topics)
    )?;
    let keys = [LEADER_REPLICAS, FOLLOWER_REPLICAS];
    let resources = topics
        .iter()
        .map(|topic| (topic.to_string(), changes(keys.map(|key| (key, None)))));
    let resources: Vec<_> = resources.collect();
    cluster
        .alter_configs(ResourceType::Topic, &resources)
        .await?;
    Ok(())
}

/// The topics of the partitions, in the order in which Kafka's tool prints them.
fn topics_of(entries: &[(TopicPartition, Vec<i32>)]) -> Vec<&str> {
    let mut topics = Vec::new();
    for (partition, _) in entries {
        if !topics.contains(&partition.topic.as_str()) {
            topics.push(partition.topic.as_str());
        }
    }
    hash_map_order(&mut topics, DEFAULT_CAPACITY, |topic| topic);
    topics
}

/// These settings with these values; without one a setting is taken back.
fn changes<const N: usize>(changes: [(&str, Option<String>); N]) -> ConfigChanges {
    changes.map(|(key, value)| (key.to_owned(), value)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_come_once_and_in_kafkas_order() {
        let entry = |topic: &str, index| (TopicPartition::new(topic, index), vec![1]);
        let entries = [entry("missing", 0), entry("there", 0), entry("missing", 1)];
        assert_eq!(topics_of(&entries), ["there", "missing"]);
    }

    #[test]
    fn sources_are_throttled_as_leaders_and_destinations_as_followers() {
        let partition = |index| TopicPartition::new("t", index);
        let under_way = BTreeMap::from([(
            partition(0),
            Reassignment {
                replicas: vec![1, 2, 3],
                adding: vec![3],
                removing: vec![1],
            },
        )]);
        let proposed = Assignment::from([(partition(0), vec![2, 4]), (partition(10), vec![2, 1])]);
        let current = Assignment::from([(partition(0), vec![1, 2, 3]), (partition(10), vec![1])]);
        let moves = moves(&under_way, &proposed, &current);
        let leaders = throttled(&moves, |begun| &begun.sources);
        assert_eq!(joined(&leaders["t"]), "0:1,0:2,10:1");
        let followers = throttled(&moves, |begun| &begun.destinations);
        assert_eq!(joined(&followers["t"]), "0:4,10:2");
    }
}
