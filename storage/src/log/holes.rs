//! Holes: offsets that are in no segment though segments lie before and behind them, as when a file was lost.

use std::ops::Range;

use crate::segment::Segment;
use crate::types::TopicPartition;

/// Tells of the offsets between `segments` that are gone. Up to `compacted_below` compaction may have taken them.
pub(super) fn report_holes(
    topic_partition: &TopicPartition,
    segments: &[Segment],
    compacted_below: i64,
) {
    for hole in find_holes(segments, compacted_below) {
        tracing::warn!(
            %topic_partition, first_missing_offset = hole.start, next_offset = hole.end,
            "a hole between two segments: the records in it are gone, readers go on behind it"
        );
    }
}

fn find_holes(segments: &[Segment], compacted_below: i64) -> Vec<Range<i64>> {
    let mut holes = Vec::new();
    for (segment, next) in segments.iter().zip(segments.iter().skip(1)) {
        if next.base_offset() <= compacted_below {
            continue;
        }
        match segment.next_offset() {
            Ok(end_offset) if end_offset < next.base_offset() => {
                holes.push(end_offset..next.base_offset());
            }
            Ok(_) => {}
            // Bad bytes are reported to whoever reads them.
            Err(error) => tracing::debug!(%error, "cannot tell where a segment ends"),
        }
        segment.close();
    }
    holes
}
