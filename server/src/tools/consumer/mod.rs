//! A consumer: reads topics from the leaders of their partitions, alone or as a member of a group.

mod assignor;
mod config;
mod fetch;
mod group;
mod positions;
mod records;
mod subscription;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kafka_protocol::messages::MetadataRequest;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

pub(crate) use config::{ConsumerConfig, Reset};
pub(crate) use group::decode_assignment;
pub(crate) use records::Fetched;
pub(crate) use subscription::{Received, Start, Subscription};

use self::fetch::Wanted;
use self::group::{Membership, PUT_OUT, Pulse, REBALANCING};
use self::positions::{ListedOffsets, Position, no_offset};
use super::client::{ClientProperties, Cluster, KafkaError, TopicPartition, asked_topic};

/// How often topics are looked for that were not there, or have more partitions.
const METADATA_INTERVAL: Duration = Duration::from_secs(5);
/// What a request to join may take longer than the other members may.
const MARGIN_TO_JOIN: Duration = Duration::from_secs(5);
/// OFFSET_OUT_OF_RANGE
const OUT_OF_RANGE: i16 = 1;

/// How long closing may take, as in Kafka.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a leader has answered.
enum Answer {
    Fetch(fetch::Answer),
    Offsets(ListedOffsets),
}

type InFlight = Pin<Box<dyn Future<Output = Answer>>>;

/// A consumer.
pub(crate) struct Consumer {
    cluster: Cluster,
    config: ConsumerConfig,
    subscription: Subscription,
    membership: Option<Membership>,
    has_joined: bool,
    positions: BTreeMap<TopicPartition, Position>,
    in_flight: FuturesUnordered<InFlight>,
    /// Leaders with a request on its way.
    busy: Vec<i32>,
    received: VecDeque<Received>,
    next_metadata: Instant,
    /// When leaders and offsets that are not known may be looked up.
    next_look_up: Instant,
    next_commit: Option<Instant>,
    /// How long joining has taken.
    rebalance_time: Duration,
}

impl Consumer {
    /// A consumer of a cluster. Nothing is connected yet. A member of a group has a client of its own for the requests
    /// about the group, which may take as long as the other members take to join.
    ///
    /// # Errors
    /// When the addresses or the properties are wrong.
    pub(crate) fn connect(
        bootstrap_servers: &str,
        properties: &ClientProperties,
        client_id: &str,
        config: ConsumerConfig,
        subscription: Subscription,
    ) -> Result<Self, KafkaError> {
        let cluster = Cluster::new(bootstrap_servers, properties, client_id)?;
        let is_alone = matches!(subscription, Subscription::Partition(..));
        let membership = match config.group.as_deref().filter(|_| !is_alone) {
            Some(group) => {
                let longest = config.max_poll_interval + MARGIN_TO_JOIN;
                let mut properties = properties.clone();
                properties.set("request.timeout.ms", &longest.as_millis().to_string());
                let cluster = Cluster::new(bootstrap_servers, &properties, client_id)?;
                Some(Membership::new(cluster, group, &config))
            }
            None => None,
        };
        Ok(Consumer {
            next_commit: config.auto_commit.map(|interval| Instant::now() + interval),
            cluster,
            config,
            subscription,
            membership,
            has_joined: false,
            positions: BTreeMap::new(),
            in_flight: FuturesUnordered::new(),
            busy: Vec::new(),
            received: VecDeque::new(),
            next_metadata: Instant::now(),
            next_look_up: Instant::now(),
            rebalance_time: Duration::ZERO,
        })
    }

    /// How long joining the group has taken so far.
    pub(crate) fn rebalance_time(&self) -> Duration {
        self.rebalance_time
    }

