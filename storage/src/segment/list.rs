//! The ordered set of a log's segments; replaced as a whole, so readers need no lock.

use std::sync::Arc;

use super::Segment;

/// Segments in order of their base offsets. Never empty once the log is open; the last one is the active one.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentList(Vec<Arc<Segment>>);

impl SegmentList {
    pub(crate) fn new(segments: Vec<Arc<Segment>>) -> Self {
        debug_assert!(segments.is_sorted_by(|a, b| a.base_offset() < b.base_offset()));
        Self(segments)
    }

    pub(crate) fn as_slice(&self) -> &[Arc<Segment>] {
        &self.0
    }

    /// The segment that is appended to.
    pub(crate) fn active(&self) -> Option<&Arc<Segment>> {
        self.0.last()
    }

    /// Index of the segment that `offset` lies in or, if it has gone, the first one after it.
    pub(crate) fn floor(&self, offset: i64) -> usize {
        self.0
            .partition_point(|segment| segment.base_offset() <= offset)
            .saturating_sub(1)
    }

    /// Where the segment at `index` ends: at the next one's beginning, or at the log's end.
    pub(crate) fn end_offset_of(&self, index: usize, log_end_offset: i64) -> i64 {
        self.0
            .get(index + 1)
            .map_or(log_end_offset, |next| next.base_offset())
    }

    /// The bytes of all segments.
    pub(crate) fn size_in_bytes(&self) -> u64 {
        self.0.iter().map(|segment| u64::from(segment.size())).sum()
    }

    /// This list and one more segment.
    pub(crate) fn with(&self, segment: Arc<Segment>) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self::new(segments)
    }
}
