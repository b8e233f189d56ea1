//! What one fetch request means for its session.

use std::sync::Arc;

use uuid::Uuid;

use super::cache::{FetchSessionCache, SharedSession};
use super::session::{
    FetchSession, FetchTarget, PartitionKey, PartitionResult, TopicRef, epoch_after,
};

/// The `session_epoch` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchEpoch {
    /// 0: a full fetch that may open a session.
    Initial,
    /// -1: a full fetch without a session; closes the one it names.
    Final,
    /// Anything else: an incremental fetch.
    Incremental(i32),
}

impl FetchEpoch {
    /// Reads the number of the wire.
    #[must_use]
    pub fn from_wire(epoch: i32) -> Self {
        match epoch {
            0 => Self::Initial,
            -1 => Self::Final,
            other => Self::Incremental(other),
        }
    }
}

/// The part of a fetch request that a session looks at.
#[derive(Debug)]
pub struct SessionRequest {
    /// `session_id`, 0 for none.
    pub session_id: i32,
    /// `session_epoch`.
    pub epoch: FetchEpoch,
    /// Whether it names topics by id (v13+).
    pub uses_topic_ids: bool,
    /// The partitions that it names.
    pub targets: Vec<FetchTarget>,
    /// The partitions that it gives up.
    pub forgotten: Vec<PartitionKey>,
}

/// Why the whole request is refused, with no partitions in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionError {
    /// `FETCH_SESSION_ID_NOT_FOUND`.
    IdNotFound,
    /// `INVALID_FETCH_SESSION_EPOCH`.
    InvalidEpoch,
    /// `FETCH_SESSION_TOPIC_ID_ERROR`: names and ids mixed in one session.
    TopicIdMix,
}

/// How a request is to be answered.
#[derive(Debug)]
pub enum FetchContext {
    /// All of these, and no session.
    Sessionless(Vec<FetchTarget>),
    /// All of these; the answer may open a session.
    Full(Vec<FetchTarget>),
    /// The partitions of a session; the answer leaves out what did not change.
    Incremental {
        /// The session's id.
        id: i32,
        /// The session.
        session: SharedSession,
        /// Its partitions in this answer's order.
        targets: Vec<FetchTarget>,
    },
}

impl FetchContext {
    /// What to fetch.
    #[must_use]
    pub fn targets(&self) -> &[FetchTarget] {
        match self {
            Self::Sessionless(targets)
            | Self::Full(targets)
            | Self::Incremental { targets, .. } => targets,
        }
    }
}

/// What the answer carries besides its entries.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionAnswer {
    /// `session_id` of the response; 0 for none.
    pub session_id: i32,
    /// For each entry whether it is sent.
    pub send: Vec<bool>,
}

