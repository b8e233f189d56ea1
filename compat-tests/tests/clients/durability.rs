//! What is left after `kill -9`, on a full disk, and when a broker starts on the other's files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use compat_tests::broker::{Broker, BrokerKind, BrokerOptions};
use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker_with;
use compat_tests::process::eventually;
use serde_json::Value;

use crate::confluent::scenario;
use crate::support::{
    Batch, LIMIT, Member, balanced, consume, create_topic, produce, succeed, tool, unique,
};

#[test]
fn topics_configs_records_and_offsets_survive_kill() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "kept", 3, &[("retention.ms", "360000000")]);
        create_topic(broker, "dropped", 1, &[]);
        tool(broker, "topics", &["--delete", "--topic", "dropped"]);
        for partition in 0..3 {
            produce(
                Client::FranzGo,
                broker,
                Batch {
                    partition,
                    ..Batch::new("kept", 0, 50)
                },
            );
        }
        let member = Member::join(Client::FranzGo, broker, "kept", "readers");
        eventually(LIMIT, "150 records", || {
            (member.said().records.len() == 150).then_some(())
        });
        member.leave();
        let group = |broker: &Broker| {
            tool(
                broker,
                "consumer-groups",
                &["--describe", "--offsets", "--group", "readers"],
            )
        };
        let described =
            |broker: &Broker| tool(broker, "topics", &["--describe", "--topic", "kept"]);
        let before = (described(broker), group(broker));
        for round in 0..3 {
            broker.kill().unwrap();
            broker.start_again().unwrap();
            // The coordinator answers once it has read its partition again.
            eventually(LIMIT, "the same topics and offsets", || {
                ((described(broker), group(broker)) == before).then_some(())
            });
            assert!(!tool(broker, "topics", &["--list"]).contains("dropped"));
            assert_eq!(
                consume(Client::FranzGo, broker, "kept", 150).len(),
                150,
                "round {round}"
            );
        }
        let (first, last) = produce(Client::ConfluentKafka, broker, Batch::new("kept", 50, 10));
        assert_eq!((first, last), (50, 59));
    });
}

#[test]
fn members_go_on_after_the_broker_was_killed() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "going-on", 4, &[]);
        let clients = [Client::ConfluentKafka, Client::Java];
        let members = clients.map(|client| Member::join(client, broker, "going-on", "steady"));
        balanced(&members, 4);
        let mut expected = BTreeSet::new();
        for round in 0..3 {
            for partition in 0..4 {
                let batch = Batch {
                    partition,
                    ..Batch::new("going-on", 10 * round, 10)
                };
                let (first, last) = produce(Client::FranzGo, broker, batch);
                expected.extend((first..=last).map(|offset| (i64::from(partition), offset)));
            }
            eventually(LIMIT, "all records are consumed", || {
                let seen = members.iter().flat_map(|member| member.said().records);
                (seen.collect::<BTreeSet<_>>() == expected).then_some(())
            });
            broker.kill().unwrap();
            broker.start_again().unwrap();
        }
        balanced(&members, 4);
        for member in members {
            member.leave();
        }
    });
}

/// Fills a broker of one kind, ends it with `end`, and returns its directory.
fn written_by(kind: BrokerKind, end: impl Fn(&mut Broker)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = BrokerOptions::new().log_dir(folder.path());
    let mut broker = Broker::start(kind, options).unwrap_or_else(|error| panic!("{error:#}"));
    let broker = &mut broker;
    create_topic(
        broker,
        "moved",
        2,
        &[("segment.bytes", "1048576"), ("retention.ms", "360000000")],
    );
    let mut next = 0;
    for codec in Client::FranzGo.codecs() {
        produce(
            Client::FranzGo,
            broker,
            Batch {
                codec,
                size: 10_000,
                ..Batch::new("moved", next, 100)
            },
        );
        produce(
            Client::Java,
            broker,
            Batch {
                codec,
                ..Batch::new("moved", next + 100, 10)
            },
        );
        next += 110;
    }
    produce(
        Client::FranzGo,
        broker,
        Batch {
            partition: 1,
            ..Batch::new("moved", next, 20)
        },
    );
    let member = Member::join(Client::FranzGo, broker, "moved", "movers");
    eventually(LIMIT, "570 records", || {
        (member.said().records.len() == 570).then_some(())
    });
    member.leave();
    end(broker);
    folder
}

