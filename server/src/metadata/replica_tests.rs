//! Tests of a replica of the metadata log, on real files.

use std::path::Path;

use highwater_replication::cluster::records::{FeatureLevelRecord, TopicRecord};
use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use highwater_storage::{LogManager, LogManagerSettings};
use uuid::Uuid;

use super::*;
use crate::metadata::{
    data_batch, leader_change_batch, metadata_log_config, metadata_topic_id,
    metadata_topic_partition,
};

const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
const NOW_MS: i64 = 1_700_000_000_000;

fn open(dir: &Path) -> MetadataReplica {
    let settings = LogManagerSettings {
        log_dirs: vec![dir.to_owned()],
        ..LogManagerSettings::default()
    };
    let logs = LogManager::open(settings).expect("the directory opens");
    let log = logs.get_or_create(
        &metadata_topic_partition(),
        Some(metadata_topic_id()),
        metadata_log_config(),
        NOW_MS,
    );
    MetadataReplica::open(log.expect("the log opens"), CLUSTER_ID).expect("the log replays")
}

fn topic(name: &str) -> MetadataRecord {
    TopicRecord {
        name: name.to_owned(),
        topic_id: Uuid::from_u128(name.bytes().fold(0, |id, byte| id * 256 + u128::from(byte))),
    }
    .into()
}

/// What the leader of `epoch` writes first, and then these topics.
fn batches(replica: &MetadataReplica, epoch: i32, names: &[&str]) -> Bytes {
    let offset = replica.image().offset() + 1;
    let mut bytes = leader_change_batch(1, &[1], offset, epoch, NOW_MS)
        .expect("a batch")
        .to_vec();
    let records: Vec<_> = names.iter().map(|name| topic(name)).collect();
    let data = data_batch(&records, offset + 1, epoch, NOW_MS);
    bytes.extend_from_slice(&data.expect("a batch"));
    bytes.into()
}

fn names(image: &ClusterImage) -> Vec<String> {
    image.topics().map(|topic| topic.name.to_string()).collect()
}

#[test]
fn what_was_appended_is_in_the_image_and_in_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut replica = open(dir.path());
    let end = replica.metadata_log().high_watermark();
    let delta = replica
        .append(&batches(&replica, 3, &["a", "b"]), 3, NOW_MS)
        .expect("appended");
    assert_eq!(delta.created_topics.len(), 2);
    assert_eq!(names(replica.image()), ["a", "b"]);
    assert_eq!((replica.image().offset(), replica.image().epoch()), (2, 3));
    assert_eq!((*end.borrow(), replica.log().log_end_offset()), (3, 3));
    let image = replica.image().clone();
    drop(replica);
    assert_eq!(**open(dir.path()).image(), *image);
}

#[test]
fn records_that_do_not_fit_change_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut replica = open(dir.path());
    let first = batches(&replica, 1, &["a"]);
    replica.append(&first, 1, NOW_MS).expect("appended");
    let image = replica.image().clone();
    let twice = batches(&replica, 1, &["a"]);
    let error = replica.append(&twice, 1, NOW_MS).expect_err("it exists");
    assert!(matches!(error, MetadataError::Apply { .. }), "{error}");
    // The same offsets again.
    replica
        .append(&first, 1, NOW_MS)
        .expect_err("a wrong place");
    let mut flipped = batches(&replica, 1, &["b"]).to_vec();
    *flipped.last_mut().expect("bytes") ^= 1;
    replica
        .append(&flipped.into(), 1, NOW_MS)
        .expect_err("a flipped bit");
    assert_eq!(*replica.image(), image);
    assert_eq!(replica.log().log_end_offset(), 2);
}

#[test]
fn a_snapshot_of_another_replica_replaces_what_was_there() {
    let (source_dir, dir) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let mut source = open(source_dir.path());
    let mut replica = open(dir.path());
    let first = batches(&source, 1, &["a", "b"]);
    for replica in [&mut source, &mut replica] {
        replica.append(&first, 1, NOW_MS).expect("appended");
    }
    let feature = FeatureLevelRecord {
        name: "metadata.version".to_owned(),
        feature_level: 33,
    };
    let remove = highwater_replication::cluster::records::RemoveTopicRecord {
        topic_id: source.image().topic("a").expect("a topic").id.0,
    };
    let records = [topic("c"), feature.into(), remove.into()];
    let data = data_batch(&records, 3, 2, NOW_MS).expect("a batch");
    source.append(&data, 2, NOW_MS).expect("appended");

    let id = source.write_snapshot(NOW_MS).expect("written");
    let id = id.expect("a snapshot");
    assert_eq!((id.end_offset, id.epoch), (6, 2));
    assert_eq!(
        source.metadata_log().latest_snapshot().expect("listed"),
        Some(id.clone())
    );
    let whole = source.metadata_log().read_snapshot(&id, 0, usize::MAX);
    let whole = whole.expect("read").expect("there").bytes;
    // In parts it is the same.
    let mut parts = Vec::new();
    loop {
        let read = source
            .metadata_log()
            .read_snapshot(&id, parts.len() as u64, 100);
        let part = read.expect("read").expect("there");
        assert_eq!(part.size_in_bytes, whole.len() as u64);
        if part.bytes.is_empty() {
            break;
        }
        parts.extend_from_slice(&part.bytes);
    }
    assert_eq!(parts, whole);

    replica
        .install_snapshot(&id, &whole.slice(..whole.len() - 1))
        .expect_err("cut off");
    assert_eq!(names(replica.image()), ["a", "b"]);
    let delta = replica.install_snapshot(&id, &whole).expect("installed");
    assert_eq!(*replica.image(), *source.image());
    assert_eq!(
        (delta.created_topics.len(), delta.deleted_topics.len()),
        (1, 1)
    );
    assert!(delta.features_changed);
    assert_eq!(replica.log().log_start_offset(), 6);

    // Both go on from there alike, also after a restart.
    let next = batches(&source, 3, &["d"]);
    source.append(&next, 3, NOW_MS).expect("appended");
    replica.append(&next, 3, NOW_MS).expect("appended");
    drop(replica);
    assert_eq!(**open(dir.path()).image(), **source.image());
}
