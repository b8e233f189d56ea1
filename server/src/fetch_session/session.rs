//! One fetch session: the partitions it remembers and the rule of what a response may leave out.

use std::sync::Arc;

use indexmap::IndexMap;
use uuid::Uuid;

/// How a request names a topic: by name up to Fetch v12, by id from v13.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicRef {
    /// By name.
    Name(Arc<str>),
    /// By topic id.
    Id(Uuid),
}

/// A partition as the client named it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// Its topic.
    pub topic: TopicRef,
    /// Its index within the topic.
    pub partition: i32,
}

/// What to fetch from one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTarget {
    /// The partition as the client named it.
    pub key: PartitionKey,
    /// The topic's name where it is known: always for a topic given by name; for one given by id
    /// the name it had when the session first resolved it.
    pub topic_name: Option<Arc<str>>,
    /// First offset wanted.
    pub fetch_offset: i64,
    /// Limit for this partition's records, in bytes.
    pub max_bytes: i32,
    /// The leader epoch that the client knows, -1 for none.
    pub current_leader_epoch: i32,
    /// The epoch of the last record that the client has (v12+), -1 for none.
    pub last_fetched_epoch: i32,
    /// The follower's log start offset, -1 from a consumer.
    pub log_start_offset: i64,
}

/// What a response says of one partition, as far as a session looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionResult {
    /// High watermark in the response.
    pub high_watermark: i64,
    /// Log start offset in the response.
    pub log_start_offset: i64,
    /// Whether there are records.
    pub has_records: bool,
    /// Whether there is an error, a diverging epoch or a preferred read replica: such an entry is
    /// always sent.
    pub must_send: bool,
    /// Whether it is an error.
    pub is_error: bool,
}

#[derive(Debug)]
struct Remembered {
    target: FetchTarget,
    /// As of the last response; -1 before the first and after an error, so that the next differs.
    high_watermark: i64,
    log_start_offset: i64,
}

/// The state of one session. The first epoch that a request may carry is 1.
#[derive(Debug)]
pub struct FetchSession {
    /// Whether its topics are given by id.
    pub uses_topic_ids: bool,
    /// The epoch of the request that comes next.
    pub next_epoch: i32,
    partitions: IndexMap<PartitionKey, Remembered>,
    /// Where the next response begins: after the last partition that gave records, so that none
    /// starves behind the response's byte limit.
    start: usize,
}

