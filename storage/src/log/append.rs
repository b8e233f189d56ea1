//! Appending: by a leader, which gives offsets and the epoch, and by a follower, which takes them as they are.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::errors::{AppendError, StorageError};
use crate::log_config::LogConfig;
use crate::producer_state::BatchMetadata;
use crate::record_batch::{
    BatchHeader, Batches, NO_TIMESTAMP, ValidationRules, validate_produced, verify_crc,
};
use crate::segment::Segment;
use crate::types::LeaderEpoch;

use super::{AppendInfo, AppendOrigin, Log, Writer};

impl Log {
    /// Appends one batch as the partition's leader: checks it, gives it offsets and `leader_epoch`, and writes it
    /// as it came otherwise. The caller flushes if [`AppendInfo::is_flush_due`], outside of its locks.
    ///
    /// # Errors
    /// Nothing was written, and what was there before can still be read; but when the disk failed, the log is offline
    /// from then on, see [`Log::failure`].
    pub fn append_as_leader(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        self.append_produced(records, leader_epoch, origin, now_ms)
            .inspect_err(|error| self.on_append_error(error))
    }

    fn append_produced(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let config = self.config.load_full();
        let batch = validate_produced(records, &ValidationRules::from(&*config), origin, now_ms)?;
        if batch.size_in_bytes() > config.segment_bytes as usize {
            return Err(AppendError::RecordListTooLarge {
                size_bytes: batch.size_in_bytes(),
                segment_bytes: config.segment_bytes as usize,
            });
        }
        let mut writer = self.writer.lock();
        self.check_open()?;
        let base_offset = self.log_end_offset();
        let raw_header = batch.patched_header(base_offset, leader_epoch.0);
        let header = BatchHeader {
            base_offset,
            partition_leader_epoch: leader_epoch.0,
            ..batch.header()
        };
        if let Some(original) =
            self.check_producer(&mut writer.producers, &header, batch.bytes(), origin)?
        {
            return Ok(self.duplicate_info(&original));
        }
        self.write_epoch_before_append(leader_epoch, base_offset)?;
        let mut active = self.active_segment()?;
        if Self::is_roll_due(
            &mut writer,
            &active,
            active.size(),
            &header,
            &config,
            now_ms,
        ) {
            active = self.roll(&mut writer, &config, now_ms)?;
        }
        let mut parts = [IoSlice::new(&raw_header), IoSlice::new(batch.records())];
        self.write(&mut writer, &active, &mut parts)?;
        let position = active.size();
        self.publish(
            &mut writer,
            &active,
            &[(position, header, batch.bytes())],
            &config,
            now_ms,
        )?;
        let is_flush_due = writer.unflushed_records >= config.flush_messages;
        drop(writer);
        let info = AppendInfo {
            base_offset,
            last_offset: header.last_offset(),
            log_append_time_ms: batch.log_append_time().unwrap_or(NO_TIMESTAMP),
            log_start_offset: self.log_start_offset(),
            duplicate: false,
            max_timestamp: header.max_timestamp,
            offset_of_max_timestamp: header.last_offset(),
            size_bytes: batch.size_in_bytes(),
            records_count: i64::from(header.records_count),
            is_flush_due,
        };
        Ok(info)
    }

    /// Appends batches as a follower, with the offsets and epochs they have. Batches of an epoch above
    /// `leader_epoch` and all after them are left out, and so is a batch that is cut off.
    ///
    /// # Errors
    /// [`AppendError::UnexpectedOffset`] when the batches do not continue the log. What precedes a bad batch may
    /// have been written. When the disk failed, the log is offline from then on, see [`Log::failure`].
    pub fn append_as_follower(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        self.append_replicated(records, leader_epoch, now_ms)
            .inspect_err(|error| self.on_append_error(error))
    }

    /// A log whose disk fails is worth nothing: what it takes may be lost, and another replica has to take over.
    fn on_append_error(&self, error: &AppendError) {
        if let AppendError::Storage(error) = error
            && error.is_disk_failure()
        {
            self.set_failed(error.clone());
        }
    }

    fn append_replicated(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let config = self.config.load_full();
        let mut writer = self.writer.lock();
        self.check_open()?;
        let mut info = self.empty_info();
        let mut run = Run::new(records);
        let mut next_offset = self.log_end_offset();
        let mut active = self.active_segment()?;
        for batch in Batches::new(records) {
            let (header, bytes) =
                batch.map_err(|error| AppendError::CorruptMessage(error.to_string()))?;
            if header.partition_leader_epoch > leader_epoch.0 {
                break;
            }
            check_replicated(&header, bytes, next_offset)?;
            let epoch = LeaderEpoch(header.partition_leader_epoch);
            self.write_epoch_before_append(epoch, header.base_offset)?;
            let size = active.size() + run.size_bytes;
            if Self::is_roll_due(&mut writer, &active, size, &header, &config, now_ms) {
                self.append_run(&mut writer, &active, &mut run, &config, now_ms)?;
                active = self.roll(&mut writer, &config, now_ms)?;
            }
            next_offset = header.next_offset();
            run.push(active.size(), header, bytes);
            info.add(&header);
        }
        self.append_run(&mut writer, &active, &mut run, &config, now_ms)?;
        let is_flush_due = writer.unflushed_records >= config.flush_messages;
        drop(writer);
        if is_flush_due {
            self.flush_below(next_offset)?;
        }
        Ok(info)
    }

