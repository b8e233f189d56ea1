//! Random sequences and transactions against plain models that remember everything.

use proptest::prelude::*;

use super::*;
use crate::producer_state::RETAINED_BATCHES;

/// One batch of the model's log.
#[derive(Debug, Clone, Copy)]
struct Sent {
    pid: i64,
    epoch: i16,
    sequence: i32,
    count: i32,
    offset: i64,
}

impl Sent {
    fn header(&self) -> BatchHeader {
        data(self.pid, self.epoch, self.sequence, self.offset, self.count)
    }
}

/// What the rules say of a batch, from the whole history of its producer.
fn expected(log: &[Sent], batch: &Sent) -> Result<Option<i64>, &'static str> {
    let known: Vec<_> = log.iter().filter(|sent| sent.pid == batch.pid).collect();
    let Some(last) = known.last() else {
        return Ok(None);
    };
    if batch.epoch < last.epoch {
        return Err("epoch");
    }
    let epoch: Vec<_> = known
        .iter()
        .filter(|sent| sent.epoch == batch.epoch)
        .collect();
    let original = epoch
        .iter()
        .rev()
        .take(RETAINED_BATCHES)
        .find(|sent| (sent.sequence, sent.count) == (batch.sequence, batch.count));
    if let Some(original) = original {
        return Ok(Some(original.offset));
    }
    let next = match epoch.last() {
        Some(last) => (i64::from(last.sequence) + i64::from(last.count)) % (1 << 31),
        None => 0,
    };
    if i64::from(batch.sequence) == next {
        Ok(None)
    } else {
        Err("sequence")
    }
}

fn kind(check: Result<SequenceCheck, AppendError>) -> Result<Option<i64>, &'static str> {
    match check {
        Ok(SequenceCheck::Append) => Ok(None),
        Ok(SequenceCheck::Duplicate(original)) => Ok(Some(original.first_offset())),
        Ok(SequenceCheck::NeedsHistory(_)) => Err("history"),
        Err(AppendError::InvalidProducerEpoch(_)) => Err("epoch"),
        Err(AppendError::OutOfOrderSequence(_)) => Err("sequence"),
        Err(_) => Err("other"),
    }
}

/// How the next batch of a producer relates to its last.
#[derive(Debug, Clone, Copy)]
enum Step {
    Next,
    NextEpoch,
    Repeat(usize),
    Offset(i32),
    OldEpoch,
}

fn steps() -> impl Strategy<Value = Vec<(i64, i32, Step)>> {
    let step = prop_oneof![
        6 => Just(Step::Next),
        1 => Just(Step::NextEpoch),
        3 => (0usize..8).prop_map(Step::Repeat),
        1 => (-4i32..5).prop_map(Step::Offset),
        1 => Just(Step::OldEpoch),
    ];
    proptest::collection::vec((1i64..4, 1i32..4, step), 1..60)
}

/// The batch that a step stands for; a producer's first sequence is `start`.
fn batch_of(log: &[Sent], start: i32, pid: i64, count: i32, step: Step) -> Sent {
    let offset = log
        .last()
        .map_or(0, |sent| sent.offset + i64::from(sent.count));
    let known: Vec<_> = log.iter().filter(|sent| sent.pid == pid).collect();
    let Some(last) = known.last() else {
        return Sent {
            pid,
            epoch: 2,
            sequence: start,
            count,
            offset,
        };
    };
    let next = increment_sequence(last.sequence, last.count);
    let (epoch, sequence, count) = match step {
        Step::Next => (last.epoch, next, count),
        Step::NextEpoch => (last.epoch + 1, 0, count),
        Step::OldEpoch => (last.epoch - 1, next, count),
        Step::Offset(by) => (last.epoch, (next.max(4) - 4).saturating_add(by + 4), count),
        Step::Repeat(back) => {
            let sent = known[known.len().saturating_sub(back + 1)];
            (sent.epoch, sent.sequence, sent.count)
        }
    };
    Sent {
        pid,
        epoch,
        sequence,
        count,
        offset,
    }
}