    /// Whether a record is here already.
    pub(crate) fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    /// The next record; `None` when there is none until the deadline. A record is consumed with that. What is under way
    /// then is begun anew with the next call: with a deadline that is sooner than a group can be joined, it never is.
    ///
    /// # Errors
    /// When nothing can be read any more.
    pub(crate) async fn next(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Received>, KafkaError> {
        loop {
            if let Some(received) = self.received.pop_front() {
                if let Some(position) = self.positions.get_mut(&received.partition) {
                    position.consumed = Some(received.fetched.record.offset + 1);
                }
                return Ok(Some(received));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            self.step(deadline).await?;
        }
    }

    /// Keeps the assignment, fetches, and waits for what comes first.
    async fn step(&mut self, deadline: Option<Instant>) -> Result<(), KafkaError> {
        match deadline {
            Some(deadline) => match timeout_at(deadline, self.prepare()).await {
                Ok(result) => result?,
                Err(_) => return Ok(()),
            },
            None => self.prepare().await?,
        }
        self.begin_fetches();
        let heartbeat = self.membership.as_ref().map(Membership::next_heartbeat);
        let metadata = self.membership.is_none().then_some(self.next_metadata);
        let soon = self
            .positions
            .values()
            .any(Position::is_incomplete)
            .then_some(self.next_look_up);
        let wake = [heartbeat, metadata, deadline, soon].into_iter().flatten();
        let wake = wake
            .min()
            .unwrap_or_else(|| Instant::now() + METADATA_INTERVAL);
        let answer = if self.in_flight.is_empty() {
            sleep_until(wake).await;
            None
        } else {
            tokio::select! {
                answer = self.in_flight.next() => answer,
                () = sleep_until(wake) => None,
            }
        };
        match answer {
            Some(Answer::Fetch(answer)) => self.settle(answer),
            Some(Answer::Offsets(listed)) => self.on_offsets(listed),
            None => Ok(()),
        }
    }

    /// All that comes before a fetch. Where it is dropped, what was found until then stays.
    async fn prepare(&mut self) -> Result<(), KafkaError> {
        self.assign().await?;
        self.maybe_commit().await?;
        self.look_up().await
    }

    /// Learns which partitions are to be read.
    async fn assign(&mut self) -> Result<(), KafkaError> {
        if let Some(membership) = &mut self.membership {
            let pulse = match self.has_joined {
                true => membership.beat().await?,
                false => Pulse::PutOut,
            };
            match pulse {
                Pulse::Fine => return Ok(()),
                Pulse::Rebalance => {
                    // Who reads the partitions next begins where this one has ended.
                    if self.config.auto_commit.is_some() {
                        self.commit().await?;
                    }
                }
                Pulse::PutOut => {}
            }
            return self.join().await;
        }
        if Instant::now() < self.next_metadata {
            return Ok(());
        }
        self.next_metadata = Instant::now() + METADATA_INTERVAL;
        let partitions = match &self.subscription {
            Subscription::Partition(partition, _) => vec![partition.clone()],
            Subscription::Topics(_) | Subscription::Pattern(_) => self.partitions().await?,
        };
        // A topic that comes later is read from its beginning, as nothing of it was there before.
        let is_first = self.positions.is_empty();
        for partition in partitions {
            let fetch = (!is_first && self.config.reset == Reset::Latest).then_some(0);
            self.positions.entry(partition).or_insert_with(|| Position {
                fetch,
                consumed: fetch,
                ..Position::default()
            });
        }
        Ok(())
    }

    async fn join(&mut self) -> Result<(), KafkaError> {
        let began = Instant::now();
        let topics: Vec<String> = match &self.subscription {
            Subscription::Topics(topics) => {
                // Asking creates a topic that is not there, where the broker does that.
                let topics = topics.clone();
                self.partitions().await?;
                topics
            }
            _ => {
                let partitions = self.partitions().await?;
                let mut topics: Vec<_> = partitions.into_iter().map(|found| found.topic).collect();
                topics.dedup();
                topics
            }
        };
        let Some(membership) = &mut self.membership else {
            return Ok(());
        };
        let partitions = membership.join(&topics).await?;
        self.has_joined = true;
        self.received.clear();
        self.next_look_up = Instant::now();
        self.positions = partitions
            .into_iter()
            .map(|partition| (partition, Position::default()))
            .collect();
        self.rebalance_time += began.elapsed();
        Ok(())
    }

    /// The partitions of the topics that are subscribed to and are there.
    async fn partitions(&self) -> Result<Vec<TopicPartition>, KafkaError> {
        let topics = match &self.subscription {
            Subscription::Topics(topics) => {
                Some(topics.iter().map(|topic| asked_topic(topic)).collect())
            }
            Subscription::Pattern(_) | Subscription::Partition(..) => None,
        };
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(true);
        let cluster = &self.cluster;
        let metadata = cluster.retry("metadata", async || cluster.try_metadata(&request).await);
        let mut partitions = Vec::new();
        for topic in metadata.await?.topics {
            let Some(name) = topic.name.as_ref().map(|name| name.0.to_string()) else {
                continue;
            };
            let is_wanted = match &self.subscription {
                Subscription::Pattern(pattern) => pattern.is_match(&name) && !topic.is_internal,
                Subscription::Topics(_) | Subscription::Partition(..) => true,
            };
            // INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
            if is_wanted && matches!(topic.error_code, 17 | 29) {
                return Err(KafkaError::new(topic.error_code, None));
            }
            if is_wanted && topic.error_code == 0 {
                let indexes = topic.partitions.iter().map(|found| found.partition_index);
                partitions.extend(indexes.map(|index| TopicPartition::new(name.as_str(), index)));
            }
        }
        partitions.sort();
        Ok(partitions)
    }

    async fn maybe_commit(&mut self) -> Result<(), KafkaError> {
        let Some(time) = self.next_commit else {
            return Ok(());
        };
        if Instant::now() >= time {
            self.next_commit = self.config.auto_commit.map(|rest| Instant::now() + rest);
            self.commit().await?;
        }
        Ok(())
    }

    /// Commits what was handed out. That a rebalance is under way, or went on without this member, is no failure: the
    /// next heartbeat finds out.
    async fn commit(&mut self) -> Result<(), KafkaError> {
        let Some(membership) = self.membership.as_ref().filter(|_| self.has_joined) else {
            return Ok(());
        };
        let offsets: BTreeMap<_, _> = self
            .positions
            .iter()
            .filter_map(|(partition, position)| Some((partition.clone(), position.consumed?)))
            .collect();
        if offsets.is_empty() {
            return Ok(());
        }
        match self.cluster.commit(&membership.committer(), &offsets).await {
            Err(error) if error.code == REBALANCING || PUT_OUT.contains(&error.code) => Ok(()),
            result => result,
        }
    }

    fn begin_fetches(&mut self) {
        let mut of_leader: BTreeMap<i32, Wanted> = BTreeMap::new();
        for (partition, position) in &self.positions {
            if let (Some(leader), Some(offset)) = (position.leader, position.fetch)
                && !self.busy.contains(&leader)
            {
                let wanted = of_leader.entry(leader).or_default();
                wanted.insert(partition.clone(), offset);
            }
        }
        for (leader, wanted) in of_leader {
            self.busy.push(leader);
            let client = self.cluster.connection(leader);
            let config = self.config.clone();
            self.in_flight.push(Box::pin(async move {
                Answer::Fetch(fetch::fetch(client, leader, wanted, config).await)
            }));
        }
    }

    fn settle(&mut self, answer: fetch::Answer) -> Result<(), KafkaError> {
        self.busy.retain(|leader| *leader != answer.leader);
        for found in answer.partitions {
            let Some(position) = self.positions.get_mut(&found.partition) else {
                continue;
            };
            // Something else was decided meanwhile.
            if position.fetch != Some(found.offset) {
                continue;
            }
            match found.result {
                Ok((records, next_offset)) => {
                    position.fetch = Some(next_offset);
                    self.received
                        .extend(records.into_iter().map(|fetched| Received {
                            partition: found.partition.clone(),
                            fetched,
                        }));
                }
                Err(error) if error.code == OUT_OF_RANGE => {
                    if self.config.reset == Reset::None {
                        return Err(no_offset(&[found.partition]));
                    }
                    position.fetch = None;
                }
                Err(error) if error.is_retriable => position.leader = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Commits, and leaves the group.
    ///
    /// # Errors
    /// When the coordinator refuses the commit; the group is left all the same. When it does not answer in time.
    pub(crate) async fn close(self) -> Result<(), KafkaError> {
        let closed = timeout(CLOSE_TIMEOUT, self.commit_and_leave()).await;
        closed.unwrap_or_else(|_| {
            let text = "Timed out waiting for the coordinator of the group while closing";
            Err(KafkaError::of_client("TimeoutException", text))
        })
    }

    async fn commit_and_leave(mut self) -> Result<(), KafkaError> {
        let committed = match self.config.auto_commit {
            Some(_) => self.commit().await,
            None => Ok(()),
        };
        let left = match &self.membership {
            Some(membership) => membership.leave().await,
            None => Ok(()),
        };
        committed.and(left)
    }
}
