//! AlterPartition: a leader asks for another ISR (KIP-497); the controller compares epochs and members first, in
//! Kafka's order (KIP-841, KIP-903).

use std::collections::BTreeSet;

use highwater_storage::types::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId};

use super::brokers::check_broker_epoch;
use super::error::ClusterError;
use super::image::{ClusterImage, PartitionImage, TopicImage};
use super::partition_change::PartitionChangeBuilder;
use super::records::{MetadataRecord, NO_LEADER_CHANGE};
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// The ISR that a leader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrProposal {
    /// The topic.
    pub topic_id: TopicId,
    /// The partition.
    pub partition: i32,
    /// The epoch that the sender leads in.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition that the proposal is based on.
    pub partition_epoch: PartitionEpoch,
    /// The members with the epochs that they fetched with; `None` when one is not known.
    pub new_isr: Vec<(BrokerId, Option<BrokerEpoch>)>,
    /// Whether the leader still recovers from an unclean election.
    pub recovering: bool,
}

/// What a leader is told of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// The leader.
    pub leader: Option<BrokerId>,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// The in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Whether the leader still recovers from an unclean election.
    pub recovering: bool,
    /// Version of the partition.
    pub partition_epoch: PartitionEpoch,
}

impl From<&PartitionImage> for PartitionState {
    fn from(partition: &PartitionImage) -> Self {
        Self {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            isr: partition.isr.clone(),
            recovering: partition.recovering,
            partition_epoch: partition.partition_epoch,
        }
    }
}

/// What became of one proposal.
pub type IsrProposalResult = Result<PartitionState, ClusterError>;

/// The records of what can be changed, and a result for each proposal in its order. An error refuses the whole request.
pub fn alter_partition(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    broker_id: BrokerId,
    broker_epoch: BrokerEpoch,
    proposals: &[IsrProposal],
) -> Result<(Vec<MetadataRecord>, Vec<IsrProposalResult>), ClusterError> {
    check_broker_epoch(image, broker_id, broker_epoch)?;
    let mut records = Vec::new();
    let mut changed: BTreeSet<(TopicId, i32)> = BTreeSet::new();
    let results = proposals
        .iter()
        .map(|proposal| {
            let key = (proposal.topic_id, proposal.partition);
            if changed.contains(&key) {
                // The first proposal for the partition has raised its epoch.
                return Err(stale_partition_epoch(
                    &format!("partition {}", proposal.partition),
                    proposal,
                    PartitionEpoch(proposal.partition_epoch.0 + 1),
                ));
            }
            let before = records.len();
            let result = judge(image, defaults, broker_id, proposal, &mut records);
            if records.len() > before {
                changed.insert(key);
            }
            result
        })
        .collect();
    Ok((records, results))
}

fn judge(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    sender: BrokerId,
    proposal: &IsrProposal,
    records: &mut Vec<MetadataRecord>,
) -> IsrProposalResult {
    let topic = image.topic_by_id(proposal.topic_id);
    let topic = topic.ok_or(ClusterError::UnknownTopicId)?;
    let partition = topic
        .partition(proposal.partition)
        .ok_or_else(ClusterError::unknown_topic)?;
    let rules = TopicRules::of(image, topic, defaults);
    validate(image, &rules, topic, partition, sender, proposal)?;
    let builder = PartitionChangeBuilder::new(image, &rules, proposal.partition, partition)
        .election_of_topic()
        .target_isr(proposal.new_isr.iter().map(|(id, _)| *id).collect())
        .target_recovering(proposal.recovering);
    let Some(record) = builder.build() else {
        return Ok(PartitionState::from(&**partition));
    };
    let mut after = PartitionImage::clone(partition);
    after
        .merge(&record)
        .map_err(|error| ClusterError::UnknownServerError(error.to_string()))?;
    let leader = record.leader;
    records.push(record.into());
    if leader != NO_LEADER_CHANGE && leader != sender.0 {
        // The change ended a reassignment: it is made, and the sender leads no longer.
        return Err(ClusterError::NewLeaderElected(format!(
            "the change of {}-{} took the leadership from broker {sender}",
            topic.name, proposal.partition
        )));
    }
    Ok(PartitionState::from(&after))
}

