//! One change of one partition: finishes a reassignment, keeps the eligible leader replicas, elects, and raises the
//! leader epoch where it must. Every change of a partition's leader, ISR or assignment is built here.
//!
//! The steps and their order are those of Kafka's controller; KIP-841 (fenced brokers), KIP-858 (log directories) and
//! KIP-966 (eligible leader replicas) are part of them.

use std::collections::BTreeSet;

use highwater_storage::types::BrokerId;
use uuid::Uuid;

use super::directories::LOST_DIRECTORY;
use super::image::{BrokerRegistration, ClusterImage, PartitionImage};
use super::placement::default_directory;
use super::records::{NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord};
use super::topic_rules::TopicRules;

/// Which replica shall lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// The preferred leader if it can, else as [`Election::Online`].
    Preferred,
    /// The current leader if it can, else the first that can without loss.
    Online,
    /// As [`Election::Online`], and when there is none, the first live replica although records may be lost.
    Unclean,
}

/// Builds the record of one change of one partition. What is not set stays.
#[derive(Debug)]
pub(super) struct PartitionChangeBuilder<'a> {
    image: &'a ClusterImage,
    rules: &'a TopicRules,
    partition_id: i32,
    partition: &'a PartitionImage,
    election: Election,
    departing: Option<BrokerId>,
    arriving: Option<BrokerId>,
    unclean_shutdown: Option<BrokerId>,
    target_isr: Vec<BrokerId>,
    target_replicas: Vec<BrokerId>,
    target_removing: Vec<BrokerId>,
    target_adding: Vec<BrokerId>,
    target_elr: Vec<BrokerId>,
    target_recovering: bool,
    target_directory: Option<(BrokerId, Uuid)>,
}

/// Who is elected, if anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Elected {
    leader: Option<BrokerId>,
    unclean: bool,
}

impl<'a> PartitionChangeBuilder<'a> {
    /// A change of `partition` that so far changes nothing but what must be.
    pub(super) fn new(
        image: &'a ClusterImage,
        rules: &'a TopicRules,
        partition_id: i32,
        partition: &'a PartitionImage,
    ) -> Self {
        Self {
            image,
            rules,
            partition_id,
            partition,
            election: Election::Online,
            departing: None,
            arriving: None,
            unclean_shutdown: None,
            target_isr: partition.isr.clone(),
            target_replicas: partition.replicas.clone(),
            target_removing: partition.removing_replicas.clone(),
            target_adding: partition.adding_replicas.clone(),
            target_elr: partition.eligible_leader_replicas.clone(),
            target_recovering: partition.recovering,
            target_directory: None,
        }
    }

    /// How to elect if there must be an election.
    pub(super) fn election(mut self, election: Election) -> Self {
        self.election = election;
        self
    }

    /// An unclean election if the topic's configuration allows it, else a clean one.
    pub(super) fn election_of_topic(self) -> Self {
        match self.rules.unclean_leader_election {
            true => self.election(Election::Unclean),
            false => self.election(Election::Online),
        }
    }

    /// Takes a broker out of the ISR; it cannot be elected, although the image still shows it as active.
    pub(super) fn departing(mut self, broker: BrokerId) -> Self {
        self.departing = Some(broker);
        self.target_isr.retain(|id| *id != broker);
        self
    }

    /// Lets a broker be elected, although the image still shows it as fenced.
    pub(super) fn arriving(mut self, broker: BrokerId) -> Self {
        self.arriving = Some(broker);
        self
    }

    /// Takes a broker that may have lost records out of the ISR and of the eligible leader replicas; it cannot be
    /// elected.
    pub(super) fn unclean_shutdown(mut self, broker: BrokerId) -> Self {
        self.unclean_shutdown = Some(broker);
        self.target_isr.retain(|id| *id != broker);
        self
    }

    /// The in-sync replicas there shall be.
    pub(super) fn target_isr(mut self, isr: Vec<BrokerId>) -> Self {
        self.target_isr = isr;
        self
    }

    /// The assignment there shall be.
    pub(super) fn target_replicas(mut self, replicas: Vec<BrokerId>) -> Self {
        self.target_replicas = replicas;
        self
    }

    /// The replicas that are being removed.
    pub(super) fn target_removing(mut self, removing: Vec<BrokerId>) -> Self {
        self.target_removing = removing;
        self
    }

    /// The replicas that are being added.
    pub(super) fn target_adding(mut self, adding: Vec<BrokerId>) -> Self {
        self.target_adding = adding;
        self
    }

    /// Whether the leader still recovers from an unclean election.
    pub(super) fn target_recovering(mut self, recovering: bool) -> Self {
        self.target_recovering = recovering;
        self
    }

