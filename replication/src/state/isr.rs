//! The in-sync replicas of a leader: committed by the controller, or with one change on its way (KIP-497).

use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch};

/// Tells one proposed change from all others of the same leader, so that a late answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IsrProposalId(pub u64);

/// A member of proposed in-sync replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsrMember {
    /// The broker.
    pub broker: BrokerId,
    /// The run of it that fetched; -1 when not known. The controller refuses any other run.
    pub broker_epoch: BrokerEpoch,
}

/// In-sync replicas that a leader asks the controller for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrProposal {
    /// Which proposal this is.
    pub id: IsrProposalId,
    /// The epoch in which the leader asks.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition's metadata that it wants to replace.
    pub partition_epoch: PartitionEpoch,
    /// The members, the leader among them.
    pub isr: Vec<IsrMember>,
}

/// A change of the in-sync replicas that the controller has not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// One replica is to join.
    Expand(BrokerId),
    /// These are to leave.
    Shrink(Vec<BrokerId>),
}

/// The in-sync replicas as their leader sees them.
///
/// While a change is pending nobody knows whether it holds: for whatever must be safe, the larger
/// set counts ([`is_maximal_member`](Self::is_maximal_member)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrState {
    committed: Vec<BrokerId>,
    pending: Option<(Change, IsrProposal)>,
}

impl IsrState {
    /// In-sync replicas as the controller committed them.
    #[must_use]
    pub fn committed_as(isr: Vec<BrokerId>) -> Self {
        Self {
            committed: isr,
            pending: None,
        }
    }

    /// The committed in-sync replicas.
    #[must_use]
    pub fn committed(&self) -> &[BrokerId] {
        &self.committed
    }

    /// Whether a replica is in the maximal in-sync replicas: committed, or about to join. One that
    /// is about to leave is still in.
    #[must_use]
    pub fn is_maximal_member(&self, replica: BrokerId) -> bool {
        self.committed.contains(&replica) || self.candidate() == Some(replica)
    }

    /// The size of the maximal in-sync replicas.
    #[must_use]
    pub fn maximal_len(&self) -> usize {
        self.committed.len() + usize::from(self.candidate().is_some())
    }

    /// The maximal in-sync replicas.
    pub fn maximal(&self) -> impl Iterator<Item = BrokerId> {
        self.committed.iter().copied().chain(self.candidate())
    }

    /// The replica that is about to join.
    #[must_use]
    pub fn candidate(&self) -> Option<BrokerId> {
        match &self.pending {
            Some((Change::Expand(candidate), _)) => Some(*candidate),
            _ => None,
        }
    }

    /// The replicas that are about to leave.
    #[must_use]
    pub fn leaving(&self) -> &[BrokerId] {
        match &self.pending {
            Some((Change::Shrink(leaving), _)) => leaving,
            _ => &[],
        }
    }

    /// The change that is pending.
    #[must_use]
    pub fn pending(&self) -> Option<&IsrProposal> {
        self.pending.as_ref().map(|(_, proposal)| proposal)
    }

    /// Proposes that `candidate` joins. There must be no change pending.
    pub fn expand(&mut self, candidate: BrokerId, proposal: IsrProposal) {
        debug_assert!(self.pending.is_none(), "one change at a time");
        self.pending = Some((Change::Expand(candidate), proposal));
    }

    /// Proposes that `leaving` leave. There must be no change pending.
    pub fn shrink(&mut self, leaving: Vec<BrokerId>, proposal: IsrProposal) {
        debug_assert!(self.pending.is_none(), "one change at a time");
        self.pending = Some((Change::Shrink(leaving), proposal));
    }

    /// The controller says that the pending change was not and never will be applied.
    pub fn roll_back(&mut self) {
        self.pending = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal() -> IsrProposal {
        IsrProposal {
            id: IsrProposalId(1),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            isr: Vec::new(),
        }
    }

    fn brokers(ids: &[i32]) -> Vec<BrokerId> {
        ids.iter().copied().map(BrokerId).collect()
    }

    #[test]
    fn while_an_expansion_is_pending_the_candidate_counts_as_a_member() {
        let mut isr = IsrState::committed_as(brokers(&[1, 2]));
        assert!(!isr.is_maximal_member(BrokerId(3)));
        isr.expand(BrokerId(3), proposal());
        assert_eq!(isr.committed(), brokers(&[1, 2]));
        assert_eq!(isr.maximal().collect::<Vec<_>>(), brokers(&[1, 2, 3]));
        assert_eq!(isr.maximal_len(), 3);
        assert!(isr.is_maximal_member(BrokerId(3)));
        isr.roll_back();
        assert_eq!(isr, IsrState::committed_as(brokers(&[1, 2])));
    }

    #[test]
    fn while_a_shrink_is_pending_those_who_leave_are_still_members() {
        let mut isr = IsrState::committed_as(brokers(&[1, 2, 3]));
        isr.shrink(brokers(&[2, 3]), proposal());
        assert_eq!(isr.maximal().collect::<Vec<_>>(), brokers(&[1, 2, 3]));
        assert_eq!(isr.maximal_len(), 3);
        assert!(isr.is_maximal_member(BrokerId(3)));
        assert_eq!(isr.leaving(), brokers(&[2, 3]));
        assert_eq!(isr.candidate(), None);
    }
}
