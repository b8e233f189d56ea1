//! The state of a broker, and of the partition, in words.

use highwater_replication::state::truncation::FollowerLog;
use highwater_storage::{BrokerId, LeaderEpoch};

use super::broker::Broker;
use super::log::ReplicaLog;
use super::metadata::partition;
use super::setup::join;
use super::world::World;

impl World {
    /// What the committed metadata says of the partition.
    pub(crate) fn show_metadata(&self) -> String {
        let image = self.metadata.latest();
        let partition = partition(image);
        let leader = partition
            .leader
            .map_or("none".to_owned(), |leader| leader.to_string());
        let fenced = image.brokers().values().filter(|broker| broker.fenced);
        format!(
            "metadata: replicas {}, leader {leader}, ISR {}, ELR {}, leader epoch {}, partition epoch {}, fenced {}",
            join(&partition.replicas),
            join(&partition.isr),
            join(&partition.eligible_leader_replicas),
            partition.leader_epoch,
            partition.partition_epoch,
            join(fenced.map(|broker| broker.id))
        )
    }

    /// The state of one broker's replica.
    pub(crate) fn show(&self, id: BrokerId) -> Vec<String> {
        let Some(broker) = self.brokers.get(&id) else {
            return vec![format!("{id}: there is no such broker")];
        };
        let log = show_log(&broker.log);
        let role = role(broker);
        let mut lines = vec![format!("{id}: {role}; {log}")];
        if let Some(leader) = broker.leading() {
            let isr = leader.isr();
            let mut line = format!("{id}: ISR {}", join(isr.committed()));
            if let Some(candidate) = isr.candidate() {
                line += &format!(", {candidate} about to join");
            }
            if !isr.leaving().is_empty() {
                line += &format!(", {} about to leave", join(isr.leaving()));
            }
            for (follower, progress) in leader.followers() {
                line += &match progress.log_end_offset {
                    -1 => format!("; {follower} unknown"),
                    end => format!("; {follower} at {end}"),
                };
            }
            lines.push(line);
        }
        lines
    }
}

fn role(broker: &Broker) -> String {
    let Some(run) = &broker.run else {
        return "does not run".to_owned();
    };
    let epoch = run.replica.leader_epoch();
    let role = match (&run.replica, &run.follower) {
        (replica, _) if replica.as_leader().is_some() => format!("leads in leader epoch {epoch}"),
        (replica, Some(_)) => match replica.leader() {
            Some(leader) => format!("follows {leader} in leader epoch {epoch}"),
            None => format!("waits for a leader in leader epoch {epoch}"),
        },
        _ => "has no role".to_owned(),
    };
    match broker.is_paused {
        true => format!("paused, {role}"),
        false => role,
    }
}

fn show_log(log: &ReplicaLog) -> String {
    let mut ranges: Vec<(LeaderEpoch, i64, i64)> = Vec::new();
    for (offset, record) in log.records() {
        match ranges.last_mut() {
            Some((epoch, _, last)) if *epoch == record.epoch => *last = offset,
            _ => ranges.push((record.epoch, offset, offset)),
        }
    }
    let ranges = ranges
        .iter()
        .map(|(epoch, first, last)| format!("e{epoch}[{first}..{last}]"));
    let records: Vec<String> = ranges.collect();
    let records = match records.is_empty() {
        true => format!("empty at {}", log.end_offset()),
        false => records.join(" "),
    };
    let mut text = format!("log {records}, high watermark {}", log.high_watermark());
    // Epochs that wrote nothing are not seen in the records.
    if let Some(epoch) = log.latest_epoch()
        && log.get(log.end_offset() - 1).map(|record| record.epoch) != Some(epoch)
    {
        text += &format!(", epoch {epoch} begins at {}", log.end_offset());
    }
    text
}
