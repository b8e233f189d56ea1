//! Whatever a partition's files hold, the log opens; what it serves then is sound, can be appended to, and is the
//! same after a clean stop and after another crash.
#![no_main]

use bytes::Bytes;
use highwater_storage::record_batch::{Batches, RecordBatchBuilder, verify_crc};
use highwater_storage::{
    AppendOrigin, LeaderEpoch, Log, LogConfig, LogManager, LogManagerSettings, TopicPartition,
};
use libfuzzer_sys::fuzz_target;

const NOW_MS: i64 = 1_700_000_000_000;

/// The files, in the order their bytes are taken from the input; each begins with its length.
const FILES: [&str; 8] = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000007.log",
    "00000000000000000007.index",
    "00000000000000000007.snapshot",
    "leader-epoch-checkpoint",
];

fn open(dir: &std::path::Path) -> LogManager {
    let logs = LogManager::open(LogManagerSettings {
        log_dirs: vec![dir.to_owned()],
        recovery_threads_per_dir: 1,
        ..LogManagerSettings::default()
    })
    .expect("an own directory");
    let second = logs.load_logs(&|_| LogConfig::default(), NOW_MS);
    assert!(second.is_empty(), "{second:?}");
    assert!(logs.offline_partitions().is_empty(), "{:?}", logs.offline_partitions());
    logs
}

/// Or nearly every batch would be cut off for its checksum.
fn correct_checksums(bytes: &mut [u8]) {
    let mut batches = Batches::new(bytes);
    let mut ends = Vec::new();
    while let Some(Ok(_)) = batches.next() {
        ends.push(batches.position());
    }
    let mut start = 0;
    for end in ends {
        let crc = crc32c::crc32c(&bytes[start + 21..end]);
        bytes[start + 17..start + 21].copy_from_slice(&crc.to_be_bytes());
        start = end;
    }
}

/// All bytes that can be read.
fn read(log: &Log) -> Vec<Bytes> {
    let (mut all, mut offset, end) = (Vec::new(), log.log_start_offset(), log.log_end_offset());
    while offset < end {
        let read = log.read(offset, 1 << 20, end, true).expect("recovered");
        let Some((header, _)) = Batches::new(&read.records).filter_map(Result::ok).last() else {
            break;
        };
        for batch in Batches::new(&read.records) {
            let (_, bytes) = batch.expect("whole batches");
            verify_crc(bytes).expect("sound");
        }
        assert!(header.next_offset() > offset);
        offset = header.next_offset();
        all.push(read.records);
    }
    let _ = log.offset_of_max_timestamp(end);
    let _ = log.offset_for_timestamp(NOW_MS, end);
    let _ = log.aborted_transactions(0, end);
    all
}

fuzz_target!(|input: &[u8]| {
    let root = tempfile::tempdir().expect("a directory");
    let partition = root.path().join("t-0");
    std::fs::create_dir(&partition).expect("created");
    let mut rest = input;
    for name in FILES {
        let Some((length, tail)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_le_bytes(*length)).min(tail.len());
        let mut bytes = tail[..length].to_vec();
        if name.ends_with(".log") {
            correct_checksums(&mut bytes);
        }
        std::fs::write(partition.join(name), bytes).expect("written");
        rest = &tail[length..];
    }
    let topic_partition = TopicPartition::new("t", 0);
    let get = |logs: &LogManager| logs.get(&topic_partition).expect("online");

    let logs = open(root.path());
    let log = get(&logs);
    let mut builder = RecordBatchBuilder::new();
    builder.append(NOW_MS, Some(b"k"), Some(b"v"));
    let batch = builder.build().expect("a batch");
    // Offsets may have reached their end; nothing else may stand in the way.
    if log.log_end_offset() < i64::MAX - 10 {
        log.append_as_leader(&batch, LeaderEpoch(i32::MAX), AppendOrigin::Client, NOW_MS)
            .expect("appended");
    }
    let before = read(&log);
    logs.close(1).expect("closed");
    drop((log, logs));
    for _ in 0..2 {
        // Clean at first, then not: the mark is gone.
        let logs = open(root.path());
        assert_eq!(read(&get(&logs)).concat(), before.concat());
    }
});
