//! The controllers. Each judges requests against the metadata that it has, with the product's rules; only the one that
//! was elected last can commit. One that was deposed may not know it yet.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use highwater_replication::cluster::alter_partition::{IsrProposal, alter_partition};
use highwater_replication::cluster::broker_changes::fence_broker;
use highwater_replication::cluster::configs::{
    ConfigOperation, ConfigRules, incremental_alter_configs,
};
use highwater_replication::cluster::elect_leaders::{
    ElectionType, balance_leaders, elect_leaders, elect_unclean_leaders,
};
use highwater_replication::cluster::heartbeat::{BrokerHeartbeat, broker_heartbeat};
use highwater_replication::cluster::liveness::{BrokerLiveness, LivenessConfig};
use highwater_replication::cluster::reassign::{Reassignment, alter_partition_reassignments};
use highwater_replication::cluster::records::NoOpRecord;
use highwater_replication::cluster::registration::{BrokerRegistrationRequest, register_broker};
use highwater_replication::cluster::{
    ClusterError, ClusterImage, ConfigMap, ConfigResource, MetadataRecord, ReplicationDefaults,
    ResourceType,
};
use highwater_replication::state::alter_partition::AlteredPartition;
use highwater_replication::state::replica_progress::UNSPECIFIED_BROKER_EPOCH;
use highwater_storage::{BrokerEpoch, BrokerId};

use super::errors::{alter_error, error_name};
use super::message::{Body, Channel, Node};
use super::metadata::{
    CLUSTER_ID, Entry, TOPIC, TOPIC_ID, all_unfenced, config, features, log_dir, partition,
};
use super::notes::Notes;
use super::rules::Rule;
use super::setup::join;

/// What is to be told or done once an entry is committed.
#[derive(Debug, Clone)]
pub(crate) enum AfterCommit {
    Reply(Channel, Body),
    Registered(BrokerId, BrokerEpoch),
    ControlledShutdown(BrokerId, BrokerEpoch, i64),
}

/// An entry that was written and is not committed.
#[derive(Debug, Clone)]
pub(crate) struct Uncommitted {
    pub(crate) entry: Entry,
    pub(crate) after: Vec<AfterCommit>,
}

/// What a controller has while it believes that it is the active one.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) term: i32,
    pub(crate) liveness: BrokerLiveness,
    pub(crate) uncommitted: Option<Uncommitted>,
    /// Requests that wait until that is committed.
    waiting: VecDeque<(Channel, Body)>,
}

/// A controller process.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) id: usize,
    /// The committed metadata that it has.
    pub(crate) image: Arc<ClusterImage>,
    pub(crate) active: Option<Active>,
}

/// What an administrator, or the controller itself, wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Fences the broker that was silent for longest, if it was for too long.
    SessionCheck,
    /// Fences this broker, as if it had been silent for its session.
    Fence(BrokerId),
    /// Gives the leadership back to the preferred leader.
    Balance,
    /// Elects where nobody leads and the topic allows an unclean election.
    UncleanCheck,
    /// kafka-leader-election.
    Elect(ElectionKind),
    /// kafka-reassign-partitions; `None` cancels.
    Reassign(Option<Vec<i32>>),
    /// kafka-configs for the topic.
    Configure(String, String),
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionCheck => f.write_str("session-check"),
            Self::Fence(broker) => write!(f, "fence {broker}"),
            Self::Balance => f.write_str("balance"),
            Self::UncleanCheck => f.write_str("unclean-check"),
            Self::Elect(ElectionKind::Preferred) => f.write_str("elect-preferred"),
            Self::Elect(ElectionKind::Unclean) => f.write_str("elect-unclean"),
            Self::Reassign(Some(replicas)) => write!(f, "reassign {}", join(replicas)),
            Self::Reassign(None) => f.write_str("cancel-reassignment"),
            Self::Configure(key, value) => write!(f, "configure {key}={value}"),
        }
    }
}

/// Which election is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElectionKind {
    Preferred,
    Unclean,
}

/// Accepts every configuration.
struct AnyConfig;

impl ConfigRules for AnyConfig {
    fn is_list(&self, _: ResourceType, _: &str) -> bool {
        false
    }

    fn default_value(&self, _: ResourceType, _: &str) -> Option<String> {
        None
    }

