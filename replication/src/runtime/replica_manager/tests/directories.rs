//! Logs that fail: another replica takes over.

use super::*;
use crate::cluster::assign_dirs::assign_replicas_to_dirs;
use crate::cluster::directories::LOST_DIRECTORY;

impl Cluster {
    /// Gives each broker the id of its only log directory.
    fn name_directories(&self) {
        for (broker, node) in &self.0.nodes {
            let ids = [(node._dir.path().to_owned(), directory(*broker))];
            node.replicas.set_directory_ids(ids.into());
        }
    }

    /// Tells the controller what a broker has to tell, as its server does.
    fn tell_directories(&self, broker: BrokerId) -> usize {
        let wanted = self.replicas(broker).wanted_assignments();
        let image = Arc::clone(&self.0.image.lock());
        let epoch = image.broker(broker).expect("registered").epoch;
        let judged = assign_replicas_to_dirs(&image, &DEFAULTS, broker, epoch, &wanted);
        let (records, results) = judged.expect("of this run");
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        self.0.commit(&records);
        wanted.len()
    }

    fn directory_of(&self, broker: BrokerId) -> Uuid {
        let image = Arc::clone(&self.0.image.lock());
        let partition = image.partition(TOPIC, 0).expect("there");
        partition.directory_of(broker)
    }
}

fn directory(broker: BrokerId) -> Uuid {
    Uuid::from_u128(100 + u128::from(broker.0.unsigned_abs()))
}

