//! What a run begins with.

use std::collections::BTreeMap;
use std::fmt;

use highwater_storage::{BrokerId, LeaderEpoch};

use super::clock::Clock;
use super::log::Record;

/// The cluster at the beginning. Its brokers are registered and in service, its metadata is known to all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) brokers: Vec<BrokerId>,
    /// Whether a script names them; otherwise they are the replicas.
    pub(crate) names_brokers: bool,
    pub(crate) controllers: usize,
    pub(crate) replicas: Vec<BrokerId>,
    pub(crate) isr: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966).
    pub(crate) elr_members: Vec<BrokerId>,
    pub(crate) observers: Vec<BrokerId>,
    pub(crate) leader: Option<BrokerId>,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) min_isr: usize,
    /// Whether eligible leader replicas are kept.
    pub(crate) elr: bool,
    /// `unclean.leader.election.enable`.
    pub(crate) unclean: bool,
    pub(crate) replica_lag_time_max_ms: i64,
    pub(crate) session_timeout_ms: i64,
    /// How many records a fetch brings at most.
    pub(crate) fetch_records: usize,
    /// Whether the records of an answer are read only when it arrives.
    pub(crate) late_reads: bool,
    /// How long a produce waits for the high watermark.
    pub(crate) produce_timeout_ms: i64,
    /// What is in the logs.
    pub(crate) logs: BTreeMap<BrokerId, InitialLog>,
    pub(crate) clocks: BTreeMap<BrokerId, Clock>,
}

/// A log at the beginning. The leader's counts as committed up to its high watermark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InitialLog {
    pub(crate) records: Vec<Record>,
    pub(crate) high_watermark: i64,
    /// What lies before is on disk.
    pub(crate) synced: i64,
}

impl Default for Setup {
    /// Three replicas in sync, led by the first, with Kafka's times.
    fn default() -> Self {
        let brokers: Vec<BrokerId> = (1..=3).map(BrokerId).collect();
        Self {
            brokers: brokers.clone(),
            names_brokers: false,
            controllers: 1,
            replicas: brokers.clone(),
            isr: brokers.clone(),
            elr_members: Vec::new(),
            observers: Vec::new(),
            leader: Some(BrokerId(1)),
            leader_epoch: LeaderEpoch(0),
            min_isr: 2,
            elr: true,
            unclean: false,
            replica_lag_time_max_ms: 10_000,
            session_timeout_ms: 9_000,
            fetch_records: 100,
            late_reads: false,
            produce_timeout_ms: 30_000,
            logs: BTreeMap::new(),
            clocks: BTreeMap::new(),
        }
    }
}

