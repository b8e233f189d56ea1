//! `quorum-state`: the epoch that this controller leads in, on disk before anything is written in it.

use std::path::Path;

use highwater_storage::StorageError;
use serde_json::{Value, json};

use crate::metadata::MetadataError;
use crate::metadata::snapshot::write_durably;

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

/// Writes that this node leads in `epoch`, with Kafka's own fields.
pub(super) fn write_leader_epoch(
    dir: &Path,
    node_id: i32,
    epoch: i32,
) -> Result<(), MetadataError> {
    let state = json!({
        "clusterId": "",
        "leaderId": node_id,
        "leaderEpoch": epoch,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{ "voterId": node_id }],
        "data_version": 0,
    });
    write_durably(&dir.join(FILE_NAME), "tmp", state.to_string().as_bytes())
}
