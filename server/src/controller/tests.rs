//! The controller on real files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use highwater_replication::cluster::configs::ConfigRules;
use highwater_replication::cluster::create_topics::{NewTopic, TopicDefaults, create_topics};
use highwater_replication::cluster::producer_ids::allocate_producer_ids;
use highwater_replication::cluster::registration::BrokerRegistrationRequest;
use highwater_replication::cluster::{
    ClusterError, ClusterImage, ConfigMap, ConfigResource, ResourceType,
};
use highwater_storage::{BrokerId, LogManager, LogManagerSettings, TopicId};
use uuid::Uuid;

use super::writer::now_ms;
use super::*;
use crate::config::QuorumVoter;
use crate::metadata::{
    MetadataError, MetadataReplica, MetadataSubscriber, metadata_log_config, metadata_topic_id,
    metadata_topic_partition, snapshot,
};

const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";

struct AnyConfig;

impl ConfigRules for AnyConfig {
    fn is_list(&self, _: ResourceType, _: &str) -> bool {
        false
    }
    fn default_value(&self, _: ResourceType, _: &str) -> Option<String> {
        None
    }
    fn validate(
        &self,
        _: &ConfigResource,
        _: &ConfigMap,
        _: &ConfigMap,
    ) -> Result<(), ClusterError> {
        Ok(())
    }
}

fn open(dir: &Path) -> (LogManager, MetadataReplica) {
    let settings = LogManagerSettings {
        log_dirs: vec![dir.to_owned()],
        ..LogManagerSettings::default()
    };
    let logs = LogManager::open(settings).expect("the directory opens");
    let log = logs
        .get_or_create(
            &metadata_topic_partition(),
            Some(metadata_topic_id()),
            metadata_log_config(),
            now_ms(),
        )
        .expect("the metadata log opens");
    let recovered = MetadataReplica::open(log, CLUSTER_ID).expect("the metadata log replays");
    (logs, recovered)
}

fn settings() -> ControllerSettings {
    let own = QuorumVoter {
        id: 1,
        host: String::new(),
        port: 0,
    };
    ControllerSettings {
        quorum: QuorumSettings {
            node_id: 1,
            voters: vec![own],
            election_timeout: Duration::from_millis(1000),
            fetch_timeout: Duration::from_millis(2000),
            request_timeout: Duration::from_millis(800),
            retry_backoff: Duration::from_millis(20),
            snapshot_max_bytes: 1 << 20,
            max_bytes_between_snapshots: u64::MAX,
        },
        min_insync_replicas: 1,
    }
}

fn registration() -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        id: BrokerId(1),
        cluster_id: CLUSTER_ID.to_owned(),
        incarnation_id: Uuid::new_v4(),
        end_points: Vec::new(),
        features: supported_features(),
        rack: None,
        log_dirs: vec![Uuid::from_u128(1007)],
        previous_broker_epoch: None,
    }
}

/// Starts the controller of a single node and registers its broker.
fn start_with(
    recovered: MetadataReplica,
    settings: ControllerSettings,
    subscribers: Vec<MetadataSubscriber>,
    last_stop_was_clean: bool,
) -> Controller {
    let controller =
        Controller::start(recovered, settings, subscribers).expect("the controller starts");
    block_on(async {
        controller.until_active().await.expect("the only voter");
        let registered = controller.register(registration(), last_stop_was_clean);
        registered.await.expect("registered");
    });
    controller
}

fn start(dir: &Path) -> (LogManager, Controller) {
    let (logs, recovered) = open(dir);
    (logs, start_with(recovered, settings(), Vec::new(), true))
}

/// Waits for a request on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

async fn create(
    handle: &ControllerHandle,
    name: &str,
    partitions: i32,
) -> Result<TopicId, ClusterError> {
    let topic = NewTopic {
        name: name.to_owned(),
        num_partitions: partitions,
        replication_factor: 1,
        assignments: Vec::new(),
        configs: Vec::new(),
    };
    let defaults = TopicDefaults {
        num_partitions: 1,
        replication_factor: 1,
    };
    let submitted = handle.submit(move |image, _| {
        let created = create_topics(image, &[topic], defaults, &AnyConfig, &mut TopicId::random);
        let (records, mut results) = created.expect("not refused as a whole");
        Decision {
            records,
            response: results.remove(0).1,
        }
    });
    submitted
        .await
        .expect("the controller answers")
        .map(|created| created.topic_id)
}

#[test]
fn a_new_cluster_begins_with_features_and_the_registered_unfenced_broker() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, controller) = start(dir.path());
    let image = controller.handle().image();
    assert_eq!(image.feature_level("metadata.version"), 33);
    assert!(image.is_active(BrokerId(1)));
    assert_eq!(
        image.broker(BrokerId(1)).expect("registered").epoch,
        controller.handle().broker_epoch()
    );
    assert_eq!(
        image
            .configs(&ConfigResource::default_broker())
            .expect("set")["min.insync.replicas"],
        "1"
    );
    assert_eq!(image.epoch(), 1);
    controller.stop();
}