fn failure() -> highwater_storage::StorageError {
    highwater_storage::StorageError::io("write", "x", std::io::Error::other("EIO"))
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_log_fails_hands_over_and_nothing_committed_is_lost() {
    let cluster = Cluster::start();
    cluster.name_directories();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    assert_eq!(
        cluster.tell_directories(B1),
        0,
        "one directory need not be told"
    );
    let committed = cluster.log(B2);

    let partition = cluster.partition(B1);
    let changed = cluster.replicas(B1).context().places_changed();
    partition.log().set_failed(failure());
    tokio::time::timeout(Duration::from_secs(1), changed)
        .await
        .expect("noticed without a request");
    assert!(!partition.view().is_leader());
    assert_eq!(cluster.tell_directories(B1), 1);
    assert_eq!(cluster.directory_of(B1), LOST_DIRECTORY);
    assert_eq!(cluster.isr(), [B2, B3]);
    assert_eq!(cluster.partition(B2).view().leader, Some(B2));
    assert_eq!(cluster.tell_directories(B1), 0, "told once");
    cluster.produce_all(B2).await;
    assert!(cluster.log(B2).2.starts_with(&committed.2));
    assert!(matches!(
        cluster.replicas(B1).partition(TOPIC, 0),
        Err(PartitionError::Offline(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn the_only_replica_leads_on_although_its_log_has_failed() {
    let cluster = Cluster::start();
    cluster.name_directories();
    cluster.create_topic(&[B1]);
    cluster.partition(B1).log().set_failed(failure());
    assert_eq!(cluster.tell_directories(B1), 0);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_lost_is_told_to_be_back() {
    let cluster = Cluster::start();
    cluster.name_directories();
    cluster.create_topic(&ALL);
    let image = Arc::clone(&cluster.0.image.lock());
    let lost = crate::cluster::assign_dirs::DirectoryAssignment {
        directory: LOST_DIRECTORY,
        topic_id: image.topic(TOPIC).expect("there").id,
        partition: 0,
    };
    for broker in ALL {
        // One after the other, as each is judged on what the one before made.
        let image = Arc::clone(&cluster.0.image.lock());
        let epoch = image.broker(broker).expect("registered").epoch;
        let judged = assign_replicas_to_dirs(&image, &DEFAULTS, broker, epoch, &[lost]);
        cluster.0.commit(&judged.expect("judged").0);
    }
    let leader = |broker| cluster.partition(broker).view().leader;
    assert_eq!(leader(B3), None);
    // The last in-sync replica is back, and leads as it has all that is committed.
    assert_eq!(cluster.tell_directories(B1), 1);
    assert_eq!((leader(B1), cluster.isr()), (None, vec![B3]));
    assert_eq!(cluster.tell_directories(B3), 1);
    assert_eq!(cluster.directory_of(B3), directory(B3));
    assert_eq!(leader(B1), Some(B3));
    cluster
        .until("B1 is in sync", || {
            cluster.isr() == [B1, B3] || cluster.isr() == ALL
        })
        .await;
    cluster.produce_all(B3).await;
}

/// A broker over some of the directories `a`, `b` and `c`, whose ids are 101, 102 and 103.
struct Disks(tempfile::TempDir);

impl Disks {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, names: &[&str]) -> LogManager {
        let log_dirs = names.iter().map(|name| self.path(name)).collect();
        let settings = LogManagerSettings {
            log_dirs,
            ..LogManagerSettings::default()
        };
        LogManager::open(settings).expect("opened")
    }

    /// Puts a log of the only partition of a topic with so many records there.
    fn put(&self, name: &str, topic_id: TopicId, records: usize) {
        let logs = self.open(&[name]);
        let partition = TopicPartition::new(TOPIC, 0);
        let log = logs
            .get_or_create(&partition, Some(topic_id), Default::default(), 0)
            .expect("made");
        for _ in 0..records {
            let (epoch, origin) = (LeaderEpoch(0), AppendOrigin::Client);
            log.append_as_leader(&batch(0, -1, 1), epoch, origin, time_of_day_ms())
                .expect("appended");
        }
    }

    /// Starts broker 1 with this partition.
    fn start(&self, names: &[&str], partition: PartitionRecord) -> ReplicaManager {
        let topic = TopicRecord {
            name: TOPIC.to_owned(),
            topic_id: partition.topic_id,
        };
        let records = [topic.into(), partition.into()];
        let (image, _) = image(&[]).apply(&records, 4, 1).expect("they fit");
        let replicas = ReplicaManager::new(B1, Arc::new(self.open(names)), LogDefaults::default());
        let ids = [("a", 101), ("b", 102), ("c", 103)].map(|(name, id)| (self.path(name), id));
        let in_use =
            (ids.into_iter()).filter(|(path, _)| names.iter().any(|name| self.path(name) == *path));
        let ids = in_use.map(|(path, id)| (path, Uuid::from_u128(id)));
        replicas.set_directory_ids(ids.collect());
        replicas.load(&Arc::new(image), time_of_day_ms());
        replicas
    }

    fn has(&self, name: &str, file: impl Fn(&str) -> bool) -> bool {
        let entries = std::fs::read_dir(self.path(name)).expect("listed");
        let mut names = entries.map(|entry| entry.expect("listed").file_name());
        names.any(|name| file(&name.to_string_lossy()))
    }
}

fn placed(topic_id: TopicId, directory: Uuid, isr: &[BrokerId]) -> PartitionRecord {
    PartitionRecord {
        partition_id: 0,
        topic_id: topic_id.0,
        replicas: vec![1, 2],
        isr: isr.iter().map(|id| id.0).collect(),
        leader: isr.first().map_or(-1, |id| id.0),
        leader_epoch: 1,
        partition_epoch: 1,
        directories: vec![directory, Uuid::from_u128(200)],
        ..PartitionRecord::default()
    }
}

#[test]
fn of_two_logs_of_a_partition_the_one_that_the_metadata_mean_counts_and_the_other_is_set_aside() {
    let [now, before] = [77, 76].map(|id| TopicId(Uuid::from_u128(id)));
    // Another topic of the name, or the same one: then the place tells.
    for (old, new, of_old) in [
        ("b", "c", before),
        ("c", "b", before),
        ("b", "c", now),
        ("c", "b", now),
    ] {
        let disks = Disks(tempfile::tempdir().expect("a directory"));
        disks.put(old, of_old, 5);
        disks.put(new, now, 3);
        let place = Uuid::from_u128(if new == "b" { 102 } else { 103 });
        let replicas = disks.start(&["a", "b", "c"], placed(now, place, &[B1]));
        let partition = replicas.partition(TOPIC, 0).expect("hosted");
        assert_eq!(partition.log().log_end_offset(), 3, "{old} {new} {of_old}");
        assert_eq!(partition.log().log_dir(), disks.path(new));
        assert!(disks.has(new, |name| name == "t-0"));
        assert!(disks.has(old, |name| name.ends_with("-stray")));
        assert!(!disks.has(old, |name| name == "t-0" || name.ends_with("-delete")));
    }
}

#[test]
fn what_no_other_replica_has_is_not_made_anew_when_its_directory_is_not_there() {
    let id = TopicId(Uuid::from_u128(77));
    let gone = Uuid::from_u128(102);
    let nobody = |last_known: i32| PartitionRecord {
        eligible_leader_replicas: Some(vec![]),
        last_known_elr: Some(vec![last_known]),
        ..placed(id, LOST_DIRECTORY, &[])
    };
    for (record, is_made) in [
        (placed(id, gone, &[B1]), false),
        (nobody(1), false),
        (nobody(2), true),
        (placed(id, gone, &[B2, B1]), true),
        (placed(id, LOST_DIRECTORY, &[B2]), true),
        (placed(id, Uuid::nil(), &[B1]), true),
        (placed(id, Uuid::from_u128(101), &[B1]), true),
    ] {
        let disks = Disks(tempfile::tempdir().expect("a directory"));
        let replicas = disks.start(&["a", "c"], record.clone());
        let hosted = replicas.partition(TOPIC, 0);
        assert_eq!(hosted.is_ok(), is_made, "{record:?}: {hosted:?}");
        assert_eq!(
            ["a", "c"]
                .iter()
                .any(|name| disks.has(name, |name| name == "t-0")),
            is_made
        );
        if let Err(error) = hosted {
            assert!(
                error
                    .to_string()
                    .contains("no other replica has all records"),
                "{error}"
            );
        }
    }
    // A log that is there is taken, wherever it lay.
    let disks = Disks(tempfile::tempdir().expect("a directory"));
    disks.put("c", id, 3);
    let replicas = disks.start(&["a", "c"], placed(id, gone, &[B1]));
    let partition = replicas.partition(TOPIC, 0).expect("hosted");
    assert_eq!(partition.log().log_end_offset(), 3);
}
