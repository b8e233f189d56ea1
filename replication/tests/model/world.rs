//! A cluster: brokers, controllers and what is on its way between them. It is deterministic and draws nothing: what
//! happens next is said from outside, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_storage::{BrokerEpoch, BrokerId};

use super::around::Around;
use super::broker::{Broker, Run};
use super::clock::Clock;
use super::controller::Controller;
use super::history::History;
use super::log::ReplicaLog;
use super::message::{Body, Channel, Node, Purpose};
use super::metadata::{MetadataLog, after, incarnation};
use super::network::Network;
use super::notes::Notes;
use super::rules::Rule;
use super::setup::Setup;
use super::step::Step;

/// Why a step did nothing.
pub(crate) type Idle = &'static str;

/// The cluster.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    /// True time.
    pub(crate) now_ms: i64,
    pub(crate) brokers: BTreeMap<BrokerId, Broker>,
    pub(crate) controllers: Vec<Controller>,
    /// The controller that can commit, and the term that it was elected in.
    pub(crate) elected: usize,
    pub(crate) term: i32,
    pub(crate) metadata: MetadataLog,
    pub(crate) network: Network,
    pub(crate) history: History,
    pub(crate) notes: Notes,
    /// The safety rule that is switched off.
    pub(crate) off: Option<Rule>,
    /// Whether records may be lost: a broker lost some, and there are no eligible leader replicas (KIP-966), so that
    /// nobody keeps account.
    pub(crate) may_lose: bool,
    /// Whether an administrator has asked for an unclean election.
    pub(crate) unclean_was_asked: bool,
    last_value: u32,
    last_run: u32,
}

impl World {
    /// The cluster of a setup.
    pub(crate) fn new(setup: Setup, notes: Notes, off: Option<Rule>) -> Self {
        let metadata = MetadataLog::new(&setup);
        let mut world = Self {
            now_ms: 0,
            brokers: BTreeMap::new(),
            controllers: Vec::new(),
            elected: 1,
            term: 0,
            metadata,
            network: Network::default(),
            history: History::default(),
            notes,
            off,
            may_lose: false,
            unclean_was_asked: false,
            last_value: 0,
            last_run: 0,
            setup,
        };
        for number in 1..=world.setup.controllers {
            world.controllers.push(Controller {
                id: number,
                image: Arc::clone(world.metadata.latest()),
                active: None,
            });
        }
        world.elect_controller(1);
        world.commit(1).expect("the first controller is elected");
        for id in world.setup.brokers.clone() {
            world.add_broker(id);
        }
        if let Some(leader) = world.setup.leader
            && let Some(log) = world.setup.logs.get(&leader)
        {
            world.history.committed = log.records[..log.high_watermark as usize].to_vec();
        }
        for id in world.setup.brokers.clone() {
            let _ = world.give_metadata(id, None);
        }
        world.notes.take();
        world
    }

    fn add_broker(&mut self, id: BrokerId) {
        let setup = &self.setup;
        let registered = self.metadata.latest().broker(id);
        let epoch = registered.map_or(BrokerEpoch(-1), |broker| broker.epoch);
        let mut run = Run::new(id, incarnation(id, 0), None);
        run.epoch = Some(epoch);
        run.serves_clients = true;
        let broker = Broker {
            id,
            clock: setup.clocks.get(&id).copied().unwrap_or(Clock::TRUE),
            log: ReplicaLog::with(setup.logs.get(&id).cloned().unwrap_or_default()),
            has_log: setup.replicas.contains(&id),
            clean_shutdown: None,
            last_epoch: Some(epoch),
            min_isr: setup.min_isr,
            metadata_position: 0,
            run: Some(run),
            is_paused: false,
            unclean_registrations: 0,
            awake_since_ms: 0,
        };
        self.brokers.insert(id, broker);
    }

    /// A broker and everything around it.
    fn at(&mut self, id: BrokerId) -> Result<(&mut Broker, Around<'_>), Idle> {
        let broker = self.brokers.get_mut(&id).ok_or("there is no such broker")?;
        let around = Around {
            setup: &self.setup,
            network: &mut self.network,
            history: &mut self.history,
            notes: &mut self.notes,
            now_ms: self.now_ms,
            off: self.off,
        };
        Ok((broker, around))
    }

    /// The same, if its process runs and is not paused.
    fn awake(&mut self, id: BrokerId) -> Result<(&mut Broker, Around<'_>), Idle> {
        let (broker, around) = self.at(id)?;
        match (&broker.run, broker.is_paused) {
            (None, _) => Err("it does not run"),
            (Some(_), true) => Err("it is paused"),
            (Some(_), false) => Ok((broker, around)),
        }
    }