/// Refuses a proposal that is out of date or breaks a rule. The order of the checks is Kafka's: clients act on which
/// fails first.
fn validate(
    image: &ClusterImage,
    rules: &TopicRules,
    topic: &TopicImage,
    partition: &PartitionImage,
    sender: BrokerId,
    proposal: &IsrProposal,
) -> Result<(), ClusterError> {
    let name = format!("{}-{}", topic.name, proposal.partition);
    let (leader_epoch, partition_epoch) = (partition.leader_epoch, partition.partition_epoch);
    if proposal.leader_epoch > leader_epoch || proposal.partition_epoch > partition_epoch {
        return Err(ClusterError::NotController(format!(
            "broker {sender} knows {name} at leader epoch {} and partition epoch {}, this controller at {leader_epoch} \
             and {partition_epoch}",
            proposal.leader_epoch, proposal.partition_epoch
        )));
    }
    if proposal.leader_epoch < leader_epoch {
        return Err(ClusterError::FencedLeaderEpoch(format!(
            "leader epoch of {name} is {leader_epoch}, not {}",
            proposal.leader_epoch
        )));
    }
    let invalid = |text: String| Err(ClusterError::InvalidRequest(text));
    if partition.leader != Some(sender) {
        return invalid(format!("{name} is not led by broker {sender}"));
    }
    if proposal.partition_epoch < partition_epoch {
        return Err(stale_partition_epoch(&name, proposal, partition_epoch));
    }
    let members: Vec<BrokerId> = proposal.new_isr.iter().map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    let is_valid = |id: &BrokerId| partition.replicas.contains(id) && seen.insert(*id);
    if !members.iter().all(is_valid) {
        return invalid(format!("{members:?} cannot be the ISR of {name}"));
    }
    if !members.contains(&sender) {
        return invalid(format!(
            "the ISR {members:?} of {name} lacks its leader {sender}"
        ));
    }
    if proposal.recovering && members.len() > 1 {
        return invalid(format!(
            "the leader of {name} still recovers, nobody else can be in sync"
        ));
    }
    if proposal.recovering && !partition.recovering {
        return invalid(format!("the leader of {name} has recovered already"));
    }
    let ineligible: Vec<String> = proposal
        .new_isr
        .iter()
        .filter_map(|(id, epoch)| {
            Some(format!(
                "{id} ({})",
                why_ineligible(image, rules, *id, *epoch)?
            ))
        })
        .collect();
    match ineligible.is_empty() {
        true => Ok(()),
        false => Err(ClusterError::IneligibleReplica(format!(
            "not eligible for the ISR of {name}: {}",
            ineligible.join(", ")
        ))),
    }
}

fn why_ineligible(
    image: &ClusterImage,
    rules: &TopicRules,
    id: BrokerId,
    epoch: Option<BrokerEpoch>,
) -> Option<String> {
    let Some(broker) = image.broker(id) else {
        return Some("not registered".to_owned());
    };
    if broker.in_controlled_shutdown {
        return Some("shutting down".to_owned());
    }
    if broker.fenced {
        return Some("fenced".to_owned());
    }
    if rules.is_observer(id) {
        return Some("an observer".to_owned());
    }
    match epoch {
        Some(epoch) if epoch != broker.epoch => Some(format!(
            "fetched with broker epoch {epoch}, registered with {}",
            broker.epoch
        )),
        _ => None,
    }
}

fn stale_partition_epoch(
    name: &str,
    proposal: &IsrProposal,
    current: PartitionEpoch,
) -> ClusterError {
    ClusterError::InvalidUpdateVersion(format!(
        "partition epoch of {name} is {current}, not {}",
        proposal.partition_epoch
    ))
}
