//! The life of a broker process: it starts, registers, sends heartbeats, acts on metadata, stops or dies.

use std::sync::Arc;

use highwater_replication::cluster::heartbeat::{BrokerHeartbeat, HeartbeatReply};
use highwater_replication::cluster::{ClusterImage, ReplicationDefaults, TopicRules};
use highwater_replication::state::leader::LeaderConfig;
use highwater_replication::state::leadership::{Leadership, Moment};
use highwater_replication::state::replica::RoleChange;
use highwater_replication::state::truncation::FollowerLog;
use highwater_storage::{BrokerEpoch, PartitionEpoch};
use uuid::Uuid;

use super::around::Around;
use super::broker::{Broker, Run};
use super::history::Answer;
use super::leading::ask_leader;
use super::message::{Body, Channel, Node, Purpose};
use super::metadata::{TOPIC, partition};
use super::rules::Rule;
use super::setup::join;

impl Broker {
    /// The process starts on what is on its disk.
    pub(crate) fn start(&mut self, incarnation: Uuid, around: &mut Around<'_>) {
        let clean_shutdown = self.clean_shutdown.take();
        let previous_epoch = match around.is_off(Rule::CleanShutdown) {
            true => self.last_epoch,
            false => clean_shutdown,
        };
        self.log.reopen();
        self.is_paused = false;
        self.awake_since_ms = around.now_ms;
        self.run = Some(Run::new(self.id, incarnation, previous_epoch));
        let (id, end) = (self.id, self.log.end_offset());
        around
            .notes
            .add(|| format!("{id}: starts, its log ends at {end}"));
    }

    /// The process ends, whatever it was about to do. Its memory is gone; what it wrote is not.
    pub(crate) fn end(&mut self, around: &mut Around<'_>) {
        if let Some(run) = self.run.take() {
            for parked in &run.parked {
                around.history.on_orphan(parked.value);
            }
        }
        self.is_paused = false;
        around.network.lose_to(Node::Broker(self.id));
    }

    /// A clean stop: everything is synced, then the epoch of this run is noted.
    pub(crate) fn stop(&mut self, around: &mut Around<'_>) {
        self.log.sync();
        self.log.checkpoint();
        self.clean_shutdown = self.run.as_ref().and_then(|run| run.epoch);
        self.end(around);
        let id = self.id;
        around.notes.add(|| format!("{id}: stopped"));
    }

    /// Sends a registration or a heartbeat, if none is on its way.
    pub(crate) fn send_heartbeat(
        &mut self,
        to: Node,
        metadata_offset: i64,
        around: &mut Around<'_>,
    ) -> bool {
        let id = self.id;
        let Some(run) = &mut self.run else {
            return false;
        };
        if run.heartbeat.is_some() {
            return false;
        }
        let body = match run.epoch {
            None => Body::Register {
                incarnation: run.incarnation,
                previous_broker_epoch: run.previous_epoch,
            },
            Some(epoch) => Body::Heartbeat(BrokerHeartbeat {
                id,
                epoch,
                current_metadata_offset: metadata_offset,
                want_fence: run.image.is_none(),
                want_shut_down: run.wants_shutdown,
                offline_log_dirs: Vec::new(),
            }),
        };
        let channel = around
            .network
            .connect(Purpose::Heartbeat, Node::Broker(id), to);
        run.heartbeat = Some(channel);
        around.network.send(channel, body);
        true
    }

    /// A controller answered a registration.
    pub(crate) fn on_registered(
        &mut self,
        channel: Channel,
        result: Result<BrokerEpoch, String>,
        around: &mut Around<'_>,
    ) {
        let id = self.id;
        let Some(run) = &mut self.run else { return };
        if run.heartbeat != Some(channel.back()) {
            return;
        }
        run.heartbeat = None;
        if let Ok(epoch) = result {
            around
                .notes
                .add(|| format!("{id}: registered with broker epoch {epoch}"));
            run.epoch = Some(epoch);
            self.last_epoch = Some(epoch);
        }
    }

    /// A controller answered a heartbeat. Gives whether the process may stop now.
    pub(crate) fn on_heartbeated(
        &mut self,
        channel: Channel,
        result: &Result<HeartbeatReply, String>,
        around: &mut Around<'_>,
    ) -> bool {
        let id = self.id;
        let Some(run) = &mut self.run else {
            return false;
        };
        if run.heartbeat != Some(channel.back()) {
            return false;
        }
        run.heartbeat = None;
        let Ok(reply) = result else { return false };
        if !reply.is_fenced() && !run.serves_clients {
            around.notes.add(|| format!("{id}: is in service"));
            run.serves_clients = true;
        }
        reply.should_shut_down()
    }

    /// Acts on metadata, unless it is older than this run's registration: what it says of this broker is about an
    /// earlier run, which may have had records that this one lacks.
    pub(crate) fn publish(&mut self, image: &Arc<ClusterImage>, around: &mut Around<'_>) {
        let id = self.id;
        let Some(run) = &mut self.run else { return };
        let has_own_registration = run.epoch.is_some_and(|epoch| image.offset() >= epoch.0);
        if !has_own_registration && !around.is_off(Rule::OwnRegistration) {
            return;
        }
        run.image = Some(Arc::clone(image));
        let assigned = partition(image);
        if !assigned.replicas.contains(&id) {
            self.remove_replica(around);
            return;
        }
        if !self.has_log {
            self.has_log = true;
            self.log.wipe();
        }
        self.take_config(image, around);
        self.take_leadership(image, around);
    }

