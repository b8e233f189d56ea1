//! Files that a crash or a disk has damaged: the broker starts and truncates at the first bad byte (I01-I03).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::for_each_broker_with;
use compat_tests::raw::Connection;

use crate::support::{
    batch, batch_ranges, code, connect, create_topic, fetch, list_offsets, produce_ok,
    wait_until_served,
};

/// Batches in each topic, of two records.
const BATCHES: i64 = 5;

fn file(broker: &Broker, topic: &str, suffix: &str) -> PathBuf {
    broker
        .log_dir()
        .join(format!("{topic}-0"))
        .join(format!("{:020}{suffix}", 0))
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

fn cut(path: &Path, by: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - by).unwrap();
}

fn overwrite(path: &Path, position: usize, bytes: &[u8]) {
    let mut all = fs::read(path).unwrap();
    all[position..position + bytes.len()].copy_from_slice(bytes);
    fs::write(path, all).unwrap();
}

/// What is done to the topic's files, and how many batches are left after it.
struct Damage {
    name: &'static str,
    left: i64,
    act: fn(&Broker, &str, usize),
}

/// The position of a batch, all of which have the same size.
fn position(batch_bytes: usize, number: usize) -> usize {
    batch_bytes * number
}

const DAMAGES: &[Damage] = &[
    Damage {
        name: "torn-tail",
        left: 4,
        act: |b, t, _| cut(&file(b, t, ".log"), 10),
    },
    Damage {
        name: "torn-header",
        left: 4,
        act: |b, t, size| cut(&file(b, t, ".log"), size as u64 - 20),
    },
    Damage {
        name: "zeroed-tail",
        left: 5,
        act: |b, t, _| append(&file(b, t, ".log"), &[0; 5000]),
    },
    Damage {
        name: "garbage-tail",
        left: 5,
        act: |b, t, _| append(&file(b, t, ".log"), &[0xa5; 300]),
    },
    Damage {
        name: "flipped-byte",
        left: 4,
        act: |b, t, size| overwrite(&file(b, t, ".log"), position(size, 4) + 65, &[0xee]),
    },
    Damage {
        name: "length-zero",
        left: 2,
        act: |b, t, size| overwrite(&file(b, t, ".log"), position(size, 2) + 8, &[0; 4]),
    },
    Damage {
        name: "length-huge",
        left: 2,
        act: |b, t, size| {
            let at = position(size, 2) + 8;
            overwrite(&file(b, t, ".log"), at, &i32::MAX.to_be_bytes());
        },
    },
    Damage {
        name: "length-negative",
        left: 2,
        act: |b, t, size| {
            let at = position(size, 2) + 8;
            overwrite(&file(b, t, ".log"), at, &(-5_i32).to_be_bytes());
        },
    },
    Damage {
        name: "empty-log",
        left: 0,
        act: |b, t, _| fs::write(file(b, t, ".log"), []).unwrap(),
    },
    Damage {
        name: "no-indexes",
        left: 5,
        act: |b, t, _| {
            for suffix in [".index", ".timeindex"] {
                fs::remove_file(file(b, t, suffix)).unwrap();
            }
        },
    },
    Damage {
        name: "odd-indexes",
        left: 5,
        act: |b, t, _| {
            for suffix in [".index", ".timeindex"] {
                fs::write(file(b, t, suffix), [0; 7]).unwrap();
            }
        },
    },
    Damage {
        name: "random-indexes",
        left: 5,
        act: |b, t, _| {
            for suffix in [".index", ".timeindex"] {
                fs::write(file(b, t, suffix), [0x5b; 240]).unwrap();
            }
        },
    },
    Damage {
        name: "random-snapshot",
        left: 5,
        act: |b, t, _| fs::write(file(b, t, ".snapshot"), [0x5b; 50]).unwrap(),
    },
    Damage {
        name: "empty-epochs",
        left: 5,
        act: |b, t, _| {
            let folder = b.log_dir().join(format!("{t}-0"));
            fs::write(folder.join("leader-epoch-checkpoint"), []).unwrap();
        },
    },
    Damage {
        name: "nothing",
        left: 5,
        act: |_, _, _| {},
    },
];

fn offsets(connection: &mut Connection, topic: &str) -> Vec<(i64, i64)> {
    let found = fetch(connection, topic, 0, 0);
    assert_eq!(found.error_code, code::NONE, "{topic}");
    batch_ranges(&found.records.unwrap_or_default())
}