    /// The log directory of the replica on `broker`.
    pub(super) fn target_directory(mut self, broker: BrokerId, directory: Uuid) -> Self {
        self.target_directory = Some((broker, directory));
        self
    }

    /// The record; `None` when it would change nothing.
    pub(super) fn build(mut self) -> Option<PartitionChangeRecord> {
        let unchanged = PartitionChangeRecord {
            partition_id: self.partition_id,
            topic_id: self.rules.topic_id.0,
            ..PartitionChangeRecord::default()
        };
        let mut record = unchanged.clone();
        self.complete_reassignment();
        self.keep_eligible_leader_replicas();
        self.elect(&mut record);
        self.raise_leader_epoch_when_a_replica_goes(&mut record);
        self.set_elr(&mut record);
        self.set_isr(&mut record);
        self.set_last_known_leader(&mut record);
        self.set_assignment(&mut record);
        if self.target_recovering != self.partition.recovering {
            record.leader_recovery_state = i8::from(self.target_recovering);
        }
        (record != unchanged).then_some(record)
    }

    /// Ends a reassignment once all replicas that stay are in sync. Observers are never in sync and not waited for.
    fn complete_reassignment(&mut self) {
        if self.target_removing.is_empty() && self.target_adding.is_empty() {
            return;
        }
        let stays = |id: &&BrokerId| !self.target_removing.contains(id);
        let isr: Vec<BrokerId> = self.target_isr.iter().filter(stays).copied().collect();
        let replicas: Vec<BrokerId> = self.target_replicas.iter().filter(stays).copied().collect();
        let in_sync = |id: &BrokerId| isr.contains(id) || self.rules.is_observer(*id);
        if isr.is_empty() || replicas.is_empty() || !replicas.iter().all(in_sync) {
            return;
        }
        self.target_isr = isr;
        self.target_replicas = replicas;
        self.target_removing.clear();
        self.target_adding.clear();
    }

    /// Who left the ISR while it was below min.insync.replicas has every committed record, unless it crashed.
    fn keep_eligible_leader_replicas(&mut self) {
        if !self.rules.is_elr_enabled {
            return;
        }
        if self.target_isr.len() >= self.rules.effective_min_isr(&self.target_replicas) {
            self.target_elr.clear();
            return;
        }
        let candidates: BTreeSet<BrokerId> = self
            .target_elr
            .iter()
            .chain(&self.partition.isr)
            .copied()
            .collect();
        let is_eligible = |id: &BrokerId| {
            !self.target_isr.contains(id)
                && self.unclean_shutdown != Some(*id)
                && self.target_replicas.contains(id)
                && !self.rules.is_observer(*id)
        };
        self.target_elr = candidates.into_iter().filter(is_eligible).collect();
    }

    fn elect(&mut self, record: &mut PartitionChangeRecord) {
        let elected = self.elected();
        if elected.leader == self.partition.leader {
            return;
        }
        record.leader = elected.leader.map_or(NO_LEADER, |leader| leader.0);
        let Some(leader) = elected.leader else {
            return;
        };
        if elected.unclean {
            // What the new leader has is what there is.
            record.isr = Some(vec![leader.0]);
            self.target_recovering = self.partition.recovering;
            if !self.partition.recovering {
                record.leader_recovery_state = 1;
            }
        } else if self.target_elr.contains(&leader) {
            self.target_isr = vec![leader];
            self.target_elr.retain(|id| *id != leader);
        }
    }

    fn elected(&self) -> Elected {
        let clean = |leader: BrokerId| Elected {
            leader: Some(leader),
            unclean: false,
        };
        let unclean = |leader: BrokerId| Elected {
            leader: Some(leader),
            unclean: true,
        };
        let preferred = match self.election {
            Election::Preferred => self.rules.preferred_leader(&self.target_replicas),
            Election::Online | Election::Unclean => None,
        };
        let without_loss = preferred
            .into_iter()
            .chain(self.partition.leader)
            .chain(self.target_replicas.iter().copied())
            .find(|id| self.has_all_records(*id) && self.is_acceptable(*id));
        if let Some(leader) = without_loss {
            return clean(leader);
        }
        if let Some(leader) = self.last_known_leader() {
            return unclean(leader);
        }
        if self.election == Election::Unclean
            && let Some(leader) = self
                .target_replicas
                .iter()
                .copied()
                .find(|id| self.is_acceptable(*id))
        {
            return unclean(leader);
        }
        Elected {
            leader: None,
            unclean: false,
        }
    }

    /// Whether a replica has every committed record: the ISR does; when it is empty, the eligible leader replicas do.
    fn has_all_records(&self, broker: BrokerId) -> bool {
        self.target_isr.contains(&broker)
            || (self.target_isr.is_empty() && self.target_elr.contains(&broker))
    }

