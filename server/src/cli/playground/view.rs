//! What is seen of the cluster at one time, and the rows of the page. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::network::Links;
use super::plan::{BROKERS, NODES};
use crate::web::rows::Rows;

/// What a broker's process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    /// There is none.
    Down,
    /// It has begun and is not ready.
    Starting,
    /// It serves.
    Running,
    /// It was stopped by SIGSTOP: it keeps its connections and answers nothing.
    Frozen,
}

impl Process {
    pub(super) fn name(self) -> &'static str {
        match self {
            Process::Down => "down",
            Process::Starting => "starting",
            Process::Running => "running",
            Process::Frozen => "frozen",
        }
    }
}

/// What a broker believes of the partition, as its metadata say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Belief {
    pub(super) leader: Option<i32>,
    pub(super) leader_epoch: i32,
    pub(super) isr: Vec<i32>,
    pub(super) replicas: Vec<i32>,
}

/// A record as it lies in a broker's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TailRecord {
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) value: String,
}

/// One broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrokerView {
    pub(super) id: i32,
    pub(super) process: Process,
    /// `None` when it did not answer, or knows of no such topic.
    pub(super) belief: Option<Belief>,
    /// As it says itself; as its log says when it does not run.
    pub(super) log_end_offset: Option<i64>,
    pub(super) high_watermark: Option<i64>,
    /// It does not say, and this is what it said last.
    pub(super) is_high_watermark_old: bool,
    /// The last records of its log, as they lie on disk.
    pub(super) tail: Vec<TailRecord>,
    /// Leader epochs and where they begin, as on disk.
    pub(super) epochs: Vec<(i32, i64)>,
    /// Whether it is cut off from the controller.
    pub(super) is_cut_off: bool,
}

impl BrokerView {
    /// A broker of which nothing is known.
    pub(super) fn unknown(id: i32, process: Process) -> Self {
        BrokerView {
            id,
            process,
            belief: None,
            log_end_offset: None,
            high_watermark: None,
            is_high_watermark_old: false,
            tail: Vec::new(),
            epochs: Vec::new(),
            is_cut_off: false,
        }
    }

    /// Whether a record with this value is in the tail of its log.
    pub(super) fn has(&self, value: &str) -> bool {
        self.tail.iter().any(|record| record.value == value)
    }
}

/// Topic, brokers and links at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) topic: String,
    pub(super) brokers: Vec<BrokerView>,
    /// The latest decision that was known before: who knows of it may be dead or silent now.
    pub(super) known_before: Option<Belief>,
}

impl View {
    /// A view before anything was seen.
    pub(super) fn empty(topic: &str) -> Self {
        View {
            topic: topic.to_owned(),
            brokers: BROKERS
                .map(|id| BrokerView::unknown(id, Process::Down))
                .into(),
            known_before: None,
        }
    }

    /// Lets brokers that do not say how much is committed keep what they said in an earlier view, and keeps what was
    /// decided by then.
    pub(super) fn remember(&mut self, earlier: &View) {
        if self.topic != earlier.topic {
            return;
        }
        self.known_before = earlier.last_decided().cloned();
        for (broker, before) in self.brokers.iter_mut().zip(&earlier.brokers) {
            if broker.high_watermark.is_none() && before.high_watermark.is_some() {
                broker.high_watermark = before.high_watermark.min(broker.log_end_offset);
                broker.is_high_watermark_old = true;
            }
        }
    }

    pub(super) fn broker(&self, id: i32) -> Option<&BrokerView> {
        self.brokers.iter().find(|broker| broker.id == id)
    }

    /// What the controller has decided, as far as a broker that answers has heard: of the latest leader epoch, and not
    /// from a broker that is cut off where there is another. A broker that has missed what was known before does not
    /// undo it.
    pub(super) fn decided(&self) -> Option<&Belief> {
        let known = self.brokers.iter();
        let known = known.filter_map(|broker| Some((broker, broker.belief.as_ref()?)));
        let latest = known.max_by_key(|(broker, belief)| {
            let leads = belief.leader == Some(broker.id);
            (belief.leader_epoch, !broker.is_cut_off, leads)
        });
        let (_, latest) = latest?;
        let newer = self.known_before.as_ref();
        let newer = newer.filter(|known| known.leader_epoch > latest.leader_epoch);
        Some(newer.unwrap_or(latest))
    }

    /// The same, or what was known last where no broker answers.
    pub(super) fn last_decided(&self) -> Option<&Belief> {
        self.decided().or(self.known_before.as_ref())
    }

