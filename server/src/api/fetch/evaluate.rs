//! Reading everything that a fetch asks for, and judging whether that is enough to answer.

use std::sync::Arc;

use highwater_replication::runtime::error::PartitionError;
use highwater_replication::runtime::partition::Partition;
use highwater_replication::runtime::read::{PartitionRead, PartitionReadRequest, ReadIsolation};
use highwater_storage::LeaderEpoch;
use kafka_protocol::ResponseError;

use crate::api::error_code::ErrorCode;
use crate::api::partitions;
use crate::broker::Broker;
use crate::fetch_session::{FetchTarget, PartitionKey, PartitionResult, TopicRef};

/// Who reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    /// -1 for a consumer, -2 for one that debugs, else the broker that follows.
    pub replica_id: i32,
    /// Up to where it may see.
    pub isolation: ReadIsolation,
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

    /// What the session wants to know, in the targets' order.
    pub(super) fn results(&self) -> Vec<(PartitionKey, PartitionResult)> {
        self.entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.result()))
            .collect()
    }

    fn add(&mut self, key: PartitionKey, outcome: Result<PartitionRead, ReadFailure>) {
        match &outcome {
            Ok(read) => {
                self.any_known = true;
                self.is_cold |= read.is_cold;
                self.bytes += read.records_bytes();
                self.ends_wait |= read.diverging_epoch.is_some();
            }
            Err(failure) => {
                self.ends_wait |= failure.ends_wait;
            }
        }
        self.entries.push(Entry { key, outcome });
    }
}

impl Entry {
    fn result(&self) -> PartitionResult {
        match &self.outcome {
            Ok(read) => PartitionResult {
                high_watermark: read.high_watermark,
                log_start_offset: read.log_start_offset,
                has_records: read.records_bytes() > 0,
                must_send: read.diverging_epoch.is_some(),
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
/// Without `may_wait` it leaves out what is not in memory.
pub(super) fn evaluate(
    broker: &Broker,
    reader: Reader,
    limits: &Limits,
    targets: &[FetchTarget],
    may_wait: bool,
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
            may_wait,
        };
        let outcome = read(broker, reader, target, request);
        if let Ok(read) = &outcome {
            left = left.saturating_sub(read.records_bytes());
            evaluation.ends_wait |= read.records_bytes() < limits.min_bytes
                && find(broker, target)
                    .is_ok_and(|partition| partition.more_in_next_segment(read, reader.isolation));
        }
        evaluation.add(target.key.clone(), outcome);
    }
    evaluation
}

fn epoch(wire: i32) -> Option<LeaderEpoch> {
    (wire >= 0).then_some(LeaderEpoch(wire))
}

fn read(
    broker: &Broker,
    reader: Reader,
    target: &FetchTarget,
    request: PartitionReadRequest,
) -> Result<PartitionRead, ReadFailure> {
    let partition = find(broker, target)?;
    let known = |error: PartitionError| ReadFailure {
        error: error.error_code(),
        ends_wait: true,
    };
    if reader.replica_id >= 0 {
        partition
            .check_leader(request.current_leader_epoch)
            .map_err(known)?;
        return Err(not_assigned(request.current_leader_epoch));
    }
    partition.read(request).map_err(known)
}

/// A follower that is not among the replicas: with an epoch it may have heard of an assignment
/// that this broker has not, and tries again.
fn not_assigned(current_leader_epoch: Option<LeaderEpoch>) -> ReadFailure {
    let error = match current_leader_epoch {
        Some(_) => ResponseError::UnknownLeaderEpoch,
        None => ResponseError::NotLeaderOrFollower,
    };
    ReadFailure {
        error,
        ends_wait: true,
    }
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
