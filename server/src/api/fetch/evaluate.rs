//! Reading everything that a fetch asks for, and judging whether that is enough to answer.

use std::fmt;
use std::sync::Arc;

use highwater_replication::runtime::partition::{FollowerRead, Partition};
use highwater_replication::runtime::read::{PartitionRead, PartitionReadRequest, ReadIsolation};
use highwater_replication::state::replica_progress::FollowerFetch;
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch};
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::api::error_code::ErrorCode;
use crate::api::partitions;
use crate::broker::Broker;
use crate::fetch_session::{FetchTarget, PartitionKey, PartitionResult, TopicRef};

/// Who reads.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    /// The broker that follows and the epoch of its run; `None` for a consumer.
    pub follower: Option<(BrokerId, BrokerEpoch)>,
    /// Up to where it may see.
    pub isolation: ReadIsolation,
    /// Whether only leaders may serve it.
    pub leader_only: bool,
    /// The consumer's rack; empty when it names none.
    pub rack: StrBytes,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.follower {
            Some((replica, epoch)) => write!(f, "replica {replica} in broker epoch {epoch}"),
            None => f.write_str("a consumer"),
        }
    }
}

/// Which look at a fetch it is. Only the first one of a follower's fetch acknowledges anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    First,
    /// After it was parked, or on a thread that may wait for the disk.
    Again {
        may_wait: bool,
    },
}

/// How much is wanted, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Answer when there is at least this much.
    pub min_bytes: usize,
    /// Stop when there is this much; the first batch is returned whatever its size.
    pub max_bytes: usize,
}

/// What one target gave.
#[derive(Debug)]
pub(super) struct Entry {
    pub key: PartitionKey,
    /// Where it was read, if it was found here.
    pub partition: Option<Arc<Partition>>,
    pub outcome: Result<PartitionRead, ReadFailure>,
}

/// Why a target gave nothing.
#[derive(Debug)]
pub(super) struct ReadFailure {
    pub error: ResponseError,
    /// Whether it ends the wait of the whole fetch. What this broker does not know at all does
    /// not: the entries beside it may still get data.
    pub ends_wait: bool,
}

/// What all targets gave, in their order.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    pub entries: Vec<Entry>,
    bytes: usize,
    ends_wait: bool,
    /// Whether any partition is hosted here: with none there is nothing to wait for.
    any_known: bool,
    is_cold: bool,
}

impl Evaluation {
    /// Whether the fetch is answered now rather than parked.
    pub(super) fn is_due(&self, limits: &Limits) -> bool {
        self.ends_wait || self.is_cold || !self.any_known || self.bytes >= limits.min_bytes
    }

    /// Whether there are records that could not be had without waiting for the disk.
    pub(super) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Brings all records into memory; waits for the disk.
    pub(super) fn prefault(&self) {
        let reads = self
            .entries
            .iter()
            .filter_map(|entry| entry.outcome.as_ref().ok());
        for read in reads.filter_map(|read| read.records.as_ref()) {
            if let Err(error) = read.prefault() {
                // The answer stays right; writing it may wait for the disk.
                tracing::warn!(%error, "records cannot be brought into memory");
            }
        }
    }

    /// Tells the partitions that a follower is sent what was read.
    pub(super) fn count_as_sent_to_follower(&self) {
        for entry in &self.entries {
            if let (Some(partition), Ok(read)) = (&entry.partition, &entry.outcome) {
                partition.on_sent_to_follower(read);
            }
        }
    }

    /// What the session wants to know, in the targets' order.
    pub(super) fn results(&self) -> Vec<(PartitionKey, PartitionResult)> {
        self.entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.result()))
            .collect()
    }

    fn add(&mut self, entry: Entry) {
        match &entry.outcome {
            Ok(read) => {
                self.any_known = true;
                self.is_cold |= read.is_cold;
                self.bytes += read.records_bytes();
                self.ends_wait |=
                    read.diverging_epoch.is_some() || read.preferred_read_replica.is_some();
            }
            Err(failure) => {
                self.ends_wait |= failure.ends_wait;
            }
        }
        self.entries.push(entry);
    }
}

