//! What must hold of every history of unique values, after Jepsen's test of Kafka. Pure: a history in, findings out.
//!
//! All checks hold for producers with acks=all and idempotence against topics that never lose an acknowledged record
//! (no unclean election), once every consumer has read to the end after the last fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::history::{Event, Polled, Value};

/// A partition and an offset.
type Place = (i32, i64);

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Acknowledged, and not read although somebody read past its offset.
    LostWrite(Value, Place),
    /// Acknowledged, and not read by anybody at the end; nobody read as far either.
    Unseen(Value, Place),
    /// Acknowledged without an offset, and not read by anybody at the end.
    UnseenAnywhere(Value, i32),
    /// At two places, though idempotence was on.
    Duplicate(Value, Place, Place),
    /// Two values at one place.
    InconsistentOffset(Place, Value, Value),
    /// Read, though nobody sent it.
    Phantom(Value, Place),
    /// Read or acknowledged, though its producer was told for certain that it was not written.
    FailedWriteRead(Value, Place),
    /// A consumer went from one offset to a later one and left out one at which a value stands.
    PollSkip {
        /// Number of the consumer.
        consumer: u32,
        /// Where it was.
        from: Place,
        /// The first offset it left out.
        left_out: i64,
        /// Where it went.
        to: i64,
    },
    /// A consumer got an offset that is not later than the one before.
    NonMonotonicPoll {
        /// Number of the consumer.
        consumer: u32,
        /// Where it was.
        from: Place,
        /// Where it went.
        to: i64,
    },
    /// A consumer was where nothing is any more.
    PositionLost(u32),
    /// A producer met an answer that its library takes for the end, as a gap in its sequence.
    ProducerLost(u32, String),
    /// Two values of one producer stand in the opposite order of their sending.
    NonMonotonicSend {
        /// Number of the producer.
        producer: u32,
        /// Sent first.
        first: (Value, i64),
        /// Sent later, and at an earlier offset.
        second: (Value, i64),
        /// Partition of both.
        partition: i32,
    },
}

/// The outcome of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Values handed to producers.
    pub sent: usize,
    /// Values acknowledged.
    pub acknowledged: usize,
    /// Values given up.
    pub failed: usize,
    /// Records got by consumers, each as often as it was got.
    pub polled: usize,
    /// Single comparisons made.
    pub checks: usize,
    /// What must not be, in order.
    pub findings: BTreeSet<Finding>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} values sent, {} acknowledged, {} given up, {} records polled, {} checks, {} findings",
            self.sent,
            self.acknowledged,
            self.failed,
            self.polled,
            self.checks,
            self.findings.len()
        )
    }
}

/// What a history says about values and places, whoever said it.
#[derive(Default)]
struct Known {
    sent: BTreeSet<Value>,
    acknowledged: BTreeMap<Value, Place>,
    /// Acknowledged without an offset, and in which partition.
    acknowledged_somewhere: BTreeMap<Value, i32>,
    certainly_failed: BTreeSet<Value>,
    read: BTreeMap<Value, Place>,
    /// Every place at which somebody saw a value.
    values: BTreeMap<Place, Value>,
    highest_read: BTreeMap<i32, i64>,
}

/// Checks a whole history.
#[must_use]
pub fn check(history: &[Event]) -> Verdict {
    let mut verdict = Verdict::default();
    let known = gather(history, &mut verdict);
    check_writes(&known, &mut verdict);
    check_polls(history, &known, &mut verdict);
    check_sends(history, &known, &mut verdict);
    verdict
}

fn gather(history: &[Event], verdict: &mut Verdict) -> Known {
    let mut known = Known::default();
    for event in history {
        match event {
            Event::Send { value, .. } => {
                verdict.sent += 1;
                known.sent.insert(*value);
            }
            Event::Acknowledged {
                value,
                partition,
                offset,
                ..
            } => {
                verdict.acknowledged += 1;
                if let Some(offset) = *offset {
                    let place = (*partition, offset);
                    known.acknowledged.insert(*value, place);
                    see(&mut known, verdict, *value, place);
                } else {
                    known.acknowledged_somewhere.insert(*value, *partition);
                }
            }
            Event::Failed { value, certain, .. } => {
                verdict.failed += 1;
                if *certain {
                    known.certainly_failed.insert(*value);
                }
            }
            Event::Assigned { .. } => {}
            Event::PositionLost { consumer } => {
                verdict.findings.insert(Finding::PositionLost(*consumer));
            }
            Event::ProducerLost { producer, reason } => {
                let finding = Finding::ProducerLost(*producer, reason.clone());
                verdict.findings.insert(finding);
            }
            Event::Poll { records, .. } => {
                verdict.polled += records.len();
                for &Polled {
                    partition,
                    offset,
                    value,
                } in records
                {
                    let highest = known.highest_read.entry(partition).or_insert(offset);
                    *highest = offset.max(*highest);
                    see(&mut known, verdict, value, (partition, offset));
                    known.read.entry(value).or_insert((partition, offset));
                }
            }
        }
    }
    known
}

