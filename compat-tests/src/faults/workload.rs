//! The clients of a run: rdkafka programs that say what they do (`clients/rdkafka/src/workload.rs`), and what they said.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::history::{Event, Polled};
use crate::clients::Client;
use crate::process::poll;

/// How long a client may take to end, with what it still has to send.
const END_LIMIT: Duration = Duration::from_secs(240);
/// What librdkafka says where it was not told an offset: it had no answer for this value and one for a later value.
const NO_OFFSET: i64 = -1001;

/// What clients there are.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Producers with acks=all and idempotence.
    pub producers: u32,
    /// Values a second of each.
    pub per_second: u32,
    /// Consumers that read all partitions from the start.
    pub consumers: u32,
    /// Members of one consumer group.
    pub members: u32,
}

/// How far the clients are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Values acknowledged.
    pub acknowledged: usize,
    /// Records polled.
    pub polled: usize,
}

#[derive(Debug, Default)]
struct Heard {
    events: Vec<Event>,
    progress: Progress,
    /// Where each consumer of all partitions is: the last offset of each partition.
    positions: BTreeMap<u32, BTreeMap<i32, i64>>,
    /// Lines that could not be read.
    unreadable: Vec<String>,
}

/// Running clients; they are killed when this is dropped.
#[derive(Debug)]
pub struct Workload {
    producers: Vec<Running>,
    consumers: Vec<Running>,
    heard: Arc<Mutex<Heard>>,
    readers: Vec<u32>,
}

impl Workload {
    /// Starts the clients on a topic that has so many partitions. What they write to standard error is kept in
    /// `folder`.
    ///
    /// # Errors
    /// When the client cannot be installed or started.
    pub fn start(
        bootstrap: &str,
        topic: &str,
        partitions: i32,
        clients: &Clients,
        folder: &Path,
    ) -> Result<Self> {
        let heard = Arc::default();
        let spawn = |name: String, args: &[&str], number| {
            let mut command = Client::Rdkafka.command()?;
            command.args(args);
            Running::start(command, &folder.join(name), number, &heard)
        };
        let partitions = partitions.to_string();
        let mut consumers = Vec::new();
        let readers: Vec<u32> = (0..clients.consumers).collect();
        for number in 0..clients.consumers + clients.members {
            let args = [
                "poll-values",
                bootstrap,
                topic,
                &partitions,
                "unique-values",
            ];
            let is_member = number >= clients.consumers;
            let args = if is_member { &args[..] } else { &args[..4] };
            consumers.push(spawn(format!("consumer-{number}.log"), args, number)?);
        }
        let mut producers = Vec::new();
        for number in 1..=clients.producers {
            let (number_text, per_second) = (number.to_string(), clients.per_second.to_string());
            let args = [
                "send-unique",
                bootstrap,
                topic,
                &partitions,
                &number_text,
                &per_second,
            ];
            producers.push(spawn(format!("producer-{number}.log"), &args, number)?);
        }
        Ok(Self {
            producers,
            consumers,
            heard,
            readers,
        })
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the clients are.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.heard().progress
    }

    /// Waits until so many values more than now are acknowledged and as many records polled.
    ///
    /// # Errors
    /// When that does not happen within `limit`.
    pub fn wait_for_progress(&self, count: usize, limit: Duration) -> Result<()> {
        let before = self.progress();
        poll(limit, || {
            let now = self.progress();
            let enough = now.acknowledged >= before.acknowledged + count
                && now.polled >= before.polled + count;
            enough.then_some(())
        })
        .with_context(|| {
            format!(
                "no {count} records within {limit:?}: {before:?}, then {:?}",
                self.progress()
            )
        })
    }

    /// Ends the producers, when all that they sent has its fate.
    ///
    /// # Errors
    /// When one of them does not end well.
    pub fn end_sending(&mut self) -> Result<()> {
        for producer in self.producers.drain(..) {
            producer.end()?;
        }
        Ok(())
    }

    /// Waits until every consumer of all partitions has read up to these ends, and ends them.
    ///
    /// # Errors
    /// When they do not get there, or one does not end well.
    pub fn end_reading(&mut self, ends: &BTreeMap<i32, i64>, limit: Duration) -> Result<()> {
        let has_all = |heard: &Heard| {
            self.readers.iter().all(|reader| {
                let positions = heard.positions.get(reader);
                ends.iter()
                    .filter(|&(_, &end)| end > 0)
                    .all(|(partition, &end)| {
                        positions.and_then(|positions| positions.get(partition)) >= Some(&(end - 1))
                    })
            })
        };
        if poll(limit, || has_all(&self.heard()).then_some(())).is_none() {
            bail!(
                "consumers did not read to the ends {ends:?} within {limit:?}: {:?}",
                self.heard().positions
            );
        }
        for consumer in self.consumers.drain(..) {
            consumer.end()?;
        }
        Ok(())
    }

    /// All that the clients said, in the order in which each of them said it.
    ///
    /// # Errors
    /// When one of them said what cannot be read.
    pub fn history(&self) -> Result<Vec<Event>> {
        let heard = self.heard();
        ensure!(heard.unreadable.is_empty(), "{:?}", heard.unreadable);
        Ok(heard.events.clone())
    }
}