    /// One thing happens. An error says why it does not.
    pub(crate) fn apply(&mut self, step: &Step) -> Result<(), Idle> {
        let done = |did: bool, idle: Idle| if did { Ok(()) } else { Err(idle) };
        match step {
            Step::Advance(ms) => self.now_ms += ms,
            Step::Produce(id, acks) => {
                let value = self.last_value + 1;
                let (broker, mut around) = self.awake(*id)?;
                let heard = broker.produce(value, *acks, &mut around);
                self.last_value = value;
                return done(heard, "it serves no clients");
            }
            Step::Consume(id, offset) => {
                let (broker, mut around) = self.awake(*id)?;
                return done(broker.consume(*offset, &mut around), "it serves no clients");
            }
            Step::SendFetch(id) => {
                let (broker, mut around) = self.awake(*id)?;
                return done(
                    broker.send_fetch(&mut around),
                    "it has nothing to fetch now",
                );
            }
            Step::SendAlter(id, controller) => {
                let to = Node::Controller(*controller);
                let (broker, mut around) = self.awake(*id)?;
                return done(broker.send_proposal(to, &mut around), "it proposes nothing");
            }
            Step::SendHeartbeat(id, controller) => {
                let position = self
                    .brokers
                    .get(id)
                    .map_or(0, |broker| broker.metadata_position);
                let offset = self.metadata.image(position).offset();
                let to = Node::Controller(*controller);
                let (broker, mut around) = self.awake(*id)?;
                let sent = broker.send_heartbeat(to, offset, &mut around);
                return done(sent, "its last one has no answer yet");
            }
            Step::GiveUp(id, purpose) => return self.give_up(*id, *purpose),
            Step::LagCheck(id) => {
                let (broker, mut around) = self.awake(*id)?;
                return done(broker.lag_check(&mut around), "it does not lead");
            }
            Step::Expire(id) => {
                let (broker, mut around) = self.awake(*id)?;
                return done(
                    broker.expire_parked(&mut around),
                    "nothing has waited too long",
                );
            }
            Step::Hold(id, hold) => {
                let (broker, mut around) = self.awake(*id)?;
                if let Some(run) = &mut broker.run {
                    run.holds_parked = *hold;
                }
                broker.look_at_parked(&mut around);
            }
            Step::Metadata(id, count) => return self.give_metadata(*id, *count),
            Step::Sync(id) => self.awake(*id)?.0.log.sync(),
            Step::Checkpoint(id) => self.awake(*id)?.0.log.checkpoint(),
            Step::DeleteRecords(id, before) => {
                let (broker, mut around) = self.awake(*id)?;
                let deleted = broker.delete_records(*before, &mut around);
                return done(deleted, "it does not lead, or that is not committed");
            }
            Step::Deliver(channel) => return self.deliver(*channel),
            Step::Lose(channel) => {
                let channel = self.resolve(*channel);
                return done(
                    self.network.lose(channel) > 0,
                    "nothing is on its way there",
                );
            }
            Step::Cut(from, to) => self.network.cut(*from, *to),
            Step::Mend(from, to) => self.network.mend(*from, *to),
            Step::ElectController(number) => self.elect_controller(*number),
            Step::Depose(number) => return self.depose(*number),
            Step::Commit(number) => return self.commit(*number),
            Step::Ask(number, wish) => return self.ask(*number, wish),
            Step::Crash(_)
            | Step::PowerCut(..)
            | Step::Stop(_)
            | Step::WantStop(_)
            | Step::Start(_)
            | Step::Pause(_)
            | Step::Resume(_)
            | Step::Wipe(_) => return self.life(step),
        }
        Ok(())
    }

    /// What happens to a process or its machine.
    fn life(&mut self, step: &Step) -> Result<(), Idle> {
        let is_lossy = matches!(step, Step::PowerCut(..) | Step::Wipe(_));
        self.may_lose |= is_lossy && !self.setup.elr;
        match step {
            Step::Start(id) => {
                self.last_run += 1;
                let incarnation = incarnation(*id, self.last_run);
                let (broker, mut around) = self.at(*id)?;
                if broker.run.is_some() {
                    return Err("it runs already");
                }
                broker.start(incarnation, &mut around);
                if self.off == Some(Rule::OwnRegistration) {
                    self.publish(*id);
                }
            }
            Step::Wipe(id) => {
                let (broker, _) = self.at(*id)?;
                if broker.run.is_some() {
                    return Err("it runs");
                }
                broker.log.wipe();
                broker.clean_shutdown = None;
            }
            Step::Resume(id) => {
                let (broker, around) = self.at(*id)?;
                if !broker.is_paused {
                    return Err("it is not paused");
                }
                broker.is_paused = false;
                broker.awake_since_ms = around.now_ms;
            }
            Step::Pause(id) => self.awake(*id)?.0.is_paused = true,
            Step::WantStop(id) => {
                if let Some(run) = &mut self.awake(*id)?.0.run {
                    run.wants_shutdown = true;
                }
            }
            Step::Stop(id) => {
                let (broker, mut around) = self.awake(*id)?;
                broker.stop(&mut around);
            }
            Step::Crash(id) | Step::PowerCut(id, _) => {
                let (broker, mut around) = self.at(*id)?;
                if broker.run.is_none() {
                    return Err("it does not run");
                }
                broker.end(&mut around);
                let before = broker.log.end_offset();
                match step {
                    Step::PowerCut(_, Some(keep)) => broker.log.lose_from(*keep),
                    Step::PowerCut(_, None) => broker.log.revert_to_synced(),
                    _ => {}
                }
                let after = broker.log.end_offset();
                self.notes.add(|| match before == after {
                    true => format!("{id}: gone"),
                    false => format!("{id}: gone, its log ends at {after} now"),
                });
            }
            _ => return Err("not a step of this kind"),
        }
        Ok(())
    }

