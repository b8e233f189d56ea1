//! A batch on its way from the first record to the answer.

use bytes::Bytes;
use highwater_storage::record_batch::{BatchError, Compression, RecordBatchBuilder};
use tokio::time::Instant;

use super::record::{Pending, Record};

/// Id and epoch of an idempotent producer.
pub(super) type ProducerId = (i64, i16);

/// A batch, to which records are added until it is complete.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    builder: RecordBatchBuilder,
    /// What is sent; made when it is sent first.
    sealed: Option<Bytes>,
    /// Its records.
    pub(super) records: Vec<Pending>,
    /// When it was begun, with its first record.
    pub(super) created: Instant,
    /// What it takes of the buffer, in bytes.
    pub(super) memory: usize,
    /// Attempts that failed.
    pub(super) failures: u32,
    /// Whether the sequence goes on after it: it was sent with the producer id that is used now.
    pub(super) is_in_sequence: bool,
}

impl Batch {
    /// An empty batch that takes so many bytes of the buffer.
    pub(super) fn new(compression: Compression, memory: usize, now: Instant) -> Self {
        Batch {
            builder: RecordBatchBuilder::new().compression(compression),
            sealed: None,
            records: Vec::new(),
            created: now,
            memory,
            failures: 0,
            is_in_sequence: false,
        }
    }

    /// Bytes of its records before compression.
    pub(super) fn uncompressed_size_in_bytes(&self) -> usize {
        self.builder.uncompressed_size_in_bytes()
    }

    /// Whether records may still be added.
    pub(super) fn is_growing(&self) -> bool {
        self.sealed.is_none() && self.failures == 0
    }

    /// Adds a record, which is handed over now.
    pub(super) fn append(&mut self, record: &Record, now: Instant) {
        let headers = record.headers.iter();
        let headers: Vec<_> = headers
            .map(|(key, value)| (&key[..], value.as_deref()))
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        self.builder
            .append_with_headers(record.timestamp, key, value, &headers);
        self.records.push(Pending::of(record, now));
    }

    /// How many records it has, as sequences count them.
    pub(super) fn count(&self) -> i32 {
        i32::try_from(self.records.len()).unwrap_or(i32::MAX)
    }

    /// Whether its bytes are made.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The bytes to send; none before [`seal`](Self::seal).
    pub(super) fn bytes(&self) -> Bytes {
        self.sealed.clone().unwrap_or_default()
    }

    /// Makes the bytes, with this first sequence number.
    ///
    /// # Errors
    /// When it cannot be compressed.
    pub(super) fn seal(&mut self, id: Option<ProducerId>, sequence: i32) -> Result<(), BatchError> {
        let mut builder = self.builder.clone();
        if let Some((id, epoch)) = id {
            builder = builder.producer(id, epoch, sequence);
        }
        self.sealed = Some(builder.build()?);
        Ok(())
    }

    /// Forgets the bytes, so that they are made anew with another producer id.
    pub(super) fn unseal(&mut self) {
        self.sealed = None;
        self.is_in_sequence = false;
    }
}
