//! The coordinator over a log in memory, with tokio's clock stopped.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::sync::watch;

use super::*;
use crate::coordinator::group::GroupShard;
use crate::coordinator::group::offsets_log::{Appended, LoadedChunk};
use crate::coordinator::group::records::GroupRecord;
use crate::coordinator::group::state::{MemberProtocol, OffsetToCommit, ReplayedRecord};

const PARTITIONS: i32 = 4;

/// A log in memory. Batches are committed at once, or when the high watermark is moved.
struct MemoryLog {
    partitions: Mutex<BTreeMap<i32, Vec<GroupRecord>>>,
    high_watermark: Option<watch::Sender<i64>>,
    error: Mutex<Option<ResponseError>>,
}

impl MemoryLog {
    fn new(high_watermark: Option<watch::Sender<i64>>) -> Arc<Self> {
        Arc::new(MemoryLog {
            partitions: Mutex::default(),
            high_watermark,
            error: Mutex::default(),
        })
    }
}

impl OffsetsLog for MemoryLog {
    fn append(
        &self,
        partition: i32,
        _: i32,
        records: &[GroupRecord],
        _: i64,
    ) -> Result<Appended, ResponseError> {
        if let Some(error) = self.error.lock().take() {
            return Err(error);
        }
        let mut partitions = self.partitions.lock();
        let log = partitions.entry(partition).or_default();
        let base_offset = log.len() as i64;
        log.extend_from_slice(records);
        let end_offset = log.len() as i64;
        let commit = self.high_watermark.as_ref().map(|high_watermark| {
            let mut high_watermark = high_watermark.subscribe();
            async move {
                let reached = high_watermark
                    .wait_for(|reached| *reached >= end_offset)
                    .await;
                reached
                    .map(drop)
                    .map_err(|_| ResponseError::NotLeaderOrFollower)
            }
            .boxed()
        });
        Ok(Appended {
            base_offset,
            commit,
        })
    }

    fn read(&self, partition: i32, from_offset: i64) -> Result<LoadedChunk, ResponseError> {
        // One record at a time, so that loading takes several reads.
        let partitions = self.partitions.lock();
        let log = partitions
            .get(&partition)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut chunk = LoadedChunk::default();
        if let Some(record) = log.get(from_offset as usize) {
            let record = ReplayedRecord::Plain(record.clone());
            chunk.records.push((from_offset, record));
            chunk.next_offset = Some(from_offset + 1);
        }
        Ok(chunk)
    }

    fn is_empty(&self, partition: i32) -> bool {
        self.partitions
            .lock()
            .get(&partition)
            .is_none_or(Vec::is_empty)
    }
}

fn config() -> GroupConfig {
    GroupConfig {
        initial_rebalance_delay_ms: 0,
        ..GroupConfig::default()
    }
}

fn coordinator(log: Arc<MemoryLog>) -> Arc<GroupCoordinator> {
    let coordinator = GroupCoordinator::new(config(), log, PARTITIONS);
    for partition in 0..PARTITIONS {
        coordinator.on_elected(partition, 0);
    }
    coordinator
}

fn join_request(group: &str, member_id: &str) -> JoinRequest {
    JoinRequest {
        group_id: group.into(),
        member_id: member_id.into(),
        new_member_id: GroupCoordinator::new_member_id("client"),
        instance_id: None,
        protocol_type: "consumer".into(),
        protocols: vec![MemberProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(&[0, 0, 0, 0, 0, 0]),
        }],
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        requires_known_member_id: false,
        supports_skipping_assignment: false,
        reason: "test".into(),
    }
}

fn commit_request(group: &str, offset: i64) -> CommitRequest {
    CommitRequest {
        group_id: group.into(),
        member_id: "".into(),
        instance_id: None,
        generation: -1,
        retention_ms: None,
        unknown_group_error: ResponseError::IllegalGeneration,
        offsets: vec![OffsetToCommit {
            topic: "t".into(),
            topic_id: Uuid::nil(),
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: "".into(),
        }],
    }
}

fn committed(coordinator: &GroupCoordinator, group: &str) -> Option<i64> {
    let offset = |offsets: Option<&TopicOffsets>| Some(offsets?.get("t")?.get(&0)?.offset);
    coordinator.with_offsets(group, offset).unwrap()
}

async fn wait<T>(answer: Answer<T>) -> T {
    match answer {
        Answer::Ready(answer) => answer,
        Answer::Parked(later) => later.await,
    }
}