#[test]
fn what_was_answered_is_there_after_a_restart_without_a_clean_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let (logs, controller) = start(dir.path());
    let ids = block_on(async {
        let handle = controller.handle();
        let ids = (create(handle, "a", 3).await, create(handle, "b", 1).await);
        assert_eq!(
            create(handle, "a", 3).await,
            Err(ClusterError::TopicAlreadyExists("a".to_owned()))
        );
        ids
    });
    let before = controller.handle().image();
    controller.stop();
    // Nothing else is closed or flushed.
    drop(logs);
    let (_logs, recovered) = open(dir.path());
    assert_eq!(**recovered.image(), *before);
    assert_eq!(
        recovered.image().topic("a").map(|topic| topic.id),
        ids.0.ok()
    );
    assert_eq!(
        recovered.image().topic("b").map(|topic| topic.id),
        ids.1.ok()
    );
}

#[test]
fn each_start_begins_a_higher_epoch_and_registers_a_higher_broker_epoch() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut last = (0, -1);
    for _ in 0..3 {
        let (logs, controller) = start(dir.path());
        let now = (
            controller.handle().image().epoch(),
            controller.handle().broker_epoch().0,
        );
        assert!(now.0 > last.0 && now.1 > last.1, "{now:?} after {last:?}");
        last = now;
        controller.stop();
        drop(logs);
    }
}

#[test]
fn leader_epochs_rise_after_an_unclean_stop_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let (logs, controller) = start(dir.path());
    block_on(create(controller.handle(), "a", 2)).expect("created");
    controller.stop();
    drop(logs);
    for (clean, expected) in [(true, 0), (false, 1), (true, 1)] {
        let (logs, recovered) = open(dir.path());
        let controller = start_with(recovered, settings(), Vec::new(), clean);
        let image = controller.handle().image();
        for partition in &image.topic("a").expect("the topic").partitions {
            assert_eq!(
                (partition.leader, partition.leader_epoch.0),
                (Some(BrokerId(1)), expected)
            );
        }
        controller.stop();
        drop(logs);
    }
}

#[test]
fn concurrent_requests_are_judged_one_after_the_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, controller) = start(dir.path());
    let created = block_on(async {
        let creations = (0..50).map(|_| create(controller.handle(), "same", 1));
        futures_util::future::join_all(creations).await
    });
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 1);
    controller.stop();
}

#[test]
fn subscribers_have_seen_a_change_before_its_response() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, recovered) = open(dir.path());
    let seen = Arc::new(AtomicUsize::new(0));
    let subscriber: MetadataSubscriber = {
        let seen = seen.clone();
        Box::new(move |image: &Arc<ClusterImage>, delta| {
            assert!(
                delta
                    .created_topics
                    .iter()
                    .all(|id| image.topic_by_id(*id).is_some())
            );
            seen.fetch_add(delta.created_topics.len(), Ordering::SeqCst);
        })
    };
    let controller = start_with(recovered, settings(), vec![subscriber], true);
    block_on(async {
        for (count, name) in ["a", "b", "c"].into_iter().enumerate() {
            create(controller.handle(), name, 1).await.expect("created");
            assert_eq!(seen.load(Ordering::SeqCst), count + 1);
            assert!(controller.handle().image().topic(name).is_some());
        }
    });
    controller.stop();
}

#[test]
fn a_snapshot_replaces_the_log_before_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let (logs, recovered) = open(dir.path());
    let mut settings = settings();
    settings.quorum.max_bytes_between_snapshots = 2_000;
    let controller = start_with(recovered, settings, Vec::new(), true);
    block_on(async {
        for topic in 0..40 {
            create(controller.handle(), &format!("topic-{topic}"), 2)
                .await
                .expect("created");
        }
    });
    let before = controller.handle().image();
    controller.stop();
    drop(logs);
    let metadata_dir = dir.path().join("__cluster_metadata-0");
    let snapshots = snapshot::list(&metadata_dir).expect("listed");
    let [only] = snapshots.as_slice() else {
        panic!("{snapshots:?}")
    };
    assert!(only.end_offset > 50, "{only:?}");
    let (_logs, recovered) = open(dir.path());
    assert_eq!(**recovered.image(), *before);
    assert!(
        recovered.bytes_since_snapshot() < 4_000,
        "{}",
        recovered.bytes_since_snapshot()
    );
}

