//! Crashes and damaged files (cases I01, I02, I03, I07).

use super::*;

/// A log of twelve batches in several segments, left as a crash leaves it.
fn crashed(config: LogConfig) -> Fixture {
    let fixture = Fixture::new(config);
    let log = fixture.open();
    for first in (0..36).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    log.sweep(NOW_MS).expect("swept");
    log.close_files_for_test();
    fixture
}

fn many_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 300,
        ..small_segments()
    }
}

fn numbers(to: i64) -> Vec<(i64, String)> {
    (0..to).map(|number| (number, number.to_string())).collect()
}

#[test]
fn a_log_cut_at_any_byte_keeps_its_whole_batches() {
    let batch_bytes = batch(0, 3).len();
    let one_segment = LogConfig {
        index_interval_bytes: 100,
        ..LogConfig::default()
    };
    let fixture = crashed(one_segment);
    let path = files(&fixture.dir(), ".log").remove(0);
    let whole = std::fs::read(&path).expect("read");
    for cut in (0..=whole.len()).rev().take(3 * batch_bytes + 1) {
        std::fs::write(&path, &whole[..cut]).expect("written");
        let log = fixture.open_after_crash(0);
        let kept = whole[..cut].len().min(whole.len());
        let expected = numbers(Batches::new(&whole[..kept]).count() as i64 * 3);
        assert_eq!(log.log_end_offset(), expected.len() as i64, "cut at {cut}");
        assert_eq!(read_all(&log, 0), expected);
        let next = append(&log, &batch(100, 1)).expect("appended");
        assert_eq!(next.base_offset, expected.len() as i64);
    }
}

#[test]
fn a_flipped_byte_past_the_recovery_point_cuts_there() {
    let fixture = crashed(LogConfig::default());
    let path = files(&fixture.dir(), ".log").remove(0);
    let whole = std::fs::read(&path).expect("read");
    let batch_bytes = batch(33, 3).len();
    let last = whole.len() - batch_bytes;
    for at in last..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, &flipped).expect("written");
        let log = fixture.open_after_crash(0);
        // Base offset and leader epoch lie outside the checksum.
        let in_epoch = (12..16).contains(&(at - last));
        let in_base_offset = at - last < 8;
        if in_epoch || (in_base_offset && log.log_end_offset() > 36) {
            continue;
        }
        assert_eq!(read_all(&log, 0), numbers(33), "flipped at {at}");
    }
}

#[test]
fn damage_right_where_the_walk_begins_does_not_give_offsets_away_twice() {
    let an_entry_a_batch = LogConfig {
        index_interval_bytes: 1,
        ..LogConfig::default()
    };
    let fixture = crashed(an_entry_a_batch);
    let path = files(&fixture.dir(), ".log").remove(0);
    let mut damaged = std::fs::read(&path).expect("read");
    let last_byte = damaged.len() - 1;
    damaged[last_byte] ^= 0x10;
    std::fs::write(&path, &damaged).expect("written");
    // The recovery point lies in the last batch, so that the walk begins with it.
    let log = fixture.open_after_crash(35);
    assert_eq!(log.log_end_offset(), 33);
    assert_eq!(read_all(&log, 0), numbers(33));
    let next = append(&log, &batch(33, 1)).expect("appended");
    assert_eq!(next.base_offset, 33);
}

#[test]
fn zeros_and_garbage_at_the_end_are_cut_off() {
    let fixture = crashed(LogConfig::default());
    let path = files(&fixture.dir(), ".log").remove(0);
    let whole = std::fs::read(&path).expect("read");
    for tail in [
        vec![0; 5],
        vec![0; 5000],
        vec![0xff; 700],
        b"GET / HTTP/1.1".to_vec(),
    ] {
        let mut longer = whole.clone();
        longer.extend_from_slice(&tail);
        std::fs::write(&path, &longer).expect("written");
        let log = fixture.open_after_crash(0);
        assert_eq!(read_all(&log, 0), numbers(36));
        assert_eq!(
            std::fs::metadata(&path).expect("there").len(),
            whole.len() as u64
        );
        // After a clean stop as well: somebody else wrote it.
        std::fs::write(&path, &longer).expect("written");
        assert_eq!(read_all(&fixture.open_with(true, 36), 0), numbers(36));
    }
}

#[test]
fn impossible_lengths_in_the_middle_cut_there() {
    for length in [0x7fff_ffff_i32, 0, -5, 48] {
        let fixture = crashed(small_segments());
        let path = files(&fixture.dir(), ".log").remove(1);
        let mut bytes = std::fs::read(&path).expect("read");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        std::fs::write(&path, &bytes).expect("written");
        let log = fixture.open_after_crash(0);
        let kept = log.log_end_offset();
        assert!(kept > 0 && kept < 36);
        assert_eq!(read_all(&log, 0), numbers(kept));
        append(&log, &batch(0, 1)).expect("appended");
    }
}

#[test]
fn damage_below_the_recovery_point_is_left_to_readers() {
    let fixture = crashed(small_segments());
    let path = files(&fixture.dir(), ".log").remove(0);
    let mut bytes = std::fs::read(&path).expect("read");
    let len = bytes.len();
    bytes[len - 1] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let log = fixture.open_after_crash(36);
    assert_eq!(log.log_end_offset(), 36);
}

