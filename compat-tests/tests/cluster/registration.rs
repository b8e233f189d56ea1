//! Brokers and the controller: registration, heartbeats, fencing, controlled shutdown, and the epochs that keep an
//! earlier life of a broker from doing anything.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use compat_tests::cluster::{Cluster, ClusterOptions, HandMadeBroker, Shape, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{code, s};
use uuid::Uuid;

use crate::support::{LONG, one, produce};

const SESSION: Duration = Duration::from_secs(3);

/// One controller, one broker, and room for hand-made ones.
pub(crate) fn small() -> ClusterOptions {
    let shape = Shape::Separate {
        controllers: 1,
        brokers: 1,
    };
    ClusterOptions::new()
        .shape(shape)
        .set("broker.session.timeout.ms", SESSION.as_millis())
}

fn brokers_shown(cluster: &Cluster) -> Vec<i32> {
    let answer = cluster.metadata(1, &[]).unwrap();
    answer
        .brokers
        .iter()
        .map(|broker| broker.node_id.0)
        .collect()
}

#[track_caller]
pub(crate) fn wait_until_shown(cluster: &Cluster, id: i32, shown: bool) {
    eventually(
        Cluster::PATIENCE,
        &format!("{id} is shown: {shown}"),
        || (brokers_shown(cluster).contains(&id) == shown).then_some(()),
    );
}

#[test]
fn registrations_that_do_not_belong_here_are_refused() {
    for_each_cluster(&small(), |cluster| {
        let mut broker = HandMadeBroker::new(cluster, 101).unwrap();
        let good = broker.registration();
        let wrong_cluster = good.clone().with_cluster_id(s("WRONGWRONGWRONGWRONGWR"));
        assert_eq!(
            broker.try_register(&wrong_cluster).unwrap(),
            code::INCONSISTENT_CLUSTER_ID
        );
        let mut old = good.clone();
        for feature in &mut old.features {
            if feature.name.as_str() == "metadata.version" {
                // Before all that the cluster may be at.
                feature.min_supported_version -= 1;
                feature.max_supported_version = feature.min_supported_version;
            }
        }
        assert_eq!(
            broker.try_register(&old).unwrap(),
            code::UNSUPPORTED_VERSION
        );
        let no_features = good.clone().with_features(Vec::new());
        assert_ne!(broker.try_register(&no_features).unwrap(), code::NONE);
        let no_directories = good.clone().with_log_dirs(Vec::new());
        assert_ne!(broker.try_register(&no_directories).unwrap(), code::NONE);
        let twice = good
            .clone()
            .with_log_dirs(vec![broker.directory, broker.directory]);
        assert_ne!(broker.try_register(&twice).unwrap(), code::NONE);
        let reserved = good.clone().with_log_dirs(vec![Uuid::from_u128(1)]);
        assert_ne!(broker.try_register(&reserved).unwrap(), code::NONE);
        let unknown = broker.heartbeat().with_broker_epoch(5);
        let reply = broker.send_heartbeat(&unknown).unwrap();
        assert_eq!(reply.error_code, code::STALE_BROKER_EPOCH, "{reply:?}");
        assert_eq!(
            brokers_shown(cluster),
            [1],
            "none of them registered anything"
        );
        assert_eq!(broker.register().unwrap(), code::NONE);
    });
}

#[test]
fn broker_stays_fenced_until_it_has_caught_up_with_its_own_registration() {
    for_each_cluster(&small(), |cluster| {
        let mut broker = HandMadeBroker::new(cluster, 101).unwrap();
        assert_eq!(broker.register().unwrap(), code::NONE);
        let behind = broker
            .heartbeat()
            .with_current_metadata_offset(broker.epoch - 1);
        let reply = broker.send_heartbeat(&behind).unwrap();
        assert_eq!(reply.error_code, code::NONE);
        assert!(reply.is_fenced && !reply.is_caught_up, "{reply:?}");
        let not_yet = broker.heartbeat().with_want_fence(true);
        let reply = broker.send_heartbeat(&not_yet).unwrap();
        assert!(reply.is_fenced && reply.is_caught_up, "{reply:?}");
        assert_eq!(brokers_shown(cluster), [1], "a fenced broker is not shown");
        let reply = broker.send_heartbeat(&broker.heartbeat()).unwrap();
        assert!(!reply.is_fenced && reply.is_caught_up, "{reply:?}");
        wait_until_shown(cluster, 101, true);
        // It may ask to be fenced again.
        let reply = broker
            .send_heartbeat(&broker.heartbeat().with_want_fence(true))
            .unwrap();
        assert!(reply.is_fenced, "{reply:?}");
        wait_until_shown(cluster, 101, false);
    });
}

