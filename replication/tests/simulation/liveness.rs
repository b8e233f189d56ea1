//! When faults are over all must become well again, within a time: one active controller, every broker in service,
//! every replica in sync with the same log, nothing waiting, and a new record can be committed.

use std::sync::Arc;

use highwater_replication::state::commit::Acks;

use super::run::Simulation;
use crate::model::controller::Wish;
use crate::model::history::Answer;
use crate::model::log::Record;
use crate::model::message::Node;
use crate::model::metadata::partition;
use crate::model::step::Step;
use crate::model::world::World;

/// How long it may take, in ms.
const PATIENCE_MS: i64 = 120_000;
/// How often it is looked at.
const LOOK_EVERY_MS: i64 = 500;

impl Simulation {
    /// All faults end.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        self.is_healed = true;
        self.slow.clear();
        let nodes: Vec<Node> = {
            let brokers = self.plan.setup.brokers.iter().map(|id| Node::Broker(*id));
            brokers
                .chain((1..=self.plan.setup.controllers).map(Node::Controller))
                .collect()
        };
        for from in &nodes {
            for to in &nodes {
                if self.world.network.is_cut(*from, *to) {
                    self.step(Step::Mend(*from, *to))?;
                }
            }
        }
        for controller in 1..=self.plan.setup.controllers {
            if controller != self.world.elected {
                self.step(Step::Depose(controller))?;
            }
        }
        for broker in self.plan.setup.brokers.clone() {
            self.step(Step::Resume(broker))?;
            self.step(Step::Hold(broker, false))?;
            let stops = |run: &crate::model::broker::Run| run.wants_shutdown;
            if self.world.brokers[&broker].run.as_ref().is_some_and(stops) {
                self.step(Step::Crash(broker))?;
            }
            self.step(Step::Start(broker))?;
        }
        // So that the partition can be led although nobody knows who has all records.
        if self.world.allows_unclean() {
            let controller = self.world.elected;
            self.step(Step::Ask(controller, Wish::UncleanCheck))?;
        }
        Ok(())
    }

    /// Runs on until all is well, then checks that clients see it.
    pub(crate) fn run_until_well(&mut self) -> Result<(), String> {
        let deadline_ms = self.world.now_ms + PATIENCE_MS;
        while let Some(not_well) = what_is_not_well(&self.world) {
            if self.world.now_ms >= deadline_ms {
                return Err(format!(
                    "not well {PATIENCE_MS} ms after the last fault: {not_well}"
                ));
            }
            self.restart_displaced()?;
            // Clients go on: some things only move on when there is something new.
            self.run_until(self.world.now_ms + LOOK_EVERY_MS)?;
        }
        self.last_write()?;
        self.last_reads()
    }

    /// As in Apache Kafka, a registration that an ended process had sent may arrive after that of the present process, when
    /// a controller has just been elected and does not know yet that this one lives. The present one is not served any
    /// more then, and somebody has to restart it.
    fn restart_displaced(&mut self) -> Result<(), String> {
        let image = Arc::clone(self.world.metadata.latest());
        for registration in image.brokers().values() {
            let broker = self.world.brokers.get(&registration.id);
            let epoch = broker.and_then(|broker| broker.run.as_ref()?.epoch);
            if epoch.is_some_and(|epoch| epoch < registration.epoch) {
                self.step(Step::Crash(registration.id))?;
                self.step(Step::Start(registration.id))?;
            }
        }
        Ok(())
    }

    /// A new record is committed, if not at the first attempt: leaderships may still move to preferred leaders.
    fn last_write(&mut self) -> Result<(), String> {
        let deadline_ms = self.world.now_ms + PATIENCE_MS;
        let mut last = None;
        while self.world.now_ms < deadline_ms {
            if let Some(leader) = partition(self.world.metadata.latest()).leader {
                self.step(Step::Produce(leader, Acks::All))?;
            }
            let value = self.world.history.produced.keys().next_back().copied();
            self.run_until(self.world.now_ms + LOOK_EVERY_MS)?;
            let produce = value.and_then(|value| self.world.history.produced.get(&value));
            last = produce.and_then(|produce| produce.answer);
            if let Some(Answer::Ok(_)) = last {
                return Ok(());
            }
        }
        Err(format!(
            "no new record is committed, the last one was answered {last:?}"
        ))
    }

    /// Consumers read everything; what was promised is there, and every producer has an answer.
    fn last_reads(&mut self) -> Result<(), String> {
        let deadline_ms = self.world.now_ms + PATIENCE_MS;
        let promised: Vec<(i64, Record)> = self
            .world
            .history
            .acked
            .iter()
            .map(|(offset, record)| (*offset, *record))
            .collect();
        loop {
            for broker in self.plan.setup.brokers.clone() {
                let start = self.world.brokers[&broker].log.start_offset();
                self.step(Step::Consume(broker, start))?;
            }
            let logs = self
                .world
                .brokers
                .values()
                .map(|broker| broker.log.start_offset());
            let deleted_before = logs.max().unwrap_or(0);
            let history = &self.world.history;
            let unseen = promised.iter().find(|(offset, record)| {
                *offset >= deleted_before && history.consumed.get(offset) != Some(record)
            });
            let Some((offset, record)) = unseen else {
                break;
            };
            if self.world.now_ms >= deadline_ms {
                return Err(format!(
                    "{record:?} was acknowledged at {offset}, and nobody reads it"
                ));
            }
            self.run_until(self.world.now_ms + LOOK_EVERY_MS)?;
        }
        for (value, produce) in &self.world.history.produced {
            let is_late = produce.deadline_ms + 10_000 < self.world.now_ms;
            if produce.answer.is_none() && !produce.is_orphan && is_late {
                return Err(format!(
                    "m{value} on broker {} was never answered",
                    produce.broker
                ));
            }
        }
        Ok(())
    }
}

