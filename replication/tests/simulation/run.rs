//! One seed: events come when they were drawn to come, and become steps of the model; after each step every invariant
//! is checked.

use std::collections::BTreeSet;

use fastrand::Rng;
use highwater_replication::state::commit::Acks;
use highwater_storage::BrokerId;

use super::invariants::Invariants;
use super::plan::{Plan, pick};
use super::schedule::{Chore, Event, Schedule, Tick};
use crate::model::controller::Wish;
use crate::model::message::{Node, Purpose};
use crate::model::metadata::partition;
use crate::model::notes::Notes;
use crate::model::rules::Rule;
use crate::model::step::Step;
use crate::model::world::World;

/// What is wrong, and how it came to that.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) plan: Plan,
    pub(crate) steps: Vec<Step>,
    pub(crate) wrong: String,
}

/// A run of a seed.
pub(crate) struct Simulation {
    pub(crate) plan: Plan,
    pub(crate) rng: Rng,
    pub(crate) world: World,
    pub(crate) schedule: Schedule,
    pub(crate) steps: Vec<Step>,
    /// Whether faults are over.
    pub(crate) is_healed: bool,
    /// What brokers do not do, or only rarely, at present.
    pub(crate) slow: BTreeSet<(BrokerId, Tick)>,
    invariants: Invariants,
    awaits_commit: BTreeSet<usize>,
    awaits_proposal: BTreeSet<BrokerId>,
}

impl Simulation {
    /// Draws what a seed begins with.
    pub(crate) fn new(seed: u64, off: Option<Rule>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plan = Plan::draw(&mut rng);
        let world = World::new(plan.setup.clone(), Notes::default(), off);
        let mut simulation = Self {
            plan,
            rng,
            world,
            schedule: Schedule::default(),
            steps: Vec::new(),
            is_healed: false,
            slow: BTreeSet::new(),
            invariants: Invariants::new(),
            awaits_commit: BTreeSet::new(),
            awaits_proposal: BTreeSet::new(),
        };
        simulation.begin();
        simulation
    }

    fn begin(&mut self) {
        for broker in self.plan.setup.brokers.clone() {
            for tick in [
                Tick::Fetch,
                Tick::Metadata,
                Tick::Heartbeat,
                Tick::LagCheck,
                Tick::Expire,
                Tick::Sync,
                Tick::Checkpoint,
            ] {
                let period = self.period(tick);
                self.after(0..=period, Event::Tick(broker, tick));
            }
        }
        for controller in 1..=self.plan.setup.controllers {
            for chore in [Chore::SessionCheck, Chore::Balance, Chore::UncleanCheck] {
                let period = self.chore_period(chore);
                self.after(0..=period, Event::Chore(controller, chore));
            }
        }
        let (client, fault) = (self.plan.client_every_ms, self.plan.fault_every_ms);
        self.after(0..=client, Event::Client);
        self.after(0..=2 * fault, Event::Fault);
    }

    /// Something happens after a while that is drawn.
    pub(crate) fn after(&mut self, range: std::ops::RangeInclusive<i64>, event: Event) {
        let time_ms = self.world.now_ms + self.rng.i64(range);
        self.schedule.at(time_ms, event, &mut self.rng);
    }

    /// Runs until faults are over and all is well again.
    pub(crate) fn run(mut self) -> Result<Statistics, Box<Failure>> {
        match self.go() {
            Ok(()) => Ok(self.statistics()),
            Err(wrong) => Err(Box::new(Failure {
                plan: self.plan,
                steps: self.steps,
                wrong,
            })),
        }
    }

    fn go(&mut self) -> Result<(), String> {
        self.run_until(self.plan.chaos_ms)?;
        self.heal()?;
        self.run_until_well()
    }

    /// Lets events happen up to a time.
    pub(crate) fn run_until(&mut self, end_ms: i64) -> Result<(), String> {
        while let Some((time_ms, event)) = self.schedule.pop() {
            let passed = time_ms - self.world.now_ms;
            if passed > 0 {
                self.step(Step::Advance(passed))?;
            }
            self.happen(event)?;
            if self.world.now_ms >= end_ms {
                break;
            }
        }
        Ok(())
    }

    /// One step, if it does anything; then every invariant is checked.
    pub(crate) fn step(&mut self, step: Step) -> Result<bool, String> {
        let is_time = matches!(step, Step::Advance(_));
        if self.world.apply(&step).is_err() {
            return Ok(false);
        }
        match (&step, self.steps.last_mut()) {
            (Step::Advance(more), Some(Step::Advance(before))) => *before += more,
            _ => self.steps.push(step),
        }
        if is_time {
            return Ok(true);
        }
        self.schedule_what_follows();
        self.invariants.check(&self.world)?;
        Ok(true)
    }