fn opens_with_all_records(folder: &Path) {
    let options = BrokerOptions::new().log_dir(folder);
    let mut broker =
        Broker::start(BrokerKind::Highwater, options).unwrap_or_else(|error| panic!("{error:#}"));
    for _ in 0..2 {
        let consumed = consume(Client::ConfluentKafka, &broker, "moved", 570);
        let indexes: BTreeSet<_> = consumed.iter().map(|record| record.index).collect();
        assert!(indexes.into_iter().eq(0..570));
        let configs = [
            "--describe",
            "--entity-type",
            "topics",
            "--entity-name",
            "moved",
        ];
        let described = tool(&broker, "configs", &configs);
        assert!(described.contains("segment.bytes=1048576"), "{described}");
        let group = tool(
            &broker,
            "consumer-groups",
            &["--describe", "--group", "movers"],
        );
        for row in ["moved 0 550 550 0", "moved 1 20 20 0"] {
            let words = group.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(row), "{group}");
        }
        broker.stop().unwrap();
        broker.start_again().unwrap();
    }
    assert_eq!(
        produce(Client::Java, &broker, Batch::new("moved", 570, 5)),
        (550, 554)
    );
    create_topic(&broker, "new", 1, &[]);
    assert_eq!(
        produce(Client::Java, &broker, Batch::new("new", 0, 5)),
        (0, 4)
    );
}

#[test]
fn highwater_opens_the_directory_of_a_stopped_apache_kafka() {
    let folder = written_by(BrokerKind::ApacheKafka, |broker| {
        broker.stop().unwrap();
    });
    opens_with_all_records(folder.path());
}

#[test]
fn highwater_opens_the_directory_of_a_killed_apache_kafka() {
    let folder = written_by(BrokerKind::ApacheKafka, |broker| broker.kill().unwrap());
    opens_with_all_records(folder.path());
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(mebibytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mebibytes}m");
        succeed(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(folder.path()),
        );
        Self(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status()
            .ok();
    }
}

/// Only Highwater: Apache Kafka takes the directory offline and ends (see the README's known differences).
/// Needs root, for the mount; elsewhere than in CI it passes over a machine where that is not given.
#[test]
fn full_disk_refuses_writes_keeps_reads_and_recovers_without_a_restart() {
    if !rustix::process::geteuid().is_root() && std::env::var_os("CI").is_none() {
        eprintln!("not tried: mounting a small file system needs root");
        return;
    }
    let disk = SmallDisk::mount(48);
    let options = BrokerOptions::new()
        .log_dir(disk.0.path())
        .set("offsets.topic.num.partitions", 1)
        .set("log.segment.delete.delay.ms", 0);
    let mut broker =
        Broker::start(BrokerKind::Highwater, options).unwrap_or_else(|error| panic!("{error:#}"));
    let broker = &mut broker;
    create_topic(broker, "ballast", 1, &[]);
    create_topic(broker, "filled", 1, &[("segment.bytes", "2000000")]);
    produce(
        Client::ConfluentKafka,
        broker,
        Batch {
            size: 90_000,
            ..Batch::new("ballast", 0, 200)
        },
    );

    let fill = |broker: &Broker| {
        let line: Value =
            serde_json::from_str(&succeed(&scenario(broker, "fill", &["filled"]))).unwrap();
        assert_eq!(line["error"], 56, "KAFKA_STORAGE_ERROR");
        line["acked"].as_u64().unwrap()
    };
    let read = |broker: &Broker, count: u64| {
        succeed(&scenario(
            broker,
            "read_numbered",
            &["filled", &count.to_string()],
        ));
    };
    let acked = fill(broker);
    assert!(acked > 100, "{acked} records fit");
    read(broker, acked);
    assert_eq!(fill(broker), 0, "still full");

    // Deleting makes room again, at once and without a restart.
    tool(broker, "topics", &["--delete", "--topic", "ballast"]);
    eventually(LIMIT, "there is room again", || {
        let topic = unique("probe");
        let args = [
            "-c",
            &format!(
                "echo x | kcat -b {} -P -t {topic} -X message.timeout.ms=2000",
                broker.bootstrap()
            ),
        ];
        Command::new("sh")
            .args(args)
            .status()
            .unwrap()
            .success()
            .then_some(())
    });
    broker.kill().unwrap();
    broker.start_again().unwrap();
    read(broker, acked);
    let (first, _) = produce(Client::FranzGo, broker, Batch::new("filled", 0, 10));
    assert_eq!(
        first,
        i64::try_from(acked).unwrap(),
        "half a batch was left or an acknowledged one lost"
    );
}
