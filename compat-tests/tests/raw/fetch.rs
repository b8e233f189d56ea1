//! Fetch: limits, long polls, offsets, epochs (D); sessions are in `sessions.rs`.

use std::time::{Duration, Instant};

use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::raw::{Batch, Connection};
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;

use crate::support::{
    FETCH, batch, batch_ranges, code, connect, create_topic, create_topic_with, delete_topic,
    fetch, fetch_partition, fetch_request, produce_ok, topic_name,
};

fn ask(connection: &mut Connection, request: &FetchRequest) -> Vec<PartitionData> {
    let reply = connection.call(FETCH, request).expect("Fetch is answered");
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    reply
        .responses
        .into_iter()
        .flat_map(|topic| topic.partitions)
        .collect()
}

fn bytes_of(partition: &PartitionData) -> usize {
    partition
        .records
        .as_ref()
        .map_or(0, |records| records.len())
}

#[test]
fn first_batch_is_returned_whole_even_over_every_limit() {
    for_each_broker(|broker| {
        let topic = "fetch-large";
        create_topic_with(broker, topic, 3, &[("max.message.bytes", "3000000")]);
        let mut connection = connect(broker);
        let large = Batch::of_size(2_000_000).encode();
        for partition in 0..3 {
            produce_ok(&mut connection, topic, partition, large.clone());
        }
        for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let parts = order.map(|p| fetch_partition(p, 0).with_partition_max_bytes(1));
            let request = fetch_request(topic, parts.to_vec()).with_max_bytes(1);
            let answers = ask(&mut connection, &request);
            assert_eq!(answers.len(), 3);
            for answer in &answers {
                let expected = if answer.partition_index == order[0] {
                    large.len()
                } else {
                    0
                };
                assert_eq!(bytes_of(answer), expected, "order {order:?}: {answer:?}");
                assert_eq!(answer.high_watermark, 1);
            }
        }
    });
}

#[test]
fn other_partitions_obey_the_limits() {
    for_each_broker(|broker| {
        let topic = "fetch-limits";
        create_topic(broker, topic, 2);
        let mut connection = connect(broker);
        for partition in 0..2 {
            for _ in 0..10 {
                produce_ok(
                    &mut connection,
                    topic,
                    partition,
                    Batch::of_size(1000).encode(),
                );
            }
        }
        let parts = vec![
            fetch_partition(0, 0).with_partition_max_bytes(3500),
            fetch_partition(1, 0).with_partition_max_bytes(2500),
        ];
        let answers = ask(&mut connection, &fetch_request(topic, parts));
        let whole: Vec<_> = answers
            .iter()
            .map(|a| batch_ranges(a.records.as_ref().unwrap()).len())
            .collect();
        assert_eq!(whole, [3, 2], "whole batches below each partition's limit");
        let parts = vec![fetch_partition(0, 0), fetch_partition(1, 0)];
        let answers = ask(
            &mut connection,
            &fetch_request(topic, parts).with_max_bytes(4000),
        );
        assert!(bytes_of(&answers[0]) <= 4000);
        assert_eq!(bytes_of(&answers[1]), 0, "the first one took it all");
    });
}

#[test]
fn empty_topic_waits_for_max_wait_and_data_ends_the_wait() {
    for_each_broker(|broker| {
        let topic = "fetch-long-poll";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let request = fetch_request(topic, vec![fetch_partition(0, 0)]);
        let began = Instant::now();
        let answers = ask(&mut connection, &request.clone().with_max_wait_ms(300));
        assert!(began.elapsed() >= Duration::from_millis(290), "it waits");
        assert_eq!(bytes_of(&answers[0]), 0);
        // Data from another connection ends a wait that would take far longer than this test may.
        connection
            .send(FETCH, &request.with_max_wait_ms(600_000))
            .unwrap();
        produce_ok(&mut connect(broker), topic, 0, batch(1).encode());
        let reply = connection.receive::<FetchRequest>(FETCH).unwrap();
        assert_eq!(
            bytes_of(&reply.responses[0].partitions[0]),
            batch(1).encode().len()
        );
    });
}

