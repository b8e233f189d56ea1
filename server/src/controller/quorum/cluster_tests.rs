//! Three controllers in one process, each with its own files and sockets, and a network that can be cut.

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use support::{Cluster, wait_until};

use crate::controller::ControllerError;

const NODES: [i32; 3] = [1, 2, 3];

#[test]
fn three_controllers_elect_one_and_agree() {
    let cluster = Cluster::start();
    let leader = cluster.leader();
    for (name, node) in [("a", leader), ("b", leader)] {
        cluster.create(node, name).expect("the active controller");
    }
    for node in NODES.into_iter().filter(|node| *node != leader) {
        let refused = cluster.create(node, "c").expect_err("not active");
        assert!(
            matches!(refused, ControllerError::NotController { leader: Some(id) } if id == leader),
            "{refused}"
        );
        let known = cluster.handle(node).active_controller().borrow().clone();
        let known = known.expect("it knows the active controller");
        assert_eq!((known.id, known.port), (leader, cluster.port(leader)));
    }
    cluster.until_alike(&["a", "b"]);

    wait_until("all are caught up in the leader's eyes", || {
        let status = cluster.handle(leader).quorum_status(0);
        assert_eq!(status.leader_id, Some(leader));
        let ends = status.voters.iter().map(|voter| voter.log_end_offset);
        status.voters.len() == 3 && ends.collect::<BTreeSet<_>>().len() == 1
    });
}

#[test]
fn another_takes_over_from_a_leader_that_is_killed_and_it_comes_back_as_a_follower() {
    let mut cluster = Cluster::start();
    let first = cluster.leader();
    let epoch = cluster.handle(first).image().epoch();
    cluster.create(first, "a").expect("created");
    cluster.kill(first);
    let second = cluster.leader();
    assert_ne!(second, first);
    cluster.create(second, "b").expect("created");
    assert!(cluster.handle(second).image().epoch() > epoch);
    cluster.restart(first);
    cluster.until_alike(&["a", "b"]);
    // Without a majority there is no leader, whoever is left.
    cluster.kill(cluster.leader());
    let third = cluster.leader();
    cluster.create(third, "c").expect("created");
    cluster.kill(third);
    let alone = cluster.running()[0];
    std::thread::sleep(Duration::from_secs(2));
    assert!(!cluster.handle(alone).is_active());
    cluster.create(alone, "d").expect_err("nobody agrees");
    for node in NODES {
        if !cluster.running().contains(&node) {
            cluster.restart(node);
        }
    }
    cluster.until_alike(&["a", "b", "c"]);
}

#[test]
fn a_controller_that_was_away_for_long_takes_over_a_snapshot() {
    let mut cluster = Cluster::start_with(|settings| {
        settings.quorum.max_bytes_between_snapshots = 4_000;
    });
    let leader = cluster.leader();
    let away = NODES.into_iter().find(|node| *node != leader);
    let away = away.expect("two followers");
    cluster.create(leader, "first").expect("created");
    cluster.kill(away);
    let mut names = vec!["first".to_owned()];
    for number in 0..150 {
        let name = format!("topic-{number:03}");
        let leader = cluster.leader();
        cluster.create(leader, &name).expect("created");
        names.push(name);
    }
    // Not before nothing is sent to the one that is away: a moment comes when a try has failed.
    wait_until("what the snapshot has is purged", || {
        let server = cluster.handle(cluster.leader()).quorum_server().cloned();
        let first = server.expect("a controller").first_index();
        first.is_some_and(|first| first > 1)
    });
    cluster.restart(away);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    cluster.until_alike(&names);
    let log = cluster.handle(away).metadata_log().clone();
    assert!(
        log.log().log_start_offset() > 10,
        "its log begins at {}, it has no snapshot",
        log.log().log_start_offset()
    );
    // It leads on from there.
    cluster.kill(cluster.leader());
    let leader = cluster.leader();
    cluster.create(leader, "last").expect("created");
}

#[test]
fn a_leader_without_space_to_begin_its_epoch_begins_once_there_is_some() {
    let mut cluster = Cluster::start();
    let first = cluster.leader();
    cluster.create(first, "a").expect("created");
    cluster.until_alike(&["a"]);
    let others: Vec<i32> = NODES.into_iter().filter(|node| *node != first).collect();
    let servers: Vec<_> = others
        .iter()
        .map(|node| cluster.handle(*node).quorum_server().cloned())
        .map(|server| server.expect("a controller"))
        .collect();
    for server in &servers {
        server.full_disk().set(true);
    }
    cluster.kill(first);
    // Elected; it gives up the reserve and tries once more, and tries again although nothing happens meanwhile.
    wait_until("one of them tries to begin more than once", || {
        servers
            .iter()
            .any(|server| server.full_disk().refusals() > 2)
    });
    for node in &others {
        assert!(!cluster.handle(*node).is_active(), "node {node}");
        let refused = cluster.create(*node, "b").expect_err("nobody is active");
        assert!(
            matches!(refused, ControllerError::NotController { .. }),
            "it has not failed: {refused}"
        );
    }
    for server in &servers {
        server.full_disk().set(false);
    }
    let second = cluster.leader();
    cluster.create(second, "b").expect("created");
    cluster.restart(first);
    cluster.until_alike(&["a", "b"]);
}

