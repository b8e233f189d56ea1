//! The observer: a broker without the controller role follows the metadata log of the active controller, as KRaft's
//! observers do (KIP-595, KIP-630), and publishes each image that it makes.
//!
//! It never writes, applies or publishes what the leader has not told to be committed; what takes effect together (a
//! batch, a metadata transaction) is published together.

mod leader;
mod reply;
mod uncommitted;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use highwater_replication::cluster::ClusterDelta;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use self::leader::{Address, Quorum, Told};
use self::reply::{Fetched, Position, Replica};
use self::uncommitted::{CommittedLost, Uncommitted};
use crate::broker::now_ms;
use crate::config::QuorumVoter;
use crate::controller::QuorumView;
use crate::metadata::{
    InertNotices, MetadataError, MetadataPublisher, MetadataReplica, SnapshotId,
};
use crate::network::client::{Backoff, Client, ClientConfig};

/// How long the leader may wait for records before it answers that there are none.
const MAX_WAIT_MS: i32 = 500;
/// The rest after what a moment does not mend: a full disk, a log or snapshot that does not parse, a wrong cluster.
const FAILURE_BACKOFF: Duration = Duration::from_secs(1);
/// The largest snapshot that is taken.
const MAX_SNAPSHOT_BYTES: i64 = 4 << 30;

/// Where the quorum is, and the bounds of what is fetched from it.
#[derive(Debug, Clone)]
pub struct ObserverSettings {
    /// `node.id` of this broker.
    pub node_id: i32,
    /// Id of the directory of the metadata log.
    pub directory_id: Uuid,
    /// The cluster that this broker belongs to.
    pub cluster_id: String,
    /// `controller.quorum.voters`.
    pub voters: Vec<QuorumVoter>,
    /// `controller.quorum.bootstrap.servers`; asked when there are no voters.
    pub bootstrap_servers: Vec<(String, u16)>,
    /// `controller.quorum.request.timeout.ms`.
    pub request_timeout: Duration,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `controller.quorum.fetch.max.bytes`.
    pub fetch_max_bytes: i32,
    /// `controller.quorum.fetch.snapshot.max.bytes`.
    pub fetch_snapshot_max_bytes: i32,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub max_bytes_between_snapshots: u64,
}

/// Why the metadata cannot be followed any further.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ObserverError {
    /// A record means what this release does not know, or the disk fails.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The quorum has lost what it had committed.
    #[error("the controllers have lost committed metadata: {0}")]
    CommittedLost(String),
}

impl From<CommittedLost> for ObserverError {
    fn from(lost: CommittedLost) -> Self {
        ObserverError::CommittedLost(lost.to_string())
    }
}

/// The running observer. Dropping it lets the thread end by itself; [`stop`](Self::stop) waits for it.
#[derive(Debug)]
pub struct MetadataObserver {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl MetadataObserver {
    /// Begins to follow on a thread of its own, which also runs those who act on new images. `on_failure` is called
    /// when it cannot go on. Must be called inside a tokio runtime, which serves the connection.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        replica: MetadataReplica,
        publisher: Arc<MetadataPublisher>,
        quorum: Arc<QuorumView>,
        settings: ObserverSettings,
        on_failure: impl FnOnce(ObserverError) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, mut stopped) = watch::channel(false);
        let mut observer = Observer::new(replica, publisher, quorum, settings);
        let runtime = Handle::current();
        let thread = std::thread::Builder::new()
            .name("metadata".to_owned())
            .spawn(move || {
                let followed = runtime.block_on(async {
                    tokio::select! {
                        biased;
                        // An error is the end of the sender: then nobody needs the metadata any more.
                        _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
                        error = observer.follow() => Err(error),
                    }
                });
                if let Err(error) = followed {
                    tracing::error!(%error, "the metadata cannot be followed");
                    on_failure(error);
                }
            })?;
        Ok(MetadataObserver { thread, stop })
    }

    /// Stops after what is under way, and waits for it. Blocks.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the metadata thread panicked");
        }
    }
}

struct Observer {
    settings: ObserverSettings,
    /// This node as the controllers know it.
    identity: Replica,
    replica: MetadataReplica,
    publisher: Arc<MetadataPublisher>,
    /// Where the rest of the node learns who leads.
    view: Arc<QuorumView>,
    quorum: Quorum,
    uncommitted: Uncommitted,
    /// What the leader told last; -1 for nothing yet.
    high_watermark: i64,
    client_config: Arc<ClientConfig>,
    client: Option<(Address, Arc<Client>)>,
    inert: InertNotices,
}

