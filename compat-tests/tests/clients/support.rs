//! Running client programs and judging what they print.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use compat_tests::broker::Broker;
use compat_tests::clients::Client;
use compat_tests::java_tools::{self, ToolRun};
use compat_tests::process::{eventually, poll};
use serde_json::Value;

/// How long anything may take that needs no more than a few round trips, on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// The session of a member that is not meant to be missed.
pub(crate) const SESSION: Duration = Duration::from_secs(30);

/// A topic or group name that no other test uses.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// Looks again until this is seen: Apache Kafka answers a change before its broker acts on it.
#[track_caller]
pub(crate) fn until_seen<T: PartialEq<E> + Debug, E: Debug>(look: impl Fn() -> T, expected: E) {
    if poll(LIMIT, || (look() == expected).then_some(())).is_none() {
        assert_eq!(look(), expected);
    }
}

/// Runs a command for at most [`LIMIT`] and returns its standard output.
#[track_caller]
pub(crate) fn succeed(command: &Command) -> String {
    let output = Command::new("timeout")
        .args(["-k", "5", &LIMIT.as_secs().to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(
            command
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{printed}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}

/// Runs one command of a client program and returns the lines of JSON that it prints.
#[track_caller]
pub(crate) fn run(client: Client, broker: &Broker, command: &str, args: &[&str]) -> Vec<Value> {
    let mut program = client.command().unwrap_or_else(|error| panic!("{error:#}"));
    program.arg(command).arg(broker.bootstrap()).args(args);
    succeed(&program)
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// What `produce` sends; see `clients/README.md`.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) codec: &'a str,
    pub(crate) acks: &'a str,
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) size: usize,
    pub(crate) base_timestamp: i64,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(topic: &'a str, first: usize, count: usize) -> Self {
        let base_timestamp = now_ms();
        Self {
            topic,
            partition: 0,
            codec: "none",
            acks: "-1",
            first,
            count,
            size: 100,
            base_timestamp,
        }
    }
}

/// Produces and returns the first and last offset as the client reports them.
#[track_caller]
pub(crate) fn produce(client: Client, broker: &Broker, batch: Batch<'_>) -> (i64, i64) {
    let numbers = [batch.first, batch.count, batch.size].map(|n| n.to_string());
    let (partition, timestamp) = (
        batch.partition.to_string(),
        batch.base_timestamp.to_string(),
    );
    let [first, count, size] = &numbers;
    let args = [
        batch.topic,
        &partition,
        batch.codec,
        batch.acks,
        first,
        count,
        size,
        &timestamp,
    ];
    let lines = run(client, broker, "produce", &args);
    let offsets = &lines.last().expect("a line")["offsets"];
    (offsets[0].as_i64().unwrap(), offsets[1].as_i64().unwrap())
}

/// One consumed record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Consumed {
    pub(crate) partition: i64,
    pub(crate) offset: i64,
    pub(crate) index: i64,
    pub(crate) timestamp: i64,
    pub(crate) size: i64,
}

/// Consumes `count` records from the start of every partition; each must be intact and carry its key.
#[track_caller]
pub(crate) fn consume(client: Client, broker: &Broker, topic: &str, count: usize) -> Vec<Consumed> {
    let lines = run(client, broker, "consume", &[topic, &count.to_string()]);
    assert_eq!(lines.len(), count, "{client:?} on {}", broker.kind());
    lines
        .iter()
        .map(|line| {
            assert_eq!(line["intact"], true, "{client:?}: {line}");
            assert_eq!(
                line["key"],
                format!("key-{}", line["index"]),
                "{client:?}: {line}"
            );
            let number = |name: &str| line[name].as_i64().unwrap();
            Consumed {
                partition: number("partition"),
                offset: number("offset"),
                index: number("index"),
                timestamp: number("timestamp"),
                size: number("size"),
            }
        })
        .collect()
}

/// What a group member has said so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Said {
    pub(crate) assigned: Option<BTreeSet<i64>>,
    pub(crate) records: BTreeSet<(i64, i64)>,
}

/// A running `member` program, killed when dropped.
pub(crate) struct Member {
    child: Child,
    said: Arc<Mutex<Said>>,
    reader: Option<std::thread::JoinHandle<()>>,
    errors: tempfile::NamedTempFile,
}

impl Member {
    /// A member whose session outlasts the pauses that a busy machine makes.
    #[track_caller]
    pub(crate) fn join(client: Client, broker: &Broker, topic: &str, group: &str) -> Self {
        Self::join_for_session(client, broker, topic, group, SESSION)
    }