#[test]
fn min_bytes_waits_for_that_many() {
    for_each_broker(|broker| {
        let topic = "fetch-min-bytes";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let request = fetch_request(topic, vec![fetch_partition(0, 0)])
            .with_max_wait_ms(600_000)
            .with_min_bytes(2500);
        connection.send(FETCH, &request).unwrap();
        let mut producer = connect(broker);
        for _ in 0..3 {
            produce_ok(&mut producer, topic, 0, Batch::of_size(1000).encode());
        }
        let reply = connection.receive::<FetchRequest>(FETCH).unwrap();
        assert_eq!(bytes_of(&reply.responses[0].partitions[0]), 3000);
        // A limit below min_bytes caps what the partition counts for: the wait lasts (D04).
        let part = fetch_partition(0, 0).with_partition_max_bytes(1000);
        let request = fetch_request(topic, vec![part])
            .with_max_wait_ms(300)
            .with_min_bytes(100_000);
        let began = Instant::now();
        assert_eq!(bytes_of(&ask(&mut connection, &request)[0]), 1000);
        assert!(began.elapsed() >= Duration::from_millis(290));
    });
}

#[test]
fn errors_end_the_wait_at_once() {
    for_each_broker(|broker| {
        let topic = "fetch-errors";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        // Far longer than the read time-out of the connection.
        let long = |topic: &str, part: FetchPartition| {
            fetch_request(topic, vec![part]).with_max_wait_ms(600_000)
        };
        let found = ask(
            &mut connection,
            &long("no-such-topic", fetch_partition(0, 0)),
        );
        assert_eq!(found[0].error_code, code::UNKNOWN_TOPIC_OR_PARTITION);
        let found = ask(&mut connection, &long(topic, fetch_partition(5, 0)));
        assert_eq!(found[0].error_code, code::UNKNOWN_TOPIC_OR_PARTITION);
        let found = ask(&mut connection, &long(topic, fetch_partition(0, 1)));
        assert_eq!(found[0].error_code, code::OFFSET_OUT_OF_RANGE);
        let fenced = fetch_partition(0, 0).with_current_leader_epoch(50);
        let found = ask(&mut connection, &long(topic, fenced));
        assert_eq!(found[0].error_code, code::UNKNOWN_LEADER_EPOCH);
        let mut none = long(topic, fetch_partition(0, 0));
        none.topics.clear();
        none.max_wait_ms = 300;
        assert!(
            ask(&mut connection, &none).is_empty(),
            "no partitions at all"
        );
    });
}

#[test]
fn deleting_the_topic_ends_the_wait() {
    for_each_broker(|broker| {
        let topic = "fetch-deleted";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let request = fetch_request(topic, vec![fetch_partition(0, 0)]).with_max_wait_ms(20_000);
        connection.send(FETCH, &request).unwrap();
        delete_topic(broker, topic);
        let reply = connection.receive::<FetchRequest>(FETCH).unwrap();
        let code = reply.responses[0].partitions[0].error_code;
        assert!([3, 6].contains(&code), "{reply:?}");
    });
}

#[test]
fn offsets_out_of_range_are_told_apart_from_the_end() {
    for_each_broker(|broker| {
        let topic = "fetch-range";
        create_topic(broker, topic, 2);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(3).encode());
        for (partition, offset, expected) in [
            (0, 3, code::NONE),
            (0, 4, code::OFFSET_OUT_OF_RANGE),
            (0, -1, code::OFFSET_OUT_OF_RANGE),
            (0, i64::MAX, code::OFFSET_OUT_OF_RANGE),
            (0, i64::MIN, code::OFFSET_OUT_OF_RANGE),
            (1, 0, code::NONE),
            (1, 1, code::OFFSET_OUT_OF_RANGE),
        ] {
            let found = fetch(&mut connection, topic, partition, offset);
            assert_eq!(
                found.error_code, expected,
                "partition {partition} offset {offset}"
            );
            assert_eq!(bytes_of(&found), 0);
            if expected != code::NONE {
                assert_eq!((found.high_watermark, found.log_start_offset), (-1, -1));
            }
        }
    });
}

#[test]
fn offset_inside_a_batch_gets_the_whole_batch() {
    for_each_broker(|broker| {
        let topic = "fetch-inside";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        for _ in 0..3 {
            produce_ok(&mut connection, topic, 0, batch(5).encode());
        }
        for offset in 0..15 {
            let found = fetch(&mut connection, topic, 0, offset);
            let ranges = batch_ranges(&found.records.expect("records"));
            assert_eq!(ranges[0].0, offset / 5 * 5, "from offset {offset}");
            assert_eq!(ranges.last().expect("a batch").1, 14);
        }
    });
}

