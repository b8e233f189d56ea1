//! Making sure of a log's tail when it is opened.
//!
//! After a clean stop only the batches behind the last index entry of the active segment are looked at, and only
//! their headers. After a crash everything from the recovery point on is read, checksums included, and cut off at
//! the first byte that is wrong; what precedes it was on disk for sure.

use crate::errors::StorageError;
use crate::index::{OffsetEntry, TimeEntry};
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::record_batch::{BatchHeader, verify_crc};
use crate::segment::{IndexBuilder, Segment};
use crate::types::LeaderEpoch;

/// How sure the batches are before they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Written before a clean stop.
    Headers,
    /// A crash may have left anything from this offset on.
    NothingFrom(i64),
}

/// A segment's tail after it was walked over.
#[derive(Debug)]
pub(super) struct Tail {
    /// The offset after the last good batch.
    pub(super) next_offset: i64,
    /// What the indexes go on with.
    pub(super) index_builder: IndexBuilder,
    /// Something was wrong and has been cut off.
    pub(super) was_cut: bool,
}

/// Where a walk begins, and the index entries that stay.
struct Start {
    position: u32,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

impl Start {
    fn of_segment() -> Self {
        Self {
            position: 0,
            offsets: Vec::new(),
            times: Vec::new(),
        }
    }

    /// The last index entry at or before `offset`, if both indexes make sense and a batch lies there.
    fn at_index_entry(segment: &Segment, offset: i64) -> Self {
        let entries = || {
            let mut offsets = segment.offset_index.entries().ok()?;
            let mut times = segment.time_index.entries().ok()?;
            offsets.retain(|entry| entry.offset <= offset && entry.position < segment.size());
            let last = *offsets.last()?;
            let found = segment.find(last.offset, segment.size()).ok()??;
            if found.position != last.position {
                return None;
            }
            times.retain(|entry| entry.offset <= last.offset);
            Some(Self {
                position: last.position,
                offsets,
                times,
            })
        };
        entries().unwrap_or_else(Self::of_segment)
    }
}

/// The time index as it was found, and which of its entries are right although no interval was over: what the largest
/// timestamp was at a clean stop.
struct FoundTimes {
    entries: Vec<TimeEntry>,
    is_right: Vec<bool>,
    next: usize,
}

impl FoundTimes {
    fn of(segment: &Segment) -> Option<Self> {
        let entries = segment.time_index.entries().ok()?;
        Some(Self {
            is_right: vec![false; entries.len()],
            entries,
            next: 0,
        })
    }

    /// Hears of the largest timestamp after each batch.
    fn on_max(&mut self, max: TimeEntry) {
        while self
            .entries
            .get(self.next)
            .is_some_and(|entry| entry.timestamp < max.timestamp)
        {
            self.next += 1;
        }
        if self.entries.get(self.next) == Some(&max) {
            self.is_right[self.next] = true;
        }
    }