    /// Messages that were sent arrive after a while, entries are committed, proposals are sent.
    fn schedule_what_follows(&mut self) {
        for channel in self.world.network.take_sent() {
            let is_straggler = self.rng.u32(0..100) < self.plan.straggler_percent;
            let at_most = match (self.is_healed, is_straggler) {
                (true, _) => 2,
                (false, true) => 4 * self.plan.request_timeout_ms,
                (false, false) => self.plan.latency_ms,
            };
            let latency = self.rng.i64(0..=at_most);
            let time_ms = self.world.now_ms + latency;
            self.schedule.arrival(channel, time_ms, &mut self.rng);
        }
        let writing = self.world.controllers.iter().filter(|controller| {
            let active = controller.active.as_ref();
            active.is_some_and(|active| active.uncommitted.is_some())
        });
        let writing: Vec<usize> = writing.map(|controller| controller.id).collect();
        for controller in writing {
            if controller == self.world.elected && self.awaits_commit.insert(controller) {
                let commit_ms = self.plan.commit_ms;
                self.after(0..=commit_ms, Event::Commit(controller));
            }
        }
        let proposing = self.world.brokers.values().filter(|broker| {
            let run = broker.run.as_ref();
            run.is_some_and(|run| run.proposal.is_some() && run.alter.is_none())
        });
        let proposing: Vec<BrokerId> = proposing.map(|broker| broker.id).collect();
        for broker in proposing {
            if self.awaits_proposal.insert(broker) {
                self.after(0..=50, Event::Propose(broker));
            }
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Arrival(channel) => {
                let blocked = match channel.to {
                    Node::Broker(id) => self.is_paused(id),
                    Node::Controller(_) => false,
                };
                if self.world.network.is_cut(channel.from, channel.to) {
                    self.step(Step::Lose(channel))?;
                } else if blocked {
                    // It waits in the socket.
                    let time_ms = self.world.now_ms + 100;
                    self.schedule.arrival(channel, time_ms, &mut self.rng);
                } else {
                    self.step(Step::Deliver(channel))?;
                }
            }
            Event::Tick(broker, tick) => {
                let period = self.period(tick);
                self.after(period / 2..=period, Event::Tick(broker, tick));
                if !self.slow.contains(&(broker, tick)) {
                    self.tick(broker, tick)?;
                }
            }
            Event::Chore(controller, chore) => {
                let period = self.chore_period(chore);
                self.after(period..=period, Event::Chore(controller, chore));
                if self.world.controllers[controller - 1].active.is_some() {
                    let wish = match chore {
                        Chore::SessionCheck => Wish::SessionCheck,
                        Chore::Balance => Wish::Balance,
                        Chore::UncleanCheck => Wish::UncleanCheck,
                    };
                    self.step(Step::Ask(controller, wish))?;
                }
            }
            Event::Commit(controller) => {
                self.awaits_commit.remove(&controller);
                self.step(Step::Commit(controller))?;
            }
            Event::Propose(broker) => {
                self.awaits_proposal.remove(&broker);
                let controller = self.controller();
                if self.step(Step::SendAlter(broker, controller))? {
                    self.await_answer(broker, Purpose::Alter);
                }
            }
            Event::TimeOut(broker, purpose, connection) => {
                if self.awaited_connection(broker, purpose) != Some(connection) {
                    return Ok(());
                }
                match self.is_paused(broker) {
                    true => self.after(200..=200, Event::TimeOut(broker, purpose, connection)),
                    false => {
                        self.step(Step::GiveUp(broker, purpose))?;
                    }
                }
            }
            Event::Client => {
                let every = match self.is_healed {
                    true => 500,
                    false => self.plan.client_every_ms,
                };
                self.after(0..=2 * every, Event::Client);
                self.client()?;
            }
            Event::Fault => {
                let every = self.plan.fault_every_ms;
                self.after(0..=2 * every, Event::Fault);
                if !self.is_healed {
                    self.fault()?;
                }
            }
            Event::End(steps) => {
                for step in steps {
                    self.step(step)?;
                }
            }
            Event::Quicken(broker, tick) => {
                self.slow.remove(&(broker, tick));
            }
        }
        Ok(())
    }

