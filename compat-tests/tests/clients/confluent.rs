//! What confluent-kafka does beyond the common commands (`clients/confluent-kafka/scenarios.py`).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::cache::client_sources;
use compat_tests::clients::Client;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::eventually;

use crate::support::{LIMIT, create_topic, succeed, tool, unique};

pub(crate) fn scenario(broker: &Broker, name: &str, args: &[&str]) -> Command {
    let client = Client::ConfluentKafka
        .command()
        .unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = Command::new(client.get_program());
    command
        .arg(client_sources("confluent-kafka").join("scenarios.py"))
        .arg(name);
    command.arg(broker.bootstrap()).args(args);
    command
}

#[test]
fn confluent_kafka_seeks_by_offset_and_by_time() {
    for_each_broker(|broker| {
        let topic = unique("seek");
        create_topic(broker, &topic, 1, &[]);
        succeed(&scenario(broker, "seek", &[&topic]));
    });
}

#[test]
fn confluent_kafka_keeps_headers_and_both_kinds_of_timestamps() {
    for_each_broker(|broker| {
        for (kind, setting) in [("create", "CreateTime"), ("append", "LogAppendTime")] {
            let topic = unique("timestamps");
            create_topic(broker, &topic, 1, &[("message.timestamp.type", setting)]);
            succeed(&scenario(broker, "timestamps_and_headers", &[&topic, kind]));
        }
    });
}

#[test]
fn confluent_kafka_is_told_that_a_compacted_topic_needs_keys() {
    for_each_broker(|broker| {
        let topic = unique("compacted");
        create_topic(broker, &topic, 1, &[("cleanup.policy", "compact")]);
        succeed(&scenario(broker, "compacted_needs_keys", &[&topic]));
    });
}

#[test]
fn transactional_producer_of_confluent_kafka_is_told_whether_transactions_are_served() {
    for_each_broker(|broker| {
        let served = if broker.is_highwater() {
            "false"
        } else {
            "true"
        };
        let id = unique("transactional");
        succeed(&scenario(broker, "transactional_producer", &[&id, served]));
    });
}

#[test]
fn static_member_of_confluent_kafka_bounces_without_a_rebalance() {
    for_each_broker(|broker| {
        let topic = unique("static");
        create_topic(broker, &topic, 4, &[]);
        succeed(&scenario(
            broker,
            "static_member",
            &[&topic, &unique("static")],
        ));
    });
}

/// The broker is killed twice under an idempotent load: each record is there once and in order.
#[test]
fn idempotent_load_survives_kill_without_loss_or_duplicates() {
    const RECORDS: usize = 20_000;
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "load", 1, &[]);
        let mut load = scenario(broker, "idempotent_load", &["load", &RECORDS.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let acked = AtomicUsize::new(0);
        let output = BufReader::new(load.stdout.take().unwrap());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut places = Vec::new();
                for line in output.lines() {
                    let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
                    places.push((
                        line["acked"][0].as_i64().unwrap(),
                        line["acked"][1].as_i64().unwrap(),
                    ));
                    acked.store(places.len(), Ordering::Relaxed);
                }
                places
            });
            for threshold in [RECORDS / 5, RECORDS / 2] {
                eventually(LIMIT, "the load goes on", || {
                    (acked.load(Ordering::Relaxed) > threshold).then_some(())
                });
                broker.kill().unwrap();
                broker.start_again().unwrap();
            }
            let status = eventually(2 * LIMIT, "the load ends", || load.try_wait().unwrap());
            assert!(status.success());
            let places = reader.join().unwrap();
            assert_eq!(places.len(), RECORDS);
            for (value, offset) in places {
                assert_eq!(
                    value, offset,
                    "acknowledged at another offset than its turn"
                );
            }
        });
        assert_eq!(
            tool(broker, "get-offsets", &["--topic", "load"]),
            format!("load:0:{RECORDS}\n")
        );
        let read = [
            "--topic",
            "load",
            "--from-beginning",
            "--max-messages",
            &RECORDS.to_string(),
        ];
        let consumed = tool(broker, "console-consumer", &read);
        assert!(
            consumed.lines().eq((0..RECORDS).map(|i| i.to_string())),
            "not each once and in order"
        );
    });
}