#[test]
fn silent_broker_is_fenced_and_a_heartbeat_brings_it_back() {
    for_each_cluster(&small(), |cluster| {
        let mut broker = HandMadeBroker::new(cluster, 101).unwrap();
        assert_eq!(broker.register().unwrap(), code::NONE);
        // For longer than a session: each heartbeat begins another one.
        let begun = Instant::now();
        while begun.elapsed() < SESSION * 2 {
            let reply = broker.send_heartbeat(&broker.heartbeat()).unwrap();
            assert!(
                !reply.is_fenced && reply.error_code == code::NONE,
                "{reply:?}"
            );
            std::thread::sleep(SESSION / 6);
        }
        wait_until_shown(cluster, 101, true);
        // Its connection is there, it says nothing.
        wait_until_shown(cluster, 101, false);
        let reply = broker.send_heartbeat(&broker.heartbeat()).unwrap();
        assert!(
            !reply.is_fenced && reply.error_code == code::NONE,
            "{reply:?}"
        );
        wait_until_shown(cluster, 101, true);
    });
}

#[test]
fn second_process_of_an_id_is_refused_while_the_first_lives_and_replaces_it_after() {
    for_each_cluster(&small(), |cluster| {
        let mut first = HandMadeBroker::running(cluster, 101);
        let mut second = HandMadeBroker::new(cluster, 101).unwrap();
        assert_eq!(
            second.register().unwrap(),
            code::DUPLICATE_BROKER_REGISTRATION
        );

        // The same process may register again; it keeps its epoch.
        let epoch = first.epoch;
        assert_eq!(first.register().unwrap(), code::NONE);
        assert_eq!(first.epoch, epoch);

        first.fall_silent();
        eventually(Cluster::PATIENCE, "the second is taken", || {
            (second.register().unwrap() == code::NONE).then_some(())
        });
        assert!(
            second.epoch > first.epoch,
            "{} {}",
            second.epoch,
            first.epoch
        );
        let reply = first.send_heartbeat(&first.heartbeat()).unwrap();
        assert_eq!(reply.error_code, code::STALE_BROKER_EPOCH, "{reply:?}");
        let proposal = first.isr_change(Uuid::from_u128(9), 0, 0, &[(101, first.epoch)]);
        assert_eq!(
            first.alter_partition(&proposal).unwrap(),
            Err(code::STALE_BROKER_EPOCH)
        );
        second.unfence().unwrap();
    });
}

#[test]
fn running_broker_whose_id_another_process_takes_serves_nothing_and_goes_on_asking() {
    let options = small().shape(Shape::Separate {
        controllers: 1,
        brokers: 2,
    });
    for_each_cluster(&options, |cluster| {
        let topic = "taken";
        cluster.create_topic(topic, &[&[2, 1]], &[("min.insync.replicas", "1")]);
        cluster.pause(2).unwrap();
        cluster.wait_for_leader_and_isr(topic, 0, 1, &[1]);
        let mut other = HandMadeBroker::new(cluster, 2).unwrap();
        eventually(Cluster::PATIENCE, "the other is taken", || {
            (other.register().unwrap() == code::NONE).then_some(())
        });
        other.unfence().unwrap();
        cluster.resume(2).unwrap();
        eventually(Cluster::PATIENCE, "it says what is wrong", || {
            let log = cluster.node(2).unwrap().log().to_uppercase();
            let is_told = |line: &str| line.replace('_', "").contains("STALEBROKEREPOCH");
            log.lines().any(is_told).then_some(())
        });
        let mut connection = cluster.connect(2).unwrap();
        // Apache Kafka takes what it may lose until it has heard who leads.
        eventually(Cluster::PATIENCE, "it does not lead", || {
            let reply = produce(&mut connection, topic, 1, LONG, one("lost?"));
            (reply.error_code == code::NOT_LEADER_OR_FOLLOWER).then_some(())
        });
        // The other one has the id for as long as it lives.
        let heartbeat = other.send_heartbeat(&other.heartbeat()).unwrap();
        assert_eq!(heartbeat.error_code, code::NONE);
        assert!(!heartbeat.is_fenced, "{heartbeat:?}");
        assert!(
            TcpStream::connect(cluster.address(2).unwrap()).is_ok(),
            "it has not ended"
        );
        let view = cluster.partition(1, topic, 0).unwrap();
        assert_eq!((view.leader, view.isr), (1, vec![1]), "it is not in sync");
    });
}

#[test]
fn controlled_shutdown_moves_leaders_before_it_is_granted() {
    for_each_cluster(&small(), |cluster| {
        let mut broker = HandMadeBroker::running(cluster, 101);
        wait_until_shown(cluster, 101, true);
        cluster.create_topic("moved", &[&[101, 1], &[1, 101]], &[]);
        cluster.create_topic("only", &[&[101]], &[]);
        broker.fall_silent();
        let stop = broker.heartbeat().with_want_shut_down(true);
        let reply = broker.send_heartbeat(&stop).unwrap();
        assert_eq!(reply.error_code, code::NONE);
        let view = cluster.wait_for_leader_and_isr("moved", 0, 1, &[1]);
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        let view = cluster.wait_for_leader_and_isr("moved", 1, 1, &[1]);
        assert_eq!(view.leader_epoch, 0, "the ISR alone changed: {view:?}");
        eventually(Cluster::PATIENCE, "the shutdown is granted", || {
            broker
                .send_heartbeat(&stop)
                .unwrap()
                .should_shut_down
                .then_some(())
        });
        let view = cluster.partition(1, "only", 0).unwrap();
        assert_eq!(
            (view.leader, view.error_code),
            (-1, code::LEADER_NOT_AVAILABLE),
            "{view:?}"
        );
    });
}