    fn take_config(&mut self, image: &Arc<ClusterImage>, around: &mut Around<'_>) {
        let Some(topic) = image.topic(TOPIC) else {
            return;
        };
        let rules = TopicRules::of(image, topic, &ReplicationDefaults::default());
        let config = LeaderConfig {
            min_insync_replicas: match around.is_off(Rule::StrictMinIsr) {
                true => 1,
                false => rules.min_insync_replicas,
            },
            observers: rules.observers,
        };
        self.min_isr = rules.min_insync_replicas;
        let log = self.log.offsets();
        let now_ms = self.clock.read(around.now_ms);
        let directory = around.directory(image);
        let moment = Moment {
            now_ms,
            replica_lag_time_max_ms: around.setup.replica_lag_time_max_ms,
            brokers: &directory,
        };
        let Some(run) = &mut self.run else { return };
        if run.config.as_ref() == Some(&config) {
            return;
        }
        run.config = Some(config.clone());
        let effects = run.replica.on_config(config, log, &moment);
        self.carry_out(effects, around);
    }

    fn take_leadership(&mut self, image: &Arc<ClusterImage>, around: &mut Around<'_>) {
        let id = self.id;
        let assigned = partition(image);
        let mut leadership = Leadership {
            leader: assigned.leader,
            leader_epoch: assigned.leader_epoch,
            partition_epoch: assigned.partition_epoch,
            replicas: assigned.replicas.clone(),
            isr: assigned.isr.clone(),
        };
        let mut log = self.log.offsets();
        let end_offset = log.log_end_offset;
        let now_ms = self.clock.read(around.now_ms);
        let directory = around.directory(image);
        let moment = Moment {
            now_ms,
            replica_lag_time_max_ms: around.setup.replica_lag_time_max_ms,
            brokers: &directory,
        };
        let Some(run) = &mut self.run else { return };
        if around.is_off(Rule::EpochStart) && leadership.leader_epoch > run.replica.leader_epoch() {
            log.log_end_offset = log.high_watermark;
        }
        if around.is_off(Rule::OlderMetadata) {
            // Whatever comes looks new.
            let known = run.replica.partition_epoch();
            let next = PartitionEpoch(known.0 + 1);
            leadership.partition_epoch = leadership.partition_epoch.max(next);
        }
        let told = |role: String, changes: &str| {
            let (leader_epoch, partition_epoch) = (assigned.leader_epoch, assigned.partition_epoch);
            let isr = join(&assigned.isr);
            format!(
                "{id}: {role}{changes} (leader epoch {leader_epoch}, partition epoch {partition_epoch}, ISR {isr})"
            )
        };
        let before = run.replica.partition_epoch();
        match run.replica.on_leadership(&leadership, log, &moment) {
            RoleChange::Unchanged => {}
            RoleChange::Leader {
                mut effects,
                is_new_epoch,
            } => {
                let begin = if is_new_epoch {
                    format!(" from offset {end_offset}")
                } else {
                    String::new()
                };
                around.notes.add(|| told("leads".to_owned(), &begin));
                if let Some((_, offset)) = &mut effects.epoch_start {
                    *offset = end_offset;
                }
                if is_new_epoch {
                    self.begin_to_lead(around);
                }
                self.carry_out(effects, around);
            }
            RoleChange::Follower { is_new_epoch } => {
                if assigned.partition_epoch > before {
                    around.notes.add(|| match assigned.leader {
                        Some(leader) => told(format!("follows {leader}"), ""),
                        None => told("waits for a leader".to_owned(), ""),
                    });
                }
                if is_new_epoch {
                    self.fail_parked("NOT_LEADER_OR_FOLLOWER", around);
                    self.begin_to_follow(assigned.leader_epoch, around);
                }
            }
        }
    }

    fn begin_to_lead(&mut self, around: &mut Around<'_>) {
        let Some(run) = &mut self.run else { return };
        run.follower = None;
        run.fetch_connection = None;
        run.awaits_leader = false;
        let leader_epoch = run.replica.leader_epoch();
        around
            .history
            .on_begin_to_lead(self.id, leader_epoch, &self.log);
    }

    /// The replica is not assigned to this broker, any more or at all: its log goes.
    fn remove_replica(&mut self, around: &mut Around<'_>) {
        let id = self.id;
        if !self.has_log {
            return;
        }
        around.notes.add(|| format!("{id}: drops its replica"));
        self.fail_parked("NOT_LEADER_OR_FOLLOWER", around);
        self.has_log = false;
        self.log.wipe();
        if let Some(run) = &mut self.run {
            run.replica.on_removed();
            run.follower = None;
            run.fetch_connection = None;
            run.awaits_leader = false;
            run.config = None;
        }
    }

    fn fail_parked(&mut self, error: &'static str, around: &mut Around<'_>) {
        let Some(run) = &mut self.run else { return };
        for parked in std::mem::take(&mut run.parked) {
            around
                .history
                .on_answer(parked.value, Answer::Unknown(error));
            around.notes.add(|| format!("m{}: {error}", parked.value));
        }
    }

    /// Deletes records before an offset, as a leader: DeleteRecords, or retention.
    pub(crate) fn delete_records(&mut self, before: i64, around: &mut Around<'_>) -> bool {
        let leads = ask_leader!(self, around, |_state, log, _moment| {
            before > log.log_start_offset && before <= log.high_watermark
        });
        if leads != Some(true) {
            return false;
        }
        self.log.advance_start(before);
        let id = self.id;
        around.notes.add(|| format!("{id}: log begins at {before}"));
        true
    }
}