/// The first thing that is not as it should be without faults.
fn what_is_not_well(world: &World) -> Option<String> {
    let image = world.metadata.latest();
    let partition = partition(image);
    let active = world
        .controllers
        .iter()
        .filter(|controller| controller.active.is_some());
    if active.count() != 1 {
        return Some("there is not one active controller".to_owned());
    }
    if let Some(fenced) = image.brokers().values().find(|broker| !broker.is_active()) {
        return Some(format!("broker {} is not in service", fenced.id));
    }
    let Some(leader) = partition.leader else {
        return Some(format!("nobody leads: {partition:?}"));
    };
    if !partition.eligible_leader_replicas.is_empty() || partition.is_reassigning() {
        return Some(format!("{partition:?}"));
    }
    let voters = partition
        .replicas
        .iter()
        .filter(|id| !world.setup.observers.contains(id));
    if let Some(out) = voters.into_iter().find(|id| !partition.isr.contains(id)) {
        return Some(format!("broker {out} is not in the ISR: {partition:?}"));
    }
    let leader_log = &world.brokers.get(&leader)?.log;
    for broker in world.brokers.values() {
        let Some(run) = &broker.run else {
            return Some(format!("broker {} does not run", broker.id));
        };
        if !run.serves_clients {
            return Some(format!("broker {} serves no clients", broker.id));
        }
        if broker.pending_proposal().is_some() {
            return Some(format!("broker {} has a proposal pending", broker.id));
        }
        let is_replica = partition.replicas.contains(&broker.id);
        if is_replica != broker.has_log {
            return Some(format!("broker {} has a log, or has none", broker.id));
        }
        // Clients go on, so that a follower may be behind by what came last.
        let behind = leader_log.end_offset() - broker.log.end_offset();
        if is_replica && !(0..=20).contains(&behind) {
            return Some(format!("broker {} is behind by {behind}", broker.id));
        }
    }
    None
}
