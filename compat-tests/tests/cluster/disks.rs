//! Brokers with several log directories, one of which fails or is full: others take over what lies in it, and nothing
//! that was acknowledged is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compat_tests::cluster::{
    Cluster, ClusterOptions, SmallDisk, for_each_cluster, for_highwater_cluster,
};
use compat_tests::process::eventually;
use compat_tests::raw::{Connection, code};
use kafka_protocol::messages::DescribeLogDirsRequest;
use tempfile::TempDir;

use crate::support::{LONG, epochs_of_batches, one, produce, produce_all};

/// A batch of about this many bytes.
const BATCH_BYTES: usize = 60_000;
/// What is free beside the ballast in the small directory, and the ballast.
const ROOM_MIB: u32 = 12;
const BALLAST_BYTES: usize = 6 << 20;

/// The two log directories of one broker, the second of which may be a file system of its own.
struct TwoDirectories {
    /// Before the folder, so that it is unmounted first.
    small_disk: Option<SmallDisk>,
    folder: TempDir,
}

impl TwoDirectories {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("compat-disks-")
            .tempdir()
            .unwrap();
        std::fs::create_dir(folder.path().join("second")).unwrap();
        Self {
            small_disk: None,
            folder,
        }
    }

    /// With the second one on a small disk; `None` where the tests may not mount one.
    fn with_small_disk() -> Option<Self> {
        if !SmallDisk::may_be_mounted() && std::env::var_os("CI").is_none() {
            eprintln!("skipped: only root may mount a small disk");
            return None;
        }
        let mut directories = Self::new();
        let disk = SmallDisk::mount(&directories.second(), ROOM_MIB);
        directories.small_disk = Some(disk.unwrap_or_else(|error| panic!("{error:#}")));
        std::fs::create_dir(directories.second().join("logs")).unwrap();
        Some(directories)
    }

    fn second(&self) -> PathBuf {
        self.folder.path().join("second")
    }

    /// Where the partitions of the second directory lie.
    fn logs(&self) -> PathBuf {
        match self.small_disk {
            Some(_) => self.second().join("logs"),
            None => self.second(),
        }
    }

    fn option(&self) -> String {
        format!(
            "{},{}",
            self.folder.path().join("first").display(),
            self.logs().display()
        )
    }

    fn ballast(&self) -> PathBuf {
        self.second().join("ballast")
    }
}

fn options(broker: i32, directories: &TwoDirectories) -> ClusterOptions {
    ClusterOptions::new()
        .with_controller_apart()
        .set_on(broker, "log.dirs", directories.option())
}

/// A topic of one partition whose replica on the broker with these directories lies in the given one. Topics are made
/// until there is one.
#[track_caller]
fn topic_in(directory: &Path, cluster: &Cluster, replicas: &[i32], min_isr: &str) -> String {
    let name = directory.file_name().unwrap().display();
    for number in 0..4 {
        let topic = format!("{name}-{number}");
        // The smallest segments there are, so that files are made soon.
        let configs = [
            ("segment.bytes", "1048576"),
            ("min.insync.replicas", min_isr),
        ];
        cluster.create_topic(&topic, &[replicas], &configs);
        if directory.join(format!("{topic}-0")).is_dir() {
            return topic;
        }
    }
    panic!("no partition lies in {}", directory.display());
}

fn big(number: usize) -> bytes::Bytes {
    one(&format!("{number}{}", "x".repeat(BATCH_BYTES)))
}

/// Produces with acks=all to a broker until it refuses; gives the error and how many were taken.
#[track_caller]
fn produce_until_refused(connection: &mut Connection, topic: &str, most: usize) -> (i16, i64) {
    for number in 0..most {
        let reply = produce(connection, topic, -1, LONG, big(number));
        if reply.error_code != code::NONE {
            return (reply.error_code, i64::try_from(number).unwrap());
        }
    }
    panic!("{most} batches were taken");
}

#[track_caller]
fn end_on(cluster: &Cluster, id: i32, topic: &str, end: i64) {
    let batches = epochs_of_batches(cluster, id, topic, end);
    assert_eq!(batches.len(), usize::try_from(end).unwrap());
}

/// What DescribeLogDirs says of each directory by its name: its error, and whether partition 0 of the topic lies there.
#[track_caller]
fn directories_of(cluster: &Cluster, id: i32, topic: &str) -> BTreeMap<String, (i16, bool)> {
    let request = DescribeLogDirsRequest::default().with_topics(None);
    let reply = cluster.connect(id).unwrap().call(4, &request).unwrap();
    assert_eq!(reply.error_code, code::NONE);
    let told = reply.results.iter().map(|result| {
        let name = Path::new(result.log_dir.as_str()).file_name().unwrap();
        let is_there = result
            .topics
            .iter()
            .any(|there| there.name.as_str() == topic);
        let name = name.display().to_string();
        (name, (result.error_code, is_there))
    });
    told.collect()
}