/// A line of a client.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Send {
        send: (u32, u64, i32),
    },
    Acknowledged {
        acknowledged: (u32, u64, i32, i64),
    },
    Failed {
        failed: (u32, u64),
        #[serde(default)]
        certain: bool,
    },
    Fatal {
        fatal: String,
    },
    Assigned {
        #[serde(rename = "assigned")]
        _assigned: bool,
    },
    PositionLost {
        #[serde(rename = "position_lost")]
        _position_lost: bool,
    },
    Polled {
        polled: Vec<(i32, i64, u64)>,
    },
}

impl Line {
    fn event(self, client: u32) -> Event {
        match self {
            Self::Send {
                send: (producer, value, partition),
            } => Event::Send {
                producer,
                value,
                partition,
            },
            Self::Acknowledged {
                acknowledged: (producer, value, partition, offset),
            } => Event::Acknowledged {
                producer,
                value,
                partition,
                offset: (offset != NO_OFFSET).then_some(offset),
            },
            Self::Failed {
                failed: (producer, value),
                certain,
            } => Event::Failed {
                producer,
                value,
                certain,
            },
            Self::Fatal { fatal } => Event::ProducerLost {
                producer: client,
                reason: fatal,
            },
            Self::Assigned { .. } => Event::Assigned { consumer: client },
            Self::PositionLost { .. } => Event::PositionLost { consumer: client },
            Self::Polled { polled } => {
                let records = polled.into_iter().map(|(partition, offset, value)| Polled {
                    partition,
                    offset,
                    value,
                });
                Event::Poll {
                    consumer: client,
                    records: records.collect(),
                }
            }
        }
    }
}

impl Heard {
    fn hear(&mut self, client: u32, line: &str) {
        let event = match serde_json::from_str::<Line>(line) {
            Ok(line) => line.event(client),
            Err(error) => return self.unreadable.push(format!("{line}: {error}")),
        };
        match &event {
            Event::Acknowledged { .. } => self.progress.acknowledged += 1,
            Event::Poll { consumer, records } => {
                self.progress.polled += records.len();
                let positions = self.positions.entry(*consumer).or_default();
                positions.extend(
                    records
                        .iter()
                        .map(|record| (record.partition, record.offset)),
                );
            }
            _ => {}
        }
        self.events.push(event);
    }
}

/// One client program.
#[derive(Debug)]
struct Running {
    child: Child,
    reader: Option<JoinHandle<()>>,
    log: std::path::PathBuf,
}

impl Running {
    fn start(
        mut command: std::process::Command,
        log: &Path,
        number: u32,
        heard: &Arc<Mutex<Heard>>,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let heard = Arc::clone(heard);
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.hear(number, &line);
            }
        });
        Ok(Self {
            child,
            reader: Some(reader),
            log: log.to_owned(),
        })
    }

    /// Ends its input and waits for its end.
    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = poll(END_LIMIT, || self.child.try_wait().ok().flatten());
        let said = || std::fs::read_to_string(&self.log).unwrap_or_default();
        let status = status.with_context(|| format!("no end within {END_LIMIT:?}: {}", said()))?;
        ensure!(status.success(), "a client ended with {status}: {}", said());
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_events_and_counted() {
        let mut heard = Heard::default();
        for line in [
            r#"{"assigned": true}"#,
            r#"{"send": [1, 4294967296, 0]}"#,
            r#"{"acknowledged": [1, 4294967296, 0, 17]}"#,
            r#"{"acknowledged": [1, 4294967299, 0, -1001]}"#,
            r#"{"failed": [1, 4294967297], "error": "MessageTimedOut"}"#,
            r#"{"failed": [1, 4294967298], "certain": true, "error": "x"}"#,
            r#"{"polled": [[0, 17, 4294967296], [1, 3, 5]]}"#,
            r#"{"position_lost": true}"#,
            r#"{"fatal": "gap"}"#,
        ] {
            heard.hear(9, line);
        }
        assert_eq!(heard.unreadable, [] as [String; 0]);
        let value = 4_294_967_296;
        let polled = |partition, offset, value| Polled {
            partition,
            offset,
            value,
        };
        assert_eq!(
            heard.events,
            [
                Event::Assigned { consumer: 9 },
                Event::Send {
                    producer: 1,
                    value,
                    partition: 0
                },
                Event::Acknowledged {
                    producer: 1,
                    value,
                    partition: 0,
                    offset: Some(17)
                },
                Event::Acknowledged {
                    producer: 1,
                    value: value + 3,
                    partition: 0,
                    offset: None
                },
                Event::Failed {
                    producer: 1,
                    value: value + 1,
                    certain: false
                },
                Event::Failed {
                    producer: 1,
                    value: value + 2,
                    certain: true
                },
                Event::Poll {
                    consumer: 9,
                    records: vec![polled(0, 17, value), polled(1, 3, 5)]
                },
                Event::PositionLost { consumer: 9 },
                Event::ProducerLost {
                    producer: 9,
                    reason: "gap".into()
                },
            ]
        );
        let progress = Progress {
            acknowledged: 2,
            polled: 2,
        };
        assert_eq!(heard.progress, progress);
        assert_eq!(heard.positions[&9], BTreeMap::from([(0, 17), (1, 3)]));
        heard.hear(9, "no JSON");
        assert_eq!(heard.unreadable.len(), 1);
    }
}
