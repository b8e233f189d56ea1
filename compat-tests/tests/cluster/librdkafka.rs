//! confluent-kafka, that is librdkafka, beside a cluster (`clients/confluent-kafka/replication.py`).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use compat_tests::cache::client_sources;
use compat_tests::clients::Client;
use compat_tests::cluster::Cluster;
use compat_tests::process::eventually;
use serde_json::{Value, json};

fn program(cluster: &Cluster, command: &str, args: &[&str]) -> Command {
    let client = Client::ConfluentKafka
        .command()
        .unwrap_or_else(|error| panic!("{error:#}"));
    let mut program = Command::new(client.get_program());
    program
        .arg(client_sources("confluent-kafka").join("replication.py"))
        .args([command, &cluster.bootstrap()])
        .args(args)
        .stderr(Stdio::inherit());
    program
}

#[track_caller]
fn output(mut program: Command) -> Value {
    let output = program.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What librdkafka's Metadata shows: the brokers, and leader, replicas and sorted ISR of each partition.
#[track_caller]
pub(crate) fn observe(cluster: &Cluster, topic: &str) -> Value {
    output(program(cluster, "observe", &[topic]))
}

/// Waits until librdkafka's Metadata shows these brokers and partitions.
#[track_caller]
pub(crate) fn wait_until_observed(
    cluster: &Cluster,
    topic: &str,
    brokers: Value,
    partitions: Value,
) {
    let wanted = json!({"brokers": brokers, "partitions": partitions});
    eventually(
        Cluster::PATIENCE,
        &format!("librdkafka shows {wanted}"),
        || (observe(cluster, topic) == wanted).then_some(()),
    );
}

/// What became of records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Deliveries {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    /// How often each of librdkafka's errors was told.
    pub(crate) errors: Value,
}

impl Deliveries {
    fn of(line: &Value) -> Self {
        Self {
            ok: line["ok"].as_u64().unwrap(),
            failed: line["failed"].as_u64().unwrap(),
            errors: line["errors"].clone(),
        }
    }
}

/// Sends `count` records with acks=all and idempotence; what is not delivered after `patience_ms` is given up.
#[track_caller]
pub(crate) fn burst(cluster: &Cluster, topic: &str, count: u32, patience_ms: u32) -> Deliveries {
    let args = [topic, &count.to_string(), &patience_ms.to_string()];
    Deliveries::of(&output(program(cluster, "burst", &args)))
}

/// A producer with acks=all and idempotence at a steady pace, killed when dropped.
pub(crate) struct Background {
    child: Child,
    deliveries: Arc<Mutex<Deliveries>>,
    reader: Option<std::thread::JoinHandle<()>>,
    errors: tempfile::NamedTempFile,
}

impl Background {
    /// Starts sending records of this size to a partition.
    #[track_caller]
    pub(crate) fn start(
        cluster: &Cluster,
        topic: &str,
        partition: i32,
        size_bytes: usize,
        per_second: usize,
    ) -> Self {
        let args = [
            partition.to_string(),
            size_bytes.to_string(),
            per_second.to_string(),
        ];
        let args = [topic, &args[0], &args[1], &args[2]];
        let errors = tempfile::NamedTempFile::new().unwrap();
        let mut child = program(cluster, "background", &args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(errors.path()).unwrap())
            .spawn()
            .unwrap();
        let deliveries = Arc::new(Mutex::new(Deliveries::default()));
        let shared = Arc::clone(&deliveries);
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap();
                *shared.lock().unwrap() = Deliveries::of(&line);
            }
        });
        Self {
            child,
            deliveries,
            reader: Some(reader),
            errors,
        }
    }

    pub(crate) fn deliveries(&self) -> Deliveries {
        self.deliveries.lock().unwrap().clone()
    }

    /// Waits until so many more records than now were delivered.
    #[track_caller]
    pub(crate) fn wait_for_more(&self, count: u64) {
        let now = self.deliveries().ok;
        eventually(
            Cluster::PATIENCE,
            &format!("{count} records more than {now}"),
            || (self.deliveries().ok >= now + count).then_some(()),
        );
    }

    /// Ends it and gives what became of all its records.
    #[track_caller]
    pub(crate) fn end(mut self) -> Deliveries {
        drop(self.child.stdin.take());
        let status = eventually(Cluster::PATIENCE, "the producer ends", || {
            self.child.try_wait().unwrap()
        });
        assert!(status.success(), "{status}");
        self.reader.take().unwrap().join().unwrap();
        self.deliveries()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!(
                "a producer said {:?} and on stderr:\n{}",
                self.deliveries(),
                std::fs::read_to_string(self.errors.path()).unwrap_or_default()
            );
        }
    }
}
