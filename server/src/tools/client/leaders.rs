//! Requests that only the leaders of partitions answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use kafka_protocol::messages::MetadataResponse;
use tokio::time::Instant;

use super::metadata::{asked, metadata_request};
use super::{Cluster, KafkaError};

/// How long a topic may be unknown: one that was just created may not be known to every broker.
const PATIENCE_WITH_UNKNOWN: Duration = Duration::from_secs(3);
/// UNKNOWN_TOPIC_OR_PARTITION
const UNKNOWN: i16 = 3;
/// LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND
const NO_LEADER: [i16; 2] = [5, 72];

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopicPartition {
    /// The topic's name.
    pub(crate) topic: String,
    /// The partition's index.
    pub(crate) partition: i32,
}

impl TopicPartition {
    /// The partition of that topic.
    pub(crate) fn new(topic: impl Into<String>, partition: i32) -> Self {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What there is for each partition: a value, or why there is none.
pub(crate) type Results<T> = BTreeMap<TopicPartition, Result<T, KafkaError>>;

/// Groups partitions by topic, in order.
pub(crate) fn by_topic<'a>(
    partitions: impl IntoIterator<Item = &'a TopicPartition>,
) -> BTreeMap<&'a str, Vec<i32>> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        let indexes = topics.entry(&partition.topic).or_default();
        indexes.push(partition.partition);
    }
    topics
}

impl Cluster {
    /// Asks the leaders of these partitions. `ask` gets a leader and its partitions; those that fail with an error
    /// that is retriable are asked again, of their leader then.
    ///
    /// # Errors
    /// When no node answers at all, or `ask` fails for good; what fails for one partition is its result.
    pub(crate) async fn ask_leaders<T>(
        &self,
        call: &str,
        partitions: impl IntoIterator<Item = TopicPartition>,
        ask: impl AsyncFn(i32, &[TopicPartition]) -> Result<Results<T>, KafkaError>,
    ) -> Result<Results<T>, KafkaError> {
        let began = Instant::now();
        let mut done = BTreeMap::new();
        let mut open: BTreeSet<_> = partitions.into_iter().collect();
        let mut why_open = BTreeMap::new();
        let outcome = self
            .retry(call, async || {
                why_open.clear();
                let is_patient = began.elapsed() < PATIENCE_WITH_UNKNOWN;
                let mut settle =
                    |partition: TopicPartition, result: Result<T, KafkaError>| match result {
                        Err(error)
                            if error.is_retriable && (is_patient || error.code != UNKNOWN) =>
                        {
                            why_open.insert(partition, error);
                        }
                        result => {
                            done.insert(partition, result);
                        }
                    };
                let leaders = self.leaders_now(&open).await?;
                let mut of_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
                for (partition, leader) in leaders {
                    match leader {
                        Ok(leader) => of_leader.entry(leader).or_default().push(partition),
                        Err(error) => settle(partition, Err(error)),
                    }
                }
                for (leader, partitions) in of_leader {
                    match ask(leader, &partitions).await {
                        Ok(results) => {
                            for (partition, result) in results {
                                settle(partition, result);
                            }
                        }
                        Err(error) if error.is_retriable => {
                            for partition in partitions {
                                settle(partition, Err(error.clone()));
                            }
                        }
                        Err(error) => return Err(error),
                    }
                }
                open = why_open.keys().cloned().collect();
                match why_open.values().next() {
                    None => Ok(()),
                    Some(error) => Err(error.clone()),
                }
            })
            .await;
        match outcome {
            Ok(()) => Ok(done),
            // Out of time: what is open has its last error.
            Err(error) if why_open.is_empty() => Err(error),
            Err(_) => {
                let open = why_open.into_iter();
                done.extend(open.map(|(partition, error)| (partition, Err(error))));
                Ok(done)
            }
        }
    }

    /// The leader of each partition, or why it has none. One attempt.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn leaders_now(
        &self,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<Results<i32>, KafkaError> {
        let topics = by_topic(partitions).into_keys().map(asked).collect();
        let request = metadata_request(Some(topics));
        let response = self.try_metadata(&request).await?;
        Ok(leaders_of(partitions, &response))
    }