proptest! {
    #[test]
    fn sequences_are_judged_as_by_the_whole_history(steps in steps()) {
        let mut producers = manager();
        let mut log = Vec::new();
        for (pid, count, step) in steps {
            let batch = batch_of(&log, i32::MAX - 6, pid, count, step);
            let verdict = expected(&log, &batch);
            prop_assert_eq!(kind(producers.check_client(&batch.header())), verdict, "{:?}", batch);
            if verdict == Ok(None) {
                producers.apply(&batch.header(), &[]);
                log.push(batch);
            }
        }
    }

    /// A start from a snapshot at any offset judges every batch as if there had been none.
    #[test]
    fn a_restored_state_recognises_the_last_five_too(
        steps in steps(),
        start in prop_oneof![Just(0), Just(40)],
        snapshot_at in any::<prop::sample::Index>(),
        segment_batches in 1usize..10,
        probes in steps(),
    ) {
        let mut log = Vec::new();
        for (pid, count, step) in steps {
            let batch = batch_of(&log, start, pid, count, step);
            if expected(&log, &batch) == Ok(None) {
                log.push(batch);
            }
        }
        let at = snapshot_at.index(log.len() + 1);
        let mut before = manager();
        for batch in &log[..at] {
            before.apply(&batch.header(), &[]);
        }
        let bytes = before.snapshot().encode();
        let mut producers = manager();
        let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
        producers.load(&snapshot, before.map_end_offset(), 0, NEVER);
        for batch in &log[at..] {
            producers.apply(&batch.header(), &[]);
        }
        for (pid, count, step) in probes {
            let probe = batch_of(&log, start, pid, count, step);
            let mut check = producers.check_client(&probe.header());
            if let Ok(SequenceCheck::NeedsHistory(mut scan)) = check {
                let segments: Vec<_> = log.chunks(segment_batches).collect();
                for segment in segments.iter().rev() {
                    for batch in *segment {
                        scan.observe(&batch.header());
                    }
                    scan.end_segment();
                    if scan.is_done() {
                        break;
                    }
                }
                producers.complete_history(scan);
                check = producers.check_client(&probe.header());
            }
            prop_assert_eq!(kind(check), expected(&log, &probe), "{:?}", probe);
        }
    }

    #[test]
    fn arbitrary_snapshots_are_refused_without_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        count in any::<i32>(),
        entries in proptest::collection::vec(any::<u8>(), 0..140),
    ) {
        let _ = ProducerSnapshot::decode(&bytes);
        // With version and checksum right, and a count that may lie.
        bytes = vec![0, 1, 0, 0, 0, 0];
        bytes.extend_from_slice(&count.to_be_bytes());
        bytes.extend_from_slice(&entries);
        let crc = crc32c::crc32c(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        let decoded = ProducerSnapshot::decode(&bytes);
        prop_assert_eq!(decoded.is_ok(), i64::from(count) * 46 == entries.len() as i64);
        if let Ok(snapshot) = decoded {
            let mut producers = manager();
            producers.load(&snapshot, 0, i64::MIN, NEVER);
            for header in [data(1, 0, 0, 0, 1), transactional(-5, 1, 3, 9)] {
                let _ = kind(producers.check_client(&header));
                producers.apply(&header, &[]);
            }
        }
    }

    /// Marker by marker, the open transactions are those of a plain list.
    #[test]
    fn open_transactions_are_those_of_a_plain_list(
        ops in proptest::collection::vec((1i64..5, 0u8..5, any::<bool>()), 1..80),
    ) {
        let mut producers = manager();
        let mut open: Vec<(i64, i64)> = Vec::new();
        let mut undecided_or_unreplicated: Vec<(i64, i64, Option<i64>)> = Vec::new();
        let mut sequences = [0; 5];
        let mut high_watermark = 0;
        for (offset, (pid, op, is_commit)) in ops.into_iter().enumerate() {
            let offset = offset as i64;
            match op {
                0 => {
                    high_watermark = offset;
                    producers.on_high_watermark_updated(high_watermark);
                    producers.append(&data(-1, -1, -1, offset, 1));
                }
                1 => {
                    let completed = producers.append_marker(&marker(pid, 0, 0, offset, is_commit));
                    let first = open.iter().find(|txn| txn.0 == pid).map(|txn| txn.1);
                    prop_assert_eq!(completed.map(|txn| txn.first_offset), first);
                    open.retain(|txn| txn.0 != pid);
                    if let Some(completed) = completed {
                        prop_assert_eq!(completed.is_aborted, !is_commit);
                        let oldest = open.iter().map(|txn| txn.1).min();
                        prop_assert_eq!(completed.last_stable_offset, oldest.unwrap_or(offset + 1));
                        for txn in &mut undecided_or_unreplicated {
                            if txn.0 == pid && txn.2.is_none() {
                                txn.2 = Some(offset);
                            }
                        }
                    }
                }
                _ => {
                    let sequence = &mut sequences[pid as usize];
                    producers.append(&transactional(pid, 0, *sequence, offset));
                    *sequence += 1;
                    if open.iter().all(|txn| txn.0 != pid) {
                        open.push((pid, offset));
                        undecided_or_unreplicated.push((pid, offset, None));
                    }
                }
            }
            undecided_or_unreplicated
                .retain(|txn| txn.2.is_none_or(|marker| marker >= high_watermark));
            let unstable = undecided_or_unreplicated.iter().map(|txn| txn.1).min();
            prop_assert_eq!(producers.first_unstable_offset(), unstable);
            prop_assert_eq!(producers.first_undecided_offset(), open.iter().map(|t| t.1).min());
        }
    }
}
