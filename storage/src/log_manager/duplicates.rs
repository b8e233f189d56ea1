//! Two directories of one partition: a disk that is back has a replica that was made anew elsewhere while it was away.

use std::sync::Arc;

use super::names::{Fate, unique_dir_name};
use super::{LogManager, forget_checkpoints};
use crate::errors::StorageError;
use crate::log::Log;

impl LogManager {
    /// Settles which of two logs of a partition counts: the one in use, or `second`, one of those that
    /// [`LogManager::load_logs`] gave. The other is closed, and its directory renamed to `….<unique>-stray`.
    ///
    /// # Errors
    /// When the directory cannot be renamed. The log that counts is in use all the same.
    pub fn settle(&self, second: &Arc<Log>, second_counts: bool) -> Result<(), StorageError> {
        let _changing = self.changing.lock();
        let topic_partition = second.topic_partition();
        let aside = if second_counts {
            let mut logs = self.logs.write();
            logs.insert(topic_partition.clone(), Arc::clone(second))
        } else {
            Some(Arc::clone(second))
        };
        let Some(aside) = aside else {
            return Ok(());
        };
        aside.abandon();
        let from = aside.dir();
        let to = aside
            .log_dir()
            .join(unique_dir_name(topic_partition, Fate::Stray));
        std::fs::rename(&from, &to).map_err(|error| StorageError::io("rename", &from, error))?;
        let place = aside.log_dir();
        let log_dir = self.dirs.iter().find(|dir| *dir.path() == *place);
        log_dir.map_or(Ok(()), |log_dir| {
            forget_checkpoints(log_dir, topic_partition)
        })
    }
}
