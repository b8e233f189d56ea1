//! What the server has done from time to time, and at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::checkpoint::CleanShutdownMark;
use crate::errors::StorageError;
use crate::log::Log;
use crate::types::TopicPartition;

use super::LogManager;

impl LogManager {
    /// Deletes what retention says, and forgets idle producers. Gives the logs whose start moved.
    pub fn run_retention(&self, now_ms: i64) -> Vec<TopicPartition> {
        let mut moved = Vec::new();
        for log in self.logs() {
            match log.enforce_retention(now_ms) {
                Ok(true) => moved.push(log.topic_partition().clone()),
                Ok(false) | Err(StorageError::Closed(_) | StorageError::Offline { .. }) => {}
                Err(error) => {
                    tracing::error!(topic_partition = %log.topic_partition(), %error, "retention failed");
                }
            }
        }
        moved
    }

    /// Flushes logs whose `flush.ms` is over and segments that were rolled, builds damaged indexes again, and
    /// closes idle files.
    pub fn run_flush(&self, now_ms: i64) {
        for log in self.logs() {
            if let Err(error) = log.sweep(now_ms) {
                tracing::error!(topic_partition = %log.topic_partition(), %error, "flush failed");
            }
        }
    }

    /// Writes recovery points, high watermarks and log starts.
    ///
    /// # Errors
    /// When one cannot be written; the others have been tried.
    pub fn write_checkpoints(&self) -> Result<(), StorageError> {
        let logs = self.logs();
        let mut result = Ok(());
        for log_dir in &self.dirs {
            let path = log_dir.path();
            let mine: BTreeMap<&TopicPartition, &Arc<Log>> = logs
                .iter()
                .filter(|log| log.log_dir() == path)
                .map(|log| (log.topic_partition(), log))
                .collect();
            let recovery_points = mine
                .iter()
                .map(|(tp, log)| ((*tp).clone(), log.recovery_point()))
                .collect();
            let high_watermarks = mine
                .iter()
                .map(|(tp, log)| ((*tp).clone(), log.high_watermark()))
                .collect();
            let starts = mine
                .iter()
                .filter(|(_, log)| log.has_start_inside_segment())
                .map(|(tp, log)| ((*tp).clone(), log.log_start_offset()))
                .collect();
            for written in [
                log_dir.recovery_points.replace(recovery_points),
                log_dir.high_watermarks.replace(high_watermarks),
                log_dir.log_start_offsets.replace(starts),
            ] {
                if let Err(error) = written {
                    log_dir.note_error(&error);
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Removes files and directories whose `file.delete.delay.ms` is over; all of them if a disk was found full.
    pub fn delete_renamed(&self, now_ms: i64) {
        for log_dir in &self.dirs {
            log_dir.unlink_deleted(now_ms);
        }
    }

    /// The end of a clean stop: flushes everything, writes snapshots and checkpoints, and the clean-shutdown mark
    /// last. A directory in which something failed gets no mark, so the next start looks closely.
    ///
    /// # Errors
    /// The first failure; the rest has been done.
    pub fn close(&self, broker_epoch: i64) -> Result<(), StorageError> {
        let logs = self.logs();
        let mut first_error = None;
        let mut failed_dirs = Vec::new();
        for log in &logs {
            if let Err(error) = log.close() {
                tracing::error!(topic_partition = %log.topic_partition(), %error, "cannot close the log");
                failed_dirs.push(log.log_dir());
                first_error.get_or_insert(error);
            }
        }
        if let Err(error) = self.write_checkpoints() {
            first_error.get_or_insert(error);
            return first_error.map_or(Ok(()), Err);
        }
        let is_any_offline = !self.offline_partitions().is_empty();
        for log_dir in &self.dirs {
            let path = log_dir.path();
            // An offline log was not looked after: it must be recovered when it comes back.
            if is_any_offline || failed_dirs.iter().any(|failed| failed == path) {
                continue;
            }
            if let Err(error) = (CleanShutdownMark { broker_epoch }).write(path) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}
