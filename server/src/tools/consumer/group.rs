//! Membership of a group, in the classic protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition as Assigned;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupId, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable as _, Encodable, StrBytes};
use tokio::time::{Instant, sleep};

use super::{ConsumerConfig, assignor};
use crate::tools::client::{Cluster, Committer, KafkaError, TopicPartition, by_topic, topic_name};

/// The version of subscriptions and assignments that is written.
const PROTOCOL_VERSION: i16 = 1;
/// The last version of them that can be read; later ones only add fields behind.
const LAST_PROTOCOL_VERSION: i16 = 3;
const ASSIGNOR: &str = "range";

/// ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID: the group goes on without this member.
pub(super) const PUT_OUT: [i16; 2] = [22, 25];
/// REBALANCE_IN_PROGRESS
pub(super) const REBALANCING: i16 = 27;
/// MEMBER_ID_REQUIRED
const ID_REQUIRED: i16 = 79;

/// A member of a group.
pub(super) struct Membership {
    /// Its requests may take as long as the other members take to join.
    cluster: Cluster,
    group: String,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    heartbeat_interval: Duration,
    retry_backoff: Duration,
    member_id: StrBytes,
    generation: i32,
    next_heartbeat: Instant,
}

/// What a heartbeat has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pulse {
    /// All is well, or it was not time for one.
    Fine,
    /// The group assigns anew; offsets may still be committed.
    Rebalance,
    /// The group went on without this member.
    PutOut,
}

impl Membership {
    pub(super) fn new(cluster: Cluster, group: &str, config: &ConsumerConfig) -> Self {
        Membership {
            cluster,
            group: group.to_owned(),
            session_timeout: config.session_timeout,
            rebalance_timeout: config.max_poll_interval,
            heartbeat_interval: config.heartbeat_interval,
            retry_backoff: config.retry_backoff,
            member_id: StrBytes::default(),
            generation: -1,
            next_heartbeat: Instant::now(),
        }
    }

    fn group_id(&self) -> GroupId {
        GroupId(StrBytes::from_string(self.group.clone()))
    }

    /// On whose behalf offsets are committed.
    pub(super) fn committer(&self) -> Committer {
        Committer {
            group: self.group.clone(),
            member_id: self.member_id.to_string(),
            generation: self.generation,
        }
    }