#[test]
fn a_leader_whose_log_directory_fails_hands_over_and_returns_after_a_restart() {
    let directories = TwoDirectories::new();
    for_each_cluster(&options(1, &directories), |cluster| {
        let logs = directories.logs();
        let topic = topic_in(&logs, cluster, &[1, 2, 3], "2");
        let mut connection = cluster.connect(1).unwrap();
        produce_all(&mut connection, &topic, "before");
        // The next file that is to be made there cannot be.
        let gone = directories.folder.path().join("gone");
        std::fs::rename(&logs, &gone).unwrap();
        let (error, taken) = produce_until_refused(&mut connection, &topic, 40);
        assert!(
            [code::KAFKA_STORAGE_ERROR, code::NOT_LEADER_OR_FOLLOWER].contains(&error),
            "{error}"
        );
        cluster.wait_for_partition(&topic, 0, "broker 2 leads without 1", |view| {
            view.leader == 2 && view.isr == [2, 3] && view.offline == [1]
        });
        assert_eq!(
            directories_of(cluster, 1, &topic),
            BTreeMap::from([
                ("first".to_owned(), (code::NONE, false)),
                ("second".to_owned(), (code::KAFKA_STORAGE_ERROR, false))
            ])
        );
        let mut connection = cluster.connect(2).unwrap();
        assert_eq!(produce_all(&mut connection, &topic, "after"), 1 + taken);
        end_on(cluster, 2, &topic, taken + 2);
        // What lies in the other directory goes on.
        let other = topic_in(
            &directories.folder.path().join("first"),
            cluster,
            &[1, 2, 3],
            "2",
        );
        assert_eq!(
            produce_all(&mut cluster.connect(1).unwrap(), &other, "on"),
            0
        );

        cluster.kill(1).unwrap();
        std::fs::rename(&gone, &logs).unwrap();
        cluster.start_again(1).unwrap();
        cluster.wait_for_partition(&topic, 0, "1 is back", |view| {
            view.leader == 2 && view.isr == [1, 2, 3] && view.offline.is_empty()
        });
        assert_eq!(produce_all(&mut connection, &topic, "together"), taken + 2);
        end_on(cluster, 1, &topic, taken + 3);
        assert_eq!(
            directories_of(cluster, 1, &topic),
            BTreeMap::from([
                ("first".to_owned(), (code::NONE, false)),
                ("second".to_owned(), (code::NONE, true))
            ])
        );
        for kept in ["first", "second"] {
            std::fs::remove_dir_all(directories.folder.path().join(kept)).unwrap();
            std::fs::create_dir(directories.folder.path().join(kept)).unwrap();
        }
    });
}

#[test]
fn a_broker_starts_without_a_directory_that_cannot_be_used_and_makes_nothing_anew() {
    let directories = TwoDirectories::new();
    for_each_cluster(&options(1, &directories), |cluster| {
        let first = directories.folder.path().join("first");
        let logs = directories.logs();
        let kept = topic_in(&first, cluster, &[1, 2, 3], "2");
        let lost = topic_in(&logs, cluster, &[1, 2, 3], "2");
        for topic in [&kept, &lost] {
            produce_all(&mut cluster.connect(1).unwrap(), topic, "before");
        }
        cluster.kill(1).unwrap();
        for topic in [&kept, &lost] {
            cluster.wait_for_leader_and_isr(topic, 0, 2, &[2, 3]);
        }
        let gone = directories.folder.path().join("gone");
        std::fs::rename(&logs, &gone).unwrap();
        std::fs::write(&logs, "no directory").unwrap();
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(&kept, 0, 2, &[1, 2, 3]);
        cluster.wait_for_partition(&lost, 0, "1 is there without it", |view| {
            view.leader == 2 && view.isr == [2, 3] && view.offline == [1]
        });
        let told = directories_of(cluster, 1, &lost);
        assert_eq!(
            told,
            BTreeMap::from([
                ("first".to_owned(), (code::NONE, false)),
                ("second".to_owned(), (code::KAFKA_STORAGE_ERROR, false))
            ])
        );
        assert!(!first.join(format!("{lost}-0")).exists(), "made anew");
        let mut connection = cluster.connect(2).unwrap();
        assert_eq!(produce_all(&mut connection, &lost, "without 1"), 1);

        cluster.kill(1).unwrap();
        std::fs::remove_file(&logs).unwrap();
        std::fs::rename(&gone, &logs).unwrap();
        cluster.start_again(1).unwrap();
        cluster.wait_for_partition(&lost, 0, "1 is back", |view| {
            view.leader == 2 && view.isr == [1, 2, 3] && view.offline.is_empty()
        });
        end_on(cluster, 1, &lost, 2);
        for kept in ["first", "second"] {
            std::fs::remove_dir_all(directories.folder.path().join(kept)).unwrap();
            std::fs::create_dir(directories.folder.path().join(kept)).unwrap();
        }
    });
}