#[test]
fn a_hole_between_two_segments_is_told() {
    for (was_clean, recovery_point) in [(true, 36), (false, 36), (false, 0)] {
        let fixture = crashed(many_segments());
        let logs = files(&fixture.dir(), ".log");
        let base =
            |path: &Path| crate::segment::base_offset_of(path.file_name()?.to_str()?, ".log");
        let (from, to) = (
            base(&logs[1]).expect("a log"),
            base(&logs[2]).expect("a log"),
        );
        let (_, text) = logged(|| fixture.open_with(was_clean, recovery_point));
        assert!(!text.contains("a hole"), "{text}");
        std::fs::remove_file(&logs[1]).expect("removed");
        let (log, text) = logged(|| fixture.open_with(was_clean, recovery_point));
        let offsets = format!("topic_partition=t-0 first_missing_offset={from} next_offset={to}");
        assert!(text.contains(" WARN ") && text.contains(&offsets), "{text}");
        let kept = numbers(from)
            .into_iter()
            .chain(numbers(36).split_off(to as usize));
        assert_eq!(read_all(&log, 0), kept.collect::<Vec<_>>());
    }
}

#[test]
fn what_compaction_took_is_no_hole() {
    let mut fixture = crashed(many_segments());
    let gone = files(&fixture.dir(), ".log").remove(1);
    std::fs::remove_file(gone).expect("removed");
    let tp = TopicPartition::new("t", 0);
    fixture
        .log_dir
        .cleaner_offsets
        .set(&tp, 30)
        .expect("written");
    let (_, text) = logged(|| fixture.open_with(true, 36));
    assert!(!text.contains("a hole"), "{text}");
    fixture
        .log_dir
        .cleaner_offsets
        .remove(&tp)
        .expect("written");
    fixture.config.cleanup_policy.compact = true;
    let (_, text) = logged(|| fixture.open_with(true, 36));
    assert!(!text.contains("a hole"), "{text}");
}

#[test]
fn a_recovery_point_behind_the_end_is_told_and_not_believed() {
    for was_clean in [true, false] {
        let fixture = crashed(many_segments());
        let path = files(&fixture.dir(), ".log").remove(1);
        let mut bytes = std::fs::read(&path).expect("read");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let (log, text) = logged(|| fixture.open_with(was_clean, 37));
        let offsets = "log_end_offset=36 recovery_point=37";
        assert!(text.contains(" WARN ") && text.contains(offsets), "{text}");
        let end = log.log_end_offset();
        assert!(end < 36, "the damage is found");
        assert_eq!(read_all(&log, 0), numbers(end));
        assert!(log.recovery_point() <= end);
        assert_eq!(
            append(&log, &batch(end, 1)).expect("appended").base_offset,
            end
        );
    }
}

#[test]
fn damaged_indexes_are_built_again() {
    type Damage = fn(&Path, &[u8]);
    let damages: [(&str, Damage); 6] = [
        ("removed", |path, _| {
            std::fs::remove_file(path).expect("removed")
        }),
        ("odd length", |path, bytes| {
            std::fs::write(path, [bytes, &[1, 2, 3]].concat()).expect("written");
        }),
        ("garbage", |path, _| {
            std::fs::write(path, [0xa5; 240]).expect("written")
        }),
        ("zeros", |path, _| {
            std::fs::write(path, [0; 240]).expect("written")
        }),
        ("empty", |path, _| {
            std::fs::write(path, []).expect("written")
        }),
        ("past the end", |path, bytes| {
            let stale = if path.extension().is_some_and(|kind| kind == "index") {
                [
                    [0, 0, 3, 0, 0, 0, 9, 0].as_slice(),
                    &[0, 0, 4, 0, 0, 1, 9, 0],
                ]
                .concat()
            } else {
                [NOW_MS.to_be_bytes().as_slice(), &[0, 0, 3, 0]].concat()
            };
            std::fs::write(path, [bytes, stale.as_slice()].concat()).expect("written");
        }),
    ];
    for kind in [".index", ".timeindex"] {
        for (name, damage) in damages {
            for was_clean in [true, false] {
                let fixture = crashed(small_segments());
                let good: Vec<_> = files(&fixture.dir(), kind)
                    .into_iter()
                    .map(|path| (std::fs::read(&path).expect("read"), path))
                    .collect();
                for (bytes, path) in &good {
                    damage(path, bytes);
                }
                let log = fixture.open_with(was_clean, if was_clean { 36 } else { 20 });
                for offset in 0..36 {
                    assert_eq!(
                        read_all(&log, offset),
                        numbers(36)[offset as usize..],
                        "{kind} {name}"
                    );
                    let found = log
                        .offset_for_timestamp(NOW_MS + offset, 36)
                        .expect("readable");
                    assert_eq!(
                        found.expect("there").offset,
                        offset,
                        "{kind} {name} {was_clean}"
                    );
                }
                let max = log
                    .offset_of_max_timestamp(36)
                    .expect("readable")
                    .expect("there");
                assert_eq!(max.offset, 35, "{kind} {name} {was_clean}");
                append(&log, &batch(36, 3)).expect("appended");
                log.sweep(NOW_MS).expect("swept");
                log.close().expect("closed");
                // Neither can be told from a good index without reading the whole segment, and neither misleads.
                if name == "empty" || (name == "past the end" && was_clean) {
                    continue;
                }
                for (bytes, path) in good.iter().rev().skip(1) {
                    assert_eq!(
                        &std::fs::read(path).expect("read"),
                        bytes,
                        "{kind} {name} {was_clean}"
                    );
                }
            }
        }
    }
}