    fn tick(&mut self, broker: BrokerId, tick: Tick) -> Result<(), String> {
        let Some(state) = self.world.brokers.get(&broker) else {
            return Ok(());
        };
        if state.awake().is_none() {
            return Ok(());
        }
        let step = match tick {
            Tick::Fetch => Step::SendFetch(broker),
            Tick::Metadata => {
                let active = Node::Controller(self.world.elected);
                let to = Node::Broker(broker);
                let network = &self.world.network;
                if network.is_cut(active, to) || network.is_cut(to, active) {
                    return Ok(());
                }
                let some = self.rng.bool().then(|| self.rng.usize(1..=2));
                Step::Metadata(broker, some)
            }
            Tick::Heartbeat => Step::SendHeartbeat(broker, self.controller()),
            Tick::LagCheck => Step::LagCheck(broker),
            Tick::Expire => Step::Expire(broker),
            Tick::Sync => Step::Sync(broker),
            Tick::Checkpoint => Step::Checkpoint(broker),
        };
        if self.step(step)? {
            match tick {
                Tick::Fetch => self.await_answer(broker, Purpose::Fetch),
                Tick::Heartbeat => self.await_answer(broker, Purpose::Heartbeat),
                _ => {}
            }
        }
        Ok(())
    }

    /// How long a broker waits between two of the same.
    fn period(&self, tick: Tick) -> i64 {
        match tick {
            Tick::Fetch => self.plan.fetch_every_ms,
            Tick::Metadata => self.plan.metadata_every_ms,
            Tick::Heartbeat => self.plan.heartbeat_every_ms,
            Tick::LagCheck => self.plan.setup.replica_lag_time_max_ms / 2,
            Tick::Expire => 300,
            Tick::Sync => 2_000,
            Tick::Checkpoint => 1_000,
        }
    }

    fn chore_period(&self, chore: Chore) -> i64 {
        match chore {
            Chore::SessionCheck => self.plan.setup.session_timeout_ms / 8,
            Chore::Balance | Chore::UncleanCheck => 7_000,
        }
    }

    /// The controller that a broker asks: mostly the active one.
    fn controller(&mut self) -> usize {
        let wrong = self.rng.u32(0..100) < self.plan.wrong_controller_percent;
        match wrong && !self.is_healed {
            true => self.rng.usize(1..=self.plan.setup.controllers),
            false => self.world.elected,
        }
    }

    fn await_answer(&mut self, broker: BrokerId, purpose: Purpose) {
        if let Some(connection) = self.awaited_connection(broker, purpose) {
            let timeout = self.plan.request_timeout_ms;
            self.after(
                timeout..=timeout,
                Event::TimeOut(broker, purpose, connection),
            );
        }
    }

    fn awaited_connection(&self, broker: BrokerId, purpose: Purpose) -> Option<u32> {
        let run = self.world.brokers.get(&broker)?.run.as_ref()?;
        let channel = match purpose {
            Purpose::Fetch => run.fetch_connection.filter(|_| run.awaits_leader),
            Purpose::Alter => run.alter,
            Purpose::Heartbeat => run.heartbeat,
        };
        channel.map(|channel| channel.connection)
    }

    pub(crate) fn is_paused(&self, broker: BrokerId) -> bool {
        self.world
            .brokers
            .get(&broker)
            .is_some_and(|broker| broker.is_paused)
    }

    /// A producer or a consumer does something, mostly where the leader is or was.
    fn client(&mut self) -> Result<(), String> {
        let leading = self
            .world
            .brokers
            .values()
            .filter(|broker| broker.leading().is_some());
        let leading: Vec<BrokerId> = leading.map(|broker| broker.id).collect();
        let any = self.plan.setup.brokers.clone();
        let broker = match leading.is_empty() || self.rng.u32(0..5) == 0 {
            true => *pick(&mut self.rng, &any),
            false => *pick(&mut self.rng, &leading),
        };
        let step = match self.rng.u32(0..10) {
            0..=4 => Step::Produce(broker, Acks::All),
            5..=6 => Step::Produce(broker, Acks::Leader),
            _ => {
                let log = &self.world.brokers[&broker].log;
                let (start, end) = (log.start_offset(), log.end_offset());
                Step::Consume(broker, self.rng.i64(start..=end))
            }
        };
        self.step(step)?;
        Ok(())
    }

    /// What a run was about, so that one sees that it was about something.
    fn statistics(&self) -> Statistics {
        let history = &self.world.history;
        Statistics {
            runs: 1,
            steps: self.steps.len(),
            produced: history.produced.len(),
            acked: history.acked.len(),
            consumed: history.consumed.len(),
            leader_epochs: partition(self.world.metadata.latest()).leader_epoch.0 as usize,
            unclean_elections: history.unclean_elections,
        }
    }
}

/// Sums over runs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Statistics {
    pub(crate) runs: usize,
    pub(crate) steps: usize,
    pub(crate) produced: usize,
    pub(crate) acked: usize,
    pub(crate) consumed: usize,
    pub(crate) leader_epochs: usize,
    pub(crate) unclean_elections: usize,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.produced += other.produced;
        self.acked += other.acked;
        self.consumed += other.consumed;
        self.leader_epochs += other.leader_epochs;
        self.unclean_elections += other.unclean_elections;
    }
}
