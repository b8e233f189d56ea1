//! A broker process that the benchmark starts, stops, kills and starts again on the same data.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use compat_tests::broker::{Broker, BrokerKind, BrokerOptions};
use compat_tests::raw::Connection;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

/// Heap of Apache Kafka, which its own start script also takes.
const KAFKA_HEAP_MIB: u32 = 1024;

/// A broker under measurement.
pub(crate) struct Bench {
    broker: Broker,
    pub(crate) address: SocketAddr,
    topics_made: u32,
}

impl Bench {
    /// Starts the broker on an empty directory; gives the time until it answered too.
    pub(crate) fn start(kind: BrokerKind) -> Result<(Self, Duration)> {
        let options = BrokerOptions::new()
            .for_measurement(KAFKA_HEAP_MIB)
            .set("log.segment.delete.delay.ms", 0)
            .set("auto.create.topics.enable", false);
        let broker = Broker::start(kind, options)?;
        let ready = broker.time_to_ready();
        Ok((
            Self {
                address: broker.address(),
                broker,
                topics_made: 0,
            },
            ready,
        ))
    }

    /// Which broker it is.
    pub(crate) fn kind(&self) -> BrokerKind {
        self.broker.kind()
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        self.broker.log_dir()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.broker.id().context("the broker is not running")
    }

    /// Stops it in an orderly way; gives the time until its end.
    pub(crate) fn stop(&mut self) -> Result<Duration> {
        let began = Instant::now();
        self.broker.stop()?;
        Ok(began.elapsed())
    }

    /// Kills it as a power cut would, the page cache aside.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.broker.kill()
    }

    /// Starts it again on the same data; gives the time until `topics` are served.
    pub(crate) fn start_again(&mut self, topics: &[String]) -> Result<Duration> {
        let began = Instant::now();
        self.broker.start_again()?;
        self.wait_for(topics)?;
        Ok(began.elapsed())
    }

    fn wait_for(&self, topics: &[String]) -> Result<()> {
        let began = Instant::now();
        while !self.broker.serves(topics.iter().map(String::as_str))? {
            ensure!(
                began.elapsed() < Duration::from_secs(300),
                "topics never got leaders"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Creates topics with new names and gives the names once they are served.
    pub(crate) fn create_topics(
        &mut self,
        count: usize,
        partitions: i32,
        config: &[(&str, &str)],
    ) -> Result<Vec<String>> {
        let names: Vec<String> = (0..count)
            .map(|i| format!("bench-{}-{i}", self.topics_made))
            .collect();
        self.topics_made += 1;
        for name in &names {
            let configs = config.iter().map(|(key, value)| {
                CreatableTopicConfig::default()
                    .with_name(StrBytes::from_string((*key).to_owned()))
                    .with_value(Some(StrBytes::from_string((*value).to_owned())))
            });
            let topic = CreatableTopic::default()
                .with_name(topic_name(name))
                .with_num_partitions(partitions)
                .with_replication_factor(1)
                .with_configs(configs.collect());
            let request = CreateTopicsRequest::default()
                .with_topics(vec![topic])
                .with_timeout_ms(60_000);
            let reply = Connection::open(self.address)?.call(7, &request)?;
            for topic in &reply.topics {
                ensure!(topic.error_code == 0, "create {name}: {topic:?}");
            }
        }
        self.wait_for(&names)?;
        Ok(names)
    }

    /// Deletes topics and waits until their directories are gone.
    pub(crate) fn delete_topics(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let request = DeleteTopicsRequest::default()
                .with_topic_names(vec![topic_name(name)])
                .with_timeout_ms(60_000);
            let reply = Connection::open(self.address)?.call(5, &request)?;
            for topic in &reply.responses {
                ensure!(topic.error_code == 0, "delete {name}: {topic:?}");
            }
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(90) {
            let left = fs::read_dir(self.data_dir())?.flatten().filter(|entry| {
                let dir = entry.file_name();
                let dir = dir.to_string_lossy();
                names
                    .iter()
                    .any(|name| dir.starts_with(&format!("{name}-")))
            });
            if left.count() == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the directories of deleted topics are still there after 90 s")
    }
}

/// A topic's name as the codec wants it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