/// The epoch after `epoch`: it wraps to 1, never to 0, which would mean a new session.
#[must_use]
pub fn epoch_after(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl FetchSession {
    /// A session that remembers `targets`; the next request has epoch 1.
    #[must_use]
    pub fn new(uses_topic_ids: bool, targets: Vec<FetchTarget>) -> Self {
        let mut session = Self {
            uses_topic_ids,
            next_epoch: 1,
            partitions: IndexMap::new(),
            start: 0,
        };
        session.update(targets, &[]);
        session
    }

    /// How many partitions it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Adds or changes the partitions that a request names and forgets those it gives up.
    pub fn update(&mut self, changed: Vec<FetchTarget>, forgotten: &[PartitionKey]) {
        for target in changed {
            match self.partitions.get_mut(&target.key) {
                Some(remembered) => {
                    let topic_name = remembered
                        .target
                        .topic_name
                        .take()
                        .or(target.topic_name.clone());
                    remembered.target = FetchTarget {
                        topic_name,
                        ..target
                    };
                }
                None => {
                    let key = target.key.clone();
                    let remembered = Remembered {
                        target,
                        high_watermark: -1,
                        log_start_offset: -1,
                    };
                    self.partitions.insert(key, remembered);
                }
            }
        }
        for key in forgotten {
            self.partitions.shift_remove(key);
        }
        if self.start >= self.partitions.len() {
            self.start = 0;
        }
    }

    /// Everything to fetch, in this response's order.
    #[must_use]
    pub fn targets(&self) -> Vec<FetchTarget> {
        let (before, from) = (0..self.start, self.start..self.partitions.len());
        from.chain(before)
            .map(|index| self.partitions[index].target.clone())
            .collect()
    }

    /// Gives names to topics that were not known yet when the session was made.
    pub fn resolve_names(&mut self, name_of: impl Fn(Uuid) -> Option<Arc<str>>) {
        for remembered in self.partitions.values_mut() {
            if let (None, TopicRef::Id(id)) =
                (&remembered.target.topic_name, &remembered.target.key.topic)
            {
                remembered.target.topic_name = name_of(*id);
            }
        }
    }

    /// Records what a response says and tells for each entry whether it has to be sent: it has
    /// records or [must be sent](PartitionResult::must_send), or an offset moved since the last.
    pub fn record_response(&mut self, results: &[(PartitionKey, PartitionResult)]) -> Vec<bool> {
        let mut last_with_records = None;
        let mut send = Vec::with_capacity(results.len());
        for (key, result) in results {
            let Some((index, _, remembered)) = self.partitions.get_full_mut(key) else {
                send.push(true);
                continue;
            };
            let moved = remembered.high_watermark != result.high_watermark
                || remembered.log_start_offset != result.log_start_offset;
            remembered.log_start_offset = result.log_start_offset;
            remembered.high_watermark = if result.is_error {
                -1
            } else {
                result.high_watermark
            };
            if result.has_records {
                last_with_records = Some(index);
            }
            send.push(result.has_records || result.must_send || moved);
        }
        if let Some(index) = last_with_records {
            self.start = (index + 1) % self.partitions.len();
        }
        send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn target(topic: &str, partition: i32, fetch_offset: i64) -> FetchTarget {
        let name: Arc<str> = topic.into();
        FetchTarget {
            key: PartitionKey {
                topic: TopicRef::Name(Arc::clone(&name)),
                partition,
            },
            topic_name: Some(name),
            fetch_offset,
            max_bytes: 1024,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
        }
    }

    const QUIET: PartitionResult = PartitionResult {
        high_watermark: 5,
        log_start_offset: 0,
        has_records: false,
        must_send: false,
        is_error: false,
    };

    #[test]
    fn an_entry_is_left_out_when_nothing_changed() {
        let mut session = FetchSession::new(false, vec![target("t", 0, 5)]);
        let key = target("t", 0, 5).key;
        assert_eq!(session.record_response(&[(key.clone(), QUIET)]), [true]);
        assert_eq!(session.record_response(&[(key.clone(), QUIET)]), [false]);
        let moved = PartitionResult {
            high_watermark: 6,
            ..QUIET
        };
        assert_eq!(session.record_response(&[(key.clone(), moved)]), [true]);
        let trimmed = PartitionResult {
            log_start_offset: 2,
            ..moved
        };
        assert_eq!(session.record_response(&[(key.clone(), trimmed)]), [true]);
        assert_eq!(session.record_response(&[(key, trimmed)]), [false]);
    }

    #[test]
    fn an_entry_after_an_error_is_sent_again() {
        let mut session = FetchSession::new(false, vec![target("t", 0, 5)]);
        let key = target("t", 0, 5).key;
        let _ = session.record_response(&[(key.clone(), QUIET)]);
        let failed = PartitionResult {
            must_send: true,
            is_error: true,
            ..QUIET
        };
        assert_eq!(session.record_response(&[(key.clone(), failed)]), [true]);
        assert_eq!(session.record_response(&[(key.clone(), QUIET)]), [true]);
        assert_eq!(session.record_response(&[(key, QUIET)]), [false]);
    }

    #[test]
    fn the_next_response_begins_after_the_last_partition_that_gave_records() {
        let targets = (0..3).map(|partition| target("t", partition, 0)).collect();
        let mut session = FetchSession::new(false, targets);
        let full = PartitionResult {
            has_records: true,
            ..QUIET
        };
        let order = |session: &FetchSession| {
            session
                .targets()
                .iter()
                .map(|target| target.key.partition)
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&session), [0, 1, 2]);
        let _ = session.record_response(&[(target("t", 0, 0).key, full)]);
        assert_eq!(order(&session), [1, 2, 0]);
        let _ = session.record_response(&[(target("t", 2, 0).key, full)]);
        assert_eq!(order(&session), [0, 1, 2]);
    }

    #[test]
    fn partitions_are_added_changed_and_forgotten() {
        let mut session = FetchSession::new(false, vec![target("t", 0, 0), target("t", 1, 0)]);
        let gone = target("t", 0, 0).key;
        session.update(vec![target("t", 1, 9), target("u", 0, 3)], &[gone]);
        let offsets: Vec<i64> = session
            .targets()
            .iter()
            .map(|target| target.fetch_offset)
            .collect();
        assert_eq!(offsets, [9, 3]);
    }

    #[test]
    fn the_epoch_wraps_to_one() {
        assert_eq!(epoch_after(1), 2);
        assert_eq!(epoch_after(i32::MAX), 1);
    }
}