    fn give_up(&mut self, id: BrokerId, purpose: Purpose) -> Result<(), Idle> {
        let (broker, _) = self.awake(id)?;
        let Some(run) = &mut broker.run else {
            return Err("it does not run");
        };
        let waited = match purpose {
            Purpose::Fetch => {
                run.fetch_connection = None;
                std::mem::take(&mut run.awaits_leader)
            }
            Purpose::Alter => run.alter.take().is_some(),
            Purpose::Heartbeat => run.heartbeat.take().is_some(),
        };
        if waited {
            Ok(())
        } else {
            Err("it waits for no answer")
        }
    }

    fn give_metadata(&mut self, id: BrokerId, count: Option<usize>) -> Result<(), Idle> {
        let end = self.metadata.len();
        let (broker, _) = self.awake(id)?;
        let from = broker.metadata_position;
        let to = count.map_or(end, |count| end.min(from + count));
        broker.metadata_position = to;
        let is_news = from < to || broker.image().is_none();
        if !is_news && self.off != Some(Rule::CommittedMetadata) {
            return Err("there is none that it has not");
        }
        self.publish(id);
        Ok(())
    }

    fn publish(&mut self, id: BrokerId) {
        let position = self
            .brokers
            .get(&id)
            .map_or(0, |broker| broker.metadata_position);
        let mut image = Arc::clone(self.metadata.image(position));
        if self.off == Some(Rule::CommittedMetadata)
            && position == self.metadata.len()
            && let Some(uncommitted) = self.uncommitted_image()
        {
            image = uncommitted;
        }
        if let Ok((broker, mut around)) = self.at(id) {
            broker.publish(&image, &mut around);
        }
    }

    fn uncommitted_image(&self) -> Option<Arc<ClusterImage>> {
        self.controllers.iter().find_map(|controller| {
            let uncommitted = controller.active.as_ref()?.uncommitted.as_ref()?;
            Some(Arc::new(after(&controller.image, &uncommitted.entry)))
        })
    }

    /// Connection 0 of a channel is the latest one that has messages.
    fn resolve(&self, channel: Channel) -> Channel {
        if channel.connection != 0 {
            return channel;
        }
        let same = |busy: &Channel| {
            Channel {
                connection: 0,
                ..*busy
            } == channel
        };
        let latest = self
            .network
            .busy()
            .filter(same)
            .max_by_key(|busy| busy.connection);
        latest.unwrap_or(channel)
    }

    fn deliver(&mut self, channel: Channel) -> Result<(), Idle> {
        let channel = self.resolve(channel);
        if self.network.is_cut(channel.from, channel.to) {
            return Err("it does not get through");
        }
        match channel.to {
            Node::Broker(id) => {
                self.awake(id)?;
                let body = self
                    .network
                    .take(channel)
                    .ok_or("nothing is on its way there")?;
                self.broker_receives(id, channel, body);
            }
            Node::Controller(number) => {
                let body = self
                    .network
                    .take(channel)
                    .ok_or("nothing is on its way there")?;
                self.with_controller(number, |controller, desk| {
                    controller.on_request(channel, body, desk);
                });
            }
        }
        Ok(())
    }

    fn broker_receives(&mut self, id: BrokerId, channel: Channel, mut body: Body) {
        if self.setup.late_reads {
            self.read_again(channel.from, &mut body);
        }
        let Ok((broker, mut around)) = self.awake(id) else {
            return;
        };
        let around = &mut around;
        around.notes.add(|| super::telling::told(channel, &body));
        match body {
            Body::Fetch { .. } | Body::ListOffset { .. } | Body::EpochEnd { .. } => {
                broker.on_follower_request(channel, body, around);
            }
            Body::Fetched { .. } | Body::ListedOffset { .. } | Body::EpochEnded { .. } => {
                broker.on_leader_reply(channel, body, around);
            }
            Body::Altered { proposal, result } => {
                broker.on_altered(channel, &proposal, result, around);
            }
            Body::Registered(result) => broker.on_registered(channel, result, around),
            Body::Heartbeated(result) => {
                if broker.on_heartbeated(channel, &result, around) {
                    broker.stop(around);
                }
            }
            Body::Alter { .. } | Body::Register { .. } | Body::Heartbeat(_) => {}
        }
    }

    /// The bytes of an answer were not read when the leader judged the fetch, but are now.
    fn read_again(&self, from: Node, body: &mut Body) {
        if let (Node::Broker(leader), Body::Fetched { sent, records, .. }) = (from, body)
            && let Some(leader) = self.brokers.get(&leader)
        {
            let end = sent.fetch_offset + records.len() as i64;
            *records = leader.log.read(sent.fetch_offset, end, records.len());
        }
    }
}
