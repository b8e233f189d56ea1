//! `console-producer`: the lines of standard input become records.

mod arguments;
mod line_reader;

use std::io::{IsTerminal as _, Write};

use std::io::BufRead as _;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ToolError;
use super::client::{ClientProperties, Cluster, KafkaError};
use super::producer::{Pending, Producer, ProducerConfig, Record};
use super::signals::Signals;
use crate::broker::now_ms;
pub(crate) use arguments::ConsoleProducerArguments;
use line_reader::LineReader;

/// Runs the tool.
pub(super) async fn run(
    arguments: ConsoleProducerArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let mut reader = LineReader::new(&arguments.reader_properties()?).map_err(ToolError::failed)?;
    let properties = arguments.properties()?;
    for text in arguments.deprecations() {
        writeln!(out, "{text}")?;
    }
    out.flush()?;
    let mut work = Work {
        config: ProducerConfig::of(&properties)?,
        properties,
        cluster: None,
        producer: None,
        arguments,
    };
    work.cluster = Some(work.connect()?);
    let mut signals = Signals::listen()?;
    let code = tokio::select! {
        biased;
        code = signals.next() => code,
        done = work.produce(&mut reader, out) => return done,
    };
    // What was read already is sent before the tool ends, unless another signal comes.
    tokio::select! {
        biased;
        _ = signals.next() => {}
        done = work.finish() => {
            if let Err(error) = done {
                ToolError::warn(&error.to_string());
            }
        }
    }
    Err(ToolError::Exit(code))
}

/// What lasts from line to line.
struct Work {
    arguments: ConsoleProducerArguments,
    properties: ClientProperties,
    config: ProducerConfig,
    /// Made before there is anything to send, so that wrong addresses are told at once.
    cluster: Option<Cluster>,
    producer: Option<Producer>,
}

impl Work {
    fn connect(&self) -> Result<Cluster, KafkaError> {
        let servers = &self.arguments.bootstrap_server;
        Cluster::new(servers, &self.properties, "console-producer")
    }

    async fn produce(
        &mut self,
        reader: &mut LineReader,
        out: &mut dyn Write,
    ) -> Result<(), ToolError> {
        let mut lines = read_lines();
        let is_prompting = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        loop {
            if is_prompting {
                write!(out, ">")?;
                out.flush()?;
            }
            let Some(line) = self.next_line(&mut lines).await? else {
                return self.finish().await;
            };
            let record = match reader.record(strip_end(&line)) {
                Ok(record) => Record {
                    timestamp: now_ms(),
                    ..record
                },
                Err(error) => {
                    // The lines before it are sent all the same.
                    self.finish().await?;
                    return Err(ToolError::failed(error));
                }
            };
            self.maybe_begin(&record).await?;
            if let Some(producer) = &mut self.producer {
                producer.send(record).await?;
                if self.arguments.sync {
                    producer.flush().await?;
                }
                self.tell()?;
            }
        }
    }

    /// The next line, while the producer works; none at the end of the input.
    async fn next_line(
        &mut self,
        lines: &mut mpsc::Receiver<std::io::Result<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>, ToolError> {
        let rest = self.config.linger.clamp(LEAST_WORK, MOST_WORK);
        loop {
            let Some(producer) = &mut self.producer else {
                return Ok(lines.recv().await.transpose()?);
            };
            tokio::select! {
                biased;
                line = lines.recv() => return Ok(line.transpose()?),
                worked = producer.work_until(Instant::now() + rest) => worked?,
            }
            self.tell()?;
        }
    }

    /// Tells which records were given up; with `--sync` the first ends the tool, as in Kafka.
    fn tell(&mut self) -> Result<(), ToolError> {
        let completions = self.producer.iter_mut().flat_map(Producer::completions);
        for completion in completions {
            if let Some(error) = completion.error {
                if self.arguments.sync {
                    return Err(error.into());
                }
                let text = given_up(&self.arguments.topic, &completion.record, &error);
                ToolError::warn(&text);
            }
        }
        Ok(())
    }

    /// Looks for the topic with the first record, as Kafka does, and again with the next where that failed.
    async fn maybe_begin(&mut self, record: &Record) -> Result<(), ToolError> {
        if self.producer.is_some() {
            return Ok(());
        }
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => self.connect()?,
        };
        let topic = &self.arguments.topic;
        match Producer::new(cluster, topic, self.config.clone()).await {
            Ok(producer) => self.producer = Some(producer),
            Err(error) if self.arguments.sync => return Err(error.into()),
            Err(error) => {
                let pending = Pending::of(record, Instant::now());
                ToolError::warn(&given_up(topic, &pending, &error));
            }
        }
        Ok(())
    }

    /// Waits until all that was read is acknowledged or given up.
    async fn finish(&mut self) -> Result<(), ToolError> {
        if let Some(producer) = &mut self.producer {
            producer.flush().await?;
        }
        self.tell()
    }
}

/// Lines that are read ahead, at most.
const LINES_AHEAD: usize = 1_000;

/// How long the producer works at least and at most before what became of its records is told, while no line comes.
const LEAST_WORK: Duration = Duration::from_millis(50);
const MOST_WORK: Duration = Duration::from_millis(500);

/// Reads standard input on a thread of its own, which nobody waits for when the tool ends early.
fn read_lines() -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            let is_end = matches!(read, Ok(0) | Err(_));
            let is_gone = match read {
                Ok(0) => true,
                Ok(_) => sender.blocking_send(Ok(line)).is_err(),
                Err(error) => sender.blocking_send(Err(error)).is_err(),
            };
            if is_end || is_gone {
                break;
            }
        }
    });
    lines
}

fn strip_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn given_up(topic: &str, record: &Pending, error: &KafkaError) -> String {
    let size = |bytes: i64| match bytes {
        0.. => format!("{bytes} bytes"),
        _ => "null".to_owned(),
    };
    format!(
        "Error when sending message to topic {topic} with key: {}, value: {} with error: {}",
        size(record.key_bytes),
        size(record.value_bytes),
        error.in_full()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_before_its_end() {
        assert_eq!(strip_end(b"a\r\n"), b"a");
        assert_eq!(strip_end(b"a\n"), b"a");
        assert_eq!(strip_end(b"a"), b"a");
        assert_eq!(strip_end(b"\n"), b"");
    }
}
