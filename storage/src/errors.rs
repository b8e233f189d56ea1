//! What can go wrong in a log. One enum per verb group; the server maps each variant to a Kafka error code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::types::{TopicId, TopicPartition};

/// Trouble with files and directories. Cheap to clone, so that a partition can keep the reason it is offline.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// A call to the operating system failed.
    #[error("{action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb ("append to", "open").
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A file holds something that cannot be.
    #[error("{path} is corrupt: {reason}", path = path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process, or another broker in this one, uses the directory.
    #[error("{path} is in use by another broker", path = path.display())]
    DirectoryInUse {
        /// The log directory.
        path: PathBuf,
    },
    /// The log was closed or deleted while the caller held on to it.
    #[error("the log of {0} is closed")]
    Closed(TopicPartition),
    /// The log could not be opened, or a flush failed, so it takes no part until a restart.
    #[error("the log of {topic_partition} is offline: {reason}")]
    Offline {
        /// Which partition.
        topic_partition: TopicPartition,
        /// Why.
        reason: String,
    },
    /// The directory belongs to another incarnation of the topic.
    #[error("the log of {topic_partition} has topic id {found}, not {expected}")]
    InconsistentTopicId {
        /// Which partition.
        topic_partition: TopicPartition,
        /// The id asked for.
        expected: TopicId,
        /// The id in `partition.metadata`.
        found: TopicId,
    },
    /// No log of that partition is in any log directory.
    #[error("no log of {0}")]
    UnknownPartition(TopicPartition),
    /// An offset that a verb cannot take.
    #[error("offset {offset} is outside {lowest} to {highest} of {topic_partition}")]
    OffsetOutOfRange {
        /// Which partition.
        topic_partition: TopicPartition,
        /// The offset asked for.
        offset: i64,
        /// The lowest offset possible.
        lowest: i64,
        /// The highest offset possible.
        highest: i64,
    },
}

impl StorageError {
    /// An I/O error of `action` on `path`.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.as_ref().to_owned(),
            source: Arc::new(source.into()),
        }
    }

    /// A corrupt file.
    pub fn corrupt(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.as_ref().to_owned(),
            reason: reason.into(),
        }
    }

    /// Whether the disk or the quota is full: the next try may work when there is space again.
    pub fn is_storage_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
            _ => false,
        }
    }

    /// Whether the disk does not do what it must, so that no log can be kept there. A full disk is not meant, nor a
    /// process that is out of descriptors or memory: there the next try may work.
    pub fn is_disk_failure(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        let is_out_of_descriptors = source.raw_os_error().is_some_and(|code| {
            let errno = rustix::io::Errno::from_raw_os_error(code);
            errno == rustix::io::Errno::MFILE || errno == rustix::io::Errno::NFILE
        });
        let may_work_again = matches!(
            source.kind(),
            io::ErrorKind::Interrupted | io::ErrorKind::OutOfMemory
        );
        !(self.is_storage_full() || is_out_of_descriptors || may_work_again)
    }
}

/// One record of a refused batch (`record_errors` of Produce v8+).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// The record's place in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it.
    pub message: String,
}

/// Why an append was refused. Nothing was written then.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// CORRUPT_MESSAGE: a CRC, a length or the magic cannot be right.
    #[error("{0}")]
    CorruptMessage(String),
    /// INVALID_RECORD: not exactly one batch of the present format, which is seen before the log is asked.
    #[error("{0}")]
    NotOneBatch(String),
    /// INVALID_RECORD: the batch or some of its records break a rule.
    #[error("{message}")]
    InvalidRecord {
        /// The summary for the client.
        message: String,
        /// The records at fault; empty when the batch as a whole is.
        record_errors: Vec<RecordError>,
    },
    /// INVALID_TIMESTAMP: outside `message.timestamp.before.max.ms` or `message.timestamp.after.max.ms`.
    #[error("{message}")]
    InvalidTimestamp {
        /// The summary for the client.
        message: String,
        /// The records at fault.
        record_errors: Vec<RecordError>,
    },
    /// MESSAGE_TOO_LARGE: the stored batch would exceed `max.message.bytes`, or inflate past
    /// `max.decompressed.message.bytes`.
    #[error("the batch of {size_bytes} bytes exceeds the limit of {max_bytes} bytes")]
    MessageTooLarge {
        /// The batch's size, or what it inflates to at least.
        size_bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// RECORD_LIST_TOO_LARGE: the batch does not fit a segment.
    #[error("the batch of {size_bytes} bytes exceeds the segment size of {segment_bytes} bytes")]
    RecordListTooLarge {
        /// The batch's size.
        size_bytes: usize,
        /// `segment.bytes`.
        segment_bytes: usize,
    },
    /// UNSUPPORTED_COMPRESSION_TYPE.
    #[error("{0}")]
    UnsupportedCompressionType(String),
    /// OUT_OF_ORDER_SEQUENCE_NUMBER.
    #[error("{0}")]
    OutOfOrderSequence(String),
    /// DUPLICATE_SEQUENCE_NUMBER.
    #[error("{0}")]
    DuplicateSequence(String),
    /// INVALID_PRODUCER_EPOCH: the producer's epoch is older than the one known here.
    #[error("{0}")]
    InvalidProducerEpoch(String),
    /// INVALID_TXN_STATE.
    #[error("{0}")]
    InvalidTxnState(String),
    /// TRANSACTION_COORDINATOR_FENCED: a marker of an older coordinator epoch.
    #[error("{0}")]
    TransactionCoordinatorFenced(String),
    /// A follower was given offsets that do not continue its log.
    #[error("{0}")]
    UnexpectedOffset(String),
    /// KAFKA_STORAGE_ERROR: the disk said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a read failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// OFFSET_OUT_OF_RANGE.
    #[error("offset {fetch_offset} is outside {log_start_offset} to {log_end_offset}")]
    OffsetOutOfRange {
        /// The offset asked for.
        fetch_offset: i64,
        /// The first offset there is.
        log_start_offset: i64,
        /// The end of the log.
        log_end_offset: i64,
    },
    /// CORRUPT_MESSAGE: bytes that were good once do not parse any more.
    #[error("{0}")]
    CorruptMessage(String),
    /// KAFKA_STORAGE_ERROR.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn only_what_another_try_does_not_mend_is_a_failure_of_the_disk() {
        for (errno, fails) in [
            (Errno::IO, true),
            (Errno::ROFS, true),
            (Errno::NOENT, true),
            (Errno::NOSPC, false),
            (Errno::DQUOT, false),
            (Errno::MFILE, false),
            (Errno::NFILE, false),
            (Errno::INTR, false),
            (Errno::NOMEM, false),
        ] {
            let error = StorageError::io("append to", "x", errno);
            assert_eq!(error.is_disk_failure(), fails, "{errno}");
        }
        assert!(!StorageError::corrupt("x", "odd").is_disk_failure());
    }
}
