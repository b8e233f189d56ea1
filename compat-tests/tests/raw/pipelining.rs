//! Many requests of one connection in flight: replies keep their order (A11, C01).

use compat_tests::each_broker::for_each_broker;
use compat_tests::raw::{Connection, encode_frame};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest,
};
use kafka_protocol::protocol::Request;

use crate::support::{
    FETCH, PRODUCE, batch, code, connect, create_topic, fetch_partition, fetch_request,
    list_offsets, list_offsets_request, produce_request, s,
};

/// Writes several frames at once, then expects their replies in that order; acks=0 has none.
struct Pipeline {
    bytes: Vec<u8>,
    expected: Vec<(i32, ApiKey, i16)>,
    next_id: i32,
}

impl Pipeline {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            expected: Vec::new(),
            next_id: 1000,
        }
    }

    fn add<R: Request>(&mut self, version: i16, request: &R) {
        self.expected.push((
            self.next_id,
            ApiKey::try_from(R::KEY).expect("a known key"),
            version,
        ));
        self.add_unanswered(version, request);
    }

    fn add_unanswered<R: Request>(&mut self, version: i16, request: &R) {
        self.bytes
            .extend(encode_frame(version, self.next_id, request).expect("it encodes"));
        self.next_id += 1;
    }

    fn run(self, connection: &mut Connection) {
        connection.write(&self.bytes).unwrap();
        for (id, key, version) in self.expected {
            let frame = connection.read_frame().unwrap().expect("an answer");
            assert_eq!(
                frame.correlation_id(),
                id,
                "the answer to {key:?} v{version} comes next"
            );
            frame.decode_kind(key, version).unwrap();
        }
    }
}

fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest::default()
        .with_client_software_name(s("raw"))
        .with_client_software_version(s("1"))
}

fn parked_fetch(topic: &str, max_wait_ms: i32) -> FetchRequest {
    fetch_request(topic, vec![fetch_partition(1, 0)]).with_max_wait_ms(max_wait_ms)
}

#[test]
fn replies_behind_a_parked_fetch_wait_for_it() {
    for_each_broker(|broker| {
        create_topic(broker, "pipeline-parked", 2);
        let mut connection = connect(broker);
        let mut pipeline = Pipeline::new();
        pipeline.add(FETCH, &parked_fetch("pipeline-parked", 1500));
        pipeline.add(9, &MetadataRequest::default());
        // A version of the future is answered as version 0.
        pipeline
            .expected
            .push((pipeline.next_id, ApiKey::ApiVersions, 0));
        let future = compat_tests::raw::frame_of(18, 99, pipeline.next_id, b"garbage");
        pipeline.bytes.extend(future);
        pipeline.next_id += 1;
        let records = batch(1).encode();
        pipeline.add(
            PRODUCE,
            &produce_request("pipeline-parked", vec![(0, records)]),
        );
        pipeline.add(
            FETCH,
            &fetch_request("no-such-topic", vec![fetch_partition(0, 0)]),
        );
        pipeline.run(&mut connection);
    });
}

#[test]
fn acks_0_leaves_no_hole_between_replies() {
    for_each_broker(|broker| {
        create_topic(broker, "pipeline-acks-0", 1);
        let mut connection = connect(broker);
        let mut pipeline = Pipeline::new();
        let fire = produce_request("pipeline-acks-0", vec![(0, batch(1).encode())]).with_acks(0);
        for _ in 0..5 {
            pipeline.add(9, &MetadataRequest::default());
            pipeline.add_unanswered(PRODUCE, &fire);
            pipeline.add_unanswered(PRODUCE, &fire);
            pipeline.add(3, &api_versions());
        }
        pipeline.run(&mut connection);
        let end = list_offsets(&mut connection, "pipeline-acks-0", 0, -1);
        assert_eq!((end.error_code, end.offset), (code::NONE, 10));
    });
}

#[test]
fn acks_0_with_an_error_closes_the_connection() {
    for_each_broker(|broker| {
        create_topic(broker, "pipeline-closed", 1);
        let mut corrupt = batch(1).encode().to_vec();
        corrupt[30] ^= 1;
        let fires = [
            (
                "unknown topic",
                produce_request("no-such-topic", vec![(0, batch(1).encode())]),
            ),
            (
                "unknown partition",
                produce_request("pipeline-closed", vec![(7, batch(1).encode())]),
            ),
            (
                "flipped bit",
                produce_request("pipeline-closed", vec![(0, corrupt.into())]),
            ),
        ];
        for (what, fire) in fires {
            let mut connection = connect(broker);
            connection.send(PRODUCE, &fire.with_acks(0)).unwrap();
            let answer = connection.read_frame().unwrap();
            assert!(answer.is_none(), "{what} was answered: {answer:?}");
        }
    });
}

#[test]
fn hundred_mixed_requests_are_answered_in_order() {
    for_each_broker(|broker| {
        let topic = "pipeline-mixed";
        create_topic(broker, topic, 2);
        let mut appended = 0;
        for seed in 1..=5_u64 {
            let mut state = seed;
            let mut random = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % below
            };
            let mut pipeline = Pipeline::new();
            for _ in 0..100 {
                match random(8) {
                    0 => pipeline.add(FETCH, &parked_fetch(topic, random(40) as i32)),
                    1 => pipeline.add(
                        FETCH,
                        &fetch_request(topic, vec![fetch_partition(0, random(3) as i64)]),
                    ),
                    2 => pipeline.add(3, &api_versions()),
                    3 => pipeline.add(9, &MetadataRequest::default()),
                    4 => pipeline.add(9, &list_offsets_request(topic, 0, -1)),
                    5 => {
                        let wrong = produce_request(topic, vec![(9, batch(1).encode())]);
                        pipeline.add(PRODUCE, &wrong);
                    }
                    kind => {
                        let good = produce_request(topic, vec![(0, batch(1).encode())]);
                        appended += 1;
                        if kind == 6 {
                            pipeline.add(PRODUCE, &good);
                        } else {
                            pipeline.add_unanswered(PRODUCE, &good.with_acks(0));
                        }
                    }
                }
            }
            pipeline.add::<ListOffsetsRequest>(9, &list_offsets_request(topic, 0, -1));
            pipeline.run(&mut connect(broker));
        }
        let end = list_offsets(&mut connect(broker), topic, 0, -1);
        assert_eq!(end.offset, appended, "each produce was appended once");
    });
}

#[test]
fn pipelined_appends_keep_their_order() {
    for_each_broker(|broker| {
        let topic = "pipeline-order";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        for _ in 0..50 {
            connection
                .send(
                    PRODUCE,
                    &produce_request(topic, vec![(0, batch(3).encode())]),
                )
                .unwrap();
        }
        for i in 0..50 {
            let reply = connection.receive::<ProduceRequest>(PRODUCE).unwrap();
            let partition = &reply.responses[0].partition_responses[0];
            assert_eq!(
                (partition.error_code, partition.base_offset),
                (code::NONE, i * 3)
            );
        }
    });
}