impl Observer {
    fn new(
        replica: MetadataReplica,
        publisher: Arc<MetadataPublisher>,
        view: Arc<QuorumView>,
        settings: ObserverSettings,
    ) -> Self {
        let client_id = format!("metadata-observer-{}", settings.node_id);
        let client_config = ClientConfig {
            request_timeout: settings.request_timeout,
            connection_setup_timeout: settings.request_timeout,
            // One attempt at each node in turn; the rest in between is the observer's.
            reconnect_backoff: Backoff::new(settings.retry_backoff, settings.retry_backoff),
            ..ClientConfig::named(StrBytes::from_string(client_id))
        };
        let uncommitted = nothing_beyond(&replica);
        let mut inert = InertNotices::default();
        inert.on_image(replica.image());
        let quorum = Quorum::new(
            settings.voters.clone(),
            settings.bootstrap_servers.clone(),
            uncommitted.last_epoch(),
        );
        Observer {
            identity: Replica {
                node_id: settings.node_id,
                directory_id: settings.directory_id,
                cluster_id: StrBytes::from_string(settings.cluster_id.clone()),
            },
            settings,
            replica,
            publisher,
            view,
            quorum,
            uncommitted,
            high_watermark: -1,
            client_config: Arc::new(client_config),
            client: None,
            inert,
        }
    }

    /// Follows until that is not possible any more.
    async fn follow(&mut self) -> ObserverError {
        loop {
            if let Err(error) = self.fetch().await {
                return error;
            }
        }
    }

    /// One fetch, and what it leads to.
    async fn fetch(&mut self) -> Result<(), ObserverError> {
        let Some(client) = self.client() else {
            // The configuration names at least one controller.
            sleep(FAILURE_BACKOFF).await;
            return Ok(());
        };
        let position = Position {
            fetch_offset: self.uncommitted.end_offset(),
            last_fetched_epoch: self.uncommitted.last_epoch(),
            leader_epoch: self.quorum.epoch().max(self.uncommitted.last_epoch()),
            high_watermark: self.high_watermark,
        };
        let max_bytes = self.settings.fetch_max_bytes;
        let request = reply::fetch(&self.identity, position, MAX_WAIT_MS, max_bytes);
        let response = client.call_within(reply::FETCH_VERSIONS, |_| request).await;
        let (told, fetched) = match response {
            Ok((_, response)) => reply::fetched(response),
            Err(error) => {
                tracing::debug!(%error, "no answer from a controller");
                self.ask_another(self.settings.retry_backoff).await;
                return Ok(());
            }
        };
        let found_leader = self.on_told(told);
        match fetched {
            Fetched::Error(error_code) => {
                self.on_error(&client, error_code, found_leader).await;
                Ok(())
            }
            Fetched::Records {
                records,
                high_watermark,
            } => self.on_records(&records, high_watermark).await,
            Fetched::Diverging { epoch, end_offset } => {
                tracing::info!(
                    epoch,
                    end_offset,
                    fetch_offset = position.fetch_offset,
                    "the leader's metadata log is another one from here on"
                );
                Ok(self.uncommitted.cut_at_divergence(epoch, end_offset)?)
            }
            Fetched::Snapshot(id) => self.fetch_snapshot(&client, id).await,
        }
    }

    /// The node to ask now.
    fn client(&mut self) -> Option<Arc<Client>> {
        let target = self.quorum.target()?;
        if let Some((address, client)) = &self.client
            && *address == target
        {
            return Some(Arc::clone(client));
        }
        let config = Arc::clone(&self.client_config);
        let client = Arc::new(Client::new(target.host.clone(), target.port, config));
        self.client = Some((target, Arc::clone(&client)));
        Some(client)
    }

    async fn ask_another(&mut self, rest: Duration) {
        self.quorum.ask_another();
        sleep(rest).await;
    }

    /// Takes over who leads. Says whether that is new.
    fn on_told(&mut self, told: Told) -> bool {
        let is_new = self.quorum.on_told(told);
        let known = self.view.active_controller().borrow().clone();
        let leader = self.quorum.leader().cloned();
        if is_new && let Some(leader) = &leader {
            if known.as_ref() != Some(leader) {
                tracing::info!(
                    controller = leader.id,
                    leader_epoch = leader.epoch,
                    host = leader.host,
                    port = leader.port,
                    "following the active controller"
                );
            }
            self.view.set_active_controller(Some(leader.clone()));
        }
        if leader.is_none() && known.is_some_and(|known| known.epoch < self.quorum.epoch()) {
            self.view.set_active_controller(None);
        }
        is_new
    }

    async fn on_error(&mut self, client: &Client, error_code: i16, found_leader: bool) {
        let error = ResponseError::try_from_code(error_code);
        match error {
            // It knows the leader, or has just learned of the epoch.
            Some(
                ResponseError::NotLeaderOrFollower
                | ResponseError::FencedLeaderEpoch
                | ResponseError::UnknownLeaderEpoch
                | ResponseError::BrokerNotAvailable
                | ResponseError::LeaderNotAvailable,
            ) => {
                tracing::debug!(address = %client.address(), error_code, "not the active controller");
                if !found_leader {
                    self.ask_another(self.settings.retry_backoff).await;
                }
            }
            _ => {
                let error = error.map(|error| error.to_string());
                tracing::error!(
                    address = %client.address(),
                    error_code,
                    error = error.as_deref().unwrap_or("unknown"),
                    cluster_id = self.settings.cluster_id,
                    "a controller refuses to give the metadata"
                );
                self.ask_another(FAILURE_BACKOFF).await;
            }
        }
    }

