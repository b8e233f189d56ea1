//! What the file of the quorum's log holds, and the state that it makes.

use std::collections::VecDeque;
use std::path::Path;

use openraft::EntryPayload;
use serde::{Deserialize, Serialize};

use super::log_file::Place;
use super::types::{Entry, LogId, StoredMembership, Vote};
use crate::metadata::MetadataError;

/// One change of the log, as it is in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Record {
    Vote(Vote),
    Entry(Entry),
    /// Entries from this index on are gone.
    Truncate(u64),
    /// Entries up to this one are gone.
    Purge(LogId),
    /// What the state machine has on disk.
    Applied(AppliedState),
    /// Whether this node may lack entries that it had a part in agreeing on: its log was begun anew, maybe in place of
    /// one that is lost, and no leader has brought it up to date yet.
    MayLackEntries(bool),
}

/// What the state machine has applied and forced to disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AppliedState {
    pub(super) last_applied: Option<LogId>,
    pub(super) membership: StoredMembership,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) log_id: LogId,
    pub(super) place: Place,
    /// Where the metadata log ends after this entry, if it is applied; -1 when no entry said yet.
    pub(super) end_offset: i64,
}

/// The state that the records of the file make.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) vote: Option<Vote>,
    pub(super) purged: Option<LogId>,
    pub(super) slots: VecDeque<Slot>,
    pub(super) applied: AppliedState,
    pub(super) may_lack_entries: bool,
}

impl Replayed {
    pub(super) fn take(
        &mut self,
        path: &Path,
        record: Record,
        place: Place,
    ) -> Result<(), MetadataError> {
        match record {
            Record::Vote(vote) => self.vote = Some(vote),
            Record::Applied(applied) => self.applied = applied,
            Record::MayLackEntries(may) => self.may_lack_entries = may,
            Record::Truncate(from) => self.slots.retain(|slot| slot.log_id.index < from),
            Record::Purge(upto) => {
                self.slots.retain(|slot| slot.log_id.index > upto.index);
                self.purged = Some(upto);
            }
            Record::Entry(entry) => {
                let last = self.slots.back().map(|slot| slot.log_id).or(self.purged);
                let expected = last.map_or(0, |last| last.index + 1);
                // A log may begin anywhere when nothing was purged from it.
                if entry.log_id.index != expected && last.is_some() {
                    return Err(MetadataError::Corrupt {
                        path: path.display().to_string(),
                        reason: format!(
                            "entry {} follows where {expected} is expected",
                            entry.log_id.index
                        ),
                    });
                }
                let before = self.slots.back().map_or(-1, |slot| slot.end_offset);
                self.slots.push_back(slot(&entry, place, before));
            }
        }
        Ok(())
    }
}

pub(super) fn slot(entry: &Entry, place: Place, end_offset_before: i64) -> Slot {
    let end_offset = match &entry.payload {
        EntryPayload::Normal(entry) => entry.end_offset,
        _ => end_offset_before,
    };
    Slot {
        log_id: entry.log_id,
        place,
        end_offset,
    }
}

pub(super) fn encode(record: &Record) -> Result<Vec<u8>, MetadataError> {
    postcard::to_stdvec(record).map_err(|error| MetadataError::Corrupt {
        path: "quorum log".to_owned(),
        reason: format!("a record cannot be encoded: {error}"),
    })
}

/// As [`encode`] of a [`Record::Entry`], without a copy of the entry.
pub(super) fn encode_entry(entry: &Entry) -> Result<Vec<u8>, MetadataError> {
    // Cloning an entry shares its batches.
    encode(&Record::Entry(entry.clone()))
}

pub(super) fn decode(path: &Path, content: &[u8]) -> Result<Record, MetadataError> {
    postcard::from_bytes(content).map_err(|error| MetadataError::Corrupt {
        path: path.display().to_string(),
        reason: format!("a record does not parse: {error}"),
    })
}
