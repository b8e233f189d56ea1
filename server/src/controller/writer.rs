//! The single writer: judges requests in order, appends their records, forces them to disk once for the group,
//! publishes the next image and releases the responses.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use highwater_replication::cluster::{ClusterDelta, ClusterImage, MetadataRecord};
use highwater_storage::{AppendOrigin, LeaderEpoch, Log};
use tokio::sync::mpsc;

use super::ControllerError;
use super::handle::{Judge, Release, Request};
use super::reserve::Reserve;
use crate::metadata::{
    MetadataError, MetadataLog, MetadataPublisher, data_batch, leader_change_batch, snapshot,
};

/// Requests that share one write to disk.
const MAX_GROUP: usize = 256;

/// Milliseconds since 1970, the broker's clock.
pub(super) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// Everything that belongs to the thread of the controller.
pub(super) struct Writer {
    pub(super) metadata_log: Arc<MetadataLog>,
    pub(super) node_id: i32,
    /// The epoch that this node leads in.
    pub(super) epoch: i32,
    /// What is durable and published.
    pub(super) image: Arc<ClusterImage>,
    pub(super) publisher: Arc<MetadataPublisher>,
    pub(super) timestamp_ms: i64,
    pub(super) bytes_since_snapshot: u64,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub(super) max_bytes_between_snapshots: u64,
    pub(super) reserve: Reserve,
    /// Set when what is on disk may differ from the image: then nothing is written until a restart.
    pub(super) failed: Option<Arc<str>>,
}

/// Requests that were judged and wait to become durable together.
pub(super) struct Group {
    image: ClusterImage,
    delta: ClusterDelta,
    batches: Vec<Bytes>,
    releases: Vec<Release>,
    /// Whether every record deletes a topic, which makes room.
    only_deletes: bool,
}

impl Group {
    /// What the next request of the group is judged against.
    pub(super) fn image(&self) -> &ClusterImage {
        &self.image
    }
}

