//! Fencing by leader epoch (KIP-101, KIP-320): who speaks about an older or a newer leadership than
//! ours is told so and changes nothing.

use highwater_storage::types::LeaderEpoch;
use thiserror::Error;

/// Why a request that names a leader epoch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EpochFence {
    /// The request speaks of an earlier leadership (`FENCED_LEADER_EPOCH`).
    #[error("leader epoch {requested} is older than the current epoch {current}")]
    Fenced {
        /// What the request named.
        requested: LeaderEpoch,
        /// What this broker knows.
        current: LeaderEpoch,
    },
    /// The request speaks of a leadership that this broker has not heard of yet
    /// (`UNKNOWN_LEADER_EPOCH`).
    #[error("leader epoch {requested} is newer than the current epoch {current}")]
    Unknown {
        /// What the request named.
        requested: LeaderEpoch,
        /// What this broker knows.
        current: LeaderEpoch,
    },
}

/// Compares the leader epoch of a request with ours.
///
/// `None` means that the request named no epoch (-1 on the wire), which skips the check.
///
/// # Errors
/// [`EpochFence`] when the two differ.
pub fn check_leader_epoch(
    current: LeaderEpoch,
    requested: Option<LeaderEpoch>,
) -> Result<(), EpochFence> {
    match requested {
        Some(requested) if requested < current => Err(EpochFence::Fenced { requested, current }),
        Some(requested) if requested > current => Err(EpochFence::Unknown { requested, current }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_epoch_is_fenced_and_a_newer_one_is_unknown() {
        let current = LeaderEpoch(5);
        let fenced = EpochFence::Fenced {
            requested: LeaderEpoch(4),
            current,
        };
        let unknown = EpochFence::Unknown {
            requested: LeaderEpoch(6),
            current,
        };
        assert_eq!(
            check_leader_epoch(current, Some(LeaderEpoch(4))),
            Err(fenced)
        );
        assert_eq!(
            check_leader_epoch(current, Some(LeaderEpoch(6))),
            Err(unknown)
        );
        assert_eq!(check_leader_epoch(current, Some(current)), Ok(()));
    }

    #[test]
    fn a_request_without_an_epoch_is_not_fenced() {
        assert_eq!(check_leader_epoch(LeaderEpoch(5), None), Ok(()));
    }
}
