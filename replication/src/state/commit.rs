//! `acks` and `min.insync.replicas`: when a produce may be appended, and when it is committed.
//!
//! There are two windows in which `acks=all` fails. Before the append nothing is written
//! ([`admit_append`]); after it the records stay in the log and only the promise is refused
//! ([`commit_status`]).

/// What the producer asked to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// `acks=0`: no answer at all.
    None,
    /// `acks=1`: the leader's own append.
    Leader,
    /// `acks=all` (-1): every member of the in-sync replicas.
    All,
}

impl Acks {
    /// Reads the number of the wire; `None` for anything but -1, 0 and 1
    /// (`INVALID_REQUIRED_ACKS`).
    #[must_use]
    pub fn from_wire(acks: i16) -> Option<Self> {
        match acks {
            0 => Some(Self::None),
            1 => Some(Self::Leader),
            -1 => Some(Self::All),
            _ => None,
        }
    }
}

/// The minimum that counts: `min.insync.replicas`, capped by the number of replicas.
#[must_use]
pub fn effective_min_isr(min_insync_replicas: usize, replica_count: usize) -> usize {
    min_insync_replicas.min(replica_count.max(1))
}

/// Window 1: whether a produce may be appended at all. `acks` 0 and 1 ignore the in-sync replicas.
///
/// Returns false for `NOT_ENOUGH_REPLICAS`; nothing may be written then.
#[must_use]
pub fn admit_append(acks: Acks, committed_isr: usize, effective_min_isr: usize) -> bool {
    acks != Acks::All || committed_isr >= effective_min_isr
}

/// Where an appended `acks=all` produce stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStatus {
    /// The high watermark has not reached the end of the batch yet.
    Waiting,
    /// Every in-sync replica has it, and there are enough of them.
    Committed,
    /// Window 2: replicated, but to fewer replicas than the minimum
    /// (`NOT_ENOUGH_REPLICAS_AFTER_APPEND`).
    NotEnoughReplicasAfterAppend,
}

/// Judges an appended produce whose last offset plus one is `required_offset`.
#[must_use]
pub fn commit_status(
    high_watermark: i64,
    required_offset: i64,
    maximal_isr: usize,
    effective_min_isr: usize,
) -> CommitStatus {
    if high_watermark < required_offset {
        CommitStatus::Waiting
    } else if maximal_isr >= effective_min_isr {
        CommitStatus::Committed
    } else {
        CommitStatus::NotEnoughReplicasAfterAppend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_values_of_acks_exist() {
        assert_eq!(Acks::from_wire(-1), Some(Acks::All));
        assert_eq!(Acks::from_wire(0), Some(Acks::None));
        assert_eq!(Acks::from_wire(1), Some(Acks::Leader));
        assert_eq!(Acks::from_wire(2), None);
        assert_eq!(Acks::from_wire(-2), None);
    }

    #[test]
    fn a_minimum_above_the_replica_count_is_capped_by_it() {
        assert_eq!(effective_min_isr(3, 1), 1);
        assert_eq!(effective_min_isr(2, 3), 2);
    }

    #[test]
    fn only_acks_all_needs_enough_in_sync_replicas_before_the_append() {
        assert!(!admit_append(Acks::All, 1, 2));
        assert!(admit_append(Acks::All, 2, 2));
        assert!(admit_append(Acks::Leader, 1, 2));
        assert!(admit_append(Acks::None, 1, 2));
    }

    #[test]
    fn a_produce_is_committed_when_the_high_watermark_covers_its_last_record() {
        assert_eq!(commit_status(9, 10, 2, 2), CommitStatus::Waiting);
        assert_eq!(commit_status(10, 10, 2, 2), CommitStatus::Committed);
        assert_eq!(
            commit_status(10, 10, 1, 2),
            CommitStatus::NotEnoughReplicasAfterAppend
        );
    }
}