    /// Those of these partitions that exist and have no leader now. Retried until a node answers.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn without_leader(
        &self,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<BTreeSet<TopicPartition>, KafkaError> {
        if partitions.is_empty() {
            return Ok(BTreeSet::new());
        }
        let leaders = self.retry("describeTopics", async || {
            self.leaders_now(partitions).await
        });
        Ok(leaderless(leaders.await?))
    }
}

fn leaderless(leaders: Results<i32>) -> BTreeSet<TopicPartition> {
    let leaders = leaders.into_iter();
    leaders
        .filter(|(_, leader)| match leader {
            Ok(leader) => *leader < 0,
            Err(error) => NO_LEADER.contains(&error.code),
        })
        .map(|(partition, _)| partition)
        .collect()
}

fn leaders_of(partitions: &BTreeSet<TopicPartition>, response: &MetadataResponse) -> Results<i32> {
    let mut topics = BTreeMap::new();
    let mut found = BTreeMap::new();
    for topic in &response.topics {
        let name = topic.name.as_ref().map_or("", |name| name.0.as_str());
        topics.insert(name, topic.error_code);
        let partitions = topic.partitions.iter();
        found.extend(partitions.map(|partition| ((name, partition.partition_index), partition)));
    }
    let leader = |wanted: &TopicPartition| {
        let unknown = || KafkaError::new(UNKNOWN, None);
        let name = wanted.topic.as_str();
        KafkaError::check(*topics.get(name).ok_or_else(unknown)?, None)?;
        let found = found.get(&(name, wanted.partition)).ok_or_else(unknown)?;
        KafkaError::check(found.error_code, None)?;
        Ok(found.leader_id.0)
    };
    let partitions = partitions.iter();
    partitions
        .map(|partition| (partition.clone(), leader(partition)))
        .collect()
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::BrokerId;
    use kafka_protocol::messages::metadata_response::{
        MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::super::topic_name;
    use super::*;

    #[test]
    fn a_partition_has_its_leader_or_the_reason_why_not() {
        let partition = |index, error_code| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(error_code)
                .with_leader_id(BrokerId(7))
        };
        let topic = MetadataResponseTopic::default()
            .with_name(Some(topic_name("t")))
            .with_partitions(vec![partition(0, 0), partition(1, 5)]);
        let response = MetadataResponse::default().with_topics(vec![topic]);
        let wanted = [("t", 0), ("t", 1), ("t", 2), ("u", 0)];
        let wanted: BTreeSet<_> = wanted
            .into_iter()
            .map(|(topic, partition)| TopicPartition::new(topic, partition))
            .collect();
        let leaders: Vec<_> = leaders_of(&wanted, &response)
            .into_values()
            .map(|leader| leader.map_err(|error| error.code))
            .collect();
        assert_eq!(leaders, [Ok(7), Err(5), Err(3), Err(3)]);
    }

    #[test]
    fn a_partition_that_is_not_there_is_not_one_without_a_leader() {
        let failed = |code| Err(KafkaError::new(code, None));
        let leaders = [Ok(1), Ok(-1), failed(5), failed(72), failed(3), failed(29)];
        let leaders = (0..).zip(leaders);
        let leaders = leaders.map(|(index, leader)| (TopicPartition::new("t", index), leader));
        let expected = [1, 2, 3].map(|index| TopicPartition::new("t", index));
        assert_eq!(leaderless(leaders.collect()), BTreeSet::from(expected));
    }

    #[test]
    fn partitions_are_grouped_by_topic() {
        let partitions = [("b", 1), ("a", 0), ("b", 0)].map(|(t, p)| TopicPartition::new(t, p));
        let topics = by_topic(&partitions);
        assert_eq!(topics, BTreeMap::from([("a", vec![0]), ("b", vec![1, 0])]));
        assert_eq!(partitions[0].to_string(), "b-1");
    }
}