impl Writer {
    /// Serves requests until it is told to stop; then those that were submitted before.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        // Not before the broker is ready: it is for later.
        self.reserve.hold();
        let mut waiting = Vec::with_capacity(MAX_GROUP);
        while requests.blocking_recv_many(&mut waiting, MAX_GROUP) > 0 {
            let mut judges = Vec::with_capacity(waiting.len());
            for request in waiting.drain(..) {
                match request {
                    Request::Judge(judge) => judges.push(judge),
                    Request::Stop => requests.close(),
                }
            }
            self.serve(judges);
            self.snapshot_if_due();
            self.reserve.hold();
        }
        tracing::debug!(offset = self.image.offset(), "controller stopped");
    }

    fn serve(&mut self, judges: Vec<Judge>) {
        let now_ms = now_ms();
        let mut group = self.new_group();
        for judge in judges {
            let (records, release) = judge(&group.image, now_ms);
            let added = match &self.failed {
                Some(reason) if !records.is_empty() => Err(ControllerError::Failed(reason.clone())),
                _ => self.add(&mut group, &records, now_ms),
            };
            match added {
                Ok(()) => group.releases.push(release),
                Err(error) => {
                    tracing::error!(%error, "request for a metadata change failed");
                    release(Err(error));
                }
            }
        }
        self.finish(group, now_ms);
    }

    pub(super) fn new_group(&self) -> Group {
        Group {
            image: ClusterImage::clone(&self.image),
            delta: ClusterDelta::default(),
            batches: Vec::new(),
            releases: Vec::new(),
            only_deletes: true,
        }
    }

    /// Adds records to the group, to be judged against by the next request.
    pub(super) fn add(
        &self,
        group: &mut Group,
        records: &[MetadataRecord],
        now_ms: i64,
    ) -> Result<(), ControllerError> {
        if records.is_empty() {
            return Ok(());
        }
        let base_offset = group.image.offset() + 1;
        let last_offset = base_offset + records.len() as i64 - 1;
        let applied = group.image.apply(records, last_offset, self.epoch);
        let (image, delta) = applied.map_err(|source| MetadataError::Apply {
            offset: last_offset + 1,
            source,
        })?;
        group
            .batches
            .push(data_batch(records, base_offset, self.epoch, now_ms)?);
        group.image = image;
        group.delta.merge(delta);
        let deletes = |record: &MetadataRecord| matches!(record, MetadataRecord::RemoveTopic(_));
        group.only_deletes &= records.iter().all(deletes);
        Ok(())
    }

    /// Adds the batch that begins the epoch. It has an offset but changes nothing.
    pub(super) fn add_leader_change(
        &self,
        group: &mut Group,
        now_ms: i64,
    ) -> Result<(), ControllerError> {
        let offset = group.image.offset() + 1;
        group.batches.push(leader_change_batch(
            self.node_id,
            offset,
            self.epoch,
            now_ms,
        )?);
        let applied = group.image.apply(&[], offset, self.epoch);
        group.image = applied
            .map_err(|source| MetadataError::Apply {
                offset: offset + 1,
                source,
            })?
            .0;
        Ok(())
    }

    /// Writes the records that begin an epoch.
    pub(super) fn finish_first(
        &mut self,
        group: Group,
        now_ms: i64,
    ) -> Result<(), ControllerError> {
        // Who cannot start cannot delete either.
        self.write(&group.batches, true, now_ms)?;
        self.image = Arc::new(group.image);
        self.publisher.publish(&self.image, &group.delta);
        Ok(())
    }

    /// Writes the group, publishes its image and releases its responses; or, when it cannot be written, tells all.
    pub(super) fn finish(&mut self, group: Group, now_ms: i64) {
        let Group {
            image,
            delta,
            batches,
            releases,
            only_deletes,
        } = group;
        let written = match batches.is_empty() {
            true => Ok(()),
            false => self.write(&batches, only_deletes, now_ms),
        };
        match &written {
            Ok(()) => {
                let image = Arc::new(image);
                if !batches.is_empty() {
                    self.publisher.publish(&image, &delta);
                }
                self.image = image;
            }
            Err(error) => {
                tracing::error!(%error, requests = releases.len(), "metadata changes were not written")
            }
        }
        for release in releases {
            release(written.clone());
        }
    }

    /// Appends the batches and forces them to disk. After an error the log is as before, or this controller has failed.
    /// On a full disk the reserve is used if `may_use_reserve`.
    fn write(
        &mut self,
        batches: &[Bytes],
        may_use_reserve: bool,
        now_ms: i64,
    ) -> Result<(), ControllerError> {
        if let Some(reason) = &self.failed {
            return Err(ControllerError::Failed(reason.clone()));
        }
        let log = self.metadata_log.log();
        let (start_offset, epoch) = (self.image.offset() + 1, self.epoch);
        let failed = &mut self.failed;
        let mut append = || {
            append_and_flush(log, batches, epoch, now_ms).inspect_err(|error| {
                // None of it was published. Take the part that was appended back, so that the next request continues
                // there.
                if let Err(truncation) = log.truncate_to(start_offset) {
                    tracing::error!(%error, %truncation, "the metadata log is in doubt; no metadata is written until a restart");
                    *failed = Some(error.to_string().into());
                }
            })
        };
        match may_use_reserve {
            true => self.reserve.write_when_full(append)?,
            false => append()?,
        }
        if let Some(reason) = &self.failed {
            return Err(ControllerError::Failed(reason.clone()));
        }
        self.metadata_log.set_high_watermark(log.log_end_offset());
        self.bytes_since_snapshot += batches.iter().map(|batch| batch.len() as u64).sum::<u64>();
        self.timestamp_ms = now_ms;
        Ok(())
    }

    /// Writes a snapshot when the log behind the last one has grown long. A failure is tried again with later requests.
    pub(super) fn snapshot_if_due(&mut self) {
        if self.bytes_since_snapshot < self.max_bytes_between_snapshots {
            return;
        }
        self.bytes_since_snapshot = 0;
        if let Err(error) = self.write_snapshot() {
            tracing::error!(%error, "metadata snapshot failed");
        }
    }

    fn write_snapshot(&self) -> Result<(), MetadataError> {
        let dir = self.metadata_log.dir();
        let id = snapshot::write(dir, &self.image, self.timestamp_ms, now_ms())?;
        tracing::info!(
            end_offset = id.end_offset,
            epoch = id.epoch,
            "wrote a metadata snapshot"
        );
        self.metadata_log
            .log()
            .increment_log_start_offset(id.end_offset)?;
        snapshot::remove_older(dir, &id)
    }
}

fn append_and_flush(
    log: &Log,
    batches: &[Bytes],
    epoch: i32,
    now_ms: i64,
) -> Result<(), MetadataError> {
    for batch in batches {
        log.append_as_leader(batch, LeaderEpoch(epoch), AppendOrigin::Controller, now_ms)?;
    }
    Ok(log.flush()?)
}
