//! The observer against controllers that a test plays.

mod fake_controller;

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::cluster::records::{
    BeginTransactionRecord, EndTransactionRecord, TopicRecord,
};
use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use highwater_storage::record_batch::RecordBatchBuilder;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::fake_controller::Controllers;
use super::*;
use crate::controller::ControllerNode;
use crate::metadata::MetadataSubscriber;
use crate::network::client::fake_node::FakeNode;
use crate::peer::test_node::{CLUSTER_ID, NODE_ID, NOW_MS, TestNode};

const PATIENCE: Duration = Duration::from_secs(30);

fn topic(name: &str) -> MetadataRecord {
    let id = name.bytes().fold(0, |id, byte| id * 256 + u128::from(byte));
    TopicRecord {
        name: name.to_owned(),
        topic_id: Uuid::from_u128(id),
    }
    .into()
}

fn names(image: &ClusterImage) -> Vec<String> {
    image.topics().map(|topic| topic.name.to_string()).collect()
}

struct Fixture {
    controllers: Controllers,
    _nodes: Vec<FakeNode>,
    node: TestNode,
    observer: Option<MetadataObserver>,
    failure: oneshot::Receiver<ObserverError>,
    /// The topics of every image that was published.
    published: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            observer.stop();
        }
    }
}

impl Fixture {
    /// Controllers 1 and 2 as `prepare` leaves them, and an observer that knows only where the second is.
    async fn start(prepare: impl FnOnce(&mut fake_controller::Quorum)) -> Self {
        let controllers = Controllers::new();
        controllers.change(prepare);
        let ports = Arc::default();
        let first = controllers.start(1, Arc::clone(&ports)).await;
        let second = controllers.start(2, ports).await;
        let published: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let subscriber: MetadataSubscriber = Box::new({
            let published = Arc::clone(&published);
            move |image, _| published.lock().push(names(image))
        });
        let (node, replica) = TestNode::new(vec![subscriber]);
        let settings = ObserverSettings {
            node_id: NODE_ID,
            directory_id: Uuid::from_u128(5),
            cluster_id: CLUSTER_ID.to_owned(),
            voters: Vec::new(),
            bootstrap_servers: vec![("127.0.0.1".to_owned(), second.port)],
            request_timeout: Duration::from_secs(5),
            retry_backoff: Duration::from_millis(1),
            fetch_max_bytes: 1 << 20,
            fetch_snapshot_max_bytes: 50,
            max_bytes_between_snapshots: 2_000,
        };
        let (failed, failure) = oneshot::channel();
        let observer = MetadataObserver::start(
            replica,
            Arc::clone(&node.publisher),
            Arc::clone(&node.quorum),
            settings,
            move |error| drop(failed.send(error)),
        );
        Fixture {
            controllers,
            _nodes: vec![first, second],
            node,
            observer: Some(observer.unwrap()),
            failure,
            published,
        }
    }

    /// Waits until the image at this offset is published.
    async fn until_published(&self, offset: i64) -> Arc<ClusterImage> {
        let mut published = self.node.publisher.published_offset();
        let reached = published.wait_for(|published| *published >= offset);
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        assert_eq!(*reached.expect("in time").unwrap(), offset);
        self.node.publisher.image()
    }

