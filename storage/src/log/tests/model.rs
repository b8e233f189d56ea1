//! Random verbs on a log and on a list of batches; both must agree all the time.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Verb {
    Append { count: i64 },
    Truncate { back: i64 },
    DeleteRecords { forward: i64 },
    Retention,
    Sweep,
    CleanReopen,
    Crash { synced: bool },
    CrashCut { bytes: u64 },
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        8 => (1i64..6).prop_map(|count| Verb::Append { count }),
        1 => (0i64..12).prop_map(|back| Verb::Truncate { back }),
        1 => (0i64..12).prop_map(|forward| Verb::DeleteRecords { forward }),
        1 => Just(Verb::Retention),
        1 => Just(Verb::Sweep),
        1 => Just(Verb::CleanReopen),
        1 => any::<bool>().prop_map(|synced| Verb::Crash { synced }),
        1 => (0u64..300).prop_map(|bytes| Verb::CrashCut { bytes }),
    ]
}

/// What the log should hold: batches of (first offset, values).
#[derive(Debug, Default)]
struct Model {
    batches: Vec<(i64, Vec<String>)>,
    start: i64,
    end: i64,
    /// Where the log began anew, having lost what its start was set to.
    floor: i64,
}

impl Model {
    fn truncate(&mut self, offset: i64) {
        self.batches
            .retain(|(first, values)| first + values.len() as i64 <= offset);
        if offset < self.end {
            self.end = self
                .batches
                .last()
                .map_or(0, |(first, values)| first + values.len() as i64)
                .max(self.floor);
        }
    }

    fn records(&self, from: i64) -> Vec<(i64, String)> {
        self.batches
            .iter()
            .flat_map(|(first, values)| (*first..).zip(values.iter().cloned()))
            .filter(|(offset, _)| *offset >= from)
            .collect()
    }
}

fn check(log: &Log, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(log.log_end_offset(), model.end);
    prop_assert_eq!(log.log_start_offset(), model.start);
    prop_assert_eq!(read_all(log, model.start), model.records(model.start));
    let middle = (model.start + model.end) / 2;
    prop_assert_eq!(read_all(log, middle), model.records(middle));
    Ok(())
}

fn run(fixture: &Fixture, verbs: Vec<Verb>) -> Result<(), TestCaseError> {
    let mut log = fixture.open();
    let mut model = Model::default();
    let mut number = 0;
    for verb in verbs {
        match verb {
            Verb::Append { count } => {
                let values = (number..number + count)
                    .map(|n: i64| n.to_string())
                    .collect();
                append(&log, &batch(number, count)).expect("appended");
                model.batches.push((model.end, values));
                model.end += count;
                number += count;
            }
            Verb::Truncate { back } => {
                let offset = (model.end - back).max(model.start);
                log.truncate_to(offset).expect("truncated");
                model.truncate(offset);
                // A batch across the log's start is dropped with what follows.
                model.start = model.start.min(model.end);
                if log.log_start_offset() > log.log_end_offset() {
                    return Err(TestCaseError::fail("the start is past the end"));
                }
            }
            Verb::DeleteRecords { forward } => {
                let offset = (model.start + forward).min(model.end);
                log.set_high_watermark(model.end);
                model.start = log.increment_log_start_offset(offset).expect("moved");
            }
            Verb::Retention => {
                log.set_high_watermark(model.end);
                log.enforce_retention(NOW_MS).expect("retention");
            }
            Verb::Sweep => log.sweep(NOW_MS).expect("swept"),
            Verb::CleanReopen => {
                log.close().expect("closed");
                log = fixture.open_with(true, model.end);
            }
            Verb::Crash { synced } => {
                let recovery_point = if synced { log.recovery_point() } else { 0 };
                log.close_files_for_test();
                drop(log);
                log = fixture.open_after_crash(recovery_point);
            }
            Verb::CrashCut { bytes } => {
                log.close_files_for_test();
                let path = files(&fixture.dir(), ".log").pop().expect("some");
                let len = std::fs::metadata(&path).expect("there").len();
                let base: i64 = path
                    .file_stem()
                    .and_then(|stem| stem.to_str()?.parse().ok())
                    .expect("a number");
                let kept = len.saturating_sub(bytes);
                std::fs::OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .and_then(|file| file.set_len(kept))
                    .expect("cut");
                drop(log);
                log = fixture.open_after_crash(0);
                let end = log.log_end_offset();
                prop_assert!(end >= base && end <= model.end);
                model.truncate(end);
                if model.end < end {
                    model.floor = end;
                }
                model.end = end;
                model.start = log.log_start_offset();
            }
        }
        check(&log, &model)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_log_is_what_its_model_is(verbs in proptest::collection::vec(verb(), 1..60)) {
        run(&Fixture::new(small_segments()), verbs)?;
    }

    #[test]
    fn every_offset_and_limit_gives_whole_batches_below_the_bound(
        counts in proptest::collection::vec(1i64..5, 1..30),
        offset in 0i64..80,
        max_bytes in 0usize..900,
        bound in 0i64..90,
    ) {
        let fixture = Fixture::new(small_segments());
        let log = fixture.open();
        let mut batches = Vec::new();
        let mut end = 0;
        for count in counts {
            let bytes = batch(end, count);
            append(&log, &bytes).expect("appended");
            batches.push((end, end + count, bytes.len()));
            end += count;
        }
        prop_assume!(offset <= end);
        let read = log.read(offset, max_bytes, bound, true).expect("readable");
        let got: Vec<i64> = records(&read.records).into_iter().map(|(at, _)| at).collect();
        let mut expected = batches
            .iter()
            .filter(|(_, next, _)| *next > offset && *next <= bound);
        match expected.next() {
            None => prop_assert!(got.is_empty()),
            _ if offset >= bound => prop_assert!(got.is_empty()),
            Some((first, next, size)) => {
                // At least that one, then whole ones while they fit; a segment's end may end it sooner.
                prop_assert!(got.len() as i64 >= next - first);
                prop_assert_eq!(got[0], *first);
                prop_assert!(read.records.len() <= max_bytes.max(*size));
                let last = got[got.len() - 1] + 1;
                prop_assert!(last <= bound);
                prop_assert!(batches.iter().any(|(_, next, _)| *next == last));
                let segment_ends = last == end || {
                    let next = log.read(last, 1, i64::MAX, true).expect("readable");
                    next.segment_base_offset != read.segment_base_offset
                };
                let following = batches.iter().find(|(first, _, _)| *first == last);
                let fits = following.is_some_and(|(_, next, size)| {
                    *next <= bound && read.records.len() + size <= max_bytes
                });
                prop_assert!(segment_ends || !fits);
            }
        }
    }
}