#[test]
fn damaged_logs_are_truncated_at_the_first_bad_byte_and_rebuilt() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let records = batch(2).encode();
        for damage in DAMAGES {
            create_topic(broker, damage.name, 1);
            let mut connection = connect(broker);
            for _ in 0..BATCHES {
                produce_ok(&mut connection, damage.name, 0, records.clone());
            }
        }
        broker.kill().unwrap();
        for damage in DAMAGES {
            // An unparsable epoch file alone is something that Apache Kafka does not start from.
            if damage.name != "empty-epochs" || broker.is_highwater() {
                (damage.act)(broker, damage.name, records.len());
            }
        }
        broker.start_again().unwrap();
        for damage in DAMAGES {
            let topic = damage.name;
            wait_until_served(broker, topic, 1);
            let mut connection = connect(broker);
            let expected: Vec<_> = (0..damage.left).map(|i| (2 * i, 2 * i + 1)).collect();
            assert_eq!(offsets(&mut connection, topic), expected, "{topic}");
            let end = list_offsets(&mut connection, topic, 0, -1).offset;
            assert_eq!(end, damage.left * 2, "{topic}");
            assert_eq!(
                produce_ok(&mut connection, topic, 0, records.clone()),
                end,
                "{topic}"
            );
            // Look-ups by time use the indexes that were rebuilt.
            assert_eq!(
                list_offsets(&mut connection, topic, 0, 0).offset,
                0,
                "{topic}"
            );
        }
        // A second start finds nothing to complain about.
        broker.stop().unwrap();
        broker.start_again().unwrap();
        for damage in DAMAGES {
            wait_until_served(broker, damage.name, 1);
            let found = offsets(&mut connect(broker), damage.name);
            assert_eq!(found.len() as i64, damage.left + 1, "{}", damage.name);
        }
    });
}

#[test]
fn acknowledged_records_are_there_after_kill() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "killed", 3);
        let mut expected = [0_i64; 3];
        for round in 0..3 {
            let mut connection = connect(broker);
            for i in 0..60 {
                let partition = (i + round) % 3;
                let count = 1 + i as usize % 4;
                produce_ok(&mut connection, "killed", partition, batch(count).encode());
                expected[partition as usize] += count as i64;
            }
            broker.kill().unwrap();
            broker.start_again().unwrap();
            wait_until_served(broker, "killed", 3);
            let mut connection = connect(broker);
            for partition in 0..3 {
                let end = list_offsets(&mut connection, "killed", partition, -1).offset;
                assert_eq!(end, expected[partition as usize], "partition {partition}");
                let records = fetch(&mut connection, "killed", partition, 0)
                    .records
                    .unwrap();
                let ranges = batch_ranges(&records);
                assert_eq!(ranges.last().unwrap().1 + 1, end);
                for pair in ranges.windows(2) {
                    assert_eq!(pair[0].1 + 1, pair[1].0, "no hole and nothing twice");
                }
            }
        }
    });
}

#[test]
fn everything_expired_keeps_the_end() {
    let options = BrokerOptions::new()
        .set("log.retention.check.interval.ms", 200)
        .set("log.initial.task.delay.ms", 200);
    for_each_broker_with(&options, |broker| {
        let topic = "expired";
        let config = [
            ("retention.ms", "1000"),
            ("segment.ms", "500"),
            ("file.delete.delay.ms", "0"),
        ];
        crate::support::create_topic_with(broker, topic, 1, &config);
        let mut connection = connect(broker);
        for _ in 0..5 {
            // Old by their own stamps.
            produce_ok(
                &mut connection,
                topic,
                0,
                batch(2).at(1_000_000, &[]).encode(),
            );
        }
        let limit = std::time::Duration::from_secs(60);
        compat_tests::process::eventually(limit, "all is expired", || {
            (list_offsets(&mut connection, topic, 0, -2).offset == 10).then_some(())
        });
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 10);
        assert_eq!(
            fetch(&mut connection, topic, 0, 5).error_code,
            code::OFFSET_OUT_OF_RANGE
        );
        broker.stop().unwrap();
        broker.start_again().unwrap();
        wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        assert_eq!(list_offsets(&mut connection, topic, 0, -2).offset, 10);
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 10);
        let fresh = batch(1).at(1_000_000, &[]).encode();
        assert_eq!(produce_ok(&mut connection, topic, 0, fresh), 10);
    });
}
