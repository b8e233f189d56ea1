//! Fetch: reads record batches for consumers and followers.
//!
//! A fetch is evaluated at once. It is answered when it has `min_bytes`, when an entry has an
//! error, or when it need not wait; else it parks on the offset watches of its partitions and is
//! evaluated again whenever one of them moves. Nothing polls.

mod evaluate;
mod response;
mod splice;

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::runtime::read::ReadIsolation;
use highwater_replication::state::replica_progress::UNSPECIFIED_BROKER_EPOCH;
use highwater_storage::{BrokerEpoch, BrokerId, TopicId};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::evaluate::{Evaluation, Limits, Look, Reader};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::fetch_session::context::SessionError;
use crate::fetch_session::{
    FetchContext, FetchEpoch, FetchTarget, PartitionKey, SessionRequest, TopicRef,
};

/// The first version that names topics by id.
const TOPIC_IDS_FROM: i16 = 13;
/// The first version in which a consumer names its rack and may read from followers (KIP-392).
const RACK_ID_FROM: i16 = 11;
/// The first version with the state of the replica that fetches in a field of its own.
const REPLICA_STATE_FROM: i16 = 15;
/// The wire's `read_committed`.
const READ_COMMITTED: i8 = 1;

/// Handles a Fetch request.
pub(super) fn handle(broker: &Arc<Broker>, ctx: &RequestContext, request: FetchRequest) -> Reply {
    let fetch = Fetch {
        broker: Arc::clone(broker),
        ctx: ctx.clone(),
        reader: reader(&request, ctx.api_version),
        limits: limits(broker, &request),
        deadline: Instant::now()
            + Duration::from_millis(request.max_wait_ms.max(0).unsigned_abs().into()),
    };
    let wait = request.max_wait_ms > 0;
    let context = match broker.fetch_sessions.begin(
        session_request(request, ctx.api_version),
        broker.now_ms(),
        |id| {
            broker
                .image()
                .topic_by_id(TopicId(id))
                .map(|topic| Arc::clone(&topic.name))
        },
    ) {
        Ok(context) => context,
        Err(error) => return Reply::Ready(refuse_session(ctx, error)),
    };
    let evaluation = fetch.evaluate(&context, Look::First);
    let park = wait && !evaluation.is_due(&fetch.limits);
    if !park && !evaluation.is_cold() {
        return Reply::Ready(fetch.answer(context, evaluation));
    }
    Reply::Parked(Box::pin(async move {
        let evaluation = if park {
            fetch.wait(&context).await
        } else {
            evaluation
        };
        if evaluation.is_cold() {
            return fetch.answer_from_disk(context).await;
        }
        fetch.answer(context, evaluation)
    }))
}

/// One fetch, as far as it does not depend on its session.
struct Fetch {
    broker: Arc<Broker>,
    ctx: RequestContext,
    reader: Reader,
    limits: Limits,
    deadline: Instant,
}

impl Fetch {
    fn evaluate(&self, context: &FetchContext, look: Look) -> Evaluation {
        evaluate::evaluate(
            &self.broker,
            &self.reader,
            &self.limits,
            context.targets(),
            look,
        )
    }

    /// Reads on a thread that may wait for the disk, so that no other connection waits.
    async fn answer_from_disk(self, context: FetchContext) -> ResponseBody {
        let read = tokio::task::spawn_blocking(move || {
            let evaluation = self.evaluate(&context, Look::Again { may_wait: true });
            evaluation.prefault();
            self.answer(context, evaluation)
        });
        read.await.unwrap_or_else(|error| {
            tracing::error!(%error, "reading from disk failed");
            ResponseBody::unencodable()
        })
    }

    /// Sleeps until the fetch is due, its time is over or the broker stops.
    async fn wait(&self, context: &FetchContext) -> Evaluation {
        let notify = Arc::new(Notify::new());
        loop {
            // Registered before the look, so that no move falls between the two.
            let _registrations = self.register(context.targets(), &notify);
            let evaluation = self.evaluate(context, Look::Again { may_wait: false });
            if evaluation.is_due(&self.limits) {
                return evaluation;
            }
            let moved = tokio::time::timeout_at(self.deadline, notify.notified());
            if !matches!(self.broker.until_stopping(moved).await, Some(Ok(()))) {
                return self.evaluate(context, Look::Again { may_wait: false });
            }
        }
    }

    fn register(
        &self,
        targets: &[FetchTarget],
        notify: &Arc<Notify>,
    ) -> Vec<highwater_replication::runtime::offset_watch::Registration> {
        let partitions = targets
            .iter()
            .filter_map(|target| evaluate::find(&self.broker, target).ok());
        partitions
            .map(|partition| {
                // Read committed waits for the high watermark too: what ends a transaction is above it.
                let (watch, end) = match self.reader.isolation {
                    ReadIsolation::LogEnd => {
                        (partition.log_end_watch(), partition.log().log_end_offset())
                    }
                    ReadIsolation::HighWatermark | ReadIsolation::LastStable => (
                        partition.high_watermark_watch(),
                        partition.log().high_watermark(),
                    ),
                };
                watch.register(end + 1, Arc::clone(notify))
            })
            .collect()
    }

