//! Every refusal of replication is seen: the caller has its code, the log its line, and the metrics page its count.
//!
//! All reasons but one, which needs the ISR to shrink in the instant between a commit and its judgement; the server's own
//! tests count that.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use compat_tests::cluster::{Cluster, Follower, HandMadeBroker, for_highwater_cluster};
use compat_tests::process::{eventually, free_port};
use compat_tests::raw::{Batch, code};

use crate::following::{self, MIN_ISR_2, bounce_leader, followed};
use crate::registration::{small, wait_until_shown};
use crate::support::{LATEST, LONG, elect, fetch_in_epoch, offset_at, one, produce};

const TOPIC: &str = "refused";

/// What the page of a node says of a reason.
fn count(port: u16, reason: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP port");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let name = format!("highwater_replication_refused_total{{reason=\"{reason}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name}:\n{page}"))
        .parse()
        .unwrap()
}

#[test]
fn each_refusal_has_a_code_a_count_by_reason_and_a_line_in_the_log() {
    let [broker_port, controller_port] = [(); 2].map(|()| free_port().expect("a port"));
    let options = small()
        .set("auto.leader.rebalance.enable", "false")
        .set_on(1, "http.listeners", format!("127.0.0.1:{broker_port}"))
        .set_on(
            3001,
            "http.listeners",
            format!("127.0.0.1:{controller_port}"),
        );
    for_highwater_cluster(&options, |cluster| {
        refused_by_the_leader(cluster, broker_port);
        refused_by_the_controller(cluster, controller_port);
    });
}

/// Runs `act`, which is to be refused with `expected`, and looks at the page and the log of the node.
#[track_caller]
fn is_seen(
    (cluster, node, port): (&Cluster, i32, u16),
    reason: &str,
    expected: i16,
    act: impl FnOnce() -> i16,
) {
    let before = count(port, reason);
    assert_eq!(act(), expected, "{reason}");
    assert_eq!(count(port, reason), before + 1, "{reason}");
    let log = cluster.node(node).unwrap().log();
    let is_told = |line: &&str| line.contains("refused") && line.contains(reason);
    assert!(log.lines().any(|line| is_told(&line)), "{reason}:\n{log}");
}

fn refused_by_the_leader(cluster: &Cluster, port: u16) {
    let follower = HandMadeBroker::running(cluster, 101);
    let stranger = HandMadeBroker::running(cluster, 102);
    wait_until_shown(cluster, 101, true);
    wait_until_shown(cluster, 102, true);
    let topic = cluster.create_topic(TOPIC, &[&[1, 101]], &[("min.insync.replicas", "2")]);
    let mut leader = cluster.connect(1).unwrap();
    let node = (cluster, 1, port);
    let at = |leader_epoch| Follower {
        leader_epoch,
        fetch_offset: 0,
        last_fetched_epoch: -1,
    };
    is_seen(
        node,
        "future_leader_epoch",
        code::UNKNOWN_LEADER_EPOCH,
        || fetch_in_epoch(&mut leader, TOPIC, 0, 7).error_code,
    );
    is_seen(node, "not_a_replica", code::UNKNOWN_LEADER_EPOCH, || {
        stranger
            .fetch(&mut leader, topic, at(0))
            .unwrap()
            .error_code
    });
    let mut earlier = HandMadeBroker::new(cluster, 101).unwrap();
    earlier.epoch = follower.epoch - 1;
    is_seen(
        node,
        "stale_broker_epoch",
        code::NOT_LEADER_OR_FOLLOWER,
        || earlier.fetch(&mut leader, topic, at(0)).unwrap().error_code,
    );
    // The follower leaves, and with it the leader epoch of before.
    drop(follower);
    cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
    is_seen(
        node,
        "not_enough_replicas",
        code::NOT_ENOUGH_REPLICAS,
        || {
            let wait = Duration::from_secs(5);
            produce(&mut leader, TOPIC, -1, wait, one("x")).error_code
        },
    );
    let log = cluster.node(1).unwrap().log();
    assert!(
        log.contains("leader epoch 7 is newer than the current epoch 0"),
        "both epochs are told:\n{log}"
    );
}

