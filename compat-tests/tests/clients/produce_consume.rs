//! Each client writes with every codec and every acks and reads it all back.

use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;

use crate::support::{Batch, consume, now_ms, produce, unique};

fn writes_and_reads(client: Client) {
    for_each_broker(|broker| {
        // Never created: the client's first request creates it.
        let topic = unique(client.name());
        let base_timestamp = now_ms() - 60_000;
        let mut next = 0;
        for codec in client.codecs() {
            for acks in ["0", "1", "-1"] {
                let batch = Batch {
                    codec,
                    acks,
                    base_timestamp,
                    ..Batch::new(&topic, next, 10)
                };
                let first = i64::try_from(next).unwrap();
                let expected = if acks == "0" {
                    (-1, -1)
                } else {
                    (first, first + 9)
                };
                assert_eq!(
                    produce(client, broker, batch),
                    expected,
                    "{codec} acks={acks}"
                );
                next += 10;
            }
        }
        let consumed = consume(client, broker, &topic, next);
        for (position, record) in consumed.iter().enumerate() {
            let position = i64::try_from(position).unwrap();
            assert_eq!(
                (record.offset, record.index, record.size),
                (position, position, 100)
            );
            assert_eq!(record.timestamp, base_timestamp + position);
        }
    });
}

#[test]
fn confluent_kafka_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::ConfluentKafka);
}

#[test]
fn kafka_python_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::KafkaPython);
}

#[test]
fn aiokafka_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::Aiokafka);
}

#[test]
fn franz_go_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::FranzGo);
}

#[test]
fn sarama_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::Sarama);
}

#[test]
fn kafkajs_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::KafkaJs);
}

#[test]
fn java_client_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::Java);
}

#[test]
fn rdkafka_writes_and_reads_every_codec_and_acks() {
    writes_and_reads(Client::Rdkafka);
}
