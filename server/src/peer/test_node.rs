//! What tests of this room share: a node's metadata on real files.

use std::path::Path;
use std::sync::Arc;

use highwater_storage::{LogManager, LogManagerSettings};
use tempfile::TempDir;

use crate::controller::{ControllerHandle, QuorumView};
use crate::metadata::{
    MetadataPublisher, MetadataReplica, MetadataSubscriber, metadata_log_config, metadata_topic_id,
    metadata_topic_partition,
};

pub(super) const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
pub(super) const NOW_MS: i64 = 1_700_000_000_000;
/// `node.id` of the node under test.
pub(super) const NODE_ID: i32 = 101;

/// A broker without the controller role.
pub(super) struct TestNode {
    pub(super) dir: TempDir,
    _logs: LogManager,
    pub(super) publisher: Arc<MetadataPublisher>,
    pub(super) quorum: Arc<QuorumView>,
}

impl TestNode {
    /// A node with an empty metadata log, and what writes that log.
    pub(super) fn new(subscribers: Vec<MetadataSubscriber>) -> (Self, MetadataReplica) {
        let dir = tempfile::tempdir().unwrap();
        let (logs, replica) = open(dir.path());
        let publisher = MetadataPublisher::new(replica.image().clone(), subscribers);
        let log = Arc::clone(replica.metadata_log());
        let node = TestNode {
            dir,
            _logs: logs,
            publisher: Arc::new(publisher),
            quorum: Arc::new(QuorumView::new(NODE_ID, Vec::new(), log)),
        };
        (node, replica)
    }

    pub(super) fn controller(&self) -> ControllerHandle {
        ControllerHandle::without_controller(Arc::clone(&self.publisher), Arc::clone(&self.quorum))
    }
}

fn open(dir: &Path) -> (LogManager, MetadataReplica) {
    let settings = LogManagerSettings {
        log_dirs: vec![dir.to_owned()],
        ..LogManagerSettings::default()
    };
    let logs = LogManager::open(settings).unwrap();
    let log = logs.get_or_create(
        &metadata_topic_partition(),
        Some(metadata_topic_id()),
        metadata_log_config(),
        NOW_MS,
    );
    let replica = MetadataReplica::open(log.unwrap(), CLUSTER_ID).unwrap();
    (logs, replica)
}