    fn validate(
        &self,
        _: &ConfigResource,
        _: &ConfigMap,
        _: &ConfigMap,
    ) -> Result<(), ClusterError> {
        Ok(())
    }
}

/// What a controller works with.
pub(crate) struct Desk<'a> {
    pub(crate) notes: &'a mut Notes,
    pub(crate) now_ms: i64,
    pub(crate) session_timeout_ms: i64,
    pub(crate) off: Option<Rule>,
    /// Answers that need no commit.
    pub(crate) replies: Vec<(Channel, Body)>,
}

impl Controller {
    /// It was elected, and has all that is committed.
    pub(crate) fn on_elected(&mut self, term: i32, image: Arc<ClusterImage>, desk: &Desk<'_>) {
        let config = LivenessConfig::new(desk.session_timeout_ms);
        self.active = Some(Active {
            term,
            liveness: BrokerLiveness::new(config, &image, desk.now_ms),
            uncommitted: Some(Uncommitted {
                entry: Entry {
                    records: vec![NoOpRecord {}.into()],
                    term,
                },
                after: Vec::new(),
            }),
            waiting: VecDeque::new(),
        });
        self.image = image;
    }

    /// It hears that another one was elected. What it wrote since is gone; who waits for it hears nothing.
    pub(crate) fn on_deposed(&mut self, image: Arc<ClusterImage>) {
        self.active = None;
        self.image = image;
    }

    /// A request arrived.
    pub(crate) fn on_request(&mut self, channel: Channel, body: Body, desk: &mut Desk<'_>) {
        match &mut self.active {
            None => desk
                .replies
                .push((channel.back(), refusal(&body, "NOT_CONTROLLER"))),
            Some(active) if active.uncommitted.is_some() => {
                active.waiting.push_back((channel, body))
            }
            Some(_) => self.judge(channel, body, desk),
        }
    }

    /// Its entry was committed.
    pub(crate) fn on_committed(&mut self, image: Arc<ClusterImage>, desk: &mut Desk<'_>) {
        self.image = image;
        let Some(active) = &mut self.active else {
            return;
        };
        for after in active
            .uncommitted
            .take()
            .into_iter()
            .flat_map(|entry| entry.after)
        {
            match after {
                AfterCommit::Reply(channel, body) => desk.replies.push((channel, body)),
                AfterCommit::Registered(id, epoch) => {
                    active.liveness.on_registered(id, epoch, desk.now_ms);
                }
                AfterCommit::ControlledShutdown(id, epoch, offset) => {
                    active.liveness.on_controlled_shutdown(id, epoch, offset);
                }
            }
        }
        self.judge_waiting(desk);
    }

    fn judge_waiting(&mut self, desk: &mut Desk<'_>) {
        while let Some(active) = &mut self.active
            && active.uncommitted.is_none()
            && let Some((channel, body)) = active.waiting.pop_front()
        {
            self.judge(channel, body, desk);
        }
    }

    /// Does what is wished, if it is the active controller and has nothing on its way. Gives why not otherwise.
    pub(crate) fn on_wish(&mut self, wish: &Wish, desk: &mut Desk<'_>) -> Result<(), String> {
        let image = self.judged_image(desk.off.filter(|rule| *rule == Rule::CleanElection));
        let defaults = ReplicationDefaults::default();
        let active = self.active.as_mut().ok_or("not the active controller")?;
        if active.uncommitted.is_some() {
            return Err("something is not committed yet".to_owned());
        }
        let text = |error: ClusterError| error_name(&error);
        let records = match wish {
            Wish::SessionCheck => match active.liveness.expired_broker(&image, desk.now_ms) {
                None => Vec::new(),
                Some(id) => {
                    desk.notes
                        .add(|| format!("C{}: broker {id} was silent for too long", self.id));
                    fence_broker(&image, &defaults, id).map_err(text)?
                }
            },
            Wish::Fence(id) => {
                if let Some(broker) = image.broker(*id) {
                    active.liveness.on_session_end(*id, broker.epoch);
                }
                fence_broker(&image, &defaults, *id).map_err(text)?
            }
            Wish::Balance => balance_leaders(&image, &defaults, 10).0,
            Wish::UncleanCheck => elect_unclean_leaders(&image, &defaults, 10).0,
            Wish::Elect(kind) => {
                let kind = match kind {
                    ElectionKind::Preferred => ElectionType::Preferred,
                    ElectionKind::Unclean => ElectionType::Unclean,
                };
                let asked = [(TOPIC.to_owned(), vec![0])];
                let (records, results) =
                    elect_leaders(&image, &defaults, kind, Some(&asked)).map_err(text)?;
                let mut results = results.into_iter().flat_map(|(_, results)| results);
                results.try_for_each(|(_, result)| result).map_err(text)?;
                records
            }
            Wish::Reassign(replicas) => {
                let asked = [Reassignment {
                    topic: TOPIC.to_owned(),
                    partition: 0,
                    replicas: replicas.clone(),
                }];
                let judged = alter_partition_reassignments(&image, &defaults, &asked, true);
                let (records, results) = judged.map_err(text)?;
                results
                    .into_iter()
                    .collect::<Result<(), _>>()
                    .map_err(text)?;
                records
            }
            Wish::Configure(key, value) => {
                let operations = [(key.clone(), ConfigOperation::Set(value.clone()))];
                let topic = ConfigResource::topic(TOPIC);
                incremental_alter_configs(&image, &topic, &operations, &AnyConfig).map_err(text)?
            }
        };
        self.write(records, Vec::new());
        Ok(())
    }

