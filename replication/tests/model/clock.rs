//! A broker's clock: it never goes back, but may run fast or slow, and begins anywhere.

/// How a clock differs from true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    /// What it shows at the beginning of time.
    pub(crate) offset_ms: i64,
    /// How many milliseconds it counts in a true second.
    pub(crate) rate_per_mille: i64,
}

impl Clock {
    /// True time.
    pub(crate) const TRUE: Self = Self {
        offset_ms: 0,
        rate_per_mille: 1000,
    };

    /// What it shows at a true time.
    pub(crate) fn read(self, true_ms: i64) -> i64 {
        self.offset_ms + true_ms * self.rate_per_mille / 1000
    }
}