impl FetchSessionCache {
    /// Finds out what a request means, and moves its session to the next epoch.
    ///
    /// `name_of` gives the name of a topic id, for sessions that met the id before the topic.
    ///
    /// # Errors
    /// [`SessionError`] when the request does not fit its session; the session stays as it was.
    pub fn begin(
        &self,
        request: SessionRequest,
        now_ms: i64,
        name_of: impl Fn(Uuid) -> Option<Arc<str>>,
    ) -> Result<FetchContext, SessionError> {
        let epoch = match request.epoch {
            FetchEpoch::Incremental(epoch) => epoch,
            full => {
                if request.session_id != 0 {
                    self.remove(request.session_id);
                }
                return Ok(match full {
                    FetchEpoch::Initial => FetchContext::Full(request.targets),
                    _ => FetchContext::Sessionless(request.targets),
                });
            }
        };
        let id = request.session_id;
        let shared = self.get(id, now_ms).ok_or(SessionError::IdNotFound)?;
        let mut session = shared.lock();
        if session.next_epoch != epoch {
            return Err(SessionError::InvalidEpoch);
        }
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(SessionError::TopicIdMix);
        }
        session.update(request.targets, &request.forgotten);
        if session.is_empty() {
            drop(session);
            self.remove(id);
            return Ok(FetchContext::Sessionless(Vec::new()));
        }
        session.resolve_names(name_of);
        session.next_epoch = epoch_after(epoch);
        let targets = session.targets();
        self.resized(id, session.len());
        drop(session);
        Ok(FetchContext::Incremental {
            id,
            session: shared,
            targets,
        })
    }

    /// Ends a request: opens the session of a full fetch, and says which entries are sent.
    ///
    /// `results` has one entry a target, in the targets' order.
    /// Requests of one connection are pipelined, so another request of the same session may have
    /// begun since; each answer stands for itself.
    pub fn finish(
        &self,
        context: FetchContext,
        results: &[(PartitionKey, PartitionResult)],
        from_follower: bool,
        now_ms: i64,
        random_id: impl FnMut() -> i32,
    ) -> SessionAnswer {
        match context {
            FetchContext::Sessionless(_) => SessionAnswer {
                session_id: 0,
                send: vec![true; results.len()],
            },
            FetchContext::Full(targets) => {
                let send = vec![true; results.len()];
                let Some(first) = targets.first() else {
                    return SessionAnswer {
                        session_id: 0,
                        send,
                    };
                };
                let by_id = matches!(first.key.topic, TopicRef::Id(_));
                let mut session = FetchSession::new(by_id, targets);
                let _ = session.record_response(results);
                let session_id = self.insert(session, from_follower, now_ms, random_id);
                SessionAnswer { session_id, send }
            }
            FetchContext::Incremental { id, session, .. } => {
                let send = session.lock().record_response(results);
                SessionAnswer {
                    session_id: id,
                    send,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(partition: i32) -> FetchTarget {
        FetchTarget {
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
        }
    }

    fn request(session_id: i32, epoch: i32, partitions: &[i32]) -> SessionRequest {
        SessionRequest {
            session_id,
            epoch: FetchEpoch::from_wire(epoch),
            uses_topic_ids: false,
            targets: partitions
                .iter()
                .map(|partition| target(*partition))
                .collect(),
            forgotten: Vec::new(),
        }
    }

    fn begin(
        cache: &FetchSessionCache,
        request: SessionRequest,
    ) -> Result<FetchContext, SessionError> {
        cache.begin(request, 0, |_| None)
    }

    fn finish(cache: &FetchSessionCache, context: FetchContext) -> SessionAnswer {
        let result = PartitionResult {
            high_watermark: 0,
            log_start_offset: 0,
            has_records: false,
            must_send: false,
            is_error: false,
        };
        let results: Vec<_> = context
            .targets()
            .iter()
            .map(|target| (target.key.clone(), result))
            .collect();
        cache.finish(context, &results, false, 0, || 7)
    }

    fn opened() -> FetchSessionCache {
        let cache = FetchSessionCache::new(10, 1000);
        let context = begin(&cache, request(0, 0, &[0, 1])).unwrap();
        assert_eq!(finish(&cache, context).session_id, 7);
        cache
    }

    #[test]
    fn a_full_fetch_opens_a_session_and_an_incremental_one_leaves_out_what_did_not_change() {
        let cache = opened();
        let context = begin(&cache, request(7, 1, &[])).unwrap();
        assert_eq!(context.targets().len(), 2);
        let answer = finish(&cache, context);
        assert_eq!(
            answer,
            SessionAnswer {
                session_id: 7,
                send: vec![false, false]
            }
        );
    }

    #[test]
    fn the_epoch_must_be_the_next_one_and_moves_only_on_success() {
        let cache = opened();
        for wrong in [2, 5, -7] {
            let error = begin(&cache, request(7, wrong, &[])).unwrap_err();
            assert_eq!(error, SessionError::InvalidEpoch);
        }
        assert!(begin(&cache, request(7, 1, &[])).is_ok());
        assert_eq!(
            begin(&cache, request(7, 1, &[])).unwrap_err(),
            SessionError::InvalidEpoch
        );
    }

    #[test]
    fn an_unknown_session_is_not_found() {
        let cache = opened();
        assert_eq!(
            begin(&cache, request(8, 1, &[])).unwrap_err(),
            SessionError::IdNotFound
        );
    }

    #[test]
    fn names_and_ids_do_not_mix_in_a_session() {
        let cache = opened();
        let mixed = SessionRequest {
            uses_topic_ids: true,
            ..request(7, 1, &[])
        };
        assert_eq!(begin(&cache, mixed).unwrap_err(), SessionError::TopicIdMix);
    }

    #[test]
    fn the_final_epoch_closes_the_session_and_opens_none() {
        let cache = opened();
        let context = begin(&cache, request(7, -1, &[0])).unwrap();
        assert_eq!(finish(&cache, context).session_id, 0);
        assert!(cache.is_empty());
    }

    #[test]
    fn a_session_whose_partitions_are_all_forgotten_is_closed() {
        let cache = opened();
        let forget = SessionRequest {
            forgotten: vec![target(0).key, target(1).key],
            ..request(7, 1, &[])
        };
        let context = begin(&cache, forget).unwrap();
        assert!(matches!(&context, FetchContext::Sessionless(targets) if targets.is_empty()));
        assert!(cache.is_empty());
    }

    #[test]
    fn two_pipelined_requests_of_a_session_are_both_answered() {
        let cache = opened();
        let first = begin(&cache, request(7, 1, &[])).unwrap();
        let second = begin(&cache, request(7, 2, &[])).unwrap();
        assert_eq!(finish(&cache, first).session_id, 7);
        assert_eq!(finish(&cache, second).session_id, 7);
    }
}
