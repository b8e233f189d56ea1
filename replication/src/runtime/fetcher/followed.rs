//! The partitions of one fetcher: who adds and removes them is not who fetches them.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_storage::LeaderEpoch;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::session::Key;
use crate::runtime::partition::Partition;
use crate::state::follower::FollowerState;

/// A partition that a fetcher follows.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    pub(super) partition: Arc<Partition>,
    pub(super) leader_epoch: LeaderEpoch,
    /// `None` until the fetcher has looked at the log.
    pub(super) state: Option<FollowerState>,
}

/// The partitions of one fetcher.
#[derive(Debug, Default)]
pub(super) struct FollowedPartitions {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    followed: BTreeMap<Key, Followed>,
    /// Counts what was added.
    additions: u64,
    has_ended: bool,
}

impl FollowedPartitions {
    /// Adds a partition, or begins with it anew in another leader epoch. Gives false when the
    /// fetcher has ended: then another one is needed.
    pub(super) fn add(&self, partition: Arc<Partition>, leader_epoch: LeaderEpoch) -> bool {
        {
            let mut inner = self.inner.lock();
            if inner.has_ended {
                return false;
            }
            inner.additions += 1;
            let followed = Followed {
                leader_epoch,
                state: None,
                partition,
            };
            inner.followed.insert(key_of(&followed.partition), followed);
        }
        self.changed.notify_one();
        true
    }

    /// Takes a partition off. What the leader still answers for it is dropped.
    pub(super) fn remove(&self, key: &Key) {
        self.inner.lock().followed.remove(key);
        self.changed.notify_one();
    }

    /// Takes a partition off that cannot be followed, unless it was begun anew meanwhile.
    pub(super) fn remove_stale(&self, stale: &Followed) {
        let key = key_of(&stale.partition);
        let mut inner = self.inner.lock();
        let current = inner.followed.get(&key);
        if current.is_some_and(|current| is_same(current, stale)) {
            inner.followed.remove(&key);
        }
    }

    /// Ends the fetcher if it has nothing to do; nothing can be added then.
    pub(super) fn end_if_empty(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.has_ended |= inner.followed.is_empty();
        inner.has_ended
    }

    /// A partition that is followed and was looked at.
    pub(super) fn get(&self, key: &Key) -> Option<(Arc<Partition>, FollowerState)> {
        let inner = self.inner.lock();
        let followed = inner.followed.get(key)?;
        Some((Arc::clone(&followed.partition), followed.state.clone()?))
    }

    /// The partitions that were added and not looked at yet.
    pub(super) fn new_ones(&self) -> Vec<Followed> {
        let inner = self.inner.lock();
        let followed = inner.followed.values();
        followed
            .filter(|followed| followed.state.is_none())
            .cloned()
            .collect()
    }

    /// Sets the state of a partition, unless it was begun anew or taken off meanwhile.
    pub(super) fn start(&self, started: &Followed, state: FollowerState) {
        let mut inner = self.inner.lock();
        let current = inner.followed.get_mut(&key_of(&started.partition));
        if let Some(current) = current.filter(|current| is_same(current, started)) {
            current.state = Some(state);
        }
    }

    /// Changes the state of a partition in this leader epoch; nothing in another.
    pub(super) fn update(
        &self,
        key: &Key,
        leader_epoch: LeaderEpoch,
        change: impl FnOnce(&mut FollowerState),
    ) {
        let mut inner = self.inner.lock();
        if let Some(followed) = inner.followed.get_mut(key)
            && followed.leader_epoch == leader_epoch
            && let Some(state) = &mut followed.state
        {
            change(state);
        }
    }

    /// Looks at all partitions that have a state, in the order of their keys.
    pub(super) fn with_started<T>(
        &self,
        look: impl FnOnce(&mut dyn Iterator<Item = (&Arc<Partition>, &FollowerState)>) -> T,
    ) -> T {
        let inner = self.inner.lock();
        let mut started = inner
            .followed
            .values()
            .filter_map(|followed| Some((&followed.partition, followed.state.as_ref()?)));
        look(&mut started)
    }

    /// How many partitions were ever added.
    pub(super) fn additions(&self) -> u64 {
        self.inner.lock().additions
    }

    /// Waits until more was added than `known`.
    pub(super) async fn added_since(&self, known: u64) {
        while self.additions() == known {
            self.changed.notified().await;
        }
    }

    /// Waits until something was added or taken off; may complete once more than needed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The key of a partition.
pub(super) fn key_of(partition: &Partition) -> Key {
    (partition.topic_id(), partition.topic_partition().partition)
}

fn is_same(one: &Followed, other: &Followed) -> bool {
    one.leader_epoch == other.leader_epoch && Arc::ptr_eq(&one.partition, &other.partition)
}
