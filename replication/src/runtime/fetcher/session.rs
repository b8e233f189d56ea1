//! The follower's side of a fetch session (KIP-227): what the leader remembers, and so what need
//! not be said again.

use std::collections::BTreeMap;

use highwater_storage::{TopicId, TopicPartition};

use crate::runtime::leader_endpoint::{FetchPartition, TopicIdPartition};
use crate::state::follower::FetchPosition;

/// A partition by the id of its topic.
pub(super) type Key = (TopicId, i32);

/// The first epoch of a session's incremental fetches; 0 opens one.
const FIRST_EPOCH: i32 = 1;
/// The epoch of a fetch outside of any session.
const NO_SESSION_EPOCH: i32 = -1;

/// A partition that is to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) topic_id: TopicId,
    pub(super) topic_partition: &'a TopicPartition,
    pub(super) position: FetchPosition,
    pub(super) log_start_offset: i64,
    pub(super) high_watermark: i64,
    pub(super) max_bytes: i32,
}

/// What the leader was told last of a partition.
#[derive(Debug)]
struct Told {
    topic_partition: TopicPartition,
    position: FetchPosition,
    log_start_offset: i64,
    max_bytes: i32,
    /// The round in which the partition was wanted last.
    round: u64,
}

/// What a leader remembers of us.
#[derive(Debug, Default)]
pub(super) struct FetchSession {
    /// 0 for none.
    id: i32,
    /// The epoch of the next fetch; 0 to open a session and -1 for a fetch without one, both closing the one of `id`.
    next_epoch: i32,
    told: BTreeMap<Key, Told>,
    /// Counts the fetches.
    round: u64,
}

/// The part of a fetch request that depends on the session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SessionRequest {
    pub(super) session_id: i32,
    pub(super) session_epoch: i32,
    /// Those that are new or changed.
    pub(super) partitions: Vec<FetchPartition>,
    pub(super) forgotten: Vec<TopicIdPartition>,
}

impl FetchSession {
    /// The next fetch, of all that is wanted.
    pub(super) fn next<'a>(
        &mut self,
        wanted: impl IntoIterator<Item = Wanted<'a>>,
    ) -> SessionRequest {
        if self.next_epoch < FIRST_EPOCH {
            self.told.clear();
        }
        self.round += 1;
        let mut partitions = Vec::new();
        for wanted in wanted {
            if self.tell(&wanted) {
                partitions.push(wanted.to_request());
            }
        }
        let mut forgotten = Vec::new();
        let round = self.round;
        self.told.retain(|(topic_id, _), told| {
            if told.round != round {
                forgotten.push(TopicIdPartition {
                    topic_id: *topic_id,
                    topic_partition: told.topic_partition.clone(),
                });
            }
            told.round == round
        });
        SessionRequest {
            session_id: self.id,
            session_epoch: self.next_epoch,
            partitions,
            forgotten,
        }
    }

    /// Takes note of what is wanted of a partition, and gives whether the leader must be told. Our
    /// high watermark is no news by itself.
    fn tell(&mut self, wanted: &Wanted<'_>) -> bool {
        let key = (wanted.topic_id, wanted.topic_partition.partition);
        let round = self.round;
        match self.told.get_mut(&key) {
            Some(told) => {
                let is_news = told.position != wanted.position
                    || told.log_start_offset != wanted.log_start_offset
                    || told.max_bytes != wanted.max_bytes;
                told.position = wanted.position;
                told.log_start_offset = wanted.log_start_offset;
                told.max_bytes = wanted.max_bytes;
                told.round = round;
                is_news
            }
            None => {
                let told = Told {
                    topic_partition: wanted.topic_partition.clone(),
                    position: wanted.position,
                    log_start_offset: wanted.log_start_offset,
                    max_bytes: wanted.max_bytes,
                    round,
                };
                self.told.insert(key, told);
                true
            }
        }
    }

    /// Where the leader was last asked to go on for a partition.
    pub(super) fn sent(&self, key: &Key) -> Option<FetchPosition> {
        self.told.get(key).map(|told| told.position)
    }

    /// The leader answered, in this session; 0 when it has none for us.
    pub(super) fn on_response(&mut self, session_id: i32) {
        if session_id == 0 {
            self.id = 0;
            self.next_epoch = 0;
        } else {
            self.id = session_id;
            self.next_epoch = if self.next_epoch == i32::MAX {
                FIRST_EPOCH
            } else {
                self.next_epoch + 1
            };
        }
    }

    /// The leader has no such session, or another epoch of it.
    pub(super) fn on_session_error(&mut self) {
        self.id = 0;
        self.next_epoch = 0;
    }

    /// There was no answer: the leader may or may not have taken the fetch up. The next one closes
    /// the session and opens another.
    pub(super) fn on_no_response(&mut self) {
        self.next_epoch = 0;
    }

    /// The fetch was given up, which may happen again and again. The leader does not know, and would keep a session for
    /// each that opens one: none is opened before one is answered.
    pub(super) fn on_given_up(&mut self) {
        self.next_epoch = NO_SESSION_EPOCH;
    }
}

