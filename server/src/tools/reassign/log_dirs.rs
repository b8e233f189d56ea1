//! Where replicas lie on their brokers, and moves between directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use kafka_protocol::messages::AlterReplicaLogDirsRequest;
use kafka_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, sleep};

use super::Failure;
use super::plan::{Assignment, Directories, Replica};
use crate::tools::ToolError;
use crate::tools::client::{
    Cluster, KafkaError, TopicPartition, by_topic, replicas_in, topic_name,
};
use crate::tools::lists::joined;

/// REPLICA_NOT_AVAILABLE: the replica is not on its new broker yet.
const NOT_YET_THERE: i16 = 9;
/// The rest between two attempts to start moves.
const REST: Duration = Duration::from_millis(100);

/// The directory of a replica, and the one to which it moves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) current: Option<String>,
    pub(super) future: Option<String>,
}

/// Where these replicas lie, as their brokers tell: nowhere where a broker does not have one. Those of brokers that are
/// not there are left out.
///
/// # Errors
/// When a broker does not answer.
pub(super) async fn places(
    cluster: &Cluster,
    replicas: impl IntoIterator<Item = Replica>,
) -> Result<BTreeMap<Replica, Place>, KafkaError> {
    let wanted: BTreeSet<_> = replicas.into_iter().collect();
    let mut places: BTreeMap<Replica, Place> = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(places);
    }
    let brokers: BTreeSet<_> = wanted.iter().map(|replica| replica.broker).collect();
    let known: BTreeSet<_> = cluster.nodes().await?.iter().map(|node| node.id).collect();
    for &broker in brokers.intersection(&known) {
        let response = cluster.describe_log_dirs("describeReplicaLogDirs", broker);
        let response = response.await?;
        let of_broker = wanted.iter().filter(|replica| replica.broker == broker);
        places.extend(of_broker.map(|replica| (replica.clone(), Place::default())));
        for directory in response.results.iter().filter(|dir| dir.error_code == 0) {
            for (partition, found) in replicas_in(directory) {
                let replica = Replica { broker, partition };
                if !wanted.contains(&replica) {
                    continue;
                }
                let place = places.entry(replica).or_default();
                let directory = Some(directory.log_dir.to_string());
                match found.is_future_key {
                    true => place.future = directory,
                    false => place.current = directory,
                }
            }
        }
    }
    Ok(places)
}

/// The directories in which the replicas lie now.
///
/// # Errors
/// When a broker does not answer.
pub(super) async fn current(
    cluster: &Cluster,
    assignment: &Assignment,
) -> Result<Directories, KafkaError> {
    let replicas = assignment.iter().flat_map(|(partition, brokers)| {
        brokers.iter().map(|&broker| Replica {
            broker,
            partition: partition.clone(),
        })
    });
    let places = places(cluster, replicas).await?.into_iter();
    let current = places.filter_map(|(replica, place)| Some((replica, place.current?)));
    Ok(current.collect())
}

/// Starts moves to directories; a replica that is not on its broker yet is waited for.
pub(super) async fn execute(
    cluster: &Cluster,
    moves: &Directories,
    timeout: Duration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let mut pending = moves.clone();
    loop {
        for replica in start(cluster, &pending).await? {
            if let Some(directory) = pending.remove(&replica) {
                writeln!(
                    out,
                    "Successfully started moving log directory to {directory} for replica {} with broker {} ",
                    replica.partition, replica.broker
                )?;
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failure::Terse(format!(
                "Timed out before log directory move{} could be started for: {}",
                if pending.len() == 1 { "" } else { "s" },
                joined(pending.keys())
            )));
        }
        out.flush()?;
        sleep(REST).await;
    }
}

/// Asks for the moves; gives those that have begun.
async fn start(cluster: &Cluster, moves: &Directories) -> Result<BTreeSet<Replica>, ToolError> {
    let failed = |replica: &Replica, error: &KafkaError| {
        ToolError::failed(format!(
            "Failed to alter dir for {replica}: {}",
            error.in_full()
        ))
    };
    let mut begun = BTreeSet::new();
    let brokers: BTreeSet<_> = moves.keys().map(|replica| replica.broker).collect();
    for broker in brokers {
        let of_broker = || moves.iter().filter(|(replica, _)| replica.broker == broker);
        let request = request(of_broker());
        let answer = cluster
            .call_node("alterReplicaLogDirs", broker, &request)
            .await;
        let response = answer.map_err(|error| match of_broker().next() {
            Some((replica, _)) => failed(replica, &error),
            None => error.into(),
        })?;
        for topic in &response.results {
            for result in &topic.partitions {
                let replica = Replica {
                    broker,
                    partition: TopicPartition::new(
                        topic.topic_name.0.as_str(),
                        result.partition_index,
                    ),
                };
                match KafkaError::check(result.error_code, None) {
                    Ok(()) => {
                        begun.insert(replica);
                    }
                    Err(error) if error.code == NOT_YET_THERE => {}
                    Err(error) => return Err(failed(&replica, &error)),
                }
            }
        }
    }
    Ok(begun)
}

fn request<'a>(
    moves: impl Iterator<Item = (&'a Replica, &'a String)>,
) -> AlterReplicaLogDirsRequest {
    let mut by_directory: BTreeMap<&str, Vec<&TopicPartition>> = BTreeMap::new();
    for (replica, directory) in moves {
        let partitions = by_directory.entry(directory).or_default();
        partitions.push(&replica.partition);
    }
    let directories = by_directory.into_iter().map(|(path, partitions)| {
        let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
            AlterReplicaLogDirTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(indexes)
        });
        AlterReplicaLogDir::default()
            .with_path(StrBytes::from_string(path.to_owned()))
            .with_topics(topics.collect())
    });
    AlterReplicaLogDirsRequest::default().with_dirs(directories.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_asked_for_by_directory() {
        let replica = |partition| Replica {
            broker: 1,
            partition: TopicPartition::new("t", partition),
        };
        let moves = Directories::from([
            (replica(0), "/a".to_owned()),
            (replica(1), "/b".to_owned()),
            (replica(2), "/a".to_owned()),
        ]);
        let request = request(moves.iter());
        let paths: Vec<_> = request
            .dirs
            .iter()
            .map(|dir| (dir.path.as_str(), dir.topics[0].partitions.clone()))
            .collect();
        assert_eq!(paths, [("/a", vec![0, 2]), ("/b", vec![1])]);
    }
}
