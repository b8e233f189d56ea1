//! Apache Kafka's command-line tools, many runs in one JVM or each in its own.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::apache_kafka;
use crate::clients::java_classes;

/// At most so many JVMs run tools at a time.
const MOST_JVMS: usize = 2;
/// No tool call of a test takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What a tool did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRun {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error, without log lines.
    pub err: String,
}

/// The main class of `kafka-NAME.sh`.
///
/// # Errors
/// When the name is not known.
pub fn main_class(tool: &str) -> Result<&'static str> {
    Ok(match tool {
        "topics" => "org.apache.kafka.tools.TopicCommand",
        "configs" => "org.apache.kafka.tools.ConfigCommand",
        "consumer-groups" => "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "groups" => "org.apache.kafka.tools.GroupsCommand",
        "console-producer" => "org.apache.kafka.tools.ConsoleProducer",
        "console-consumer" => "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "verifiable-producer" => "org.apache.kafka.tools.VerifiableProducer",
        "verifiable-consumer" => "org.apache.kafka.tools.VerifiableConsumer",
        "producer-perf-test" => "org.apache.kafka.tools.ProducerPerformance",
        "consumer-perf-test" => "org.apache.kafka.tools.ConsumerPerformance",
        "get-offsets" => "org.apache.kafka.tools.GetOffsetShell",
        "leader-election" => "org.apache.kafka.tools.LeaderElectionCommand",
        "reassign-partitions" => "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "replica-verification" => "org.apache.kafka.tools.ReplicaVerificationTool",
        "metadata-quorum" => "org.apache.kafka.tools.MetadataQuorumCommand",
        "delete-records" => "org.apache.kafka.tools.DeleteRecordsCommand",
        "log-dirs" => "org.apache.kafka.tools.LogDirsCommand",
        "broker-api-versions" => "org.apache.kafka.tools.BrokerApiVersionsCommand",
        "cluster" => "org.apache.kafka.tools.ClusterTool",
        "dump-log" => "org.apache.kafka.tools.DumpLogSegments",
        other => bail!("no tool {other}"),
    })
}

/// The command that runs one tool in a JVM of its own, as its script in `bin/` does.
///
/// # Errors
/// When the tool is not known or Kafka cannot be fetched.
pub fn command(tool: &str) -> Result<Command> {
    let mut command = apache_kafka::java(256, &[])?;
    command.arg(main_class(tool)?);
    Ok(command)
}

/// Runs one tool in a JVM that is kept for the next.
///
/// # Errors
/// When no JVM can be had or the tool does not end in time.
pub fn run(tool: &str, args: &[&str], input: &[u8]) -> Result<ToolRun> {
    static POOL: Pool = Pool {
        state: Mutex::new((Vec::new(), 0)),
        freed: Condvar::new(),
    };
    let class = main_class(tool)?;
    let mut jvm = POOL.take()?;
    let result = jvm.run(class, args, input);
    POOL.give_back(result.is_ok().then_some(jvm));
    result.with_context(|| format!("{tool} {args:?}"))
}

/// Replaces what differs from run to run by `*`: what follows each `marker` up to the next character that ends a word.
#[must_use]
pub fn blank(text: &str, markers: &[&str]) -> String {
    let mut result = text.to_owned();
    for marker in markers {
        let mut parts = result.split(marker);
        let mut blanked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .find(['\t', '\n', ' ', ',', '}', ';'])
                .unwrap_or(part.len());
            blanked.push_str(marker);
            blanked.push('*');
            blanked.push_str(&part[end..]);
        }
        result = blanked;
    }
    result
}

/// A tool's table as rows of words.
#[must_use]
pub fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| !row.is_empty())
        .collect()
}

struct Pool {
    /// The idle ones, and how many there are in all.
    state: Mutex<(Vec<Jvm>, usize)>,
    freed: Condvar,
}

impl Pool {
    fn take(&self) -> Result<Jvm> {
        let mut state = self
            .state
            .lock()
            .map_err(|_| anyhow::anyhow!("a user of the pool panicked"))?;
        loop {
            if let Some(jvm) = state.0.pop() {
                return Ok(jvm);
            }
            if state.1 < MOST_JVMS {
                state.1 += 1;
                drop(state);
                return Jvm::start().inspect_err(|_| self.give_back(None));
            }
            state = self
                .freed
                .wait(state)
                .map_err(|_| anyhow::anyhow!("a user of the pool panicked"))?;
        }
    }

    /// Takes back one that works, or notes that it is gone.
    fn give_back(&self, jvm: Option<Jvm>) {
        if let Ok(mut state) = self.state.lock() {
            match jvm {
                Some(jvm) => state.0.push(jvm),
                None => state.1 -= 1,
            }
        }
        self.freed.notify_one();
    }
}

/// One JVM that runs `Tools`; it ends when its standard input does, so also when the tests are killed.
struct Jvm {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<ToolRun>,
}

impl Jvm {
    fn start() -> Result<Self> {
        let mut child = apache_kafka::java(512, &[&java_classes()?])?
            .arg("Tools")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run java: is it installed?")?;
        let requests = child.stdin.take().context("no standard input")?;
        let mut output = child.stdout.take().context("no standard output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            while let Ok(answer) = read_answer(&mut output) {
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    fn run(&mut self, class: &str, args: &[&str], input: &[u8]) -> Result<ToolRun> {
        let mut request = i32::try_from(args.len() + 1)?.to_be_bytes().to_vec();
        for word in std::iter::once(class)
            .chain(args.iter().copied())
            .map(str::as_bytes)
            .chain([input])
        {
            request.extend(i32::try_from(word.len())?.to_be_bytes());
            request.extend(word);
        }
        self.requests.write_all(&request)?;
        self.requests.flush()?;
        self.answers
            .recv_timeout(LIMIT)
            .with_context(|| format!("no end within {LIMIT:?}"))
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn read_answer(output: &mut impl Read) -> Result<ToolRun> {
    let status = read_number(output)?;
    let out = read_text(output)?;
    let err = read_text(output)?;
    Ok(ToolRun { status, out, err })
}

fn read_number(output: &mut impl Read) -> Result<i32> {
    let mut bytes = [0; 4];
    output.read_exact(&mut bytes)?;
    Ok(i32::from_be_bytes(bytes))
}

fn read_text(output: &mut impl Read) -> Result<String> {
    let mut text = vec![0; usize::try_from(read_number(output)?)?];
    output.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
