//! What the consensus agrees on: one entry is the batches of a group of requests, and where they belong.

use std::fmt;
use std::io::Cursor;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Batches for the metadata log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::controller) struct MetadataEntry {
    /// The epoch of the controller that judged the requests, which is the term of the consensus.
    pub(in crate::controller) epoch: i32,
    /// Offset of the first record: the end of the log that the requests were judged on.
    pub(in crate::controller) base_offset: i64,
    /// Offset after the last record.
    pub(in crate::controller) end_offset: i64,
    /// Whole batches with their offsets and this epoch, as they go into the log.
    pub(in crate::controller) batches: Bytes,
}

impl fmt::Debug for MetadataEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MetadataEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "offsets {}..{} of epoch {}",
            self.base_offset, self.end_offset, self.epoch
        )
    }
}

/// What became of an entry when it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::controller) enum Applied {
    /// Its batches are in the metadata log.
    Appended,
    /// It was judged on another end of the log, or by another controller, and changed nothing.
    Stale,
}

openraft::declare_raft_types!(
    /// The types that the consensus is built of. A node is its id; where it is, the configuration says.
    pub(in crate::controller) QuorumTypes:
        D = MetadataEntry,
        R = Applied,
        NodeId = u64,
        Node = (),
        Entry = openraft::Entry<QuorumTypes>,
        SnapshotData = Cursor<Vec<u8>>,
        Responder = openraft::impls::OneshotResponder<QuorumTypes>,
        AsyncRuntime = openraft::TokioRuntime,
);

pub(super) type Entry = openraft::Entry<QuorumTypes>;
pub(super) type LogId = openraft::LogId<u64>;
pub(super) type Vote = openraft::Vote<u64>;
pub(super) type Membership = openraft::Membership<u64, ()>;
pub(super) type StoredMembership = openraft::StoredMembership<u64, ()>;
pub(super) type StorageError = openraft::StorageError<u64>;
pub(in crate::controller) type Raft = openraft::Raft<QuorumTypes>;

/// The id of a node as the consensus has it; those of Kafka are not negative.
pub(in crate::controller) fn raft_id(node_id: i32) -> u64 {
    u64::from(node_id.unsigned_abs())
}

/// The other way round.
pub(in crate::controller) fn node_id(raft_id: u64) -> i32 {
    i32::try_from(raft_id).unwrap_or(i32::MAX)
}

/// A term as an epoch of the metadata log. Terms begin at the epochs of the log and rise by one with each election.
pub(in crate::controller) fn epoch_of(term: u64) -> i32 {
    i32::try_from(term).unwrap_or(i32::MAX)
}