fn refused_by_the_controller(cluster: &Cluster, port: u16) {
    let node = (cluster, 3001, port);
    let mut leader = HandMadeBroker::running(cluster, 103);
    let follower = HandMadeBroker::running(cluster, 104);
    wait_until_shown(cluster, 103, true);
    wait_until_shown(cluster, 104, true);
    // With a minimum of 2 the one that left would stay eligible to lead (KIP-966).
    let configs = [("min.insync.replicas", "1")];
    let topic = cluster.create_topic("asked", &[&[103, 104]], &configs);
    let (me, other) = ((103, leader.epoch), (104, follower.epoch));
    let shrink = leader.isr_change(topic, 0, 0, &[me]);
    let answer = leader.alter_partition(&shrink).unwrap().unwrap();
    assert_eq!(answer.error_code, code::NONE, "{answer:?}");
    is_seen(
        node,
        "stale_partition_epoch",
        code::INVALID_UPDATE_VERSION,
        || leader.alter_partition(&shrink).unwrap().unwrap().error_code,
    );
    is_seen(node, "not_controller", code::NOT_CONTROLLER, || {
        let future = leader.isr_change(topic, 5, 1, &[me]);
        leader.alter_partition(&future).unwrap().unwrap().error_code
    });
    is_seen(node, "ineligible_replica", code::INELIGIBLE_REPLICA, || {
        let earlier = leader.isr_change(topic, 0, 1, &[me, (104, other.1 - 1)]);
        leader
            .alter_partition(&earlier)
            .unwrap()
            .unwrap()
            .error_code
    });
    is_seen(node, "stale_broker_epoch", code::STALE_BROKER_EPOCH, || {
        let stale = leader
            .isr_change(topic, 0, 1, &[me])
            .with_broker_epoch(leader.epoch - 1);
        leader.alter_partition(&stale).unwrap().unwrap_err()
    });
    is_seen(node, "stale_broker_epoch", code::STALE_BROKER_EPOCH, || {
        let heartbeat = leader.heartbeat().with_broker_epoch(leader.epoch - 1);
        leader.send_heartbeat(&heartbeat).unwrap().error_code
    });
    is_seen(
        node,
        "duplicate_broker",
        code::DUPLICATE_BROKER_REGISTRATION,
        || {
            HandMadeBroker::new(cluster, 103)
                .unwrap()
                .register()
                .unwrap()
        },
    );
    // Its leader goes, and who is out of sync must not lead: the partition waits.
    drop(leader);
    cluster.wait_for_partition("asked", 0, "nobody leads", |view| view.leader == -1);
    is_seen(
        node,
        "no_eligible_leader",
        code::PREFERRED_LEADER_NOT_AVAILABLE,
        || elect(cluster, "asked", 0),
    );
}

#[test]
fn refusals_of_a_new_leader_of_a_follower_and_of_a_broken_log_are_seen() {
    let port = free_port().expect("a port");
    let options = small().set("auto.leader.rebalance.enable", "false").set_on(
        1,
        "http.listeners",
        format!("127.0.0.1:{port}"),
    );
    for_highwater_cluster(&options, |cluster| {
        let cluster = &*cluster;
        let node = (cluster, 1, port);
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut client = cluster.connect(1).unwrap();
        let topic = following::TOPIC;
        let reply = produce(&mut client, topic, 1, LONG, Batch::small(3).encode());
        assert_eq!(reply.error_code, code::NONE);
        replica.follow();
        // It leads again, in a later epoch, and does not know whether the follower has what it has.
        replica.at.fetch_offset = 0;
        replica.at.last_fetched_epoch = -1;
        bounce_leader(cluster, &mut replica);
        is_seen(
            node,
            "offset_not_available",
            code::OFFSET_NOT_AVAILABLE,
            || offset_at(&mut client, topic, LATEST).0,
        );
        is_seen(
            node,
            "stale_leader_epoch",
            code::FENCED_LEADER_EPOCH,
            || fetch_in_epoch(&mut client, topic, 0, 0).error_code,
        );
        cluster.create_topic("led-by-another", &[&[101, 1]], &[]);
        is_seen(node, "not_leader", code::NOT_LEADER_OR_FOLLOWER, || {
            produce(&mut client, "led-by-another", 1, LONG, one("x")).error_code
        });
        a_broken_log_is_seen(node);
    });
}

/// The next segment of the log cannot be made; the refusal is one of many writes.
fn a_broken_log_is_seen(node: (&Cluster, i32, u16)) {
    let (cluster, id, port) = node;
    let configs = [("segment.bytes", "1048576"), ("min.insync.replicas", "1")];
    cluster.create_topic("broken", &[&[id]], &configs);
    let log = cluster.data(id).unwrap().join("broken-0");
    std::fs::rename(&log, log.with_extension("gone")).unwrap();
    let mut client = cluster.connect(id).unwrap();
    let before = count(port, "storage");
    let refused = eventually(Cluster::PATIENCE, "a write needs a new file", || {
        let big = one(&"x".repeat(60_000));
        let error = produce(&mut client, "broken", 1, LONG, big).error_code;
        (error != code::NONE).then_some(error)
    });
    assert_eq!(refused, code::KAFKA_STORAGE_ERROR);
    assert_eq!(count(port, "storage"), before + 1);
    let log = cluster.node(id).unwrap().log();
    let is_told = |line: &str| line.contains("refused") && line.contains("storage");
    assert!(log.lines().any(is_told), "{log}");
}
