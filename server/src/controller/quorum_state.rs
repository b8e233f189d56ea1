//! `quorum-state`: who leads the quorum, in Apache Kafka's form and for its tools. What this node relies on is in the
//! quorum's log; this file is read once, when a directory of Apache Kafka is taken over.

use std::path::Path;

use highwater_storage::StorageError;
use serde_json::{Value, json};

use crate::metadata::MetadataError;

const FILE_NAME: &str = "quorum-state";

/// The epoch in the file; `None` when there is no file yet.
pub(super) fn read_leader_epoch(dir: &Path) -> Result<Option<i32>, MetadataError> {
    let path = dir.join(FILE_NAME);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("read", &path, error).into()),
    };
    let corrupt = |reason: String| MetadataError::Corrupt {
        path: path.display().to_string(),
        reason,
    };
    let value: Value = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
    let epoch = value
        .get("leaderEpoch")
        .and_then(Value::as_i64)
        .and_then(|epoch| i32::try_from(epoch).ok());
    epoch
        .map(Some)
        .ok_or_else(|| corrupt("leaderEpoch is missing or no number".to_owned()))
}

/// Writes that `leader` leads in `epoch`, with Kafka's own fields. It is not forced to disk: nothing depends on it.
pub(super) fn write(
    dir: &Path,
    epoch: i32,
    leader: Option<i32>,
    voters: &[i32],
) -> Result<(), MetadataError> {
    let voters: Vec<Value> = voters.iter().map(|id| json!({ "voterId": id })).collect();
    let state = json!({
        "clusterId": "",
        "leaderId": leader.unwrap_or(-1),
        "leaderEpoch": epoch,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": voters,
        "data_version": 0,
    });
    let (path, temporary) = (dir.join(FILE_NAME), dir.join(format!("{FILE_NAME}.tmp")));
    std::fs::write(&temporary, state.to_string())
        .and_then(|()| std::fs::rename(&temporary, &path))
        .map_err(|error| StorageError::io("write", &path, error).into())
}