    /// Whether it has all of `times`, and nothing else that is wrong.
    fn fits(&self, times: &[TimeEntry]) -> bool {
        let mut times = times.iter().peekable();
        let mut entries = self.entries.iter().zip(&self.is_right);
        entries.all(|(entry, is_right)| times.next_if_eq(&entry).is_some() || *is_right)
            && times.next().is_none()
    }
}

/// Walks over the tail of `segment`, cuts off what is wrong, and makes both sparse indexes fit.
pub(super) fn recover_segment(
    segment: &mut Segment,
    trust: Trust,
    epochs: &mut LeaderEpochCache,
    index_interval_bytes: u32,
    is_active: bool,
) -> Result<Tail, StorageError> {
    let start = match trust {
        Trust::Headers => Start::at_index_entry(segment, i64::MAX),
        Trust::NothingFrom(offset) if offset > segment.base_offset() => {
            Start::at_index_entry(segment, offset)
        }
        Trust::NothingFrom(_) => Start::of_segment(),
    };
    let from = |segment: &mut Segment, epochs: &mut LeaderEpochCache, start| {
        recover_from(
            segment,
            start,
            trust,
            epochs,
            index_interval_bytes,
            is_active,
        )
    };
    match from(segment, epochs, start)? {
        Some(tail) => Ok(tail),
        // Not one good batch from the entry on: where the kept part ends is only known by walking
        // over it.
        None => from(segment, epochs, Start::of_segment())?.ok_or_else(|| {
            StorageError::corrupt(segment.path(), "a walk from the start found no end")
        }),
    }
}

/// Recovers from `start` on; None, with nothing changed, when that is not the segment's start and
/// no good batch follows, so that the log's end is not known.
fn recover_from(
    segment: &mut Segment,
    start: Start,
    trust: Trust,
    epochs: &mut LeaderEpochCache,
    index_interval_bytes: u32,
    is_active: bool,
) -> Result<Option<Tail>, StorageError> {
    let Start {
        position: start_position,
        mut offsets,
        mut times,
    } = start;
    let mut walked_any = false;
    let mut builder = IndexBuilder::after(times.last().copied());
    let mut found_times = FoundTimes::of(segment);
    let mut next_offset = segment.base_offset();
    let end = segment.scan(start_position, segment.size(), |position, header, bytes| {
        check(header, bytes, next_offset, trust)?;
        walked_any = true;
        next_offset = header.next_offset();
        epochs.assign(
            LeaderEpoch(header.partition_leader_epoch),
            header.base_offset,
        );
        if let Some((offset, time)) = builder.on_batch(header, position, index_interval_bytes) {
            offsets.push(offset);
            if times
                .last()
                .is_none_or(|last| time.timestamp > last.timestamp)
            {
                times.push(time);
            }
        }
        if let (Some(found), Some(max)) = (&mut found_times, builder.max_timestamp()) {
            found.on_max(max);
        }
        Ok(())
    })?;
    if start_position > 0 && !walked_any {
        return Ok(None);
    }
    let was_cut = end.damage.is_some();
    if let Some(damage) = end.damage {
        tracing::warn!(
            segment = %segment.path().display(), position = end.position, size = segment.size(),
            offset = next_offset, %damage, "cutting off a damaged tail"
        );
        segment.cut_to(end.position)?;
    }
    // A roll adds the largest timestamp as the last entry.
    if let Some(max) = builder.max_timestamp()
        && !is_active
        && times
            .last()
            .is_none_or(|last| max.timestamp > last.timestamp)
    {
        times.push(max);
    }
    let times_fit = found_times.is_some_and(|found| found.fits(&times));
    replace_if_changed(segment, &offsets, &times, times_fit, trust)?;
    segment.set_max_timestamp(builder.max_timestamp());
    Ok(Some(Tail {
        next_offset,
        index_builder: builder,
        was_cut,
    }))
}

fn check(header: &BatchHeader, bytes: &[u8], next_offset: i64, trust: Trust) -> Result<(), String> {
    if header.base_offset < next_offset || header.last_offset_delta < 0 {
        return Err(format!(
            "offsets {} to {} after {next_offset}",
            header.base_offset,
            header.last_offset()
        ));
    }
    if trust == Trust::Headers {
        return Ok(());
    }
    verify_crc(bytes).map_err(|error| error.to_string())
}

fn replace_if_changed(
    segment: &Segment,
    offsets: &[OffsetEntry],
    times: &[TimeEntry],
    times_fit: bool,
    trust: Trust,
) -> Result<(), StorageError> {
    let fits = segment
        .offset_index
        .entries()
        .is_ok_and(|known| known == offsets)
        && times_fit;
    if fits {
        return Ok(());
    }
    if trust == Trust::Headers {
        tracing::warn!(segment = %segment.path().display(), "building the indexes again");
    }
    segment
        .offset_index
        .replace(offsets)
        .and_then(|()| segment.time_index.replace(times))
        .map_err(|error| StorageError::io("build the indexes of", segment.path(), error))
}
