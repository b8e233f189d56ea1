//! The batches of a log file, one after the other, without the whole file in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use highwater_storage::record_batch::{
    BATCH_HEADER_BYTES, BatchError, BatchHeader, DecompressLimits, Record, decode_records,
};

use super::{ToolError, absolute, cannot_read};

/// Offset and length in front of a batch.
const OVERHEAD_BYTES: u64 = 12;
/// Bytes up to and with the magic byte; fewer are no batch.
const SMALLEST_BYTES: u64 = 17;
/// The smallest length that any format of Kafka has.
const SMALLEST_LENGTH: i32 = 14;

/// A batch and where it begins.
pub(super) struct Batch {
    pub(super) position: u64,
    pub(super) header: BatchHeader,
    pub(super) bytes: Bytes,
}

impl Batch {
    /// Its records.
    pub(super) fn records(
        &self,
    ) -> Result<impl Iterator<Item = Result<Record, ToolError>>, ToolError> {
        let position = self.position;
        let unreadable = move |error: BatchError| {
            ToolError::failed(format!(
                "Cannot read the records of the batch at position {position}: {error}."
            ))
        };
        let records = decode_records(&self.bytes, DecompressLimits::default());
        let records = records.map_err(unreadable)?;
        Ok(records.map(move |record| record.map_err(unreadable)))
    }
}

/// Reads batch after batch.
pub(super) struct LogFile {
    file: File,
    path: String,
    /// The file's size in bytes, or less where only its beginning is wanted.
    end: u64,
}

impl LogFile {
    /// Opens a log for as many bytes at its start as `max_bytes` says.
    pub(super) fn open(path: &Path, max_bytes: Option<u32>) -> Result<Self, ToolError> {
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        let metadata = file.metadata().map_err(|error| cannot_read(path, &error))?;
        let size = metadata.len();
        Ok(LogFile {
            file,
            path: absolute(path),
            end: max_bytes.map_or(size, |max| size.min(max.into())),
        })
    }

    /// Bytes that are looked at.
    pub(super) fn size(&self) -> u64 {
        self.end
    }

    /// The batch at a position within the next `max_bytes`; none where they do not hold a whole one.
    pub(super) fn batch_at(
        &self,
        position: u64,
        max_bytes: u64,
    ) -> Result<Option<Batch>, ToolError> {
        let end = self.end.min(position.saturating_add(max_bytes));
        if position + SMALLEST_BYTES > end {
            return Ok(None);
        }
        let length = self.bytes(position + 8, 4)?;
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        if length < SMALLEST_LENGTH {
            return Err(ToolError::failed(format!(
                "Found record size {length} smaller than minimum record overhead ({SMALLEST_LENGTH}) in file {}.",
                self.path
            )));
        }
        let size = OVERHEAD_BYTES + u64::from(length.unsigned_abs());
        if position + size > end {
            return Ok(None);
        }
        let magic = self.bytes(position + SMALLEST_BYTES - 1, 1)?[0];
        if magic != 2 {
            return Err(ToolError::failed(format!(
                "The batch at position {position} of {} has magic {magic}; only magic 2 is supported.",
                self.path
            )));
        }
        if size < BATCH_HEADER_BYTES as u64 {
            return Err(ToolError::failed(format!(
                "The batch at position {position} of {} is shorter than its header.",
                self.path
            )));
        }
        let bytes = self.bytes(position, size)?;
        let header = BatchHeader::parse(&bytes)
            .map_err(|error| ToolError::failed(format!("{}: {error}.", self.path)))?;
        Ok(Some(Batch {
            position,
            header,
            bytes: bytes.into(),
        }))
    }

    fn bytes(&self, position: u64, count: u64) -> Result<Vec<u8>, ToolError> {
        // The count was compared with the file's size.
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut bytes, position)
            .map_err(|error| ToolError::failed(format!("Cannot read {}: {error}.", self.path)))?;
        Ok(bytes)
    }

    /// All batches from a position on.
    pub(super) fn batches_from(
        &self,
        mut position: u64,
    ) -> impl Iterator<Item = Result<Batch, ToolError>> {
        let mut has_failed = false;
        std::iter::from_fn(move || {
            if has_failed {
                return None;
            }
            let batch = self.batch_at(position, u64::MAX).transpose()?;
            match &batch {
                Ok(batch) => position += batch.bytes.len() as u64,
                Err(_) => has_failed = true,
            }
            Some(batch)
        })
    }
}
