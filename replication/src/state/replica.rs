//! The replica of one partition on one broker: leader, follower or neither, as the metadata says.

use highwater_storage::{BrokerId, LeaderEpoch, PartitionEpoch};

use super::leader::{LeaderConfig, LeaderEffects, LeaderState};
use super::leadership::{Leadership, LogOffsets, Moment};

/// What the replica is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaRole {
    /// Nothing: no metadata has come yet, or the replica was taken from this broker.
    None,
    /// It leads.
    Leader(LeaderState),
    /// It follows, or waits for a leader.
    Follower,
}

/// What a change of the metadata made of the replica.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a change of role is to be carried out"]
pub enum RoleChange {
    /// Nothing: the metadata is older than what is known, or says the same.
    Unchanged,
    /// It leads.
    Leader {
        /// What is to be done.
        effects: LeaderEffects,
        /// Whether the leader epoch is a new one.
        is_new_epoch: bool,
    },
    /// It follows, or waits for a leader.
    Follower {
        /// Whether the leader epoch is a new one: then the fetcher is to begin anew. Otherwise it
        /// must go on undisturbed.
        is_new_epoch: bool,
    },
}

/// The replica of one partition on one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaState {
    local_broker: BrokerId,
    leader: Option<BrokerId>,
    leader_epoch: LeaderEpoch,
    partition_epoch: PartitionEpoch,
    config: LeaderConfig,
    role: ReplicaRole,
}

impl ReplicaState {
    /// A replica of which the metadata has said nothing yet.
    #[must_use]
    pub fn new(local_broker: BrokerId, config: LeaderConfig) -> Self {
        Self {
            local_broker,
            leader: None,
            leader_epoch: LeaderEpoch(-1),
            partition_epoch: PartitionEpoch(-1),
            config,
            role: ReplicaRole::None,
        }
    }