    async fn on_records(
        &mut self,
        records: &Bytes,
        high_watermark: i64,
    ) -> Result<(), ObserverError> {
        self.high_watermark = high_watermark;
        let leader_epoch = self.quorum.epoch();
        if let Err(refused) = self.uncommitted.push(records, leader_epoch) {
            tracing::error!(%refused, "what was fetched of the metadata log is not taken");
            sleep(FAILURE_BACKOFF).await;
            return Ok(());
        }
        for batches in self.uncommitted.commit(high_watermark) {
            match self.replica.append(&batches, leader_epoch, now_ms()) {
                Ok(delta) => self.publish(&delta),
                Err(error) => return self.on_disk_error(error).await,
            }
        }
        self.snapshot_if_due();
        Ok(())
    }

    /// On a full disk the same is tried again later; nothing else mends itself.
    async fn on_disk_error(&mut self, error: MetadataError) -> Result<(), ObserverError> {
        if !error.is_storage_full() {
            return Err(error.into());
        }
        tracing::error!(%error, "the metadata cannot be written, trying again");
        self.uncommitted = nothing_beyond(&self.replica);
        sleep(FAILURE_BACKOFF).await;
        Ok(())
    }

    fn publish(&mut self, delta: &ClusterDelta) {
        self.inert.on_image(self.replica.image());
        self.publisher.publish(self.replica.image(), delta);
    }

    fn snapshot_if_due(&mut self) {
        if self.replica.bytes_since_snapshot() < self.settings.max_bytes_between_snapshots {
            return;
        }
        if let Err(error) = self.replica.write_snapshot(now_ms()) {
            tracing::error!(%error, "metadata snapshot failed");
        }
    }

    /// Fetches a snapshot whole and takes it over; when that fails on the way, the next fetch says what to do.
    async fn fetch_snapshot(
        &mut self,
        client: &Client,
        id: SnapshotId,
    ) -> Result<(), ObserverError> {
        if id.end_offset <= self.uncommitted.committed_end() {
            return Err(ObserverError::CommittedLost(format!(
                "the leader gives a snapshot up to offset {}, but everything before {} is committed",
                id.end_offset,
                self.uncommitted.committed_end()
            )));
        }
        tracing::info!(
            end_offset = id.end_offset,
            epoch = id.epoch,
            "fetching a metadata snapshot"
        );
        let Some(content) = self.snapshot_content(client, &id).await else {
            return Ok(());
        };
        match self.replica.install_snapshot(&id, &content) {
            Ok(delta) => {
                tracing::info!(
                    end_offset = id.end_offset,
                    size_bytes = content.len(),
                    "took over a metadata snapshot"
                );
                self.uncommitted = nothing_beyond(&self.replica);
                self.publish(&delta);
                Ok(())
            }
            Err(error) => self.on_disk_error(error).await,
        }
    }

    async fn snapshot_content(&mut self, client: &Client, id: &SnapshotId) -> Option<Bytes> {
        let mut content = BytesMut::new();
        loop {
            let position = content.len() as i64;
            let epoch = self.quorum.epoch();
            let max_bytes = self.settings.fetch_snapshot_max_bytes;
            let request = reply::fetch_snapshot(&self.identity, epoch, id, position, max_bytes);
            let response = match client.call(&request).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::debug!(%error, "no answer from the active controller");
                    self.ask_another(self.settings.retry_backoff).await;
                    return None;
                }
            };
            let (told, part) = reply::fetched_snapshot(response, id, position);
            let found_leader = self.on_told(told);
            let part = match part {
                Ok(part) => part,
                // It was replaced by a newer one: the next fetch names that.
                Err(error_code) if error_code == ResponseError::SnapshotNotFound.code() => {
                    return None;
                }
                Err(error_code) => {
                    self.on_error(client, error_code, found_leader).await;
                    return None;
                }
            };
            let is_sound = part.size <= MAX_SNAPSHOT_BYTES
                && !part.bytes.is_empty()
                && position + part.bytes.len() as i64 <= part.size;
            if !is_sound {
                tracing::error!(
                    size_bytes = part.size,
                    position,
                    part_bytes = part.bytes.len(),
                    "a part of the metadata snapshot is not taken"
                );
                sleep(FAILURE_BACKOFF).await;
                return None;
            }
            content.extend_from_slice(&part.bytes);
            if content.len() as i64 == part.size {
                return Some(content.freeze());
            }
        }
    }
}

/// What comes after the log of `replica`, in which everything is committed.
fn nothing_beyond(replica: &MetadataReplica) -> Uncommitted {
    let log = replica.log();
    let epoch = log.latest_epoch().map_or(-1, |epoch| epoch.0);
    Uncommitted::after(log.log_end_offset(), epoch)
}