    /// The image that requests are judged on: the committed one, unless a rule is off that looks at it.
    fn judged_image(&self, off: Option<Rule>) -> Arc<ClusterImage> {
        let doctored: Vec<MetadataRecord> = match off {
            Some(Rule::CleanElection) => vec![config("unclean.leader.election.enable", "true")],
            Some(Rule::ActiveIsr) => all_unfenced(&self.image),
            _ => return Arc::clone(&self.image),
        };
        let applied = self
            .image
            .apply(&doctored, self.image.offset(), self.image.epoch());
        Arc::new(applied.expect("records fit").0)
    }

    fn judge(&mut self, channel: Channel, body: Body, desk: &mut Desk<'_>) {
        let Node::Broker(sender) = channel.from else {
            return;
        };
        match body {
            Body::Register {
                incarnation,
                previous_broker_epoch,
            } => {
                let request = BrokerRegistrationRequest {
                    id: sender,
                    cluster_id: CLUSTER_ID.to_owned(),
                    incarnation_id: incarnation,
                    end_points: Vec::new(),
                    features: features(),
                    rack: None,
                    log_dirs: vec![log_dir(sender)],
                    previous_broker_epoch,
                };
                self.register(channel.back(), request, desk);
            }
            Body::Heartbeat(heartbeat) => self.heartbeat(channel.back(), &heartbeat, desk),
            Body::Alter {
                broker_epoch,
                proposal,
            } => self.alter(sender, channel.back(), broker_epoch, proposal, desk),
            _ => {}
        }
    }

    fn register(
        &mut self,
        reply_to: Channel,
        request: BrokerRegistrationRequest,
        desk: &mut Desk<'_>,
    ) {
        let image = self.judged_image(desk.off.filter(|rule| *rule == Rule::CleanElection));
        let Some(active) = &self.active else { return };
        let id = request.id;
        let defaults = ReplicationDefaults::default();
        let judged = register_broker(&image, &defaults, &active.liveness, request, desk.now_ms);
        match judged {
            Ok((records, epoch)) => {
                let reply = AfterCommit::Reply(reply_to, Body::Registered(Ok(epoch)));
                self.write(records, vec![reply, AfterCommit::Registered(id, epoch)]);
            }
            Err(error) => {
                let error = error_name(&error);
                desk.notes
                    .add(|| format!("C{}: refuses the registration of {id}: {error}", self.id));
                desk.replies.push((reply_to, Body::Registered(Err(error))));
            }
        }
    }