#[test]
fn a_leader_that_is_cut_off_refuses_and_follows_when_it_is_back() {
    let cluster = Cluster::start();
    let first = cluster.leader();
    cluster.create(first, "a").expect("created");
    cluster.isolate(first);
    // On its way when the lease ends: nobody knows what becomes of it.
    let error = cluster.create(first, "lost").expect_err("no majority");
    assert!(
        matches!(error, ControllerError::NotController { .. }),
        "{error}"
    );
    wait_until("it is not active", || !cluster.handle(first).is_active());
    let known = cluster.handle(first).active_controller().borrow().clone();
    assert_eq!(known, None);
    let error = cluster.create(first, "also").expect_err("not active");
    assert!(matches!(
        error,
        ControllerError::NotController { leader: None }
    ));

    let second = cluster.leader_but(first);
    cluster.create(second, "b").expect("created");
    cluster.heal();
    // Without a new request the old one learns who leads, and drops what it had alone.
    wait_until("it follows", || {
        cluster.handle(first).quorum().leader_id().is_some() && !cluster.handle(first).is_active()
    });
    cluster.until_alike(&["a", "b"]);
}

#[test]
fn a_follower_that_was_cut_off_unseats_nobody_when_it_is_back() {
    let cluster = Cluster::start();
    let leader = cluster.leader();
    cluster.create(leader, "a").expect("created");
    cluster.until_alike(&["a"]);
    let epoch = cluster.handle(leader).image().epoch();
    let follower = NODES.into_iter().find(|node| *node != leader);
    let follower = follower.expect("two followers");
    cluster.isolate(follower);
    // It would like to lead, several times over, and nobody answers.
    std::thread::sleep(Duration::from_secs(3));
    cluster.create(leader, "b").expect("created");
    cluster.heal();
    cluster.until_alike(&["a", "b"]);
    // Had it begun an epoch of its own, the leader would have had to go.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(cluster.leader(), leader);
    cluster.create(leader, "c").expect("created");
    cluster.until_alike(&["a", "b", "c"]);
    assert_eq!(cluster.handle(follower).image().epoch(), epoch);
}

#[test]
fn a_leader_that_is_heard_but_hears_nobody_is_replaced() {
    let cluster = Cluster::start();
    let first = cluster.leader();
    cluster.create(first, "a").expect("created");
    for other in NODES.into_iter().filter(|node| *node != first) {
        cluster.cut_one_way(other, first);
    }
    wait_until("it is not active", || !cluster.handle(first).is_active());
    cluster.create(first, "lost").expect_err("not active");
    // Its signs of life get through as before.
    let leader = cluster.leader_but(first);
    cluster.create(leader, "b").expect("created");
    cluster.heal();
    cluster.until_alike(&["a", "b"]);
}

#[test]
fn a_leader_that_nobody_follows_votes_for_another() {
    let mut cluster = Cluster::start();
    let first = cluster.leader();
    cluster.create(first, "a").expect("created");
    cluster.until_alike(&["a"]);
    let mut others = NODES.into_iter().filter(|node| *node != first);
    let (dead, other) = (others.next().expect("two"), others.next().expect("two"));
    cluster.kill(dead);
    cluster.cut_requests(first, other);
    let second = cluster.leader_but(first);
    assert_eq!(second, other);
    cluster.create(second, "b").expect("created");
    cluster.heal();
    cluster.restart(dead);
    cluster.until_alike(&["a", "b"]);
}

#[test]
fn a_voter_whose_disk_was_emptied_makes_nobody_leader_who_lacks_what_it_had() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    cluster.create(leader, "a").expect("created");
    cluster.until_alike(&["a"]);
    let mut others = NODES.into_iter().filter(|node| *node != leader);
    let (behind, emptied) = (others.next().expect("two"), others.next().expect("two"));
    cluster.kill(behind);
    cluster.create(leader, "b").expect("two of three have it");
    cluster.kill(leader);
    cluster.kill(emptied);
    cluster.wipe(emptied);
    cluster.restart(emptied);
    cluster.restart(behind);
    std::thread::sleep(Duration::from_secs(3));
    for node in [behind, emptied] {
        assert!(
            !cluster.handle(node).is_active(),
            "node {node} leads without b"
        );
    }
    // With the one that has all, it is brought up to date, and votes as before.
    cluster.restart(leader);
    cluster.until_alike(&["a", "b"]);
    let second = cluster.leader();
    assert_ne!(second, emptied);
    cluster.create(second, "c").expect("created");
    cluster.until_alike(&["a", "b", "c"]);
    cluster.kill(second);
    let third = cluster.leader();
    cluster.create(third, "d").expect("created");
    cluster.restart(second);
    cluster.until_alike(&["a", "b", "c", "d"]);
}

/// Kills, cuts and heals at random while requests go on; every request that was answered must be there at the end, on
/// all. `HIGHWATER_QUORUM_SEEDS` runs more.
#[test]
fn no_answered_request_is_lost_under_kills_and_cuts() {
    let seeds: u64 = std::env::var("HIGHWATER_QUORUM_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2);
    for seed in 0..seeds {
        let answered = support::chaos(seed, Duration::from_secs(12));
        assert!(answered > 0, "seed {seed}: nothing was answered");
    }
}

#[test]
fn a_request_that_is_not_a_controllers_is_refused() {
    let cluster = Cluster::start();
    let leader = cluster.leader();
    let server = cluster.handle(leader).quorum_server().cloned();
    let server = server.expect("a controller");
    let handled = cluster.block_on(async move {
        (
            server.handle(1, &[]).await,
            server.handle(0, &[]).await,
            server.handle(0, &[0xff; 64]).await,
        )
    });
    assert!(handled.0.is_err() && handled.1.is_err() && handled.2.is_err());
}
