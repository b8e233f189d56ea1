//! rdkafka (the Rust client) as a test client; see ../README.md.

mod workload;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_executor::block_on as wait;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

const LIMIT: Duration = Duration::from_secs(30);

fn value(index: usize, size: usize) -> Vec<u8> {
    format!("record {index} ")
        .into_bytes()
        .into_iter()
        .cycle()
        .take(size)
        .collect()
}

struct Deliveries(std::sync::Mutex<Vec<i64>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let message = result.as_ref().expect("delivered");
        self.0.lock().unwrap().push(message.offset());
    }
}

fn produce(bootstrap: &str, topic: &str, args: &[String]) {
    let number = |at: usize| args[at].parse::<usize>().expect("a number");
    let (partition, first, count, size, base) =
        (number(0), number(3), number(4), number(5), number(6));
    let producer: BaseProducer<Deliveries> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("compression.type", &args[1])
        .set("acks", &args[2])
        .set("linger.ms", "20")
        .set("message.max.bytes", "20000000")
        .create_with_context(Deliveries(Default::default()))
        .unwrap();
    for i in first..first + count {
        let headers = OwnedHeaders::new().insert(Header {
            key: "index",
            value: Some(&i.to_string()),
        });
        producer
            .send(
                BaseRecord::to(topic)
                    .partition(i32::try_from(partition).unwrap())
                    .key(&format!("key-{i}"))
                    .payload(&value(i, size))
                    .timestamp(i64::try_from(base + i).unwrap())
                    .headers(headers),
            )
            .map_err(|(error, _)| error)
            .unwrap();
    }
    producer.flush(LIMIT).unwrap();
    let offsets = producer.context().0.lock().unwrap();
    assert_eq!(offsets.len(), count);
    if args[2] == "0" {
        println!("{{\"offsets\": [-1, -1]}}");
    } else {
        println!("{{\"offsets\": [{}, {}]}}", offsets[0], offsets[count - 1]);
    }
}

fn consume(bootstrap: &str, topic: &str, args: &[String]) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "unused")
        .set("enable.auto.commit", "false")
        .set("fetch.message.max.bytes", "20000000")
        .create()
        .unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), LIMIT).unwrap();
    let mut all = TopicPartitionList::new();
    for partition in metadata.topics()[0].partitions() {
        all.add_partition_offset(topic, partition.id(), Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&all).unwrap();
    for _ in 0..args[0].parse::<usize>().unwrap() {
        let message = consumer.poll(LIMIT).expect("a record within 30 s").unwrap();
        let header = message.headers().unwrap().get(0);
        let index: usize = std::str::from_utf8(header.value.unwrap())
            .unwrap()
            .parse()
            .unwrap();
        let payload = message.payload().unwrap();
        println!(
            "{{\"partition\": {}, \"offset\": {}, \"timestamp\": {}, \"key\": \"{}\", \"index\": {index}, \"size\": {}, \"intact\": {}}}",
            message.partition(),
            message.offset(),
            message.timestamp().to_millis().unwrap(),
            std::str::from_utf8(message.key().unwrap()).unwrap(),
            payload.len(),
            payload == value(index, payload.len()),
        );
    }
}

struct Reporter;

impl ClientContext for Reporter {}

impl ConsumerContext for Reporter {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let mut now: Vec<i32> = match rebalance {
            Rebalance::Assign(partitions) => partitions
                .elements()
                .iter()
                .map(|p| p.partition())
                .collect(),
            _ => Vec::new(),
        };
        now.sort_unstable();
        println!("{{\"assigned\": {now:?}}}");
    }
}

fn member(bootstrap: &str, topic: &str, args: &[String]) {
    let consumer: BaseConsumer<Reporter> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", &args[0])
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", &args[1])
        .set("heartbeat.interval.ms", "500")
        .create_with_context(Reporter)
        .unwrap();
    consumer.subscribe(&[topic]).unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&end);
    std::thread::spawn(move || {
        std::io::stdin().read(&mut [0]).ok();
        seen.store(true, Ordering::SeqCst);
    });
    while !end.load(Ordering::SeqCst) {
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
            println!(
                "{{\"record\": [{}, {}]}}",
                message.partition(),
                message.offset()
            );
        }
    }
    // Dropping the consumer leaves the group; the stored offsets are committed before.
    consumer.commit_consumer_state(CommitMode::Sync).ok();
}