    /// The leader, if there is one.
    pub(super) fn leader(&self) -> Option<&BrokerView> {
        self.broker(self.decided()?.leader?)
    }

    /// The leader epoch; -1 when it is not known.
    pub(super) fn leader_epoch(&self) -> i32 {
        self.decided().map_or(-1, |decided| decided.leader_epoch)
    }

    /// The in-sync replicas; none when they are not known.
    pub(super) fn isr(&self) -> &[i32] {
        self.decided().map_or(&[], |decided| &decided.isr)
    }

    /// The leader's log end offset.
    pub(super) fn leader_end(&self) -> Option<i64> {
        self.leader()?.log_end_offset
    }

    /// The leader's high watermark.
    pub(super) fn leader_high_watermark(&self) -> Option<i64> {
        let leader = self.leader()?;
        leader
            .high_watermark
            .filter(|_| !leader.is_high_watermark_old)
    }

    /// Whether the logs of these brokers end with the same records.
    pub(super) fn same_logs(&self, ids: &[i32]) -> bool {
        let mut tails = ids.iter().map(|id| self.broker(*id).map(|b| &b.tail));
        let first = tails.next().flatten();
        first.is_some() && tails.all(|tail| tail == first)
    }

    /// The rows of brokers, their links and the partition.
    pub(super) fn rows(&self, links: &Links, consoles: &BTreeMap<i32, u16>) -> Rows {
        let mut rows = Rows::new();
        let decided = self.decided();
        for broker in &self.brokers {
            let row = self.broker_row(broker, consoles.get(&broker.id).copied());
            rows.insert(format!("broker/{}", broker.id), row);
        }
        let mut cuts = Vec::new();
        for from in NODES {
            for to in NODES.into_iter().filter(|to| *to != from) {
                let direction = (from, to);
                if links.is_cut(direction) || links.is_slow(direction) {
                    let is_cut = links.is_cut(direction);
                    cuts.push(json!({"from": from, "to": to, "cut": is_cut, "slow": links.is_slow(direction)}));
                }
            }
        }
        rows.insert("links".to_owned(), json!(cuts));
        rows.insert(
            "partition".to_owned(),
            json!({
                "topic": self.topic,
                "known": decided.is_some(),
                "leader": decided.and_then(|decided| decided.leader),
                "leader_epoch": decided.map(|decided| decided.leader_epoch),
                "isr": decided.map(|decided| &decided.isr),
                "replicas": decided.map(|decided| &decided.replicas),
                "high_watermark": self.leader_high_watermark(),
                "log_end_offset": self.leader_end(),
            }),
        );
        rows
    }