    /// The metadata of the partition changed.
    pub fn on_leadership(
        &mut self,
        leadership: &Leadership,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> RoleChange {
        if leadership.partition_epoch < self.partition_epoch() {
            return RoleChange::Unchanged;
        }
        let is_new_epoch = leadership.leader_epoch > self.leader_epoch;
        let leads = leadership.leader == Some(self.local_broker);
        let change = match &mut self.role {
            ReplicaRole::Leader(state) if leads => {
                let effects = state.on_leadership(leadership, log, moment);
                if effects == LeaderEffects::default() {
                    return RoleChange::Unchanged;
                }
                RoleChange::Leader {
                    effects,
                    is_new_epoch,
                }
            }
            role if leads => {
                let config = self.config.clone();
                let (state, effects) = LeaderState::on_become_leader(
                    self.local_broker,
                    leadership,
                    config,
                    log,
                    moment,
                );
                *role = ReplicaRole::Leader(state);
                RoleChange::Leader {
                    effects,
                    is_new_epoch: true,
                }
            }
            role => {
                let was_follower = *role == ReplicaRole::Follower;
                *role = ReplicaRole::Follower;
                RoleChange::Follower {
                    is_new_epoch: is_new_epoch || !was_follower,
                }
            }
        };
        self.leader = leadership.leader;
        self.leader_epoch = leadership.leader_epoch;
        self.partition_epoch = leadership.partition_epoch;
        change
    }

    /// The replica is taken from this broker: the topic was deleted, or the assignment changed.
    pub fn on_removed(&mut self) {
        // A leader may know a later one than the metadata has told.
        self.partition_epoch = self.partition_epoch();
        self.role = ReplicaRole::None;
        self.leader = None;
    }

    /// The partition's settings changed.
    pub fn on_config(
        &mut self,
        config: LeaderConfig,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> LeaderEffects {
        self.config = config.clone();
        match &mut self.role {
            ReplicaRole::Leader(state) => state.on_config(config, log, moment),
            ReplicaRole::None | ReplicaRole::Follower => LeaderEffects::default(),
        }
    }

    /// What it is.
    #[must_use]
    pub fn role(&self) -> &ReplicaRole {
        &self.role
    }

    /// The leader's state, if this replica leads.
    #[must_use]
    pub fn as_leader(&self) -> Option<&LeaderState> {
        match &self.role {
            ReplicaRole::Leader(state) => Some(state),
            ReplicaRole::None | ReplicaRole::Follower => None,
        }
    }

    /// The leader's state, if this replica leads.
    pub fn as_leader_mut(&mut self) -> Option<&mut LeaderState> {
        match &mut self.role {
            ReplicaRole::Leader(state) => Some(state),
            ReplicaRole::None | ReplicaRole::Follower => None,
        }
    }

    /// Whether it follows in this leader epoch.
    #[must_use]
    pub fn follows_in(&self, leader_epoch: LeaderEpoch) -> bool {
        self.role == ReplicaRole::Follower && self.leader_epoch == leader_epoch
    }

    /// Who leads, as far as the metadata has told.
    #[must_use]
    pub fn leader(&self) -> Option<BrokerId> {
        self.leader
    }

    /// The leader epoch that the metadata has told; -1 before it has.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// The version of the partition's metadata that is known; -1 for none.
    #[must_use]
    pub fn partition_epoch(&self) -> PartitionEpoch {
        match &self.role {
            // The answer to a proposal may come before the metadata.
            ReplicaRole::Leader(state) => state.partition_epoch(),
            ReplicaRole::None | ReplicaRole::Follower => self.partition_epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::alter_partition::AlteredPartition;
    use super::super::leadership::BrokerStanding;
    use super::super::replica_progress::{FollowerFetch, UNSPECIFIED_BROKER_EPOCH};
    use super::*;
    use highwater_storage::BrokerEpoch;

    const LOG: LogOffsets = LogOffsets {
        log_start_offset: 0,
        high_watermark: 3,
        log_end_offset: 5,
    };

    fn moment() -> Moment<'static> {
        Moment {
            now_ms: 0,
            replica_lag_time_max_ms: 10,
            brokers: &|_: BrokerId| -> Option<BrokerStanding> { None },
        }
    }

    fn leadership(leader: Option<i32>, leader_epoch: i32, partition_epoch: i32) -> Leadership {
        Leadership {
            leader: leader.map(BrokerId),
            leader_epoch: LeaderEpoch(leader_epoch),
            partition_epoch: PartitionEpoch(partition_epoch),
            replicas: vec![BrokerId(1), BrokerId(2)],
            isr: vec![BrokerId(1), BrokerId(2)],
        }
    }

    fn told(state: &mut ReplicaState, leader: Option<i32>, epochs: (i32, i32)) -> RoleChange {
        state.on_leadership(&leadership(leader, epochs.0, epochs.1), LOG, &moment())
    }

    fn replica() -> ReplicaState {
        ReplicaState::new(BrokerId(1), LeaderConfig::default())
    }

    #[test]
    fn a_leader_that_is_new_notes_where_its_epoch_begins() {
        let mut state = replica();
        let RoleChange::Leader {
            effects,
            is_new_epoch: true,
        } = told(&mut state, Some(1), (4, 7))
        else {
            panic!("leads");
        };
        assert_eq!(effects.epoch_start, Some((LeaderEpoch(4), 5)));
        assert_eq!(effects.high_watermark, None, "broker 2 has not fetched");
        assert!(state.as_leader().is_some());
    }

    #[test]
    fn the_same_metadata_again_changes_nothing() {
        let mut state = replica();
        let _ = told(&mut state, Some(1), (4, 7));
        assert_eq!(told(&mut state, Some(1), (4, 7)), RoleChange::Unchanged);
    }

    #[test]
    fn older_metadata_is_ignored_in_every_role() {
        let mut state = replica();
        let _ = told(&mut state, Some(1), (4, 7));
        assert_eq!(told(&mut state, Some(2), (3, 6)), RoleChange::Unchanged);
        let _ = told(&mut state, Some(2), (5, 8));
        assert_eq!(told(&mut state, Some(1), (4, 7)), RoleChange::Unchanged);
        assert!(state.follows_in(LeaderEpoch(5)));
    }

    #[test]
    fn the_fetcher_begins_anew_if_and_only_if_the_leader_epoch_grew() {
        let mut state = replica();
        let follower = |is_new_epoch| RoleChange::Follower { is_new_epoch };
        assert_eq!(told(&mut state, Some(2), (4, 7)), follower(true));
        assert_eq!(told(&mut state, Some(2), (4, 8)), follower(false));
        assert_eq!(told(&mut state, Some(2), (5, 9)), follower(true));
        assert_eq!(told(&mut state, None, (6, 10)), follower(true));
    }

    #[test]
    fn a_leader_that_is_deposed_follows() {
        let mut state = replica();
        let _ = told(&mut state, Some(1), (4, 7));
        let change = told(&mut state, Some(2), (5, 8));
        assert_eq!(change, RoleChange::Follower { is_new_epoch: true });
        assert!(state.as_leader().is_none());
        assert!(!state.follows_in(LeaderEpoch(4)));
    }

    #[test]
    fn a_replica_that_was_taken_away_neither_leads_nor_follows() {
        let mut state = replica();
        let _ = told(&mut state, Some(2), (4, 7));
        state.on_removed();
        assert!(!state.follows_in(LeaderEpoch(4)));
        assert_eq!(state.leader(), None);
        assert_eq!(state.leader_epoch(), LeaderEpoch(4));
    }

    #[test]
    fn a_leader_that_is_taken_away_keeps_the_partition_epoch_that_it_was_answered() {
        let mut state = replica();
        let alone = Leadership {
            isr: vec![BrokerId(1)],
            ..leadership(Some(1), 4, 7)
        };
        let _ = state.on_leadership(&alone, LOG, &moment());
        let leader = state.as_leader_mut().expect("leads");
        let fetch = FollowerFetch {
            replica: BrokerId(2),
            broker_epoch: UNSPECIFIED_BROKER_EPOCH,
            fetch_offset: LOG.log_end_offset,
            log_start_offset: 0,
        };
        let moment = Moment {
            brokers: &|_: BrokerId| {
                Some(BrokerStanding {
                    broker_epoch: BrokerEpoch(20),
                    is_active: true,
                })
            },
            ..moment()
        };
        let _ = leader.on_follower_fetch(&fetch, LeaderEpoch(4), LOG.log_end_offset, LOG, &moment);
        let proposal = leader.isr().pending().expect("broker 2 caught up").clone();
        let altered = AlteredPartition {
            leader: Some(BrokerId(1)),
            leader_epoch: LeaderEpoch(4),
            partition_epoch: PartitionEpoch(8),
            isr: vec![BrokerId(1), BrokerId(2)],
        };
        let _ = leader.on_alter_partition_reply(&proposal, Ok(altered), LOG, &moment);
        state.on_removed();
        assert_eq!(state.partition_epoch(), PartitionEpoch(8));
    }
}
