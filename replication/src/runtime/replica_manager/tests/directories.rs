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
