//! Produce: what is taken, what is refused and how (C).

mod accepted;
mod compressed;
mod idempotence;
mod shape;

use bytes::Bytes;
use std::time::Duration;

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection, Record, set_crc};

use crate::support::{
    NOW_MS, PRODUCE, batch, batch_ranges, code, connect, create_topic, create_topic_with, fetch,
    gzip, list_offsets, new_producer, on_highwater, produce, produce_at, produce_ok,
    produce_request,
};

/// A changed field and the codes that may follow: the first is Apache Kafka's.
fn refuses(connection: &mut Connection, topic: &str, what: &str, bytes: Bytes, codes: &[i16]) {
    let reply = produce(connection, topic, 0, bytes);
    assert!(
        codes.contains(&reply.error_code),
        "{what}: {reply:?} where {codes:?} is right"
    );
    assert_eq!(reply.base_offset, -1, "{what}");
    assert_eq!(
        list_offsets(connection, topic, 0, -1).offset,
        1,
        "{what}: nothing is appended"
    );
}

/// A topic with one record, so that "nothing appended" can be told from "nothing there".
fn one_record(broker: &Broker, topic: &str) -> Connection {
    create_topic(broker, topic, 2);
    let mut connection = connect(broker);
    produce_ok(&mut connection, topic, 0, batch(1).encode());
    connection
}