#[test]
fn a_leader_with_a_full_disk_lets_another_lead_until_there_is_space() {
    let Some(directories) = TwoDirectories::with_small_disk() else {
        return;
    };
    // Apache Kafka takes a full directory for a failed one until a restart.
    for_highwater_cluster(&options(1, &directories), |cluster| {
        let topic = topic_in(&directories.logs(), cluster, &[1, 2, 3], "2");
        std::fs::write(directories.ballast(), vec![1; BALLAST_BYTES]).unwrap();
        let mut connection = cluster.connect(1).unwrap();
        let (error, taken) = produce_until_refused(&mut connection, &topic, 400);
        assert_eq!(error, code::KAFKA_STORAGE_ERROR);
        cluster.wait_for_partition(&topic, 0, "broker 2 leads", |view| view.leader == 2);
        let mut connection = cluster.connect(2).unwrap();
        let reply = produce(&mut connection, &topic, -1, LONG, big(0));
        assert_eq!((reply.error_code, reply.base_offset), (code::NONE, taken));
        // The first one cannot follow either, and is not in the way of more.
        for number in 1..60 {
            let reply = produce(&mut connection, &topic, -1, LONG, big(number));
            assert_eq!(reply.error_code, code::NONE, "{reply:?}");
        }
        cluster.wait_for_leader_and_isr(&topic, 0, 2, &[2, 3]);
        std::fs::remove_file(directories.ballast()).unwrap();
        cluster.wait_for_leader_and_isr(&topic, 0, 2, &[1, 2, 3]);
        end_on(cluster, 2, &topic, taken + 60);
        cluster.wait_for_partition(&topic, 0, "nothing is offline", |view| {
            view.offline.is_empty()
        });
    });
}

#[test]
fn the_last_in_sync_replica_leads_on_with_a_full_disk_and_serves_what_it_has() {
    let Some(directories) = TwoDirectories::with_small_disk() else {
        return;
    };
    for_highwater_cluster(&options(1, &directories), |cluster| {
        let topic = topic_in(&directories.logs(), cluster, &[1, 2], "1");
        std::fs::write(directories.ballast(), vec![1; BALLAST_BYTES]).unwrap();
        cluster.kill(2).unwrap();
        cluster.wait_for_leader_and_isr(&topic, 0, 1, &[1]);
        let mut connection = cluster.connect(1).unwrap();
        let mut taken = 0;
        let refused = (0..400).find_map(|number| {
            let reply = produce(&mut connection, &topic, 1, LONG, big(number));
            taken += i64::from(reply.error_code == code::NONE);
            (reply.error_code != code::NONE).then_some(reply.error_code)
        });
        assert_eq!(refused, Some(code::KAFKA_STORAGE_ERROR));
        end_on(cluster, 1, &topic, taken);
        assert_eq!(cluster.partition(1, &topic, 0).unwrap().leader, 1);
        std::fs::remove_file(directories.ballast()).unwrap();
        eventually(Cluster::PATIENCE, "writes are taken again", || {
            let reply = produce(&mut connection, &topic, 1, LONG, big(0));
            (reply.error_code == code::NONE).then_some(())
        });
        cluster.start_again(2).unwrap();
        cluster.wait_for_leader_and_isr(&topic, 0, 1, &[1, 2]);
    });
}

#[test]
fn a_follower_with_a_full_disk_leaves_the_isr_and_returns_when_there_is_space() {
    let Some(directories) = TwoDirectories::with_small_disk() else {
        return;
    };
    for_highwater_cluster(&options(3, &directories), |cluster| {
        let topic = topic_in(&directories.logs(), cluster, &[1, 2, 3], "2");
        std::fs::write(directories.ballast(), vec![1; BALLAST_BYTES]).unwrap();
        let mut connection = cluster.connect(1).unwrap();
        for number in 0..130 {
            let reply = produce(&mut connection, &topic, -1, LONG, big(number));
            assert_eq!(reply.error_code, code::NONE, "{number}: {reply:?}");
        }
        cluster.wait_for_leader_and_isr(&topic, 0, 1, &[1, 2]);
        std::fs::remove_file(directories.ballast()).unwrap();
        cluster.wait_for_leader_and_isr(&topic, 0, 1, &[1, 2, 3]);
        end_on(cluster, 3, &topic, 130);
    });
}