impl Setup {
    /// Reads a line of settings, `key=value` separated by spaces; what is not named stays.
    pub(crate) fn read(&mut self, line: &str) -> Result<(), String> {
        for setting in line.split_whitespace() {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("{setting} is not key=value"))?;
            self.set(key, value)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "brokers" => {
                self.brokers = ids(value)?;
                self.names_brokers = true;
            }
            "controllers" => self.controllers = number(value)?,
            "replicas" => {
                self.replicas = ids(value)?;
                self.isr.clone_from(&self.replicas);
                self.leader = self.replicas.first().copied();
                if !self.names_brokers {
                    self.brokers.clone_from(&self.replicas);
                    self.brokers.sort();
                }
            }
            "isr" => self.isr = ids(value)?,
            "elr" => match switch(value) {
                Ok(elr) => self.elr = elr,
                Err(_) => self.elr_members = ids(value)?,
            },
            "observers" => self.observers = ids(value)?,
            "leader" => self.leader = (value != "none").then(|| id(value)).transpose()?,
            "leader-epoch" => self.leader_epoch = LeaderEpoch(number(value)?),
            "min-isr" => self.min_isr = number(value)?,
            "unclean" => self.unclean = switch(value)?,
            "lag-max" => self.replica_lag_time_max_ms = number(value)?,
            "session" => self.session_timeout_ms = number(value)?,
            "fetch-records" => self.fetch_records = number(value)?,
            "late-reads" => self.late_reads = switch(value)?,
            "produce-timeout" => self.produce_timeout_ms = number(value)?,
            _ => match key.strip_prefix("clock-") {
                Some(broker) => {
                    let (offset, rate) = value
                        .split_once('x')
                        .ok_or_else(|| format!("{value} is not OFFSETxRATE"))?;
                    let clock = Clock {
                        offset_ms: number(offset)?,
                        rate_per_mille: number(rate)?,
                    };
                    self.clocks.insert(id(broker)?, clock);
                }
                None => return Err(format!("unknown setting {key}")),
            },
        }
        Ok(())
    }

    /// Reads the rest of a `log` line: `1 e0[0..4] e2[5..9] hw=5 synced=3`. A range names its first and its last offset.
    /// Unless it says otherwise all of it is committed and on disk.
    pub(crate) fn read_log(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let broker = id(words.next().ok_or("a log of which broker?")?)?;
        let mut records = Vec::new();
        let (mut high_watermark, mut synced) = (None, None);
        for word in words {
            match word.split_once('=') {
                Some(("hw", offset)) => high_watermark = Some(number(offset)?),
                Some(("synced", offset)) => synced = Some(number(offset)?),
                _ => {}
            }
            if word.contains('=') {
                continue;
            }
            let (epoch, first, last) =
                range(word).ok_or_else(|| format!("{word} is not eE[F..L]"))?;
            if first != records.len() as i64 {
                return Err(format!("{word} does not begin at {}", records.len()));
            }
            records.extend((first..=last).map(|offset| initial_record(epoch, offset)));
        }
        let end = records.len() as i64;
        let log = InitialLog {
            records,
            high_watermark: high_watermark.unwrap_or(end),
            synced: synced.unwrap_or(end),
        };
        self.logs.insert(broker, log);
        Ok(())
    }
}

impl fmt::Display for Setup {
    /// As the lines that a script begins with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[BrokerId]| join(ids.iter());
        let on = |flag: bool| if flag { "on" } else { "off" };
        write!(
            f,
            "cluster brokers={} controllers={} replicas={} isr={}",
            list(&self.brokers),
            self.controllers,
            list(&self.replicas),
            list(&self.isr)
        )?;
        let leader = self
            .leader
            .map_or("none".to_owned(), |leader| leader.to_string());
        write!(f, " leader={leader} leader-epoch={}", self.leader_epoch)?;
        write!(f, " min-isr={} elr={}", self.min_isr, on(self.elr))?;
        if !self.elr_members.is_empty() {
            write!(f, " elr={}", list(&self.elr_members))?;
        }
        if !self.observers.is_empty() {
            write!(f, " observers={}", list(&self.observers))?;
        }
        write!(
            f,
            " unclean={} late-reads={} lag-max={} session={} fetch-records={} produce-timeout={}",
            on(self.unclean),
            on(self.late_reads),
            self.replica_lag_time_max_ms,
            self.session_timeout_ms,
            self.fetch_records,
            self.produce_timeout_ms
        )?;
        for (broker, clock) in &self.clocks {
            let Clock {
                offset_ms,
                rate_per_mille,
            } = clock;
            write!(f, " clock-{broker}={offset_ms}x{rate_per_mille}")?;
        }
        Ok(())
    }
}

/// A record that is there from the beginning: the same at the same offset and epoch on all brokers.
pub(crate) fn initial_record(epoch: LeaderEpoch, offset: i64) -> Record {
    Record {
        epoch,
        value: 1_000_000 * (1 + epoch.0 as u32) + offset as u32,
    }
}

fn range(word: &str) -> Option<(LeaderEpoch, i64, i64)> {
    let (epoch, range) = word.strip_prefix('e')?.strip_suffix(']')?.split_once('[')?;
    let (first, last) = range.split_once("..")?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((LeaderEpoch(epoch.parse().ok()?), first, last))
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{value} is neither on nor off")),
    }
}

/// Reads a number.
pub(crate) fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// Reads the id of a broker.
pub(crate) fn id(text: &str) -> Result<BrokerId, String> {
    number(text).map(BrokerId)
}

/// Reads ids of brokers, with commas between.
pub(crate) fn ids(text: &str) -> Result<Vec<BrokerId>, String> {
    text.split(',').map(id).collect()
}

/// Things with commas between.
pub(crate) fn join<T: fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join(","),
    }
}
