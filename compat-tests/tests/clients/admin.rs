//! Each client's admin interface; the checks are in `clients/<client>`.

use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;

use crate::support::{run, unique};

fn administrates(client: Client) {
    for_each_broker(|broker| {
        let lines = run(
            client,
            broker,
            "admin",
            &[&unique(&format!("admin-{}", client.name()))],
        );
        assert_eq!(lines.last().expect("a line")["ok"], true);
    });
}

#[test]
fn confluent_kafka_administrates() {
    administrates(Client::ConfluentKafka);
}

#[test]
fn kafka_python_administrates() {
    administrates(Client::KafkaPython);
}

#[test]
fn aiokafka_administrates() {
    administrates(Client::Aiokafka);
}

#[test]
fn franz_go_administrates() {
    administrates(Client::FranzGo);
}

#[test]
fn sarama_administrates() {
    administrates(Client::Sarama);
}

#[test]
fn kafkajs_administrates() {
    administrates(Client::KafkaJs);
}

#[test]
fn java_client_administrates() {
    administrates(Client::Java);
}

#[test]
fn rdkafka_administrates() {
    administrates(Client::Rdkafka);
}
