//! The bounded set of fetch sessions of one broker.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::session::FetchSession;

/// A session shared by the requests that use it.
pub type SharedSession = Arc<Mutex<FetchSession>>;

/// Fetch sessions by id.
///
/// At most `max.incremental.fetch.session.cache.slots` of them. A new session may take the place
/// of another only when that one was idle for `min.incremental.fetch.session.eviction.ms`, or
/// holds fewer partitions and has had its time too; a follower's session yields to no consumer's.
/// With no place left the fetch is answered without a session, which is not an error.
#[derive(Debug)]
pub struct FetchSessionCache {
    max_slots: usize,
    eviction_ms: i64,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_id: HashMap<i32, Slot>,
    evictions: u64,
}

#[derive(Debug)]
struct Slot {
    session: SharedSession,
    privileged: bool,
    partitions: usize,
    created_ms: i64,
    last_used_ms: i64,
}

impl FetchSessionCache {
    /// An empty cache of at most `max_slots` sessions.
    #[must_use]
    pub fn new(max_slots: usize, eviction_ms: i64) -> Self {
        Self {
            max_slots,
            eviction_ms,
            slots: Mutex::default(),
        }
    }

    /// The session of this id, marked as used now.
    pub fn get(&self, id: i32, now_ms: i64) -> Option<SharedSession> {
        let mut slots = self.slots.lock();
        let slot = slots.by_id.get_mut(&id)?;
        slot.last_used_ms = now_ms;
        Some(Arc::clone(&slot.session))
    }

    /// Notes how many partitions a session holds after a request changed them.
    pub fn resized(&self, id: i32, partitions: usize) {
        if let Some(slot) = self.slots.lock().by_id.get_mut(&id) {
            slot.partitions = partitions;
        }
    }

    /// Closes a session; unknown ids are ignored.
    pub fn remove(&self, id: i32) {
        self.slots.lock().by_id.remove(&id);
    }

    /// Keeps `session` and returns its new id, or 0 where there is no place for it.
    ///
    /// `privileged` marks a follower's session. `random_id` proposes ids until one is free and
    /// positive.
    pub fn insert(
        &self,
        session: FetchSession,
        privileged: bool,
        now_ms: i64,
        mut random_id: impl FnMut() -> i32,
    ) -> i32 {
        let partitions = session.len();
        let mut slots = self.slots.lock();
        if slots.by_id.len() >= self.max_slots {
            let Some(victim) = self.victim(&slots, privileged, partitions, now_ms) else {
                return 0;
            };
            slots.by_id.remove(&victim);
            slots.evictions += 1;
        }
        let id = loop {
            let id = random_id();
            if id > 0 && !slots.by_id.contains_key(&id) {
                break id;
            }
        };
        let session = Arc::new(Mutex::new(session));
        let slot = Slot {
            session,
            privileged,
            partitions,
            created_ms: now_ms,
            last_used_ms: now_ms,
        };
        slots.by_id.insert(id, slot);
        id
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.slots.lock().by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many sessions were evicted to make place for others.
    pub fn evictions(&self) -> u64 {
        self.slots.lock().evictions
    }

    /// How many partitions all sessions remember.
    pub fn partitions_cached(&self) -> usize {
        self.slots
            .lock()
            .by_id
            .values()
            .map(|slot| slot.partitions)
            .sum()
    }

    fn victim(
        &self,
        slots: &Slots,
        privileged: bool,
        partitions: usize,
        now_ms: i64,
    ) -> Option<i32> {
        let idle = slots
            .by_id
            .iter()
            .filter(|(_, slot)| now_ms - slot.last_used_ms > self.eviction_ms)
            .min_by_key(|(_, slot)| slot.last_used_ms);
        if let Some((id, _)) = idle {
            return Some(*id);
        }
        // A privileged session may push out any ordinary one; among equals the one that holds
        // fewer partitions yields, once it has had its time.
        let rank = |slot: &Slot| (slot.privileged, slot.partitions, slot.created_ms);
        let (id, weakest) = slots.by_id.iter().min_by_key(|(_, slot)| rank(slot))?;
        let yields = (privileged && !weakest.privileged)
            || (privileged == weakest.privileged
                && weakest.partitions < partitions
                && now_ms - weakest.created_ms > self.eviction_ms);
        yields.then_some(*id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::{FetchTarget, PartitionKey, TopicRef};
    use super::*;

    fn session(partitions: i32) -> FetchSession {
        let target = |partition| FetchTarget {
            key: PartitionKey {
                topic: TopicRef::Name("t".into()),
                partition,
            },
            topic_name: Some("t".into()),
            fetch_offset: 0,
            max_bytes: 1,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
        };
        FetchSession::new(false, (0..partitions).map(target).collect())
    }

    fn ids() -> impl FnMut() -> i32 {
        let mut next = -1;
        move || {
            next += 1;
            next
        }
    }

    #[test]
    fn a_full_cache_answers_without_a_session() {
        let cache = FetchSessionCache::new(1, 1000);
        let mut id = ids();
        assert_eq!(cache.insert(session(1), false, 0, &mut id), 1);
        assert_eq!(cache.insert(session(1), false, 10, &mut id), 0);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn the_longest_idle_session_is_evicted_first() {
        let cache = FetchSessionCache::new(2, 1000);
        let mut id = ids();
        let first = cache.insert(session(1), false, 0, &mut id);
        let second = cache.insert(session(1), false, 1, &mut id);
        assert!(cache.get(first, 2).is_some());
        assert_ne!(cache.insert(session(1), false, 1500, &mut id), 0);
        assert!(cache.get(second, 1500).is_none());
        assert!(cache.get(first, 1500).is_some());
        assert_eq!(cache.evictions(), 1);
    }

    #[test]
    fn a_follower_pushes_out_a_consumer_but_not_the_reverse() {
        let cache = FetchSessionCache::new(1, 1000);
        let mut id = ids();
        let consumer = cache.insert(session(5), false, 0, &mut id);
        let follower = cache.insert(session(1), true, 1, &mut id);
        assert_ne!(follower, 0);
        assert!(cache.get(consumer, 1).is_none());
        assert_eq!(cache.insert(session(50), false, 2, &mut id), 0);
    }

    #[test]
    fn a_larger_session_takes_the_place_of_a_smaller_one_that_had_its_time() {
        let cache = FetchSessionCache::new(1, 1000);
        let mut id = ids();
        let small = cache.insert(session(1), false, 0, &mut id);
        let _ = cache.get(small, 1200);
        assert_eq!(cache.insert(session(1), false, 1300, &mut id), 0);
        assert_ne!(cache.insert(session(2), false, 1300, &mut id), 0);
    }
}