    fn answer(&self, context: FetchContext, evaluation: Evaluation) -> ResponseBody {
        let results = evaluation.results();
        let from_follower = self.reader.follower.is_some();
        if from_follower {
            evaluation.count_as_sent_to_follower();
        }
        let answer = self.broker.fetch_sessions.finish(
            context,
            &results,
            from_follower,
            self.broker.now_ms(),
            response::random_session_id,
        );
        response::encode(&self.broker, &self.ctx, evaluation, &answer)
    }
}

/// Who fetches. The replica's id moved into a tagged field with v15, where the epoch of its run is
/// too (KIP-903).
fn reader(request: &FetchRequest, version: i16) -> Reader {
    let state = &request.replica_state;
    let (replica_id, broker_epoch) = if version >= REPLICA_STATE_FROM {
        (state.replica_id.0, BrokerEpoch(state.replica_epoch))
    } else {
        (request.replica_id.0, UNSPECIFIED_BROKER_EPOCH)
    };
    Reader {
        follower: (replica_id >= 0).then_some((BrokerId(replica_id), broker_epoch)),
        isolation: isolation(replica_id, request.isolation_level),
        leader_only: version < RACK_ID_FROM,
        rack: request.rack_id.clone(),
    }
}

fn isolation(replica_id: i32, level: i8) -> ReadIsolation {
    match replica_id {
        0.. => ReadIsolation::LogEnd,
        // Also the debugging consumer (-2): only replicas see what is not committed.
        _ if level == READ_COMMITTED => ReadIsolation::LastStable,
        _ => ReadIsolation::HighWatermark,
    }
}

fn limits(broker: &Broker, request: &FetchRequest) -> Limits {
    let bytes = |value: i32| usize::try_from(value).unwrap_or(0);
    let max_bytes = bytes(request.max_bytes).min(bytes(broker.fetch_max_bytes));
    Limits {
        max_bytes,
        min_bytes: bytes(request.min_bytes).min(max_bytes),
    }
}

fn session_request(request: FetchRequest, version: i16) -> SessionRequest {
    let by_id = version >= TOPIC_IDS_FROM;
    let reference = |name: &str, id| {
        if by_id {
            TopicRef::Id(id)
        } else {
            TopicRef::Name(name.into())
        }
    };
    let mut targets = Vec::new();
    for topic in request.topics {
        let reference = reference(&topic.topic, topic.topic_id);
        let topic_name = match &reference {
            TopicRef::Name(name) => Some(Arc::clone(name)),
            TopicRef::Id(_) => None,
        };
        targets.extend(topic.partitions.into_iter().map(|partition| FetchTarget {
            key: PartitionKey {
                topic: reference.clone(),
                partition: partition.partition,
            },
            topic_name: topic_name.clone(),
            fetch_offset: partition.fetch_offset,
            max_bytes: partition.partition_max_bytes,
            current_leader_epoch: partition.current_leader_epoch,
            last_fetched_epoch: partition.last_fetched_epoch,
            log_start_offset: partition.log_start_offset,
        }));
    }
    let mut forgotten = Vec::new();
    for topic in request.forgotten_topics_data {
        let reference = reference(&topic.topic, topic.topic_id);
        let keys = topic.partitions.into_iter();
        forgotten.extend(keys.map(|partition| PartitionKey {
            topic: reference.clone(),
            partition,
        }));
    }
    SessionRequest {
        session_id: request.session_id,
        epoch: FetchEpoch::from_wire(request.session_epoch),
        uses_topic_ids: by_id,
        targets,
        forgotten,
    }
}

fn refuse_session(ctx: &RequestContext, error: SessionError) -> ResponseBody {
    let error = match error {
        SessionError::IdNotFound => ResponseError::FetchSessionIdNotFound,
        SessionError::InvalidEpoch => ResponseError::InvalidFetchSessionEpoch,
        SessionError::TopicIdMix => ResponseError::FetchSessionTopicIdError,
    };
    ctx.count_error(error);
    ctx.encode(&FetchResponse::default().with_error_code(error.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_see_what_is_not_committed() {
        assert_eq!(isolation(0, READ_COMMITTED), ReadIsolation::LogEnd);
        for consumer in [-1, -2, i32::MIN] {
            assert_eq!(isolation(consumer, 0), ReadIsolation::HighWatermark);
            let committed = isolation(consumer, READ_COMMITTED);
            assert_eq!(committed, ReadIsolation::LastStable);
        }
    }
}
