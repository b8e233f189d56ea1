//! Bytes that lie in a segment are read, compacted and replayed without harm, whatever they are.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use highwater_storage::TopicPartition;
use highwater_storage::producer_state::ProducerStateManager;
use highwater_storage::record_batch::compaction::{
    CompactedBatch, CompactionRules, OffsetMap, TransactionFilter, compact_batch, index_batch,
};
use highwater_storage::record_batch::{
    BatchHeader, Batches, DecompressLimits, decode_records, verify_crc,
};
use libfuzzer_sys::fuzz_target;

const LIMITS: DecompressLimits = DecompressLimits { max_bytes: 1 << 18 };

fuzz_target!(|input: &[u8]| {
    let topic_partition = TopicPartition { topic: Arc::from("t"), partition: 0 };
    let mut producers = ProducerStateManager::new(topic_partition);
    for batch in Batches::new(input) {
        let Ok((header, batch)) = batch else { break };
        let _ = verify_crc(batch);
        producers.apply(&header, batch);
        if let Ok(records) = decode_records(&Bytes::copy_from_slice(batch), LIMITS) {
            // A record takes seven bytes at least.
            assert!(records.count() <= LIMITS.max_bytes / 7 + 1);
        }
    }

    let mut map = OffsetMap::new(1 << 16);
    let mut filter = TransactionFilter::default();
    for (header, batch) in Batches::new(input).map_while(Result::ok) {
        if !matches!(index_batch(&header, batch, 0, LIMITS, &mut filter, &mut map), Ok(true)) {
            break;
        }
    }
    let rules = CompactionRules::new(1_000, 10, LIMITS, &producers);
    let mut filter = TransactionFilter::default();
    for (header, batch) in Batches::new(input).map_while(Result::ok) {
        match compact_batch(&header, batch, &rules, &mut filter, &map) {
            Ok(CompactedBatch::Replaced(batch)) => {
                verify_crc(&batch).expect("checksum of a rewritten batch");
                let rewritten = BatchHeader::parse(&batch).expect("a rewritten batch is one");
                assert_eq!(rewritten.base_offset, header.base_offset);
                assert_eq!(rewritten.last_offset_delta, header.last_offset_delta);
                decode_records(&batch, DecompressLimits::default())
                    .expect("a rewritten batch inflates")
                    .for_each(|record| drop(record.expect("a rewritten batch decodes")));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
});
