//! The second half of a deletion of records: waiting until every live replica has done it.

use std::sync::Arc;

use tokio::sync::Notify;

use super::error::PartitionError;
use super::offset_watch::Registration;
use super::partition::Partition;

/// Waits until no live replica of a partition has records before an offset.
#[derive(Debug)]
pub struct LowWatermarkWait {
    partition: Arc<Partition>,
    required_offset: i64,
    notify: Arc<Notify>,
    _registration: Registration,
}

impl LowWatermarkWait {
    /// Waits for `required_offset`.
    #[must_use]
    pub fn new(partition: Arc<Partition>, required_offset: i64) -> Self {
        let notify = Arc::new(Notify::new());
        let watch = partition.low_watermark_watch();
        let registration = watch.register(required_offset, Arc::clone(&notify));
        Self {
            partition,
            required_offset,
            notify,
            _registration: registration,
        }
    }

    /// Completes with the low watermark. The caller sets the time limit.
    ///
    /// # Errors
    /// The leadership was lost; this leader's own records are deleted.
    pub async fn reached(&self) -> Result<i64, PartitionError> {
        loop {
            let low_watermark = self.partition.low_watermark()?;
            if low_watermark >= self.required_offset {
                return Ok(low_watermark);
            }
            self.notify.notified().await;
        }
    }
}
