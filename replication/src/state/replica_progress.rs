//! What a leader knows of one follower: how far it got, and when it last had everything.

use highwater_storage::{BrokerEpoch, BrokerId};

use super::leadership::{BrokerStanding, Moment};

/// `broker_epoch` of a fetch that names none (-1 on the wire), which skips the comparison.
pub const UNSPECIFIED_BROKER_EPOCH: BrokerEpoch = BrokerEpoch(-1);

/// A follower's fetch, as far as the leader learns from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerFetch {
    /// The broker that fetches.
    pub replica: BrokerId,
    /// The run of the broker that sent it (KIP-903).
    pub broker_epoch: BrokerEpoch,
    /// The offset asked for, which acknowledges everything before it.
    pub fetch_offset: i64,
    /// The follower's log start offset.
    pub log_start_offset: i64,
}

/// A fetch from a run of the broker that is over: it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("broker epoch {requested} of the fetch is older than {current}")]
pub struct StaleBrokerEpoch {
    /// What the fetch named.
    pub requested: BrokerEpoch,
    /// The epoch of the broker's present run.
    pub current: BrokerEpoch,
}

/// How far one follower is. Times are of [`Moment::now_ms`]; `None` is "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaProgress {
    /// The follower's log end offset, as of its last fetch; -1 while it is not known.
    pub log_end_offset: i64,
    /// The follower's log start offset, as of its last fetch; -1 while it is not known.
    pub log_start_offset: i64,
    /// When it last fetched.
    pub last_fetch_ms: Option<i64>,
    /// The leader's log end offset at that time; -1 while there was no fetch.
    pub last_fetch_leader_log_end_offset: i64,
    /// The last time by which it had everything that the leader had.
    pub last_caught_up_ms: Option<i64>,
    /// The run of the broker that sent its last fetch.
    pub broker_epoch: Option<BrokerEpoch>,
}

impl ReplicaProgress {
    /// A follower of which nothing is known.
    pub const UNKNOWN: Self = Self {
        log_end_offset: -1,
        log_start_offset: -1,
        last_fetch_ms: None,
        last_fetch_leader_log_end_offset: -1,
        last_caught_up_ms: None,
        broker_epoch: None,
    };

    /// A new leader epoch begins at `epoch_start_offset`.
    ///
    /// A broker that led the epoch before, too, keeps how far the follower got, so that the high
    /// watermark can go on; one that did not waits for the follower's first fetch. A follower
    /// outside of the in-sync replicas counts as never caught up, so that it does not hold the
    /// high watermark back.
    pub fn on_new_leader_epoch(
        &mut self,
        was_leader: bool,
        in_isr: bool,
        epoch_start_offset: i64,
        now_ms: i64,
    ) {
        let caught_up = in_isr.then_some(now_ms);
        let known = if was_leader { *self } else { Self::UNKNOWN };
        *self = Self {
            last_fetch_ms: caught_up.filter(|_| was_leader),
            last_fetch_leader_log_end_offset: if was_leader { epoch_start_offset } else { -1 },
            last_caught_up_ms: caught_up,
            ..known
        };
    }

    /// The follower fetches. `leader_log_end_offset` is the leader's, sampled before it reads for
    /// this fetch. Gives whether the follower's log end offset changed.
    ///
    /// # Errors
    /// [`StaleBrokerEpoch`] when a newer run of the broker is registered.
    pub fn on_fetch(
        &mut self,
        fetch: &FollowerFetch,
        leader_log_end_offset: i64,
        now_ms: i64,
        standing: Option<BrokerStanding>,
    ) -> Result<bool, StaleBrokerEpoch> {
        if let Some(BrokerStanding { broker_epoch, .. }) = standing
            && fetch.broker_epoch != UNSPECIFIED_BROKER_EPOCH
            && broker_epoch > fetch.broker_epoch
        {
            return Err(StaleBrokerEpoch {
                requested: fetch.broker_epoch,
                current: broker_epoch,
            });
        }
        if fetch.fetch_offset >= leader_log_end_offset {
            self.last_caught_up_ms = self.last_caught_up_ms.max(Some(now_ms));
        } else if fetch.fetch_offset >= self.last_fetch_leader_log_end_offset {
            // It has now what the leader had at the fetch before, so it was caught up back then:
            // a follower that is always one batch behind a busy leader stays in sync.
            self.last_caught_up_ms = self.last_caught_up_ms.max(self.last_fetch_ms);
        }
        let moved = self.log_end_offset != fetch.fetch_offset;
        self.log_end_offset = fetch.fetch_offset;
        self.log_start_offset = fetch.log_start_offset;
        self.last_fetch_ms = Some(now_ms);
        self.last_fetch_leader_log_end_offset = self
            .last_fetch_leader_log_end_offset
            .max(leader_log_end_offset);
        self.broker_epoch = Some(fetch.broker_epoch);
        Ok(moved)
    }

