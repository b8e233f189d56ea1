//! A producer snapshot is refused, or read and written again byte for byte.
#![no_main]

use std::sync::Arc;

use highwater_storage::TopicPartition;
use highwater_storage::producer_state::{ProducerSnapshot, ProducerStateManager};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = ProducerSnapshot::decode(input);
    let mut bytes = input.to_vec();
    if bytes.len() < 6 {
        return;
    }
    let crc = crc32c::crc32c(&bytes[6..]);
    bytes[..2].copy_from_slice(&1i16.to_be_bytes());
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    let Ok(snapshot) = ProducerSnapshot::decode(&bytes) else { return };
    assert_eq!(snapshot.encode(), bytes);
    let topic_partition = TopicPartition { topic: Arc::from("t"), partition: 0 };
    let mut producers = ProducerStateManager::new(topic_partition);
    producers.load(&snapshot, 0, i64::MIN, i64::MAX);
    assert!(producers.snapshot().entries.len() <= snapshot.entries.len());
});
