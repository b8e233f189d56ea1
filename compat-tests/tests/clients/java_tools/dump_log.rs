//! kafka-dump-log.sh on the files of a stopped broker, and a broker on files of the other.

use std::path::{Path, PathBuf};

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker_with;
use compat_tests::java_tools;

use crate::support::{Batch, Member, create_topic, now_ms, produce};

/// Runs the tool on `files`; it must succeed and find nothing to complain of.
#[track_caller]
fn dump(args: &[&str], files: &[PathBuf]) -> String {
    let files = files
        .iter()
        .map(|file| file.display().to_string())
        .collect::<Vec<_>>()
        .join(",");
    let run = java_tools::run("dump-log", &[args, &["--files", &files]].concat(), b"").unwrap();
    assert_eq!(run.status, 0, "{args:?}: {}{}", run.out, run.err);
    for complaint in [
        "Found timestamp mismatch",
        "Mismatches in",
        "Index offset",
        "out of order",
        "Exception",
        "isvalid: false",
    ] {
        assert!(
            !run.out.contains(complaint) && !run.err.contains(complaint),
            "{args:?}: {}{}",
            run.out,
            run.err
        );
    }
    run.out
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

/// A topic with several segments and every codec, a compacted group topic, and a clean stop.
fn fill_and_stop(broker: &mut Broker) {
    create_topic(
        broker,
        "filled",
        1,
        &[
            ("segment.bytes", "1048576"),
            ("index.interval.bytes", "100"),
        ],
    );
    let mut next = 0;
    for round in 0..4 {
        for codec in Client::FranzGo.codecs() {
            let batch = Batch {
                codec,
                size: 5_000,
                base_timestamp: now_ms(),
                ..Batch::new("filled", next, 100)
            };
            produce(Client::FranzGo, broker, batch);
            next += 100;
        }
        let client = if round % 2 == 0 {
            Client::Java
        } else {
            Client::ConfluentKafka
        };
        for _ in 0..10 {
            produce(
                client,
                broker,
                Batch {
                    codec: "lz4",
                    ..Batch::new("filled", next, 10)
                },
            );
            next += 10;
        }
    }
    assert_eq!(next, 2400);
    let member = Member::join(Client::FranzGo, broker, "filled", "dumped");
    compat_tests::process::eventually(crate::support::LIMIT, "all records", || {
        (member.said().records.len() == 2400).then_some(())
    });
    member.leave();
    broker.stop().unwrap();
}

#[test]
fn every_file_of_a_stopped_broker_is_read_without_complaint() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        fill_and_stop(broker);
        let filled = broker.log_dir().join("filled-0");
        let logs = files(&filled, "log");
        assert!(logs.len() >= 2, "{logs:?}");
        let printed = dump(&["--deep-iteration", "--print-data-log"], &logs);
        let records: Vec<_> = printed
            .lines()
            .filter(|line| line.starts_with("| offset: "))
            .collect();
        assert_eq!(records.len(), 2400);
        for (offset, line) in records.iter().enumerate() {
            assert!(line.starts_with(&format!("| offset: {offset} ")), "{line}");
            assert!(
                line.contains(&format!("key: key-{offset} payload: record {offset} ")),
                "{line}"
            );
            assert!(line.contains("headerKeys: [index]"), "{line}");
        }
        let batches: Vec<_> = printed
            .lines()
            .filter(|line| line.starts_with("baseOffset: "))
            .collect();
        assert!(
            batches
                .iter()
                .all(|line| line.contains("magic: 2") && line.contains("isvalid: true"))
        );
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let wanted = format!("compresscodec: {codec}");
            assert!(
                batches.iter().any(|line| line.contains(&wanted)),
                "no batch with {wanted}"
            );
        }

        let indexes = [files(&filled, "index"), files(&filled, "timeindex")].concat();
        assert_eq!(indexes.len(), 2 * logs.len());
        dump(&["--verify-index-only"], &indexes);
        let sane = dump(&["--index-sanity-check"], &indexes);
        assert_eq!(
            sane.matches("passed sanity check.").count(),
            indexes.len(),
            "{sane}"
        );
        let entries = dump(&[], &files(&filled, "index"));
        assert!(
            entries
                .lines()
                .filter(|line| line.starts_with("offset: "))
                .count()
                > 20,
            "{entries}"
        );
        let snapshots = files(&filled, "snapshot");
        assert!(!snapshots.is_empty());
        let printed = dump(&[], &snapshots);
        assert!(
            printed.contains("producerId: ") && printed.contains("producerEpoch: 0"),
            "{printed}"
        );
    });
}

#[test]
fn metadata_and_offsets_decoders_read_the_internal_logs() {
    for_each_broker_with(
        &BrokerOptions::new().set("offsets.topic.num.partitions", 1),
        |broker| {
            fill_and_stop(broker);
            let metadata = files(&broker.log_dir().join("__cluster_metadata-0"), "log");
            let printed = dump(&["--cluster-metadata-decoder"], &metadata);
            for wanted in [
                r#""type":"REGISTER_BROKER_RECORD""#,
                r#""type":"TOPIC_RECORD","version":0,"data":{"name":"filled","topicId":"#,
                r#""type":"PARTITION_RECORD""#,
                r#""type":"CONFIG_RECORD""#,
                r#""name":"segment.bytes","value":"1048576""#,
                r#""type":"PRODUCER_IDS_RECORD""#,
                r#""type":"FEATURE_LEVEL_RECORD""#,
            ] {
                assert!(printed.contains(wanted), "no {wanted} in:\n{printed}");
            }
            let offsets = files(&broker.log_dir().join("__consumer_offsets-0"), "log");
            let printed = dump(&["--offsets-decoder"], &offsets);
            for wanted in [
                r#""group":"dumped","topic":"filled","partition":0"#,
                r#""offset":2400"#,
                r#""protocolType":"consumer""#,
            ] {
                assert!(printed.contains(wanted), "no {wanted} in:\n{printed}");
            }
        },
    );
}
