//! The seam between the group coordinator and the replicated log of `__consumer_offsets`.

use futures_util::future::BoxFuture;
use kafka_protocol::ResponseError;

use super::records::GroupRecord;
use super::state::ReplayedRecord;

/// The partitions of `__consumer_offsets` that this broker leads.
pub trait OffsetsLog: Send + Sync + 'static {
    /// Appends `records` as one batch with acks=all, as leader in `leader_epoch`. Errors are those of a produce; see
    /// [`coordinator_error`] for what a client of the group is told.
    fn append(
        &self,
        partition: i32,
        leader_epoch: i32,
        records: &[GroupRecord],
        now_ms: i64,
    ) -> Result<Appended, ResponseError>;

    /// Reads on from `from_offset` (or the log's start, if that lies above). May touch the disk.
    fn read(&self, partition: i32, from_offset: i64) -> Result<LoadedChunk, ResponseError>;

    /// Whether there is nothing to read, so that no thread need wait for the disk.
    fn is_empty(&self, partition: i32) -> bool;
}

/// A batch that was appended.
pub struct Appended {
    /// The offset of its first record.
    pub base_offset: i64,
    /// Completes when the batch is committed; `None` if it already is.
    pub commit: Option<BoxFuture<'static, Result<(), ResponseError>>>,
}

/// A part of the log.
#[derive(Debug, Default)]
pub struct LoadedChunk {
    /// Records with their offsets. Records that cannot be read are logged and left out.
    pub records: Vec<(i64, ReplayedRecord)>,
    /// Where to read on; `None` at the end of the log.
    pub next_offset: Option<i64>,
}

/// What the client of a group is told when a produce to `__consumer_offsets` failed with `error`: to try again, to look
/// for the coordinator elsewhere, or that it asked for too much.
pub fn coordinator_error(error: ResponseError) -> ResponseError {
    match error {
        ResponseError::UnknownTopicOrPartition
        | ResponseError::NotEnoughReplicas
        | ResponseError::NotEnoughReplicasAfterAppend
        | ResponseError::RequestTimedOut => ResponseError::CoordinatorNotAvailable,
        ResponseError::NotLeaderOrFollower
        | ResponseError::FencedLeaderEpoch
        | ResponseError::KafkaStorageError => ResponseError::NotCoordinator,
        ResponseError::CoordinatorNotAvailable | ResponseError::NotCoordinator => error,
        // Too large for a batch, or a text too long for its field.
        _ => ResponseError::UnknownServerError,
    }
}
