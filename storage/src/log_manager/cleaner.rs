//! Choosing the log that needs compaction most.

use crate::log::CompactionError;

use super::LogManager;

impl LogManager {
    /// Changes how many bytes compaction may read and write in a second
    /// (`log.cleaner.io.max.bytes.per.second`), also while it runs.
    pub fn set_cleaner_io_max_bytes_per_second(&self, bytes_per_second: f64) {
        self.cleaner_throttle.set_rate(bytes_per_second);
    }

    /// Ends compaction for good, in the middle of a log too: what it was writing goes, and the next start begins again.
    pub fn stop_cleaner(&self) {
        self.cleaner_throttle.stop();
    }

    /// Compacts the filthiest log, if one is due; whether one was. Takes as long as the log is large, so it wants
    /// a thread of its own.
    pub fn run_cleaner(&self, now_ms: i64) -> bool {
        if !self.settings.cleaner_enabled {
            return false;
        }
        let mut filthiest = None;
        for log in self.logs() {
            if self.uncleanable.lock().contains(log.topic_partition()) {
                continue;
            }
            match log.filth(now_ms) {
                Ok(Some(filth)) => {
                    if filthiest
                        .as_ref()
                        .is_none_or(|(_, known): &(_, crate::log::Filth)| {
                            filth.dirty_ratio > known.dirty_ratio
                        })
                    {
                        filthiest = Some((log, filth));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(topic_partition = %log.topic_partition(), %error, "cannot tell whether compaction is due");
                }
            }
        }
        let Some((log, filth)) = filthiest else {
            return false;
        };
        let map_bytes = self.settings.cleaner_dedupe_buffer_bytes;
        match log.compact(&filth, map_bytes, &self.cleaner_throttle, now_ms) {
            Ok(()) => true,
            Err(CompactionError::Stopped) => false,
            Err(CompactionError::Damaged(reason)) => {
                tracing::error!(topic_partition = %log.topic_partition(), reason, "compaction failed, not trying again until the next start");
                self.uncleanable
                    .lock()
                    .insert(log.topic_partition().clone());
                true
            }
            Err(error) => {
                tracing::warn!(topic_partition = %log.topic_partition(), %error, "compaction failed, trying again later");
                false
            }
        }
    }
}