/// Takes note of a value at a place; it may be at no other, and no other may be there.
fn see(known: &mut Known, verdict: &mut Verdict, value: Value, place: Place) {
    verdict.checks += 2;
    let there = *known.values.entry(place).or_insert(value);
    if there != value {
        let finding = Finding::InconsistentOffset(place, there.min(value), there.max(value));
        verdict.findings.insert(finding);
    }
    let earlier = known
        .read
        .get(&value)
        .or_else(|| known.acknowledged.get(&value));
    if let Some(&other) = earlier.filter(|&&other| other != place) {
        let finding = Finding::Duplicate(value, other.min(place), other.max(place));
        verdict.findings.insert(finding);
    }
}

fn check_writes(known: &Known, verdict: &mut Verdict) {
    for (&value, &place) in &known.acknowledged {
        verdict.checks += 1;
        if known.read.contains_key(&value) {
            continue;
        }
        let (partition, offset) = place;
        let passed = known.highest_read.get(&partition);
        verdict
            .findings
            .insert(if passed.is_some_and(|&highest| highest > offset) {
                Finding::LostWrite(value, place)
            } else {
                Finding::Unseen(value, place)
            });
    }
    for (&value, &partition) in &known.acknowledged_somewhere {
        verdict.checks += 1;
        let place = known.read.get(&value);
        if place.is_none_or(|place| place.0 != partition) {
            verdict
                .findings
                .insert(Finding::UnseenAnywhere(value, partition));
        }
    }
    for (&value, &place) in known.read.iter().chain(&known.acknowledged) {
        verdict.checks += 2;
        if !known.sent.contains(&value) {
            verdict.findings.insert(Finding::Phantom(value, place));
        }
        if known.certainly_failed.contains(&value) {
            verdict
                .findings
                .insert(Finding::FailedWriteRead(value, place));
        }
    }
}

fn check_polls(history: &[Event], known: &Known, verdict: &mut Verdict) {
    let mut positions: BTreeMap<u32, BTreeMap<i32, i64>> = BTreeMap::new();
    for event in history {
        let (consumer, records) = match event {
            Event::Assigned { consumer } => {
                positions.remove(consumer);
                continue;
            }
            Event::Poll { consumer, records } => (*consumer, records),
            _ => continue,
        };
        let positions = positions.entry(consumer).or_default();
        for record in records {
            let to = record.offset;
            let Some(from) = positions.insert(record.partition, to) else {
                continue;
            };
            verdict.checks += 1;
            let place = (record.partition, from);
            if to <= from {
                verdict.findings.insert(Finding::NonMonotonicPoll {
                    consumer,
                    from: place,
                    to,
                });
                continue;
            }
            let between = (record.partition, from + 1)..(record.partition, to);
            if let Some((&(_, left_out), _)) = known.values.range(between).next() {
                verdict.findings.insert(Finding::PollSkip {
                    consumer,
                    from: place,
                    left_out,
                    to,
                });
            }
        }
    }
}

/// Offsets of one producer's values in one partition grow in the order of sending.
fn check_sends(history: &[Event], known: &Known, verdict: &mut Verdict) {
    let mut last: BTreeMap<(u32, i32), (Value, i64)> = BTreeMap::new();
    for event in history {
        let &Event::Send {
            producer,
            value,
            partition,
        } = event
        else {
            continue;
        };
        // One that was never acknowledged may still have been written, and is in its place then as well.
        let place = known
            .acknowledged
            .get(&value)
            .or_else(|| known.read.get(&value));
        let Some(&(_, offset)) = place.filter(|place| place.0 == partition) else {
            continue;
        };
        let second = (value, offset);
        let Some(first) = last.insert((producer, partition), second) else {
            continue;
        };
        verdict.checks += 1;
        if second.1 <= first.1 {
            verdict.findings.insert(Finding::NonMonotonicSend {
                producer,
                first,
                second,
                partition,
            });
        }
    }
}

#[cfg(test)]
#[path = "checkers_tests.rs"]
mod tests;
