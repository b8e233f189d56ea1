//! Log directories that the broker is started without: what lies in them must not be made anew elsewhere.

use std::path::{Path, PathBuf};

use super::{LogManager, log_dir};
use crate::checkpoint::CleanShutdownMark;
use crate::errors::StorageError;
use crate::types::TopicPartition;

/// One of `log.dirs` that could not be used at start. What lies in it is offline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableLogDir {
    /// The directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl LogManager {
    /// Whether a log directory could be opened: without locking it.
    ///
    /// # Errors
    /// When it cannot be written to, or what the last stop left cannot be read.
    pub fn check_usable(log_dir: &Path) -> Result<(), StorageError> {
        log_dir::open_lock_file(log_dir)?;
        CleanShutdownMark::read(log_dir).map(drop)
    }

    /// Takes note of directories that belong to the broker and could not be used.
    #[must_use]
    pub fn without(mut self, unusable: Vec<UnusableLogDir>) -> Self {
        self.unusable = unusable;
        self
    }

    /// Log directories that the broker was started without.
    pub fn unusable_dirs(&self) -> &[UnusableLogDir] {
        &self.unusable
    }

    /// Whether a log of the partition is in one of the directories, open or not.
    pub fn lies_here(&self, topic_partition: &TopicPartition) -> bool {
        let name = topic_partition.to_string();
        self.find(topic_partition).is_some()
            || (self.dirs.iter()).any(|log_dir| log_dir.path().join(&name).is_dir())
    }

    /// Why a log of the partition must not be made: it may lie in a directory that cannot be used. `None` when it is in
    /// one of the others, or all can be used.
    pub fn may_be_unusable(&self, topic_partition: &TopicPartition) -> Option<StorageError> {
        let unusable = self.unusable.first()?;
        (!self.lies_here(topic_partition)).then(|| StorageError::Offline {
            topic_partition: topic_partition.clone(),
            reason: format!(
                "{} could not be used at start: {}",
                unusable.path.display(),
                unusable.reason
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_config::LogConfig;
    use crate::log_manager::LogManagerSettings;

    #[test]
    fn what_is_nowhere_may_lie_where_nothing_can_be_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = || LogManagerSettings {
            log_dirs: vec![dir.path().to_owned()],
            ..LogManagerSettings::default()
        };
        let here = TopicPartition::new("here", 0);
        let elsewhere = TopicPartition::new("elsewhere", 0);
        let logs = LogManager::open(settings()).expect("opened");
        logs.get_or_create(&here, None, LogConfig::default(), 0)
            .expect("made");
        assert!(logs.may_be_unusable(&elsewhere).is_none());
        drop(logs);
        let unusable = UnusableLogDir {
            path: "/gone".into(),
            reason: "input/output error".to_owned(),
        };
        let logs = LogManager::open(settings()).expect("opened");
        let logs = logs.without(vec![unusable.clone()]);
        assert_eq!(logs.unusable_dirs(), [unusable]);
        // On the disk, and not open yet.
        assert!(logs.may_be_unusable(&here).is_none());
        let error = logs.may_be_unusable(&elsewhere).expect("it may be there");
        assert_eq!(
            error.to_string(),
            "the log of elsewhere-0 is offline: /gone could not be used at start: input/output error"
        );
    }
}