#[test]
fn offsets_cross_segments() {
    for_each_broker(|broker| {
        let topic = "fetch-segments";
        create_topic_with(broker, topic, 1, &[("segment.bytes", "1048576")]);
        let mut connection = connect(broker);
        for _ in 0..40 {
            produce_ok(&mut connection, topic, 0, Batch::of_size(100_000).encode());
        }
        let mut offset = 0;
        while offset < 40 {
            let found = fetch(&mut connection, topic, 0, offset);
            let ranges = batch_ranges(&found.records.expect("records"));
            assert_eq!(ranges[0].0, offset);
            for pair in ranges.windows(2) {
                assert_eq!(pair[0].1 + 1, pair[1].0);
            }
            offset = ranges.last().expect("progress").1 + 1;
        }
        assert_eq!(offset, 40);
    });
}

#[test]
fn leader_epochs_are_compared() {
    for_each_broker_with(&compat_tests::broker::BrokerOptions::new(), |broker| {
        let topic = "fetch-epochs";
        create_topic(broker, topic, 1);
        produce_ok(&mut connect(broker), topic, 0, batch(2).encode());
        // A restart elects the leader anew, and may raise the epoch.
        broker.stop().unwrap();
        broker.start_again().unwrap();
        crate::support::wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        let epoch = crate::support::metadata(&mut connection, topic).partitions[0].leader_epoch;
        let with = |current: i32| {
            let part = fetch_partition(0, 0).with_current_leader_epoch(current);
            fetch_request(topic, vec![part])
        };
        assert_eq!(ask(&mut connection, &with(epoch))[0].error_code, code::NONE);
        let above = &ask(&mut connection, &with(epoch + 1))[0];
        assert_eq!(above.error_code, code::UNKNOWN_LEADER_EPOCH);
        if epoch > 0 {
            let below = &ask(&mut connection, &with(epoch - 1))[0];
            assert_eq!(below.error_code, code::FENCED_LEADER_EPOCH);
        }
        let above = fetch_partition(0, 1).with_last_fetched_epoch(epoch + 9);
        let found = &ask(&mut connection, &fetch_request(topic, vec![above]))[0];
        assert_eq!(found.error_code, code::OFFSET_OUT_OF_RANGE);
    });
}

#[test]
fn unknown_ids_are_told_and_siblings_answered() {
    for_each_broker(|broker| {
        let id = create_topic(broker, "fetch-ids", 1);
        let mut connection = connect(broker);
        produce_ok(&mut connection, "fetch-ids", 0, batch(1).encode());
        let topic = |id| {
            FetchTopic::default()
                .with_topic_id(id)
                .with_partitions(vec![fetch_partition(0, 0)])
        };
        let mut request = fetch_request("", vec![]);
        request.topics = vec![topic(uuid::Uuid::from_u128(99)), topic(id)];
        let reply = connection.call(15, &request).unwrap();
        let mut codes: Vec<_> = reply
            .responses
            .iter()
            .map(|t| (t.topic_id == id, t.partitions[0].error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(false, code::UNKNOWN_TOPIC_ID), (true, code::NONE)]);
    });
}

#[test]
fn unknown_topic_beside_an_empty_one_waits() {
    for_each_broker(|broker| {
        create_topic(broker, "fetch-beside", 1);
        let mut connection = connect(broker);
        let mut request =
            fetch_request("fetch-beside", vec![fetch_partition(0, 0)]).with_max_wait_ms(300);
        request.topics.push(
            FetchTopic::default()
                .with_topic(topic_name("no-such-topic"))
                .with_partitions(vec![fetch_partition(0, 0)]),
        );
        let began = Instant::now();
        let mut codes: Vec<_> = ask(&mut connection, &request)
            .iter()
            .map(|found| found.error_code)
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [code::NONE, code::UNKNOWN_TOPIC_OR_PARTITION]);
        assert!(began.elapsed() >= Duration::from_millis(290));
    });
}

#[test]
fn aborted_list_is_absent_without_isolation() {
    for_each_broker(|broker| {
        let topic = "fetch-isolation";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
        let found = fetch(&mut connection, topic, 0, 0);
        assert!(
            found
                .aborted_transactions
                .is_none_or(|list| list.is_empty())
        );
        let request = fetch_request(topic, vec![fetch_partition(0, 0)]).with_isolation_level(1);
        let found = &ask(&mut connection, &request)[0];
        assert_eq!(found.last_stable_offset, 1);
        assert_eq!(batch_ranges(found.records.as_ref().unwrap()), [(0, 0)]);
    });
}
