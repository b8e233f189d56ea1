//! `.kafka_cleanshutdown` in a log directory: the last stop was clean.

use std::path::Path;

use super::{Durability, read_text, sync_dir, write_atomically};
use crate::errors::StorageError;

const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

/// The mark of a clean stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CleanShutdownMark {
    /// The broker's epoch when it stopped; -1 when it is not known (KIP-966).
    pub(crate) broker_epoch: i64,
}

impl CleanShutdownMark {
    /// Reads the mark in `log_dir`; None when the last stop was not clean.
    pub(crate) fn read(log_dir: &Path) -> Result<Option<Self>, StorageError> {
        let Some(text) = read_text(&log_dir.join(CLEAN_SHUTDOWN))? else {
            return Ok(None);
        };
        // An empty file is the mark of older brokers.
        let broker_epoch = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|json| json.get("brokerEpoch")?.as_i64())
            .unwrap_or(-1);
        Ok(Some(Self { broker_epoch }))
    }

    /// Writes the mark, durably: the last thing of a clean stop.
    pub(crate) fn write(self, log_dir: &Path) -> Result<(), StorageError> {
        let text = serde_json::json!({ "version": 0, "brokerEpoch": self.broker_epoch });
        write_atomically(
            log_dir,
            CLEAN_SHUTDOWN,
            text.to_string().as_bytes(),
            Durability::Synced,
        )
    }

    /// Removes the mark, durably, before any log is opened: a crash from here on is one.
    pub(crate) fn remove(log_dir: &Path) -> Result<(), StorageError> {
        let path = log_dir.join(CLEAN_SHUTDOWN);
        match std::fs::remove_file(&path) {
            Ok(()) => sync_dir(log_dir).map_err(|error| StorageError::io("sync", log_dir, error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StorageError::io("remove", &path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_can_be_set_read_and_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(CleanShutdownMark::read(dir.path()).expect("no file"), None);
        let mark = CleanShutdownMark { broker_epoch: 12 };
        mark.write(dir.path()).expect("written");
        assert_eq!(
            CleanShutdownMark::read(dir.path()).expect("read"),
            Some(mark)
        );
        CleanShutdownMark::remove(dir.path()).expect("removed");
        CleanShutdownMark::remove(dir.path()).expect("removed again");
        assert_eq!(CleanShutdownMark::read(dir.path()).expect("no file"), None);
    }

    #[test]
    fn marks_of_apache_kafka_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        for (text, broker_epoch) in [("{\"version\":0,\"brokerEpoch\":5}", 5), ("", -1)] {
            std::fs::write(dir.path().join(CLEAN_SHUTDOWN), text).expect("written");
            assert_eq!(
                CleanShutdownMark::read(dir.path()).expect("read"),
                Some(CleanShutdownMark { broker_epoch })
            );
        }
    }
}