impl Entry {
    fn result(&self) -> PartitionResult {
        match &self.outcome {
            Ok(read) => PartitionResult {
                high_watermark: read.high_watermark,
                log_start_offset: read.log_start_offset,
                has_records: read.records_bytes() > 0,
                must_send: read.diverging_epoch.is_some() || read.preferred_read_replica.is_some(),
                is_error: false,
            },
            Err(_) => PartitionResult {
                high_watermark: -1,
                log_start_offset: -1,
                has_records: false,
                must_send: true,
                is_error: true,
            },
        }
    }
}

/// Reads all targets, in order, until the byte limit is reached; those after it are only looked at.
/// Unless it may wait for the disk it leaves out what is not in memory.
pub(super) fn evaluate(
    broker: &Broker,
    reader: &Reader,
    limits: &Limits,
    targets: &[FetchTarget],
    look: Look,
) -> Evaluation {
    let mut evaluation = Evaluation::default();
    evaluation.entries.reserve_exact(targets.len());
    let mut left = limits.max_bytes;
    for target in targets {
        let max_bytes = usize::try_from(target.max_bytes).unwrap_or(0).min(left);
        let request = PartitionReadRequest {
            fetch_offset: target.fetch_offset,
            max_bytes,
            // The first batch of the whole answer may be larger than every limit, so that a
            // consumer always gets on.
            at_least_one_batch: evaluation.bytes == 0,
            current_leader_epoch: epoch(target.current_leader_epoch),
            last_fetched_epoch: epoch(target.last_fetched_epoch),
            isolation: reader.isolation,
            leader_only: reader.leader_only,
            may_wait: look == Look::Again { may_wait: true },
        };
        let (partition, outcome) = match find(broker, target) {
            Err(failure) => (None, Err(failure)),
            Ok(partition) => {
                let outcome = read(broker, &partition, reader, target, request, look);
                if let Ok(read) = &outcome {
                    left = left.saturating_sub(read.records_bytes());
                    evaluation.ends_wait |= read.records_bytes() < limits.min_bytes
                        && partition.more_in_next_segment(read, reader.isolation);
                }
                (Some(partition), outcome)
            }
        };
        evaluation.add(Entry {
            key: target.key.clone(),
            partition,
            outcome,
        });
    }
    evaluation
}

fn epoch(wire: i32) -> Option<LeaderEpoch> {
    (wire >= 0).then_some(LeaderEpoch(wire))
}

fn read(
    broker: &Broker,
    partition: &Arc<Partition>,
    reader: &Reader,
    target: &FetchTarget,
    request: PartitionReadRequest,
    look: Look,
) -> Result<PartitionRead, ReadFailure> {
    let read = match reader.follower {
        None => partition.read(request, &reader.rack),
        Some((replica, broker_epoch)) => {
            let fetch = FollowerFetch {
                replica,
                broker_epoch,
                fetch_offset: target.fetch_offset,
                log_start_offset: target.log_start_offset,
            };
            let follower = FollowerRead {
                fetch,
                is_first_look: look == Look::First,
            };
            partition.read_for_follower(request, follower)
        }
    };
    read.map_err(|error| {
        let topic_partition = partition.topic_partition();
        broker
            .refusals
            .on_partition_error(&error, topic_partition, reader, broker.now_ms());
        ReadFailure {
            error: error.error_code(),
            ends_wait: true,
        }
    })
}

/// The partition that a target names.
pub(super) fn find(broker: &Broker, target: &FetchTarget) -> Result<Arc<Partition>, ReadFailure> {
    let index = target.key.partition;
    let found = match (&target.key.topic, &target.topic_name) {
        (TopicRef::Name(name), _) => partitions::by_name(broker, name, index),
        (TopicRef::Id(id), None) => partitions::by_id(broker, *id, index),
        (TopicRef::Id(id), Some(name)) => {
            match partitions::by_name(broker, name, index) {
                // The session knows the topic as an incarnation that is gone.
                Ok(partition) if partition.topic_id().0 != *id => {
                    let error = ResponseError::InconsistentTopicId;
                    return Err(ReadFailure {
                        error,
                        ends_wait: true,
                    });
                }
                other => other,
            }
        }
    };
    found.map_err(|error| {
        let unknown = matches!(
            error,
            ResponseError::UnknownTopicOrPartition | ResponseError::UnknownTopicId
        );
        ReadFailure {
            error,
            ends_wait: !unknown,
        }
    })
}