fn ready<T>(answer: Answer<T>) -> T {
    match answer {
        Answer::Ready(answer) => answer,
        Answer::Parked(_) => panic!("the answer has to wait"),
    }
}

/// Loading runs on a thread; requests are refused meanwhile.
async fn loaded(coordinator: &GroupCoordinator, group: &str) {
    while coordinator.describe(group) == Err(ResponseError::CoordinatorLoadInProgress) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn parked_joins_are_answered_when_time_passes() {
    let coordinator = coordinator(MemoryLog::new(None));
    let first = ready(coordinator.join(join_request("g", "")));
    assert_eq!(first.generation, 1);
    let second = coordinator.join(join_request("g", ""));
    assert!(matches!(second, Answer::Parked(_)));
    // The first member never comes back; its session of 10 s ends before the rebalance time-out.
    let before = Instant::now();
    let second = wait(second).await;
    assert_eq!((second.error, second.generation), (None, 2));
    assert_eq!(before.elapsed().as_secs(), 10);
    assert_eq!(second.members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn groups_live_through_a_restart() {
    let log = MemoryLog::new(None);
    let old = coordinator(log.clone());
    assert_eq!(
        ready(old.commit_offsets(&commit_request("g", 7))),
        Ok(vec![Ok(())])
    );
    assert_eq!(committed(&old, "g"), Some(7));
    old.shutdown();
    assert_eq!(
        old.describe("g"),
        Err(ResponseError::CoordinatorNotAvailable)
    );
    let new = coordinator(log);
    loaded(&new, "g").await;
    assert_eq!(committed(&new, "g"), Some(7));
    assert_eq!(new.list().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_let_pass_while_groups_are_loaded() {
    let log = MemoryLog::new(None);
    coordinator(log.clone()).commit_offsets(&commit_request("g", 7));
    let coordinator = coordinator(log);
    // The loading thread may be done already; either answer is right then.
    match coordinator.describe("g") {
        Err(error) => assert_eq!(error, ResponseError::CoordinatorLoadInProgress),
        Ok(description) => assert!(description.is_some()),
    }
    loaded(&coordinator, "g").await;
    assert_eq!(
        coordinator.heartbeat("g", "m", None, 1),
        Err(ResponseError::UnknownMemberId)
    );
}

#[tokio::test(start_paused = true)]
async fn commits_take_effect_in_the_order_of_the_log() {
    let (high_watermark, _) = watch::channel(0);
    let log = MemoryLog::new(Some(high_watermark.clone()));
    let coordinator = coordinator(log);
    let answers: Vec<_> = (1..=5)
        .map(|offset| coordinator.commit_offsets(&commit_request("g", offset)))
        .collect();
    assert_eq!(committed(&coordinator, "g"), None);
    high_watermark.send_replace(3);
    let mut answers = answers.into_iter();
    for _ in 0..3 {
        assert_eq!(wait(answers.next().unwrap()).await, Ok(vec![Ok(())]));
    }
    assert_eq!(committed(&coordinator, "g"), Some(3));
    high_watermark.send_replace(5);
    for answer in answers {
        assert_eq!(wait(answer).await, Ok(vec![Ok(())]));
    }
    assert_eq!(committed(&coordinator, "g"), Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_not_replicated_in_time_fails_but_may_still_hold() {
    let (high_watermark, _) = watch::channel(0);
    let coordinator = coordinator(MemoryLog::new(Some(high_watermark.clone())));
    let before = Instant::now();
    let answer = wait(coordinator.commit_offsets(&commit_request("g", 1))).await;
    assert_eq!(answer, Err(ResponseError::CoordinatorNotAvailable));
    assert_eq!(before.elapsed().as_millis(), 5_000);
    high_watermark.send_replace(1);
    let later = wait(coordinator.commit_offsets(&commit_request("other", 1)));
    high_watermark.send_replace(2);
    assert_eq!(later.await, Ok(vec![Ok(())]));
    tokio::task::yield_now().await;
    assert_eq!(committed(&coordinator, "g"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_append_is_answered_as_the_group_api_says() {
    let log = MemoryLog::new(None);
    let coordinator = coordinator(log.clone());
    let errors = [
        (
            ResponseError::KafkaStorageError,
            ResponseError::NotCoordinator,
        ),
        (
            ResponseError::NotEnoughReplicas,
            ResponseError::CoordinatorNotAvailable,
        ),
        (
            ResponseError::MessageTooLarge,
            ResponseError::UnknownServerError,
        ),
    ];
    for (append_error, answered) in errors {
        *log.error.lock() = Some(append_error);
        let answer = ready(coordinator.commit_offsets(&commit_request("g", 1)));
        assert_eq!(answer, Err(answered));
    }
    assert_eq!(committed(&coordinator, "g"), None);
    assert_eq!(
        ready(coordinator.commit_offsets(&commit_request("g", 2))),
        Ok(vec![Ok(())])
    );
}

#[tokio::test(start_paused = true)]
async fn requests_for_partitions_led_elsewhere_are_sent_away() {
    let log = MemoryLog::new(None);
    let coordinator = GroupCoordinator::new(config(), log, PARTITIONS);
    let joined = ready(coordinator.join(join_request("g", "")));
    assert_eq!(joined.error, Some(ResponseError::NotCoordinator));
    let partition = coordinator.partition_for("g");
    coordinator.on_elected(partition, 3);
    assert_eq!(ready(coordinator.join(join_request("g", ""))).error, None);
    let parked = coordinator.join(join_request("g", ""));
    coordinator.on_resigned(partition);
    assert_eq!(
        wait(parked).await.error,
        Some(ResponseError::NotCoordinator)
    );
    assert_eq!(
        coordinator.heartbeat("g", "m", None, 1),
        Err(ResponseError::NotCoordinator)
    );
    assert_eq!(coordinator.list().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_later_leader_epoch_loads_the_partition_again_and_an_older_one_does_not() {
    let coordinator = coordinator(MemoryLog::new(None));
    let partition = coordinator.partition_for("g");
    let joined = ready(coordinator.join(join_request("g", "")));
    coordinator.on_elected(partition, 0);
    assert_eq!(
        coordinator.heartbeat("g", &joined.member_id, None, 1),
        Ok(())
    );
    coordinator.on_elected(partition, 1);
    loaded(&coordinator, "g").await;
    assert_eq!(
        coordinator.heartbeat("g", &joined.member_id, None, 1),
        Err(ResponseError::UnknownMemberId),
        "a member that never synced is not on disk"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_group_or_with_a_session_out_of_bounds_are_refused() {
    let coordinator = coordinator(MemoryLog::new(None));
    assert_eq!(
        ready(coordinator.join(join_request("", ""))).error,
        Some(ResponseError::InvalidGroupId)
    );
    let too_long = "x".repeat(MAX_GROUP_ID_BYTES + 1);
    let error = ready(coordinator.join(join_request(&too_long, ""))).error;
    assert_eq!(error, Some(ResponseError::InvalidGroupId));
    for session_timeout_ms in [5_999, 1_800_001, -1] {
        let request = JoinRequest {
            session_timeout_ms,
            ..join_request("g", "")
        };
        let error = ready(coordinator.join(request)).error;
        assert_eq!(error, Some(ResponseError::InvalidSessionTimeout));
    }
    assert_eq!(
        coordinator.heartbeat("", "m", None, 1),
        Err(ResponseError::InvalidGroupId)
    );
    assert_eq!(
        coordinator.leave("", &[]),
        Err(ResponseError::InvalidGroupId)
    );
    assert_eq!(
        ready(coordinator.delete_offsets("", &[])),
        Err(ResponseError::InvalidGroupId)
    );
    assert!(coordinator.list().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleting_topics_and_groups_is_seen_after_a_restart() {
    let log = MemoryLog::new(None);
    let old = coordinator(log.clone());
    for group in ["a", "b", "c"] {
        ready(old.commit_offsets(&commit_request(group, 1))).unwrap();
    }
    assert_eq!(ready(old.delete_group(&"a".into())), Ok(()));
    assert_eq!(
        ready(old.delete_group(&"a".into())),
        Err(ResponseError::GroupIdNotFound)
    );
    old.on_topics_deleted(&[("t".into(), Uuid::from_u128(1))]);
    let new = coordinator(log);
    for group in ["a", "b", "c"] {
        loaded(&new, group).await;
        for coordinator in [&old, &new] {
            assert_eq!(committed(coordinator, group), None);
        }
    }
    assert_eq!(new.describe("a"), Ok(None));
    assert!(new.describe("b").unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_nothing_behind() {
    let coordinator = coordinator(MemoryLog::new(None));
    for _ in 0..1_000 {
        let request = JoinRequest {
            requires_known_member_id: true,
            ..join_request("g", "")
        };
        drop(coordinator.join(request));
    }
    let shard = coordinator.shard("g").unwrap();
    assert_eq!(shard.waiting_requests(), 0);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(
        shard.read(GroupShard::next_deadline_ms).unwrap(),
        Some(600_000)
    );
}
