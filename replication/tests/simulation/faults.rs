//! What goes wrong, and what administrators do meanwhile.

use highwater_storage::BrokerId;

use super::plan::{Fault, pick};
use super::run::Simulation;
use super::schedule::{Event, Tick};
use crate::model::controller::{ElectionKind, Wish};
use crate::model::message::Node;
use crate::model::metadata::partition;
use crate::model::step::Step;

impl Simulation {
    /// Draws a fault and begins it.
    pub(crate) fn fault(&mut self) -> Result<(), String> {
        let total: u32 = self.plan.faults.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.rng.u32(0..total);
        let fault = self.plan.faults.iter().find(|(_, weight)| {
            let is_it = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            is_it
        });
        let fault = fault.map_or(Fault::Crash, |(fault, _)| *fault);
        let any = self.plan.setup.brokers.clone();
        // The leader is where most can go wrong.
        let leader = partition(self.world.metadata.latest()).leader;
        let broker = match leader {
            Some(leader) if self.rng.u32(0..3) == 0 => leader,
            _ => *pick(&mut self.rng, &any),
        };
        self.begin_fault(fault, broker)
    }

    fn begin_fault(&mut self, fault: Fault, broker: BrokerId) -> Result<(), String> {
        let everybody: Vec<Node> = self.nodes();
        let this = Node::Broker(broker);
        match fault {
            Fault::Crash => self.end_process(Step::Crash(broker), broker)?,
            Fault::PowerCut => {
                let log = &self.world.brokers[&broker].log;
                let (synced, end) = (log.synced_end_offset(), log.end_offset());
                let keep = match self.rng.u32(0..4) {
                    0 => None,
                    _ => Some(self.rng.i64(synced..=end)),
                };
                self.end_process(Step::PowerCut(broker, keep), broker)?;
            }
            Fault::Stop => match self.rng.bool() {
                true => self.end_process(Step::Stop(broker), broker)?,
                false => {
                    self.step(Step::WantStop(broker))?;
                    self.end_later(vec![Step::Start(broker)]);
                }
            },
            Fault::Wipe => {
                if self.world.brokers[&broker].run.is_none() {
                    self.step(Step::Wipe(broker))?;
                }
            }
            Fault::Pause => {
                if self.step(Step::Pause(broker))? {
                    self.end_later(vec![Step::Resume(broker)]);
                }
            }
            Fault::Isolate => {
                let others = everybody.into_iter().filter(|node| *node != this);
                let pairs = others.flat_map(|node| [(this, node), (node, this)]);
                self.cut(pairs.collect())?;
            }
            Fault::CutOneWay => {
                let other = *pick(&mut self.rng, &everybody);
                match self.rng.bool() {
                    true => self.cut(vec![(this, other)])?,
                    false => self.cut(vec![(other, this)])?,
                }
            }
            Fault::CutFromControllers => {
                let controllers = everybody
                    .into_iter()
                    .filter(|node| matches!(node, Node::Controller(_)));
                let pairs = controllers.flat_map(|node| [(this, node), (node, this)]);
                self.cut(pairs.collect())?;
            }
            Fault::LoseChannel => {
                let busy: Vec<_> = self.world.network.busy().collect();
                if !busy.is_empty() {
                    let channel = *pick(&mut self.rng, &busy);
                    self.step(Step::Lose(channel))?;
                }
            }
            Fault::SlowFollower => self.slow_down(broker, Tick::Fetch),
            Fault::SlowMetadata => self.slow_down(broker, Tick::Metadata),
            Fault::NewController => {
                let controllers: Vec<usize> = (1..=self.plan.setup.controllers).collect();
                let (old, new) = (self.world.elected, *pick(&mut self.rng, &controllers));
                self.step(Step::ElectController(new))?;
                if old != new {
                    self.end_later(vec![Step::Depose(old)]);
                }
            }
            Fault::HoldParked => {
                self.step(Step::Hold(broker, true))?;
                self.end_later(vec![Step::Hold(broker, false)]);
            }
            Fault::PreferredElection => self.ask(Wish::Elect(ElectionKind::Preferred))?,
            Fault::UncleanElection => self.ask(Wish::Elect(ElectionKind::Unclean))?,
            Fault::Reassign => {
                let mut ids: Vec<i32> = self.plan.setup.brokers.iter().map(|id| id.0).collect();
                self.rng.shuffle(&mut ids);
                ids.truncate(self.plan.setup.replicas.len().min(3));
                match self.rng.u32(0..4) {
                    0 if !self.is_cancelling_unclean() => self.ask(Wish::Reassign(None))?,
                    _ => self.ask(Wish::Reassign(Some(ids)))?,
                }
            }
            Fault::MinIsr if partition(self.world.metadata.latest()).isr.is_empty() => {}
            Fault::MinIsr => {
                let min = self.rng.u32(1..=3).to_string();
                self.ask(Wish::Configure("min.insync.replicas".to_owned(), min))?;
            }
            Fault::DeleteRecords => {
                let high_watermark = self.world.brokers[&broker].log.high_watermark();
                let before = self.rng.i64(0..=high_watermark);
                self.step(Step::DeleteRecords(broker, before))?;
            }
        }
        Ok(())
    }

    /// Whether to cancel the reassignment would, as in Apache Kafka, make the first of the old replicas the ISR, whatever
    /// it has and even if it is fenced.
    fn is_cancelling_unclean(&self) -> bool {
        let partition = partition(self.world.metadata.latest());
        let is_added = |id: &BrokerId| partition.adding_replicas.contains(id);
        self.world.allows_unclean() && partition.isr.iter().all(is_added)
    }

    fn nodes(&self) -> Vec<Node> {
        let brokers = self.plan.setup.brokers.iter().map(|id| Node::Broker(*id));
        brokers
            .chain((1..=self.plan.setup.controllers).map(Node::Controller))
            .collect()
    }

    fn ask(&mut self, wish: Wish) -> Result<(), String> {
        let controller = self.world.elected;
        self.step(Step::Ask(controller, wish))?;
        Ok(())
    }

    fn end_process(&mut self, step: Step, broker: BrokerId) -> Result<(), String> {
        if self.step(step)? {
            self.end_later(vec![Step::Start(broker)]);
        }
        Ok(())
    }

    fn cut(&mut self, pairs: Vec<(Node, Node)>) -> Result<(), String> {
        for (from, to) in &pairs {
            self.step(Step::Cut(*from, *to))?;
        }
        let mends = pairs.into_iter().map(|(from, to)| Step::Mend(from, to));
        self.end_later(mends.collect());
        Ok(())
    }

    fn slow_down(&mut self, broker: BrokerId, tick: Tick) {
        self.slow.insert((broker, tick));
        let lasts = self.plan.fault_lasts_ms;
        self.after(0..=lasts, Event::Quicken(broker, tick));
    }

    fn end_later(&mut self, steps: Vec<Step>) {
        let lasts = self.plan.fault_lasts_ms;
        self.after(0..=lasts, Event::End(steps));
    }
}