/// Metadata changes reach a broker's cache a moment after they are answered.
fn eventually(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn admin(bootstrap: &str, topic: &str) {
    let client: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .unwrap();
    let options = AdminOptions::new();
    let new = NewTopic::new(topic, 3, TopicReplication::Fixed(1)).set("retention.ms", "3600000");
    wait(client.create_topics([&new], &options)).unwrap()[0]
        .as_ref()
        .unwrap();
    let again = wait(client.create_topics([&new], &options))
        .unwrap()
        .remove(0)
        .unwrap_err();
    assert_eq!(again.1, RDKafkaErrorCode::TopicAlreadyExists);
    let bad = format!("{topic}-bad");
    let impossible = NewTopic::new(&bad, 1, TopicReplication::Fixed(3));
    let refused = wait(client.create_topics([&impossible], &options))
        .unwrap()
        .remove(0)
        .unwrap_err();
    assert_eq!(refused.1, RDKafkaErrorCode::InvalidReplicationFactor);
    let partitions = || {
        let metadata = client.inner().fetch_metadata(Some(topic), LIMIT).unwrap();
        metadata.topics()[0].partitions().len()
    };
    eventually(|| partitions() == 3);
    wait(client.create_partitions([&NewPartitions::new(topic, 5)], &options)).unwrap()[0]
        .as_ref()
        .unwrap();
    eventually(|| partitions() == 5);

    let described = |key: &str| {
        let answer =
            wait(client.describe_configs([&ResourceSpecifier::Topic(topic)], &options)).unwrap();
        answer[0]
            .as_ref()
            .unwrap()
            .get(key)
            .and_then(|entry| entry.value.clone())
    };
    assert_eq!(described("retention.ms").as_deref(), Some("3600000"));
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", "2000");
    wait(client.alter_configs([&change], &options)).unwrap()[0]
        .as_ref()
        .unwrap();
    // AlterConfigs sets the whole map: what it does not name falls back to its default.
    eventually(|| {
        described("max.message.bytes").as_deref() == Some("2000")
            && described("retention.ms").as_deref() == Some("604800000")
    });

    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .unwrap();
    for _ in 0..10 {
        producer
            .send(BaseRecord::<(), _>::to(topic).partition(0).payload("small"))
            .map_err(|e| e.0)
            .unwrap();
    }
    producer.flush(LIMIT).unwrap();
    let group = format!("{topic}-group");
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", &group)
        .create()
        .unwrap();
    let mut before = TopicPartitionList::new();
    before
        .add_partition_offset(topic, 0, Offset::Offset(4))
        .unwrap();
    wait(client.delete_records(&before, &options)).unwrap();
    assert_eq!(consumer.fetch_watermarks(topic, 0, LIMIT).unwrap(), (4, 10));
    let mut commit = TopicPartitionList::new();
    commit
        .add_partition_offset(topic, 0, Offset::Offset(7))
        .unwrap();
    consumer.commit(&commit, CommitMode::Sync).unwrap();
    let committed = consumer.committed_offsets(commit, LIMIT).unwrap();
    assert_eq!(committed.elements()[0].offset(), Offset::Offset(7));
    let groups = consumer.fetch_group_list(Some(&group), LIMIT).unwrap();
    assert_eq!(groups.groups()[0].state(), "Empty");
    wait(client.delete_groups(&[&group], &options)).unwrap()[0]
        .as_ref()
        .unwrap();
    let gone = wait(client.delete_groups(&[&group], &options))
        .unwrap()
        .remove(0)
        .unwrap_err();
    assert_eq!(gone.1, RDKafkaErrorCode::GroupIdNotFound);

    wait(client.delete_topics(&[topic], &options)).unwrap()[0]
        .as_ref()
        .unwrap();
    eventually(|| {
        let answer = wait(client.delete_topics(&[topic], &options))
            .unwrap()
            .remove(0);
        answer.is_err_and(|error| error.1 == RDKafkaErrorCode::UnknownTopicOrPartition)
    });
    println!("{{\"ok\": true}}");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args[0].as_str() {
        "produce" => produce(&args[1], &args[2], &args[3..]),
        "consume" => consume(&args[1], &args[2], &args[3..]),
        "member" => member(&args[1], &args[2], &args[3..]),
        "admin" => admin(&args[1], &args[2]),
        "send-unique" => workload::send_unique(&args[1], &args[2], &args[3..]),
        "poll-values" => workload::poll_values(&args[1], &args[2], &args[3..]),
        other => panic!("no command {other}"),
    }
}