#[test]
fn clean_stops_one_after_the_other_leave_indexes_that_fit() {
    let fixture = Fixture::new(LogConfig::default());
    for stop in 0..5 {
        let (log, text) = logged(|| fixture.open_with(true, stop));
        assert_eq!(text, "", "after {stop} clean stops");
        append(&log, &batch(stop, 1)).expect("appended");
        log.close().expect("closed");
    }
    let index = files(&fixture.dir(), ".timeindex").remove(0);
    let kept = std::fs::read(&index).expect("read");
    assert_eq!(kept.len(), 5 * 12, "an entry a stop");
    // One that is not of a stop is found all the same.
    let mut wrong = kept.clone();
    wrong[2 * 12 + 11] ^= 1;
    std::fs::write(&index, &wrong).expect("written");
    let (_, text) = logged(|| fixture.open_with(true, 5));
    assert!(text.contains("building the indexes again"), "{text}");
}

#[test]
fn a_segment_of_no_bytes_is_a_log_that_goes_on() {
    let fixture = crashed(small_segments());
    let last = files(&fixture.dir(), ".log").pop().expect("some");
    let base: i64 = last
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse().ok())
        .expect("a number");
    std::fs::write(&last, []).expect("written");
    let log = fixture.open_after_crash(0);
    assert_eq!(log.log_end_offset(), base);
    assert_eq!(
        append(&log, &batch(0, 1)).expect("appended").base_offset,
        base
    );
}

#[test]
fn leftovers_of_a_crash_are_cleared_away() {
    let fixture = crashed(small_segments());
    let name = |suffix: &str| fixture.dir().join(format!("00000000000000000000{suffix}"));
    for suffix in [".log.cleaned", ".index.swap", ".log.tmp", ".log.deleted"] {
        std::fs::write(name(suffix), b"x").expect("written");
    }
    let orphan = fixture.dir().join("00000000000000000999.index");
    std::fs::write(&orphan, [0; 8]).expect("written");
    let log = fixture.open_after_crash(0);
    for suffix in [".log.cleaned", ".index.swap", ".log.tmp", ".log.deleted"] {
        assert!(!name(suffix).exists(), "{suffix}");
    }
    assert!(!orphan.exists());
    assert_eq!(read_all(&log, 0), numbers(36));
}

#[test]
fn a_swap_that_a_crash_interrupted_is_finished() {
    let fixture = crashed(small_segments());
    let logs = files(&fixture.dir(), ".log");
    // A compacted segment over the first two: here, of their first and their last batch.
    let first = std::fs::read(&logs[0]).expect("read");
    let second = std::fs::read(&logs[1]).expect("read");
    let head = Batches::new(&first).next().expect("some").expect("good").1;
    let tail = Batches::new(&second).last().expect("some").expect("good").1;
    let mut swap = logs[0].clone().into_os_string();
    swap.push(".swap");
    std::fs::write(swap, [head, tail].concat()).expect("written");
    let log = fixture.open_after_crash(36);
    assert_eq!(files(&fixture.dir(), ".log").len(), logs.len() - 1);
    let all: Vec<_> = read_all(&log, 0)
        .into_iter()
        .map(|(offset, _)| offset)
        .collect();
    assert_eq!(&all[..4], &[0, 1, 2, all[3]]);
    assert!(all[3] > 3);
    assert_eq!(*all.last().expect("some"), 35);
}

#[test]
fn epochs_come_back_from_the_batches_when_their_file_is_lost() {
    let fixture = crashed(small_segments());
    for damage in [None, Some("0\n5\n"), Some("")] {
        let path = fixture.dir().join("leader-epoch-checkpoint");
        match damage {
            None => std::fs::remove_file(&path).expect("removed"),
            Some(text) => std::fs::write(&path, text).expect("written"),
        }
        let log = fixture.open_after_crash(36);
        assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
        assert_eq!(
            log.end_offset_for_epoch(LeaderEpoch(0)),
            Some((LeaderEpoch(0), 36))
        );
    }
}

#[test]
fn an_epoch_that_begins_behind_the_end_is_not_believed() {
    let fixture = crashed(small_segments());
    let path = fixture.dir().join("leader-epoch-checkpoint");
    // The file was on disk before the records of epoch 7 were, and those of epoch 9.
    std::fs::write(&path, "0\n3\n0 0\n7 36\n9 50\n").expect("written");
    let log = fixture.open_after_crash(36);
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(7)), None);
}