    async fn until_leader(&self, id: i32) -> ControllerNode {
        let mut active = self.node.quorum.active_controller();
        let found = active.wait_for(|active| active.as_ref().is_some_and(|node| node.id == id));
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.expect("in time").unwrap().clone().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_found_and_its_log_followed() {
    let fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a"), topic("b")]);
        quorum.commit_all();
    })
    .await;
    let image = fixture.until_published(1).await;
    assert_eq!(names(&image), ["a", "b"]);
    let leader = fixture.until_leader(1).await;
    assert_eq!((leader.epoch, &*leader.host), (1, "127.0.0.1"));
    fixture.controllers.change(|quorum| {
        quorum.append(&[topic("c")]);
        quorum.commit_all();
    });
    assert_eq!(names(&*fixture.until_published(2).await), ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_published_before_it_is_committed_and_what_is_lost_never_is() {
    let fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a")]);
        quorum.commit_all();
        quorum.append(&[topic("lost")]);
        quorum.append(&[topic("lost too")]);
    })
    .await;
    fixture.until_published(0).await;
    fixture.controllers.change(|quorum| {
        quorum.elect(2, 2, 1);
        quorum.append(&[topic("b")]);
        quorum.commit_all();
    });
    assert_eq!(names(&*fixture.until_published(1).await), ["a", "b"]);
    assert_eq!(fixture.until_leader(2).await.epoch, 2);
    assert_eq!(*fixture.published.lock(), [vec!["a"], vec!["a", "b"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_take_effect_together_are_published_together() {
    let begin = || BeginTransactionRecord::default().into();
    let fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a")]);
        quorum.append(&[begin(), topic("b")]);
        quorum.commit_all();
    })
    .await;
    assert_eq!(names(&*fixture.until_published(2).await), ["a"]);
    fixture.controllers.change(|quorum| {
        quorum.append(&[topic("c")]);
        quorum.append(&[EndTransactionRecord {}.into(), topic("d")]);
        quorum.commit_all();
    });
    assert_eq!(
        names(&*fixture.until_published(5).await),
        ["a", "b", "c", "d"]
    );
    let published = fixture.published.lock();
    assert!(
        published
            .iter()
            .all(|names| names.len() != 2 && names.len() != 3),
        "{published:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_fetched_part_by_part_and_the_log_goes_on_behind_it() {
    let written = tempfile::tempdir().unwrap();
    let (id, content) = snapshot_of(written.path(), &["a", "b", "c"]);
    let (end_offset, size) = (id.end_offset, content.len());
    let fixture = Fixture::start(|quorum| {
        quorum.begin_after(id, content);
        quorum.append(&[topic("d")]);
        quorum.commit_all();
    })
    .await;
    let image = fixture.until_published(end_offset).await;
    assert_eq!(names(&image), ["a", "b", "c", "d"]);
    let requests = fixture.controllers.quorum.lock().snapshot_requests;
    assert_eq!(requests, size.div_ceil(50));
    let log_dir = fixture.node.dir.path().join("__cluster_metadata-0");
    assert!(
        log_dir
            .join(format!("{end_offset:020}-0000000001.checkpoint"))
            .exists()
    );
}

/// A snapshot with these topics, as the controller writes it.
fn snapshot_of(dir: &std::path::Path, topics: &[&str]) -> (SnapshotId, Bytes) {
    let records: Vec<_> = topics.iter().map(|name| topic(name)).collect();
    let last_offset = records.len() as i64 - 1;
    let image = ClusterImage::empty(CLUSTER_ID);
    let (image, _) = image.apply(&records, last_offset, 1).unwrap();
    let id = crate::metadata::snapshot::write(dir, &image, NOW_MS, NOW_MS).unwrap();
    let content = std::fs::read(id.path(dir)).unwrap();
    (id, content.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_changed_on_the_way_are_fetched_again() {
    let fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a")]);
        quorum.commit_all();
        quorum.damaged_answers = 1;
    })
    .await;
    assert_eq!(names(&*fixture.until_published(0).await), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_nobody_here_knows_ends_it() {
    let mut fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a")]);
        let mut unknown = RecordBatchBuilder::new().base_offset(1).leader_epoch(1);
        // Frame version 1, type 127, version 0.
        unknown.append(NOW_MS, None, Some(&[1, 127, 0, 0]));
        quorum.append_batch(unknown.build().unwrap());
        quorum.commit_all();
    })
    .await;
    let error = tokio::time::timeout(PATIENCE, &mut fixture.failure).await;
    let error = error.expect("in time").unwrap();
    assert!(
        matches!(
            error,
            ObserverError::Metadata(MetadataError::Record { offset: 1, .. })
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_that_lost_what_was_committed_end_it() {
    let mut fixture = Fixture::start(|quorum| {
        quorum.append(&[topic("a")]);
        quorum.append(&[topic("b")]);
        quorum.commit_all();
    })
    .await;
    fixture.until_published(1).await;
    fixture.controllers.change(|quorum| quorum.elect(2, 2, 1));
    let error = tokio::time::timeout(PATIENCE, &mut fixture.failure).await;
    let error = error.expect("in time").unwrap();
    assert!(matches!(error, ObserverError::CommittedLost(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_log_is_replaced_by_a_snapshot() {
    let fixture = Fixture::start(|quorum| {
        for number in 0..40 {
            quorum.append(&[topic(&format!("t{number:02}"))]);
        }
        quorum.commit_all();
    })
    .await;
    fixture.until_published(39).await;
    let log_dir = fixture.node.dir.path().join("__cluster_metadata-0");
    let snapshot = log_dir.join("00000000000000000040-0000000001.checkpoint");
    let written = async {
        while !snapshot.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written)
        .await
        .expect("in time");
}