    fn broker_row(&self, broker: &BrokerView, console: Option<u16>) -> Value {
        let decided = self.decided();
        let replicas = decided.map_or(&[][..], |decided| &decided.replicas);
        let believes = broker.belief.as_ref();
        let is_behind = believes
            .zip(decided)
            .is_some_and(|(believes, decided)| believes.leader_epoch < decided.leader_epoch);
        let role = match (decided, replicas.contains(&broker.id)) {
            (Some(_), false) => "none",
            (Some(decided), true) if decided.leader == Some(broker.id) => "leader",
            _ => "follower",
        };
        let tail: Vec<Value> = broker
            .tail
            .iter()
            .map(|record| json!([record.offset, record.leader_epoch, record.value]))
            .collect();
        json!({
            "id": broker.id,
            "process": broker.process.name(),
            "role": role,
            "in_sync": self.isr().contains(&broker.id),
            "cut_off": broker.is_cut_off,
            // What it believes where that is out of date.
            "believes": is_behind.then(|| believes.map(|b| json!({"leader": b.leader, "leader_epoch": b.leader_epoch}))),
            "answers": believes.is_some(),
            "log_end_offset": broker.log_end_offset,
            "high_watermark": broker.high_watermark,
            "old_high_watermark": broker.is_high_watermark_old,
            "tail": tail,
            "epochs": broker.epochs,
            "console": console,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A view in which all brokers run, broker 1 leads in epoch 0 and all have what `ends` says, committed to `hw`.
    pub(in crate::cli::playground) fn healthy(ends: [i64; 3], hw: i64) -> View {
        let mut view = View::empty("lesson-1");
        for (broker, end) in view.brokers.iter_mut().zip(ends) {
            broker.process = Process::Running;
            broker.belief = Some(Belief {
                leader: Some(1),
                leader_epoch: 0,
                isr: vec![1, 2, 3],
                replicas: vec![1, 2, 3],
            });
            broker.log_end_offset = Some(end);
            broker.high_watermark = Some(hw.min(end));
            broker.tail = (0..end)
                .map(|offset| TailRecord {
                    offset,
                    leader_epoch: 0,
                    value: format!("m{offset}"),
                })
                .collect();
        }
        view
    }

    /// Lets all but `old` believe in another leader and in-sync replicas.
    pub(in crate::cli::playground) fn elect(
        view: &mut View,
        old: i32,
        leader: Option<i32>,
        epoch: i32,
        isr: &[i32],
    ) {
        for broker in view.brokers.iter_mut().filter(|broker| broker.id != old) {
            if let Some(belief) = &mut broker.belief {
                belief.leader = leader;
                belief.leader_epoch = epoch;
                belief.isr = isr.to_vec();
            }
        }
    }

    #[test]
    fn the_latest_epoch_counts_and_a_cut_off_broker_does_not() {
        let mut view = healthy([5, 5, 5], 5);
        assert_eq!(view.leader().map(|leader| leader.id), Some(1));
        view.brokers[0].is_cut_off = true;
        elect(&mut view, 1, Some(1), 0, &[1, 2]);
        assert_eq!(view.isr(), [1, 2], "of the same epoch, but not cut off");
        elect(&mut view, 1, Some(2), 1, &[2, 3]);
        assert_eq!((view.leader_epoch(), view.isr()), (1, &[2, 3][..]));
        let rows = view.rows(&Links::default(), &BTreeMap::new());
        assert_eq!(
            rows["broker/1"]["believes"],
            json!({"leader": 1, "leader_epoch": 0})
        );
        assert_eq!(rows["broker/1"]["role"], "follower");
        assert_eq!(rows["broker/2"]["role"], "leader");
        assert_eq!(rows["broker/2"]["believes"], Value::Null);
    }

    #[test]
    fn what_a_silent_broker_said_last_is_kept_for_the_same_topic() {
        let before = healthy([5, 5, 5], 4);
        let mut now = healthy([6, 6, 3], 6);
        for at in [1, 2] {
            now.brokers[at].high_watermark = None;
        }
        let mut other = View {
            topic: "other".to_owned(),
            ..now.clone()
        };
        now.remember(&before);
        let known = |view: &View, at: usize| {
            let broker: &BrokerView = &view.brokers[at];
            (broker.high_watermark, broker.is_high_watermark_old)
        };
        assert_eq!(known(&now, 0), (Some(6), false));
        assert_eq!(known(&now, 1), (Some(4), true));
        assert_eq!(known(&now, 2), (Some(3), true), "its log was cut");
        other.remember(&before);
        assert_eq!(known(&other, 1), (None, false));
    }

    #[test]
    fn a_broker_that_has_missed_an_election_does_not_undo_it() {
        let mut before = healthy([5, 5, 5], 5);
        elect(&mut before, 1, Some(2), 1, &[2, 3]);
        let mut now = before.clone();
        for silent in [1, 2] {
            now.brokers[silent].belief = None;
        }
        now.remember(&before);
        assert_eq!((now.leader_epoch(), now.isr()), (1, &[2, 3][..]));
        let rows = now.rows(&Links::default(), &BTreeMap::new());
        assert_eq!(
            rows["broker/1"]["believes"],
            json!({"leader": 1, "leader_epoch": 0})
        );
        now.brokers[0].belief = None;
        assert_eq!(now.decided(), None, "nobody answers");
        let mut later = healthy([5, 5, 5], 5);
        later.remember(&now);
        assert_eq!(later.leader_epoch(), 1, "as was known before nobody did");
    }

    #[test]
    fn logs_are_the_same_when_all_their_records_are() {
        let mut view = healthy([3, 3, 3], 3);
        assert!(view.same_logs(&[1, 2, 3]));
        view.brokers[0].tail[2].value = "dirty".to_owned();
        assert!(!view.same_logs(&[1, 2, 3]));
        assert!(view.same_logs(&[2, 3]));
    }

    #[test]
    fn links_are_told_where_something_is_the_matter() {
        let mut links = Links::default();
        links.set_cut((1, 2), true);
        links.set_slow((1, 3), Some(100));
        let rows = View::empty("t").rows(&links, &BTreeMap::new());
        assert_eq!(
            rows["links"],
            json!([
                {"from": 1, "to": 2, "cut": true, "slow": false},
                {"from": 1, "to": 3, "cut": false, "slow": true},
            ])
        );
        assert_eq!(rows["partition"]["known"], false);
    }
}