    fn heartbeat(&mut self, reply_to: Channel, heartbeat: &BrokerHeartbeat, desk: &mut Desk<'_>) {
        let image = self.judged_image(desk.off.filter(|rule| *rule == Rule::CleanElection));
        let Some(active) = &mut self.active else {
            return;
        };
        let (id, epoch) = (heartbeat.id, heartbeat.epoch);
        let offset = heartbeat.current_metadata_offset;
        let now_ms = desk.now_ms;
        active
            .liveness
            .on_heartbeat(&self.image, id, epoch, offset, now_ms);
        let defaults = ReplicationDefaults::default();
        let judged = broker_heartbeat(&image, &defaults, &active.liveness, heartbeat);
        match judged {
            Ok((records, reply)) => {
                let mut after = vec![AfterCommit::Reply(reply_to, Body::Heartbeated(Ok(reply)))];
                if let Some(offset) = reply.controlled_shutdown_offset {
                    after.push(AfterCommit::ControlledShutdown(id, epoch, offset));
                }
                self.write_or_reply(records, after, desk);
            }
            Err(error) => {
                let error = error_name(&error);
                desk.notes
                    .add(|| format!("C{}: refuses the heartbeat of {id}: {error}", self.id));
                desk.replies.push((reply_to, Body::Heartbeated(Err(error))));
            }
        }
    }

    fn alter(
        &mut self,
        sender: BrokerId,
        reply_to: Channel,
        broker_epoch: BrokerEpoch,
        proposal: highwater_replication::state::isr::IsrProposal,
        desk: &mut Desk<'_>,
    ) {
        let image = self.judged_image(desk.off);
        let mut asked = IsrProposal {
            topic_id: TOPIC_ID,
            partition: 0,
            leader_epoch: proposal.leader_epoch,
            partition_epoch: proposal.partition_epoch,
            new_isr: proposal
                .isr
                .iter()
                .map(|member| {
                    let epoch = member.broker_epoch;
                    (
                        member.broker,
                        (epoch != UNSPECIFIED_BROKER_EPOCH).then_some(epoch),
                    )
                })
                .collect(),
            recovering: false,
        };
        if desk.off == Some(Rule::PartitionEpoch) {
            asked.partition_epoch = partition(&image).partition_epoch;
        }
        let defaults = ReplicationDefaults::default();
        let judged = alter_partition(&image, &defaults, sender, broker_epoch, &[asked]);
        let (records, result) = match judged {
            Ok((records, results)) => (records, results.into_iter().next()),
            Err(error) => {
                let error = error_name(&error);
                desk.notes
                    .add(|| format!("C{}: refuses AlterPartition of {sender}: {error}", self.id));
                desk.replies.push((
                    reply_to,
                    Body::Altered {
                        proposal,
                        result: None,
                    },
                ));
                return;
            }
        };
        let result = result.map(|result| match result {
            Ok(state) => Ok(AlteredPartition {
                leader: state.leader,
                leader_epoch: state.leader_epoch,
                partition_epoch: state.partition_epoch,
                isr: state.isr,
            }),
            Err(error) => {
                let name = error_name(&error);
                desk.notes
                    .add(|| format!("C{}: answers {name} to {sender}", self.id));
                Err(alter_error(&error))
            }
        });
        let reply = AfterCommit::Reply(reply_to, Body::Altered { proposal, result });
        self.write_or_reply(records, vec![reply], desk);
    }

    /// Writes records, or does at once what is to be done after them when there are none.
    fn write_or_reply(
        &mut self,
        records: Vec<MetadataRecord>,
        after: Vec<AfterCommit>,
        desk: &mut Desk<'_>,
    ) {
        if !records.is_empty() {
            self.write(records, after);
            return;
        }
        for after in after {
            match after {
                AfterCommit::Reply(channel, body) => desk.replies.push((channel, body)),
                AfterCommit::Registered(..) => {}
                AfterCommit::ControlledShutdown(id, epoch, offset) => {
                    if let Some(active) = &mut self.active {
                        active.liveness.on_controlled_shutdown(id, epoch, offset);
                    }
                }
            }
        }
    }

    fn write(&mut self, records: Vec<MetadataRecord>, after: Vec<AfterCommit>) {
        if let Some(active) = &mut self.active
            && !records.is_empty()
        {
            let term = active.term;
            let entry = Entry { records, term };
            active.uncommitted = Some(Uncommitted { entry, after });
        }
    }
}

/// The answer of somebody who does not judge the request.
fn refusal(request: &Body, error: &str) -> Body {
    match request {
        Body::Register { .. } => Body::Registered(Err(error.to_owned())),
        Body::Alter { proposal, .. } => Body::Altered {
            proposal: proposal.clone(),
            result: None,
        },
        _ => Body::Heartbeated(Err(error.to_owned())),
    }
}