    /// Whether it has everything, or had everything less than `replica.lag.time.max.ms` ago. How
    /// many records it lacks does not matter.
    #[must_use]
    pub fn is_caught_up(&self, leader_log_end_offset: i64, moment: &Moment<'_>) -> bool {
        self.log_end_offset == leader_log_end_offset
            || self.last_caught_up_ms.is_some_and(|caught_up_ms| {
                moment.now_ms.saturating_sub(caught_up_ms) <= moment.replica_lag_time_max_ms
            })
    }

    /// Whether its broker may be in the in-sync replicas: neither fenced nor shutting down, and
    /// still the run that fetched (KIP-841, KIP-903).
    #[must_use]
    pub fn is_isr_eligible(&self, standing: Option<BrokerStanding>) -> bool {
        match (self.broker_epoch, standing) {
            (Some(fetched_as), Some(standing)) => {
                standing.is_active
                    && (fetched_as == UNSPECIFIED_BROKER_EPOCH
                        || fetched_as == standing.broker_epoch)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: BrokerEpoch = BrokerEpoch(20);
    const ACTIVE: BrokerStanding = BrokerStanding {
        broker_epoch: RUN,
        is_active: true,
    };

    fn fetch(fetch_offset: i64) -> FollowerFetch {
        FollowerFetch {
            replica: BrokerId(2),
            broker_epoch: RUN,
            fetch_offset,
            log_start_offset: 0,
        }
    }

    fn moment(now_ms: i64) -> Moment<'static> {
        Moment {
            now_ms,
            replica_lag_time_max_ms: 10,
            brokers: &|_: BrokerId| -> Option<BrokerStanding> { None },
        }
    }

    fn fetched(progress: &mut ReplicaProgress, offset: i64, leader_end: i64, now_ms: i64) -> bool {
        progress
            .on_fetch(&fetch(offset), leader_end, now_ms, Some(ACTIVE))
            .expect("the present run")
    }

    #[test]
    fn a_fetch_at_the_leaders_end_catches_up_now() {
        let mut progress = ReplicaProgress::UNKNOWN;
        assert!(fetched(&mut progress, 5, 5, 100));
        assert_eq!(progress.last_caught_up_ms, Some(100));
        assert_eq!(progress.log_end_offset, 5);
        assert!(!fetched(&mut progress, 5, 5, 101), "the offset is the same");
    }

    #[test]
    fn a_fetch_at_the_leaders_end_of_the_fetch_before_was_caught_up_then() {
        let mut progress = ReplicaProgress::UNKNOWN;
        fetched(&mut progress, 0, 5, 100);
        assert_eq!(progress.last_caught_up_ms, None);
        fetched(&mut progress, 5, 9, 110);
        assert_eq!(progress.last_caught_up_ms, Some(100));
        fetched(&mut progress, 8, 12, 120);
        assert_eq!(progress.last_caught_up_ms, Some(100), "9 was not reached");
    }

    #[test]
    fn being_caught_up_is_a_matter_of_time_not_of_records() {
        let mut progress = ReplicaProgress::UNKNOWN;
        fetched(&mut progress, 5, 5, 100);
        assert!(progress.is_caught_up(1_000_000, &moment(110)));
        assert!(!progress.is_caught_up(6, &moment(111)));
        assert!(
            progress.is_caught_up(5, &moment(1_000_000)),
            "nothing is missing"
        );
    }

    #[test]
    fn an_unknown_follower_is_never_caught_up_even_with_an_empty_log() {
        assert!(!ReplicaProgress::UNKNOWN.is_caught_up(0, &moment(0)));
    }

    #[test]
    fn a_fetch_of_an_older_run_changes_nothing() {
        let mut progress = ReplicaProgress::UNKNOWN;
        fetched(&mut progress, 5, 5, 100);
        let before = progress;
        let newer = BrokerStanding {
            broker_epoch: BrokerEpoch(35),
            ..ACTIVE
        };
        let refused = progress.on_fetch(&fetch(9), 9, 110, Some(newer));
        assert_eq!(
            refused,
            Err(StaleBrokerEpoch {
                requested: RUN,
                current: BrokerEpoch(35)
            })
        );
        assert_eq!(progress, before);
    }

    #[test]
    fn a_run_that_the_metadata_has_not_heard_of_yet_is_taken() {
        let mut progress = ReplicaProgress::UNKNOWN;
        let older = BrokerStanding {
            broker_epoch: BrokerEpoch(3),
            ..ACTIVE
        };
        assert!(progress.on_fetch(&fetch(1), 1, 0, Some(older)).is_ok());
        assert!(progress.on_fetch(&fetch(1), 1, 0, None).is_ok());
        assert!(!progress.is_isr_eligible(Some(older)), "but may not join");
    }

    #[test]
    fn only_the_present_active_run_is_eligible() {
        let mut progress = ReplicaProgress::UNKNOWN;
        assert!(!progress.is_isr_eligible(Some(ACTIVE)), "it never fetched");
        fetched(&mut progress, 5, 5, 100);
        assert!(progress.is_isr_eligible(Some(ACTIVE)));
        assert!(!progress.is_isr_eligible(None));
        assert!(!progress.is_isr_eligible(Some(BrokerStanding {
            is_active: false,
            ..ACTIVE
        })));
        assert!(!progress.is_isr_eligible(Some(BrokerStanding {
            broker_epoch: BrokerEpoch(21),
            ..ACTIVE
        })));
        progress.broker_epoch = Some(UNSPECIFIED_BROKER_EPOCH);
        assert!(progress.is_isr_eligible(Some(ACTIVE)), "no epoch was named");
    }

    #[test]
    fn a_new_leader_knows_nothing_and_gives_in_sync_followers_time() {
        let mut progress = ReplicaProgress::UNKNOWN;
        fetched(&mut progress, 5, 5, 100);
        let mut out = progress;
        progress.on_new_leader_epoch(false, true, 7, 200);
        assert_eq!(
            progress,
            ReplicaProgress {
                last_caught_up_ms: Some(200),
                ..ReplicaProgress::UNKNOWN
            }
        );
        out.on_new_leader_epoch(false, false, 7, 200);
        assert_eq!(out, ReplicaProgress::UNKNOWN);
    }

    #[test]
    fn a_leader_that_is_elected_again_keeps_how_far_its_followers_got() {
        let mut progress = ReplicaProgress::UNKNOWN;
        fetched(&mut progress, 5, 5, 100);
        let mut out = progress;
        progress.on_new_leader_epoch(true, true, 7, 200);
        assert_eq!(
            progress,
            ReplicaProgress {
                log_end_offset: 5,
                log_start_offset: 0,
                last_fetch_ms: Some(200),
                last_fetch_leader_log_end_offset: 7,
                last_caught_up_ms: Some(200),
                broker_epoch: Some(RUN),
            }
        );
        out.on_new_leader_epoch(true, false, 7, 200);
        assert_eq!(out.last_fetch_ms, None);
        assert_eq!(out.last_caught_up_ms, None);
        assert_eq!(out.log_end_offset, 5);
    }
}