    /// The last leader, when nobody else has all records and it is back (KIP-966; only if active, KAFKA-19522).
    fn last_known_leader(&self) -> Option<BrokerId> {
        if !self.rules.is_elr_enabled || !self.target_isr.is_empty() || !self.target_elr.is_empty()
        {
            return None;
        }
        match self.partition.last_known_elr.as_slice() {
            [leader] if self.target_replicas.contains(leader) && self.is_acceptable(*leader) => {
                Some(*leader)
            }
            _ => None,
        }
    }

    /// Whether a broker may lead: active, its log directory online, and no observer.
    fn is_acceptable(&self, broker: BrokerId) -> bool {
        if Some(broker) == self.departing
            || Some(broker) == self.unclean_shutdown
            || self.rules.is_observer(broker)
        {
            return false;
        }
        let is_fenced = |registration: &BrokerRegistration| {
            registration.fenced && Some(broker) != self.arriving
        };
        let registration = self.image.broker(broker);
        let may_serve = registration.is_some_and(|registration| {
            !registration.in_controlled_shutdown && !is_fenced(registration)
        });
        may_serve && self.has_online_directory(broker)
    }

    /// A replica that was lost counts as being where it is told to be now: it is the same log. One that comes up in
    /// another directory than it lay in may be an empty one, and counts as being there only afterwards.
    fn has_online_directory(&self, broker: BrokerId) -> bool {
        let directory = match self.partition.directory_of(broker) {
            LOST_DIRECTORY => self.target_directory_of(broker),
            directory => directory,
        };
        self.image.is_directory_online(broker, directory)
    }

    /// A replica that is gone must not be taken for an in-sync one when it is added again, empty.
    fn raise_leader_epoch_when_a_replica_goes(&self, record: &mut PartitionChangeRecord) {
        let all_stay = self
            .partition
            .replicas
            .iter()
            .all(|id| self.target_replicas.contains(id));
        if record.leader == NO_LEADER_CHANGE && !all_stay {
            record.leader = self.partition.leader.map_or(NO_LEADER, |leader| leader.0);
        }
    }

    fn set_elr(&mut self, record: &mut PartitionChangeRecord) {
        let is_unclean = record.isr.is_some();
        if is_unclean || !self.rules.is_elr_enabled {
            self.target_elr.clear();
        }
        if self.target_elr != self.partition.eligible_leader_replicas {
            record.eligible_leader_replicas = Some(raw(&self.target_elr));
        }
    }

    /// Without eligible leader replicas the last in-sync replica stays listed, so that it is known who has all records.
    fn set_isr(&self, record: &mut PartitionChangeRecord) {
        let may_be_empty = self.rules.is_elr_enabled;
        if record.isr.is_none()
            && (may_be_empty || !self.target_isr.is_empty())
            && self.target_isr != self.partition.isr
        {
            record.isr = Some(raw(&self.target_isr));
        }
    }

    fn set_last_known_leader(&self, record: &mut PartitionChangeRecord) {
        if !self.rules.is_elr_enabled {
            return;
        }
        let current = &self.partition.last_known_elr;
        let isr_becomes_empty = record.isr.as_ref().is_some_and(Vec::is_empty);
        if isr_becomes_empty
            && let Some(leader) = self.partition.leader
            && self.target_replicas.contains(&leader)
            && current.as_slice() != [leader]
        {
            record.last_known_elr = Some(vec![leader.0]);
            return;
        }
        let will_have_leader = match record.leader {
            NO_LEADER_CHANGE => self.partition.leader.is_some(),
            leader => leader != NO_LEADER,
        };
        let is_gone = !current.iter().all(|id| self.target_replicas.contains(id));
        if (will_have_leader || is_gone) && !current.is_empty() {
            record.last_known_elr = Some(Vec::new());
        }
    }

    fn set_assignment(&self, record: &mut PartitionChangeRecord) {
        if !self.target_replicas.is_empty() {
            let directories: Vec<Uuid> = self
                .target_replicas
                .iter()
                .map(|id| self.target_directory_of(*id))
                .collect();
            if directories != self.partition.directories {
                record.directories = Some(directories);
            }
            if self.target_replicas != self.partition.replicas {
                record.replicas = Some(raw(&self.target_replicas));
            }
        }
        if self.target_removing != self.partition.removing_replicas {
            record.removing_replicas = Some(raw(&self.target_removing));
        }
        if self.target_adding != self.partition.adding_replicas {
            record.adding_replicas = Some(raw(&self.target_adding));
        }
    }

    fn target_directory_of(&self, broker: BrokerId) -> Uuid {
        match self.target_directory {
            Some((changed, directory)) if changed == broker => directory,
            _ if self.partition.replicas.contains(&broker) => self.partition.directory_of(broker),
            _ => default_directory(self.image, broker),
        }
    }
}

fn raw(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}