#[test]
fn a_snapshot_without_its_footer_or_with_a_flipped_byte_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (logs, controller) = start(dir.path());
    let image = controller.handle().image();
    controller.stop();
    drop(logs);
    let id = snapshot::write(dir.path(), &image, 5, 6).expect("written");
    let (read, timestamp_ms) = snapshot::read(dir.path(), &id, CLUSTER_ID).expect("read");
    assert_eq!((read, timestamp_ms), (ClusterImage::clone(&image), 6));
    let path = dir
        .path()
        .join(format!("{:020}-{:010}.checkpoint", id.end_offset, id.epoch));
    let content = std::fs::read(&path).expect("the file");
    std::fs::write(&path, &content[..content.len() - 75]).expect("written");
    assert!(matches!(
        snapshot::read(dir.path(), &id, CLUSTER_ID),
        Err(MetadataError::Corrupt { .. })
    ));
    let mut flipped = content.clone();
    flipped[200] ^= 1;
    std::fs::write(&path, &flipped).expect("written");
    assert!(snapshot::read(dir.path(), &id, CLUSTER_ID).is_err());
}

#[test]
fn producer_ids_are_never_given_out_twice_over_restarts() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut last = -1;
    for _ in 0..3 {
        let (logs, controller) = start(dir.path());
        let (id, epoch) = (BrokerId(1), controller.handle().broker_epoch());
        for _ in 0..2 {
            let allocated = controller.handle().submit(move |image, _| {
                let (records, block) = allocate_producer_ids(image, id, epoch).expect("a block");
                Decision {
                    records,
                    response: block,
                }
            });
            let block = block_on(allocated).expect("allocated");
            assert!(block.start > last, "{block:?} after {last}");
            last = block.end - 1;
        }
        controller.stop();
        drop(logs);
    }
    assert_eq!(last, 5_999);
}

#[test]
fn a_closure_that_panics_answers_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, controller) = start(dir.path());
    let offset = controller.handle().image().offset();
    let submitted = controller
        .handle()
        .submit(|_, _| -> Decision<()> { panic!("a fault in a judgement") });
    assert!(matches!(
        block_on(submitted),
        Err(ControllerError::Panicked)
    ));
    assert_eq!(controller.handle().image().offset(), offset);
    block_on(create(controller.handle(), "a", 1)).expect("the controller goes on");
    controller.stop();
}

#[test]
fn a_controller_that_cannot_write_says_that_it_has_failed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, controller) = start(dir.path());
    let server = controller.handle().quorum_server().cloned();
    server.expect("a controller").fail_writes();
    let (id, epoch) = (BrokerId(1), controller.handle().broker_epoch());
    let allocated = controller.handle().submit(move |image, _| {
        let (records, block) = allocate_producer_ids(image, id, epoch).expect("a block");
        Decision {
            records,
            response: block,
        }
    });
    block_on(allocated).expect_err("nothing is on disk");
    let failed = controller.until_failed();
    let reason = block_on(async { tokio::time::timeout(Duration::from_secs(60), failed).await });
    let reason = reason.expect("it is told");
    assert!(reason.contains("failed"), "{reason}");
    assert!(!controller.handle().is_active());
    controller.stop();
}

#[test]
fn requests_after_the_stop_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_logs, controller) = start(dir.path());
    let handle = controller.handle().clone();
    controller.stop();
    let submitted = handle.submit(|_, _| Decision::unchanged(()));
    assert!(matches!(
        block_on(submitted),
        Err(ControllerError::Stopping)
    ));
}

/// The metadata log of a broker of Apache Kafka 4.4.0 that made a topic of two partitions, gave it a third, and set a
/// configuration of the broker.
#[test]
fn a_metadata_log_of_apache_kafka_is_taken_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let metadata_dir = dir.path().join("__cluster_metadata-0");
    std::fs::create_dir(&metadata_dir).expect("made");
    let file = |name: &str, content: &[u8]| {
        std::fs::write(metadata_dir.join(name), content).expect("written")
    };
    file(
        "00000000000000000000.log",
        include_bytes!("../metadata/testdata/apache-kafka-4.4.0.log"),
    );
    file(
        "00000000000000000000-0000000000.checkpoint",
        include_bytes!("../metadata/testdata/apache-kafka-4.4.0.checkpoint"),
    );
    let (_logs, recovered) = open(dir.path());
    let image = recovered.image();
    let topic = image.topic("t1").expect("the topic");
    assert_eq!(topic.id.to_string(), "r1qIAnU2QJyolPWX7Mq6NQ");
    assert_eq!(topic.partitions.len(), 3);
    assert_eq!(
        image.topic_configs("t1").expect("set")["cleanup.policy"],
        "compact,delete"
    );
    assert_eq!(
        image
            .configs(&ConfigResource::broker(BrokerId(1)))
            .expect("set")["log.cleaner.threads"],
        "2"
    );
    assert_eq!(image.broker(BrokerId(1)).expect("registered").epoch.0, 17);
    assert_eq!(image.feature_level("share.version"), 2);

    let controller = start_with(recovered, settings(), Vec::new(), true);
    let image = controller.handle().image();
    assert_eq!(image.epoch(), 2);
    assert!(image.is_active(BrokerId(1)));
    // What this release does not have is off.
    assert_eq!(image.feature_level("share.version"), 0);
    assert_eq!(image.feature_level("metadata.version"), 33);
    assert_eq!(image.topic("t1").expect("the topic").partitions.len(), 3);
    controller.stop();
}
