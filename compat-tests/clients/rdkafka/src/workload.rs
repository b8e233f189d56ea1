//! Producers and consumers of unique values for runs with faults: each prints what it did and what it was told, a line
//! of JSON at a time, until its standard input ends.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

/// What is not delivered after so long is given up.
const DELIVERY_LIMIT: Duration = Duration::from_secs(60);

fn say(line: &str) {
    // All of a line in one write: the reader may be ended at any time.
    std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .expect("somebody listens");
}

/// Set when standard input ends.
fn end_of_input() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        seen.store(true, Ordering::SeqCst);
    });
    ended
}

/// Prints the fate of each value, with the number of its producer.
struct Fates(u32);

impl ClientContext for Fates {}

impl ProducerContext for Fates {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, result: &DeliveryResult<'_>, value: Box<u64>) {
        let Self(producer) = self;
        match result {
            Ok(message) => say(&format!(
                r#"{{"acknowledged": [{producer}, {value}, {}, {}]}}"#,
                message.partition(),
                message.offset()
            )),
            Err((error, _)) => say(&format!(
                r#"{{"failed": [{producer}, {value}], "error": "{error:?}"}}"#
            )),
        }
    }
}

fn producer(bootstrap: &str, number: u32) -> BaseProducer<Fates> {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .set("message.timeout.ms", DELIVERY_LIMIT.as_millis().to_string())
        .set("request.timeout.ms", "10000")
        .set("socket.timeout.ms", "15000")
        .set("reconnect.backoff.max.ms", "1000")
        .create_with_context(Fates(number))
        .expect("good settings")
}

/// `send-unique BOOTSTRAP TOPIC PARTITIONS PRODUCER PER_SECOND`
pub(crate) fn send_unique(bootstrap: &str, topic: &str, args: &[String]) {
    let number = |at: usize| args[at].parse::<u32>().expect("a number");
    let (partitions, first_producer, per_second) = (number(0), number(1), number(2));
    let ended = end_of_input();
    let mut number = first_producer;
    let mut client = producer(bootstrap, number);
    let begun = Instant::now();
    let mut sequence = 0_u32;
    while !ended.load(Ordering::SeqCst) {
        let due = (begun.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
        while sequence < due && client.in_flight_count() < 10_000 {
            let value = u64::from(first_producer) << 32 | u64::from(sequence);
            let partition = sequence % partitions;
            sequence += 1;
            say(&format!(r#"{{"send": [{number}, {value}, {partition}]}}"#));
            let payload = value.to_string();
            let record = BaseRecord::with_opaque_to(topic, Box::new(value))
                .partition(partition as i32)
                .payload(&payload)
                .key("");
            if let Err((error, _)) = client.send(record) {
                say(&format!(
                    r#"{{"failed": [{number}, {value}], "certain": true, "error": "{error:?}"}}"#
                ));
            }
        }
        client.poll(Duration::from_millis(10));
        if let Some((error, text)) = client.client().fatal_error() {
            // The library gives up on it: everything in it is told as failed, and another producer goes on.
            say(&format!(r#"{{"fatal": "{error:?}: {}"}}"#, text.replace('"', "'")));
            client.flush(DELIVERY_LIMIT).ok();
            number += 1000;
            client = producer(bootstrap, number);
        }
    }
    client
        .flush(2 * DELIVERY_LIMIT)
        .expect("every value has its fate");
}

struct Assignments;

impl ClientContext for Assignments {}

impl ConsumerContext for Assignments {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, _: &Rebalance<'_>) {
        say(r#"{"assigned": true}"#);
    }
}

/// `poll-values BOOTSTRAP TOPIC PARTITIONS [GROUP]`: all partitions from their start, or as a member of a group.
pub(crate) fn poll_values(bootstrap: &str, topic: &str, args: &[String]) {
    let partitions: i32 = args[0].parse().expect("a number");
    let group = args.get(1);
    let ended = end_of_input();
    let consumer: BaseConsumer<Assignments> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group.map_or("unused", String::as_str))
        .set("enable.auto.commit", if group.is_some() { "true" } else { "false" })
        .set("auto.commit.interval.ms", "500")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "1000")
        // A position that the broker does not know any more is to be told, not repaired.
        .set("auto.offset.reset", if group.is_some() { "earliest" } else { "error" })
        .set("fetch.wait.max.ms", "100")
        .set("fetch.error.backoff.ms", "100")
        .set("socket.timeout.ms", "15000")
        .set("reconnect.backoff.max.ms", "1000")
        .create_with_context(Assignments)
        .expect("good settings");
    if group.is_some() {
        consumer.subscribe(&[topic]).expect("a topic");
    } else {
        say(r#"{"assigned": true}"#);
        let mut all = TopicPartitionList::new();
        for partition in 0..partitions {
            all.add_partition_offset(topic, partition, Offset::Offset(0))
                .expect("an offset");
        }
        consumer.assign(&all).expect("partitions");
    }
    while !ended.load(Ordering::SeqCst) {
        let mut polled = Vec::new();
        let mut wait = Duration::from_millis(50);
        while let Some(result) = consumer.poll(wait) {
            wait = Duration::ZERO;
            match result {
                Ok(message) => {
                    let payload = message.payload().expect("a value");
                    let value = std::str::from_utf8(payload).expect("a number");
                    polled.push(format!(
                        "[{}, {}, {value}]",
                        message.partition(),
                        message.offset()
                    ));
                }
                Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset)) => {
                    say(r#"{"position_lost": true}"#);
                }
                // Brokers come and go here.
                Err(error) => eprintln!("{error}"),
            }
            if polled.len() == 1000 {
                break;
            }
        }
        if !polled.is_empty() {
            say(&format!(r#"{{"polled": [{}]}}"#, polled.join(", ")));
        }
    }
}
