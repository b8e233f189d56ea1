//! The single writer: judges requests in order, appends their records, forces them to disk once for the group,
//! publishes the next image and releases the responses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use highwater_replication::cluster::{ClusterDelta, ClusterImage, MetadataRecord};
use highwater_storage::{AppendOrigin, LeaderEpoch, Log};
use tokio::sync::mpsc;

use super::handle::{Judge, Release, Request};
use super::{ControllerError, MetadataPublisher, batch, snapshot};

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
    pub(super) log: Arc<Log>,
    pub(super) dir: PathBuf,
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
    /// Set when what is on disk may differ from the image: then nothing is written until a restart.
    pub(super) failed: Option<Arc<str>>,
}

/// Requests that were judged and wait to become durable together.
pub(super) struct Group {
    image: ClusterImage,
    delta: ClusterDelta,
    batches: Vec<Bytes>,
    releases: Vec<Release>,
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
        let (image, delta) = applied.map_err(|source| ControllerError::Apply {
            offset: last_offset + 1,
            source,
        })?;
        group
            .batches
            .push(batch::data_batch(records, base_offset, self.epoch, now_ms)?);
        group.image = image;
        group.delta.merge(delta);
        Ok(())
    }

    /// Adds the batch that begins the epoch. It has an offset but changes nothing.
    pub(super) fn add_leader_change(
        &self,
        group: &mut Group,
        now_ms: i64,
    ) -> Result<(), ControllerError> {
        let offset = group.image.offset() + 1;
        group.batches.push(batch::leader_change_batch(
            self.node_id,
            offset,
            self.epoch,
            now_ms,
        )?);
        let applied = group.image.apply(&[], offset, self.epoch);
        group.image = applied
            .map_err(|source| ControllerError::Apply {
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
        self.write(&group.batches, now_ms)?;
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
        } = group;
        let written = match batches.is_empty() {
            true => Ok(()),
            false => self.write(&batches, now_ms),
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
    pub(super) fn write(&mut self, batches: &[Bytes], now_ms: i64) -> Result<(), ControllerError> {
        if let Some(reason) = &self.failed {
            return Err(ControllerError::Failed(reason.clone()));
        }
        let start_offset = self.image.offset() + 1;
        let appended = batches.iter().try_for_each(|batch| {
            self.log.append_as_leader(
                batch,
                LeaderEpoch(self.epoch),
                AppendOrigin::Controller,
                now_ms,
            )?;
            Ok::<(), ControllerError>(())
        });
        let written = appended.and_then(|()| Ok(self.log.flush()?));
        if let Err(error) = written {
            // None of it was published. Take the part that was appended back, so that the next request continues there.
            if let Err(truncation) = self.log.truncate_to(start_offset) {
                tracing::error!(%error, %truncation, "the metadata log is in doubt; no metadata is written until a restart");
                self.failed = Some(error.to_string().into());
            }
            return Err(error);
        }
        self.log.set_high_watermark(self.log.log_end_offset());
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

    fn write_snapshot(&self) -> Result<(), ControllerError> {
        let id = snapshot::write(&self.dir, &self.image, self.timestamp_ms, now_ms())?;
        tracing::info!(
            end_offset = id.end_offset,
            epoch = id.epoch,
            "wrote a metadata snapshot"
        );
        self.log.increment_log_start_offset(id.end_offset)?;
        snapshot::remove_older(&self.dir, &id)
    }
}
