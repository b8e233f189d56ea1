//! Snapshots of the producers' state, and transaction indexes.

use std::io::Write;
use std::path::Path;

use highwater_storage::index::read_transaction_index;
use highwater_storage::producer_state::{ProducerSnapshot, SnapshotEntry, SnapshotError};

use super::log::optional_long;
use super::{ToolError, read};

pub(super) fn dump_transaction_index(file: &Path, out: &mut dyn Write) -> Result<(), ToolError> {
    let entries = read_transaction_index(&read(file)?);
    let entries = entries
        .map_err(|error| ToolError::failed(format!("{} is corrupt: {error}.", file.display())))?;
    for entry in entries {
        writeln!(
            out,
            "version: 0 producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        )?;
    }
    Ok(())
}

pub(super) fn dump_producer_snapshot(file: &Path, out: &mut dyn Write) -> Result<(), ToolError> {
    match ProducerSnapshot::decode(&read(file)?) {
        Ok(snapshot) => {
            for entry in &snapshot.entries {
                writeln!(out, "{}", producer(entry))?;
            }
        }
        // Told, and no failure, as in Kafka.
        Err(error) => {
            out.flush()?;
            ToolError::warn(&corrupt(&error));
        }
    }
    Ok(())
}

fn corrupt(error: &SnapshotError) -> String {
    match error {
        SnapshotError::UnknownVersion(version) => {
            format!("Snapshot contained an unknown file version {version}")
        }
        SnapshotError::CrcMismatch { stored, computed } => format!(
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
        ),
        SnapshotError::InvalidSize => {
            "Snapshot failed schema validation: the size does not fit the count of entries"
                .to_owned()
        }
    }
}

fn producer(entry: &SnapshotEntry) -> String {
    let open = (entry.current_txn_first_offset >= 0).then_some(entry.current_txn_first_offset);
    let mut line = format!(
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} lastTimestamp: {}",
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        optional_long(open),
        entry.timestamp,
    );
    if let Some(batch) = entry.last_batch() {
        line.push_str(&format!(
            " firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
            batch.first_sequence(),
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            batch.timestamp,
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_without_a_batch_has_no_sequences() {
        let entry = SnapshotEntry {
            producer_id: 3,
            producer_epoch: 1,
            last_sequence: -1,
            last_offset: -1,
            offset_delta: 0,
            timestamp: 5,
            coordinator_epoch: 2,
            current_txn_first_offset: 7,
        };
        let start = "producerId: 3 producerEpoch: 1 coordinatorEpoch: 2";
        assert_eq!(
            producer(&entry),
            format!("{start} currentTxnFirstOffset: OptionalLong[7] lastTimestamp: 5")
        );
        let entry = SnapshotEntry {
            last_sequence: 12,
            last_offset: 30,
            offset_delta: 2,
            current_txn_first_offset: -1,
            ..entry
        };
        assert_eq!(
            producer(&entry),
            format!(
                "{start} currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 5 firstSequence: 10 lastSequence: 12 \
                 lastOffset: 30 offsetDelta: 2 timestamp: 5"
            )
        );
    }
}
