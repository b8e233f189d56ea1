//! Kafka Streams: topics that it makes, deletes records of and restores its stores from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use compat_tests::apache_kafka;
use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::clients::{Client, java_classes};
use compat_tests::each_broker::for_each_broker_with;
use compat_tests::process::{eventually, poll};
use serde_json::Value;

use crate::support::{Batch, LIMIT, create_topic, produce, tool, until_seen};

const TOPIC: &str = "events";
const APPLICATION: &str = "counting";

/// The last count of each key.
type Counts = BTreeMap<String, i64>;

/// A running `Streams.java`.
struct Application {
    child: Child,
    counts: Arc<Mutex<Counts>>,
    errors: tempfile::NamedTempFile,
}

impl Application {
    fn start(broker: &Broker, state: &Path) -> Self {
        let errors = tempfile::NamedTempFile::new().unwrap();
        let mut child = apache_kafka::java(256, &[&java_classes().unwrap()])
            .unwrap()
            .args(["Streams", &broker.bootstrap(), APPLICATION, TOPIC])
            .arg(state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(errors.path()).unwrap())
            .spawn()
            .unwrap();
        let counts = Arc::new(Mutex::new(Counts::new()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let shared = Arc::clone(&counts);
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            for line in lines.filter(|line| line.starts_with('{')) {
                let value: Value = serde_json::from_str(&line).unwrap();
                let [key, count] = [&value["count"][0], &value["count"][1]];
                let (key, count) = (key.as_str().unwrap(), count.as_i64().unwrap());
                shared.lock().unwrap().insert(key.to_owned(), count);
            }
        });
        Self {
            child,
            counts,
            errors,
        }
    }

    /// Waits until the counts of the ten keys are as they should be, and gives them.
    #[track_caller]
    fn until_counted(&self, what: &str, holds: impl Fn(&str, i64) -> bool) -> Counts {
        let counts = || self.counts.lock().unwrap().clone();
        let is_done = |counts: &Counts| {
            let mut counted = counts.iter();
            counts.len() == 10 && counted.all(|(key, count)| holds(key, *count))
        };
        let done = poll(LIMIT, || Some(counts()).filter(is_done));
        done.unwrap_or_else(|| panic!("not {what}: {:?}", counts()))
    }

    #[track_caller]
    fn end(mut self) {
        drop(self.child.stdin.take());
        let status = eventually(LIMIT, "it ends", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            let errors = std::fs::read_to_string(self.errors.path());
            eprintln!("on its stderr:\n{}", errors.unwrap_or_default());
        }
    }
}

/// Ten more of each key in each of the three partitions, beginning with record `first`.
fn produce_events(broker: &Broker, first: usize) {
    for partition in 0..3 {
        let batch = Batch::new(TOPIC, first, 100);
        produce(Client::Java, broker, Batch { partition, ..batch });
    }
}

/// Waits until the application has committed all that there is in both topics.
#[track_caller]
fn until_committed(broker: &Broker) {
    let lags = || {
        let args = ["--describe", "--offsets", "--group", APPLICATION];
        let printed = tool(broker, "consumer-groups", &args);
        let lags = printed.lines().filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            (columns.first() == Some(&APPLICATION)).then(|| columns[5].to_owned())
        });
        lags.collect::<Vec<_>>()
    };
    until_seen(lags, vec!["0"; 6]);
}

#[test]
fn streams_lose_nothing_by_a_kill_of_the_broker_and_restore_their_state() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, TOPIC, 3, &[]);
        produce_events(broker, 0);
        let state = tempfile::tempdir().unwrap();
        let application = Application::start(broker, state.path());
        application.until_counted("30 each", |_, count| count == 30);
        until_committed(broker);
        broker.kill().unwrap();
        broker.start_again().unwrap();
        produce_events(broker, 100);
        // Each at least once: a thread that loses its part meanwhile leaves it to be counted again.
        application.until_counted("60 each", |_, count| count >= 60);
        until_committed(broker);
        let before = application.until_counted("60 each", |_, count| count >= 60);
        application.end();

        let describe = |topic: &str| tool(broker, "topics", &["--describe", "--topic", topic]);
        let changelog = describe("counting-counts-changelog");
        assert!(changelog.contains("PartitionCount: 3"), "{changelog}");
        assert!(changelog.contains("cleanup.policy=compact"), "{changelog}");
        let repartition = describe("counting-counts-repartition");
        assert!(repartition.contains("retention.ms=-1"), "{repartition}");

        let other_state = tempfile::tempdir().unwrap();
        let application = Application::start(broker, other_state.path());
        produce_events(broker, 200);
        application.until_counted("30 more each", |key, count| count == before[key] + 30);
        application.end();
    });
}