    /// A member that the broker misses after `session`.
    #[track_caller]
    pub(crate) fn join_for_session(
        client: Client,
        broker: &Broker,
        topic: &str,
        group: &str,
        session: Duration,
    ) -> Self {
        let errors = tempfile::NamedTempFile::new().unwrap();
        let mut command = client.command().unwrap_or_else(|error| panic!("{error:#}"));
        let mut child = command
            .args(["member", &broker.bootstrap(), topic, group])
            .arg(session.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(errors.path()).unwrap())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Said::default()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let shared = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in output
                .lines()
                .map_while(Result::ok)
                .filter(|line| line.starts_with('{'))
            {
                let value: Value = serde_json::from_str(&line).unwrap();
                let mut said = shared.lock().unwrap();
                if let Some(assigned) = value["assigned"].as_array() {
                    said.assigned = Some(assigned.iter().map(|p| p.as_i64().unwrap()).collect());
                } else {
                    let record = &value["record"];
                    said.records
                        .insert((record[0].as_i64().unwrap(), record[1].as_i64().unwrap()));
                }
            }
        });
        Self {
            child,
            said,
            reader: Some(reader),
            errors,
        }
    }

    pub(crate) fn said(&self) -> Said {
        self.said.lock().unwrap().clone()
    }

    /// Ends its input, so that it commits and leaves, and waits for its exit.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Said {
        drop(self.child.stdin.take());
        let status = eventually(LIMIT, "the member leaves", || {
            self.child.try_wait().unwrap()
        });
        assert!(status.success(), "{status}: {}", self.errors());
        self.reader.take().unwrap().join().unwrap();
        self.said()
    }

    /// `kill -9`: it does not leave.
    pub(crate) fn kill(mut self) -> Said {
        self.child.kill().unwrap();
        self.reader.take().unwrap().join().unwrap();
        self.said()
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.errors.path()).unwrap_or_default()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!(
                "a member said {:?} and on stderr:\n{}",
                self.said(),
                self.errors()
            );
        }
    }
}

/// Waits until the members own every partition of `0..partitions` once, each member at least one.
#[track_caller]
pub(crate) fn balanced(members: &[Member], partitions: i64) {
    eventually(
        LIMIT,
        &format!("{} members share {partitions} partitions", members.len()),
        || {
            let mut owners = BTreeMap::new();
            for (number, member) in members.iter().enumerate() {
                let assigned = member
                    .said()
                    .assigned
                    .filter(|assigned| !assigned.is_empty())?;
                for partition in assigned {
                    if owners.insert(partition, number).is_some() {
                        return None;
                    }
                }
            }
            owners.into_keys().eq(0..partitions).then_some(())
        },
    );
}

/// Runs one of Apache Kafka's tools, which must exit with 0, and returns what it printed.
#[track_caller]
pub(crate) fn tool(broker: &Broker, name: &str, args: &[&str]) -> String {
    tool_with_input(broker, name, args, b"")
}

/// As [`tool`], with something on its standard input.
#[track_caller]
pub(crate) fn tool_with_input(broker: &Broker, name: &str, args: &[&str], input: &[u8]) -> String {
    let run = try_tool(broker, name, args, input);
    assert_eq!(
        run.status,
        0,
        "{name} {args:?} on {}:\n{}\n{}",
        broker.kind(),
        run.out,
        run.err
    );
    run.out
}

/// Runs one of Apache Kafka's tools with `--bootstrap-server`.
#[track_caller]
pub(crate) fn try_tool(broker: &Broker, name: &str, args: &[&str], input: &[u8]) -> ToolRun {
    let bootstrap = broker.bootstrap();
    let all = [&["--bootstrap-server", bootstrap.as_str()], args].concat();
    java_tools::run(name, &all, input).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Creates a topic with the Java tool.
#[track_caller]
pub(crate) fn create_topic(
    broker: &Broker,
    topic: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) {
    let partitions = partitions.to_string();
    let configs: Vec<String> = configs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut args = vec!["--create", "--topic", topic, "--partitions", &partitions];
    for config in &configs {
        args.extend(["--config", config]);
    }
    tool(broker, "topics", &args);
    eventually(LIMIT, "leaders of the new topic", || {
        broker.serves([topic]).unwrap_or(false).then_some(())
    });
}