    /// Reserves space on disk for `bytes` of further appends, so that they do not fail on a full disk; but for one that
    /// begins a new segment.
    ///
    /// # Errors
    /// When the disk is full, or the file cannot be written.
    pub fn reserve_space(&self, bytes: u64) -> Result<(), StorageError> {
        let _writer = self.writer.lock();
        self.check_open()?;
        self.active_segment()?.reserve_space(bytes)
    }

    fn append_run(
        &self,
        writer: &mut Writer,
        active: &Arc<Segment>,
        run: &mut Run<'_>,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), AppendError> {
        if run.batches.is_empty() {
            return Ok(());
        }
        let bytes = &run.records[run.start..run.start + run.size_bytes as usize];
        self.write(writer, active, &mut [IoSlice::new(bytes)])?;
        self.publish(writer, active, &run.batches, config, now_ms)?;
        run.start += run.size_bytes as usize;
        run.size_bytes = 0;
        run.batches.clear();
        Ok(())
    }

    /// Writes behind the published end. After an error the file is cut back; if even that fails, the next append
    /// overwrites what was left, and a stop in between counts as unclean.
    fn write(
        &self,
        writer: &mut Writer,
        active: &Segment,
        parts: &mut [IoSlice<'_>],
    ) -> Result<(), StorageError> {
        self.note_open_files();
        if writer.tail_is_dirty {
            active.cut_unpublished()?;
            writer.tail_is_dirty = false;
        }
        active.write_at_end(parts).inspect_err(|error| {
            tracing::error!(topic_partition = %self.topic_partition, %error, "append failed");
            self.log_dir.note_error(error);
            writer.tail_is_dirty = active.cut_unpublished().is_err();
        })
    }

    /// Makes written batches known: to producers and transactions, then to readers, then to the indexes.
    fn publish(
        &self,
        writer: &mut Writer,
        active: &Segment,
        batches: &[(u32, BatchHeader, &[u8])],
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (mut has_producers, mut records, mut size, mut end) = (false, 0, 0, 0);
        for (position, header, bytes) in batches {
            if header.has_producer_id() {
                has_producers = true;
                Self::apply_to_producers(&mut writer.producers, active, header, bytes)?;
            }
            writer.roll_clock.on_batch(header.max_timestamp);
            records += i64::from(header.records_count);
            size = position + header.size_in_bytes() as u32;
            end = header.next_offset();
        }
        if has_producers {
            self.publish_unstable_offset(&writer.producers, self.high_watermark());
        }
        self.log_end_offset.store(end, Ordering::Release);
        active.publish_size(size);
        for (position, header, _) in batches {
            let due = writer
                .index_builder
                .on_batch(header, *position, config.index_interval_bytes);
            if let Some((offset_entry, time_entry)) = due {
                active.offset_index.append(offset_entry);
                active.time_index.maybe_append(time_entry);
            }
        }
        active.set_max_timestamp(writer.index_builder.max_timestamp());
        writer.unflushed_since_ms.get_or_insert(now_ms);
        writer.unflushed_records += records;
        Ok(())
    }

    fn duplicate_info(&self, original: &BatchMetadata) -> AppendInfo {
        AppendInfo {
            base_offset: original.first_offset(),
            last_offset: original.last_offset,
            log_append_time_ms: original.timestamp,
            duplicate: true,
            max_timestamp: original.timestamp,
            offset_of_max_timestamp: original.last_offset,
            ..self.empty_info()
        }
    }

    fn empty_info(&self) -> AppendInfo {
        let log_end_offset = self.log_end_offset();
        AppendInfo {
            base_offset: log_end_offset,
            last_offset: log_end_offset - 1,
            log_append_time_ms: NO_TIMESTAMP,
            log_start_offset: self.log_start_offset(),
            duplicate: false,
            max_timestamp: NO_TIMESTAMP,
            offset_of_max_timestamp: -1,
            size_bytes: 0,
            records_count: 0,
            is_flush_due: false,
        }
    }
}

impl AppendInfo {
    fn add(&mut self, header: &BatchHeader) {
        if self.size_bytes == 0 {
            self.base_offset = header.base_offset;
        }
        self.last_offset = header.last_offset();
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.offset_of_max_timestamp = header.last_offset();
        }
        self.size_bytes += header.size_in_bytes();
        self.records_count += i64::from(header.records_count);
    }
}

/// Batches that go into one segment with one write: they lie one after the other in `records`.
struct Run<'a> {
    records: &'a [u8],
    start: usize,
    size_bytes: u32,
    batches: Vec<(u32, BatchHeader, &'a [u8])>,
}

impl<'a> Run<'a> {
    fn new(records: &'a [u8]) -> Self {
        Self {
            records,
            start: 0,
            size_bytes: 0,
            batches: Vec::new(),
        }
    }

    fn push(&mut self, segment_size: u32, header: BatchHeader, bytes: &'a [u8]) {
        self.batches
            .push((segment_size + self.size_bytes, header, bytes));
        self.size_bytes += bytes.len() as u32;
    }
}

fn check_replicated(
    header: &BatchHeader,
    bytes: &[u8],
    next_offset: i64,
) -> Result<(), AppendError> {
    verify_crc(bytes).map_err(|error| AppendError::CorruptMessage(error.to_string()))?;
    if header.base_offset < next_offset || header.last_offset() < header.base_offset {
        return Err(AppendError::UnexpectedOffset(format!(
            "batch of offsets {} to {} does not continue a log that ends at {next_offset}",
            header.base_offset,
            header.last_offset()
        )));
    }
    Ok(())
}
