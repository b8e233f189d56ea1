//! A record, and what is remembered of it.

use bytes::Bytes;
use highwater_storage::record_batch::{BATCH_HEADER_BYTES, varint_size_in_bytes};
use tokio::time::Instant;

/// A record to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The key, which may be null.
    pub(crate) key: Option<Bytes>,
    /// The value, which may be null.
    pub(crate) value: Option<Bytes>,
    /// The headers in order.
    pub(crate) headers: Vec<(Bytes, Option<Bytes>)>,
    /// The time in ms.
    pub(crate) timestamp: i64,
}

impl Record {
    /// Bytes that it takes in a batch, at most.
    pub(crate) fn size_in_bytes(&self) -> usize {
        /// Length, attributes, timestamp, offset, lengths and count of headers at their largest.
        const OVERHEAD: usize = 36;
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(key, value)| key.len() + length(value) + 10)
            .sum();
        OVERHEAD + length(&self.key) + length(&self.value) + headers
    }

    /// Bytes of a batch that has nothing but this record, at most, as Kafka's producer reckons.
    pub(crate) fn size_of_own_batch(&self) -> usize {
        /// Header of a batch, and what a record has at most besides its key, value and headers.
        const OVERHEAD: usize = BATCH_HEADER_BYTES + 21;
        let number = |count: usize| varint_size_in_bytes(i32::try_from(count).unwrap_or(i32::MAX));
        let prefixed = |bytes: &Bytes| number(bytes.len()) + bytes.len();
        let nullable = |bytes: &Option<Bytes>| bytes.as_ref().map_or(1, prefixed);
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(key, value)| prefixed(key) + nullable(value))
            .sum();
        let count = number(self.headers.len());
        OVERHEAD + nullable(&self.key) + nullable(&self.value) + count + headers
    }
}

/// What is remembered of a record until it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// When it was handed over.
    pub(crate) since: Instant,
    /// Bytes of its key, -1 for null.
    pub(crate) key_bytes: i64,
    /// Bytes of its value, -1 for null.
    pub(crate) value_bytes: i64,
}

impl Pending {
    /// What is remembered of this record, which is handed over now.
    pub(crate) fn of(record: &Record, now: Instant) -> Self {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64);
        Pending {
            since: now,
            key_bytes: length(&record.key),
            value_bytes: length(&record.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bytes: usize) -> Record {
        Record {
            value: Some(vec![1; bytes].into()),
            ..Record::default()
        }
    }

    #[test]
    fn the_size_of_a_record_is_reckoned_as_kafka_does() {
        assert_eq!(record(5_000_000).size_of_own_batch(), 5_000_088);
        let with_headers = Record {
            key: Some("k".into()),
            headers: vec![("h".into(), None), ("i".into(), Some("v".into()))],
            ..record(1)
        };
        assert_eq!(with_headers.size_of_own_batch(), 82 + 2 + 2 + 1 + 3 + 4);
    }
}