impl Wanted<'_> {
    fn to_request(self) -> FetchPartition {
        FetchPartition {
            partition: TopicIdPartition {
                topic_id: self.topic_id,
                topic_partition: self.topic_partition.clone(),
            },
            position: self.position,
            log_start_offset: self.log_start_offset,
            high_watermark: self.high_watermark,
            max_bytes: self.max_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use highwater_storage::LeaderEpoch;
    use uuid::Uuid;

    use super::*;

    static PARTITIONS: LazyLock<Vec<TopicPartition>> = LazyLock::new(|| {
        (0..4)
            .map(|number| TopicPartition::new("t", number))
            .collect()
    });

    fn partition(number: usize, fetch_offset: i64) -> Wanted<'static> {
        Wanted {
            topic_id: TopicId(Uuid::from_u128(1)),
            topic_partition: &PARTITIONS[number],
            position: FetchPosition {
                fetch_offset,
                leader_epoch: LeaderEpoch(1),
                last_fetched_epoch: None,
            },
            log_start_offset: 0,
            high_watermark: fetch_offset,
            max_bytes: 1,
        }
    }

    fn summary(request: &SessionRequest) -> (i32, i32, Vec<i32>, Vec<i32>) {
        let number = |partition: &TopicIdPartition| partition.topic_partition.partition;
        (
            request.session_id,
            request.session_epoch,
            request
                .partitions
                .iter()
                .map(|wanted| number(&wanted.partition))
                .collect(),
            request.forgotten.iter().map(number).collect(),
        )
    }

    /// A session 7 that knows partitions 0 to 2 at offset 5.
    fn session() -> FetchSession {
        let mut session = FetchSession::default();
        let request = session.next((0..3).map(|number| partition(number, 5)));
        assert_eq!(summary(&request), (0, 0, vec![0, 1, 2], vec![]));
        session.on_response(7);
        session
    }

    #[test]
    fn only_news_are_told_within_a_session() {
        let mut session = session();
        let request = session.next(vec![partition(0, 5), partition(1, 6), partition(2, 5)]);
        assert_eq!(summary(&request), (7, 1, vec![1], vec![]));
        session.on_response(7);
        let request = session.next(vec![partition(0, 5), partition(2, 5), partition(3, 0)]);
        assert_eq!(summary(&request), (7, 2, vec![3], vec![1]));
        assert_eq!(session.told.len(), 3);
    }

    #[test]
    fn a_high_watermark_alone_is_no_news_but_a_log_start_is() {
        let mut session = session();
        let moved = Wanted {
            high_watermark: 9,
            ..partition(0, 5)
        };
        let started = Wanted {
            log_start_offset: 1,
            ..partition(1, 5)
        };
        let request = session.next(vec![moved, started, partition(2, 5)]);
        assert_eq!(summary(&request).2, [1]);
    }

    #[test]
    fn without_a_session_everything_is_told_each_time() {
        let mut session = FetchSession::default();
        for _ in 0..2 {
            let request = session.next(vec![partition(0, 5), partition(1, 5)]);
            assert_eq!(summary(&request), (0, 0, vec![0, 1], vec![]));
            session.on_response(0);
        }
    }

    #[test]
    fn a_session_that_is_gone_is_opened_anew() {
        let mut session = session();
        session.on_session_error();
        let request = session.next(vec![partition(0, 5)]);
        assert_eq!(summary(&request), (0, 0, vec![0], vec![]));
    }

    #[test]
    fn after_a_lost_answer_the_session_is_closed_and_another_one_opened() {
        let mut session = session();
        session.on_no_response();
        let request = session.next(vec![partition(0, 5)]);
        assert_eq!(summary(&request), (7, 0, vec![0], vec![]));
        session.on_response(8);
        let request = session.next(vec![partition(0, 6)]);
        assert_eq!(summary(&request), (8, 1, vec![0], vec![]));
    }

    #[test]
    fn after_fetches_that_were_given_up_a_session_is_opened_once_one_is_answered() {
        let mut session = session();
        for _ in 0..2 {
            session.on_given_up();
            let request = session.next(vec![partition(0, 5)]);
            assert_eq!(summary(&request), (7, -1, vec![0], vec![]));
        }
        session.on_response(0);
        let request = session.next(vec![partition(0, 5)]);
        assert_eq!(summary(&request), (0, 0, vec![0], vec![]));
    }

    #[test]
    fn the_epoch_wraps_to_one() {
        let mut session = session();
        session.next_epoch = i32::MAX;
        session.on_response(7);
        assert_eq!(session.next([]).session_epoch, 1);
    }

    #[test]
    fn it_is_known_what_was_asked_for() {
        let session = session();
        let key = (TopicId(Uuid::from_u128(1)), 1);
        assert_eq!(session.sent(&key), Some(partition(1, 5).position));
        assert_eq!(session.sent(&(key.0, 9)), None);
    }
}
