//! What a topic and its settings let in, and how it is stored.

use super::*;

#[test]
fn bad_partition_does_not_fail_its_siblings() {
    for_each_broker(|broker| {
        create_topic(broker, "produce-siblings", 2);
        let mut connection = connect(broker);
        let mut corrupt = batch(1).encode().to_vec();
        corrupt[40] ^= 1;
        let parts = vec![
            (0, corrupt.into()),
            (1, batch(1).encode()),
            (9, batch(1).encode()),
        ];
        let request = produce_request("produce-siblings", parts);
        let reply = connection.call(PRODUCE, &request).unwrap();
        let mut codes: Vec<_> = reply.responses[0]
            .partition_responses
            .iter()
            .map(|p| (p.index, p.error_code))
            .collect();
        codes.sort_unstable();
        let expected = [
            (0, 2),
            (1, code::NONE),
            (9, code::UNKNOWN_TOPIC_OR_PARTITION),
        ];
        assert_eq!(codes, expected);
        assert_eq!(
            list_offsets(&mut connection, "produce-siblings", 1, -1).offset,
            1
        );
    });
}

#[test]
fn unusual_acks_are_refused() {
    for_each_broker(|broker| {
        let mut connection = one_record(broker, "produce-acks");
        for acks in [-2, 2, i16::MAX, i16::MIN] {
            let request = produce_request("produce-acks", vec![(0, batch(1).encode())]);
            let reply = connection.call(PRODUCE, &request.with_acks(acks)).unwrap();
            let code = reply.responses[0].partition_responses[0].error_code;
            assert_eq!(code, code::INVALID_REQUIRED_ACKS, "acks {acks}");
        }
        assert_eq!(
            list_offsets(&mut connection, "produce-acks", 0, -1).offset,
            1
        );
    });
}

#[test]
fn null_key_on_a_compacted_topic_names_the_record() {
    for_each_broker(|broker| {
        let topic = "produce-compacted";
        create_topic_with(broker, topic, 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        let keyless = Record {
            value: Some(b"v".to_vec()),
            ..Record::default()
        };
        let records = vec![Record::new("k", "v"), keyless.clone(), keyless];
        let mixed = Batch::of(records).at(*NOW_MS, &[]);
        let reply = produce(&mut connection, topic, 0, mixed.encode());
        assert_eq!(reply.error_code, code::INVALID_RECORD, "{reply:?}");
        let named: Vec<_> = reply.record_errors.iter().map(|e| e.batch_index).collect();
        assert_eq!(named, [1, 2]);
        assert!(
            reply
                .record_errors
                .iter()
                .all(|e| e.batch_index_error_message.is_some())
        );
        assert!(reply.error_message.is_some());
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 0);
    });
}

#[test]
fn timestamps_far_from_now_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-time";
        let mut connection = one_record(broker, topic);
        let hour = 3_600_000;
        for (what, at) in [
            ("microseconds", *NOW_MS * 1000),
            ("in two hours", *NOW_MS + 2 * hour),
        ] {
            let reply = produce(&mut connection, topic, 0, batch(2).at(at, &[]).encode());
            assert_eq!(
                reply.error_code,
                code::INVALID_TIMESTAMP,
                "{what}: {reply:?}"
            );
            let named: Vec<_> = reply.record_errors.iter().map(|e| e.batch_index).collect();
            assert_eq!(named, [0, 1], "{what}");
        }
        // The past is free by default.
        produce_ok(&mut connection, topic, 0, batch(1).at(1000, &[]).encode());
        let topic = "produce-time-before";
        create_topic_with(
            broker,
            topic,
            1,
            &[("message.timestamp.before.max.ms", "1800000")],
        );
        let old = batch(1).at(*NOW_MS - hour, &[]);
        let reply = produce(&mut connection, topic, 0, old.encode());
        assert_eq!(reply.error_code, code::INVALID_TIMESTAMP);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
    });
}

#[test]
fn log_append_time_is_told_and_stored() {
    for_each_broker(|broker| {
        let topic = "produce-append-time";
        create_topic_with(
            broker,
            topic,
            1,
            &[("message.timestamp.type", "LogAppendTime")],
        );
        let mut connection = connect(broker);
        let old = batch(2).at(1000, &[0, 5]);
        let reply = produce(&mut connection, topic, 0, old.encode());
        assert_eq!(reply.error_code, code::NONE);
        assert!(reply.log_append_time_ms >= *NOW_MS, "{reply:?}");
        let records = fetch(&mut connection, topic, 0, 0)
            .records
            .expect("records");
        let mut stored = records.to_vec();
        assert_eq!(
            i16::from_be_bytes([stored[21], stored[22]]) & 8,
            8,
            "the attribute bit"
        );
        let max = i64::from_be_bytes(stored[35..43].try_into().unwrap());
        assert_eq!(max, reply.log_append_time_ms);
        let crc = stored[17..21].to_vec();
        set_crc(&mut stored);
        assert_eq!(stored[17..21], crc[..], "the checksum was made anew");
        // CreateTime says nothing of it.
        let mut connection = one_record(broker, "produce-create-time");
        let reply = produce(&mut connection, "produce-create-time", 0, batch(1).encode());
        assert_eq!(reply.log_append_time_ms, -1);
    });
}

#[test]
fn batches_are_stored_as_received() {
    for_each_broker(|broker| {
        let topic = "produce-verbatim";
        let mut connection = one_record(broker, topic);
        let mut record = Record::new("key", "value");
        record.headers = vec![
            ("h".into(), None),
            ("h".into(), Some(vec![0, 255])),
            ("".into(), None),
        ];
        let sent = Batch::of(vec![record, Record::default()])
            .at(*NOW_MS, &[7, 3])
            .encode();
        let base = produce_ok(&mut connection, topic, 0, sent.clone());
        assert_eq!(base, 1);
        let records = fetch(&mut connection, topic, 0, 1)
            .records
            .expect("records");
        assert_eq!(batch_ranges(&records), [(1, 2)]);
        let mut expected = sent.to_vec();
        expected[..8].copy_from_slice(&1_i64.to_be_bytes());
        expected[12..16].copy_from_slice(&0_i32.to_be_bytes());
        assert_eq!(
            records[..],
            expected[..],
            "only base offset and leader epoch change"
        );
    });
}

#[test]
fn min_insync_replicas_above_the_replicas_is_capped() {
    for_each_broker(|broker| {
        let topic = "produce-min-isr";
        create_topic_with(broker, topic, 1, &[("min.insync.replicas", "2")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
    });
}