    /// Joins the group with a subscription to these topics; gives the partitions that are assigned.
    ///
    /// # Errors
    /// When the coordinator refuses for good.
    pub(super) async fn join(
        &mut self,
        topics: &[String],
    ) -> Result<Vec<TopicPartition>, KafkaError> {
        loop {
            match self.join_once(topics).await {
                Ok(partitions) => {
                    self.next_heartbeat = Instant::now() + self.heartbeat_interval;
                    return Ok(partitions);
                }
                Err(error) if error.code == REBALANCING || error.code == ID_REQUIRED => {}
                Err(error) if PUT_OUT.contains(&error.code) => self.forget(),
                Err(error) if error.is_retriable => {
                    sleep(self.retry_backoff).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn join_once(&mut self, topics: &[String]) -> Result<Vec<TopicPartition>, KafkaError> {
        let group = &self.group;
        let cluster = &self.cluster;
        let coordinator = cluster.retry("findCoordinator", async || {
            cluster.try_coordinator(group).await
        });
        let coordinator = coordinator.await?;
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(StrBytes::from_static_str(ASSIGNOR))
            .with_metadata(encode_subscription(topics)?);
        let request = JoinGroupRequest::default()
            .with_group_id(self.group_id())
            .with_session_timeout_ms(millis(self.session_timeout))
            .with_rebalance_timeout_ms(millis(self.rebalance_timeout))
            .with_member_id(self.member_id.clone())
            .with_protocol_type(StrBytes::from_static_str("consumer"))
            .with_protocols(vec![protocol]);
        let joined = self.cluster.try_node(coordinator, &request).await?;
        if joined.error_code == ID_REQUIRED {
            self.member_id = joined.member_id.clone();
        }
        KafkaError::check(joined.error_code, None)?;
        self.member_id = joined.member_id.clone();
        self.generation = joined.generation_id;
        let assignments = match joined.leader == joined.member_id {
            true => self.assign(&joined).await?,
            false => Vec::new(),
        };
        let request = SyncGroupRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id(self.generation)
            .with_member_id(self.member_id.clone())
            .with_protocol_type(joined.protocol_type.clone())
            .with_protocol_name(joined.protocol_name.clone())
            .with_assignments(assignments);
        let synced = self.cluster.try_node(coordinator, &request).await?;
        KafkaError::check(synced.error_code, None)?;
        decode_assignment(synced.assignment)
    }

    /// As the leader: works out who reads what.
    async fn assign(
        &self,
        joined: &JoinGroupResponse,
    ) -> Result<Vec<SyncGroupRequestAssignment>, KafkaError> {
        let mut subscriptions = BTreeMap::new();
        for member in &joined.members {
            let topics = decode_subscription(member.metadata.clone())?;
            subscriptions.insert(member.member_id.to_string(), topics);
        }
        let topics: BTreeSet<&str> = subscriptions
            .values()
            .flatten()
            .map(String::as_str)
            .collect();
        let topics: Vec<_> = topics.into_iter().collect();
        let metadata = self.cluster.metadata(Some(&topics)).await?;
        let found = metadata.topics.iter().filter(|topic| topic.error_code == 0);
        let partitions = found
            .filter_map(|topic| {
                let count = i32::try_from(topic.partitions.len()).ok()?;
                Some((topic.name.as_ref()?.0.to_string(), count))
            })
            .collect();
        assignor::range(&subscriptions, &partitions)
            .into_iter()
            .map(|(member, partitions)| {
                Ok(SyncGroupRequestAssignment::default()
                    .with_member_id(StrBytes::from_string(member))
                    .with_assignment(encode_assignment(&partitions)?))
            })
            .collect()
    }

    /// Forgets what it was in the group, which goes on without it.
    fn forget(&mut self) {
        self.member_id = StrBytes::default();
        self.generation = -1;
    }

    /// When the next heartbeat is due.
    pub(super) fn next_heartbeat(&self) -> Instant {
        self.next_heartbeat
    }

    /// Tells the coordinator that this member is there, if it is time to.
    ///
    /// # Errors
    /// When the coordinator refuses for good.
    pub(super) async fn beat(&mut self) -> Result<Pulse, KafkaError> {
        if Instant::now() < self.next_heartbeat {
            return Ok(Pulse::Fine);
        }
        self.next_heartbeat = Instant::now() + self.heartbeat_interval;
        let request = HeartbeatRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id(self.generation)
            .with_member_id(self.member_id.clone());
        let coordinator = match self.cluster.try_coordinator(&self.group).await {
            Ok(coordinator) => coordinator,
            Err(error) if error.is_retriable => return Ok(Pulse::Fine),
            Err(error) => return Err(error),
        };
        let code = match self.cluster.try_node(coordinator, &request).await {
            Ok(response) => response.error_code,
            Err(error) if error.is_retriable => return Ok(Pulse::Fine),
            Err(error) => return Err(error),
        };
        match code {
            0 => Ok(Pulse::Fine),
            REBALANCING => Ok(Pulse::Rebalance),
            code if PUT_OUT.contains(&code) => {
                self.forget();
                Ok(Pulse::PutOut)
            }
            code => match KafkaError::new(code, None) {
                error if error.is_retriable => Ok(Pulse::Fine),
                error => Err(error),
            },
        }
    }

    /// Leaves the group.
    ///
    /// # Errors
    /// When the coordinator does not answer; it will put the member out then.
    pub(super) async fn leave(&self) -> Result<(), KafkaError> {
        if self.member_id.is_empty() {
            return Ok(());
        }
        let coordinator = self.cluster.try_coordinator(&self.group).await?;
        let client = self.cluster.client(coordinator).await?;
        let request = |version| {
            let request = LeaveGroupRequest::default().with_group_id(self.group_id());
            match version {
                0..=2 => request.with_member_id(self.member_id.clone()),
                _ => request.with_members(vec![
                    MemberIdentity::default().with_member_id(self.member_id.clone()),
                ]),
            }
        };
        let (_, response) = client.call_within(0..=5, request).await?;
        KafkaError::check(response.error_code, None)
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn malformed(reason: impl std::fmt::Display) -> KafkaError {
    KafkaError::of_client("SchemaException", reason.to_string())
}

/// The version in front of the message, as all of the consumer protocol is written.
fn encode(message: &impl Encodable) -> Result<Bytes, KafkaError> {
    let mut bytes = BytesMut::new();
    bytes.put_i16(PROTOCOL_VERSION);
    message
        .encode(&mut bytes, PROTOCOL_VERSION)
        .map_err(malformed)?;
    Ok(bytes.freeze())
}

fn encode_subscription(topics: &[String]) -> Result<Bytes, KafkaError> {
    let topics = topics.iter();
    let message = ConsumerProtocolSubscription::default().with_topics(
        topics
            .map(|topic| StrBytes::from_string(topic.clone()))
            .collect(),
    );
    encode(&message)
}

fn decode_subscription(mut bytes: Bytes) -> Result<Vec<String>, KafkaError> {
    let version = version(&mut bytes)?;
    let message = ConsumerProtocolSubscription::decode(&mut bytes, version).map_err(malformed)?;
    Ok(message.topics.iter().map(ToString::to_string).collect())
}

fn encode_assignment(partitions: &[TopicPartition]) -> Result<Bytes, KafkaError> {
    let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
        Assigned::default()
            .with_topic(topic_name(topic))
            .with_partitions(indexes)
    });
    let message = ConsumerProtocolAssignment::default().with_assigned_partitions(topics.collect());
    encode(&message)
}

/// The partitions that the leader of a group has assigned to a member; none while it has not.
///
/// # Errors
/// When the bytes are no assignment.
pub(crate) fn decode_assignment(mut bytes: Bytes) -> Result<Vec<TopicPartition>, KafkaError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let version = version(&mut bytes)?;
    let message = ConsumerProtocolAssignment::decode(&mut bytes, version).map_err(malformed)?;
    let topics = message.assigned_partitions.iter();
    Ok(topics
        .flat_map(|topic| {
            let indexes = topic.partitions.iter();
            indexes.map(|index| TopicPartition::new(topic.topic.0.as_str(), *index))
        })
        .collect())
}

fn version(bytes: &mut Bytes) -> Result<i16, KafkaError> {
    let version = bytes.try_get_i16().map_err(malformed)?;
    Ok(version.clamp(0, LAST_PROTOCOL_VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let topics = ["a".to_owned(), "b".to_owned()];
        let bytes = encode_subscription(&topics).expect("encodes");
        assert_eq!(decode_subscription(bytes), Ok(topics.to_vec()));
        let partitions = [("a", 1), ("a", 2), ("b", 0)].map(|(t, p)| TopicPartition::new(t, p));
        let bytes = encode_assignment(&partitions).expect("encodes");
        assert_eq!(decode_assignment(bytes), Ok(partitions.to_vec()));
        assert_eq!(decode_assignment(Bytes::new()), Ok(Vec::new()));
        assert!(decode_assignment(Bytes::from_static(&[0])).is_err());
    }
}
