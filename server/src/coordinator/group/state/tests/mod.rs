//! A shard with its log and virtual time, driven step by step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use uuid::Uuid;

use super::*;

mod expiry;
mod join;
mod model;
mod offsets;
mod static_members;
mod sync;

/// Every rule below is tested with this session and rebalance time-out unless it says otherwise.
const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 30_000;

/// The protocol metadata of a consumer: version 0 and one topic.
fn subscription(topic: &str) -> Bytes {
    let mut out = vec![0, 0, 0, 0, 0, 1];
    out.extend((topic.len() as i16).to_be_bytes());
    out.extend(topic.as_bytes());
    out.extend((-1_i32).to_be_bytes());
    out.into()
}

fn protocols(names: &[&str]) -> Vec<MemberProtocol> {
    let protocol = |name: &&str| MemberProtocol {
        name: Arc::from(*name),
        metadata: subscription("t"),
    };
    names.iter().map(protocol).collect()
}

fn request(group: &str, member_id: &str) -> JoinRequest {
    JoinRequest {
        group_id: group.into(),
        member_id: member_id.into(),
        new_member_id: "unused".into(),
        instance_id: None,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range"]),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        requires_known_member_id: false,
        supports_skipping_assignment: false,
        reason: "test".into(),
    }
}

/// A JoinGroup of a member that the coordinator will call `new_member_id`.
fn newcomer(group: &str, new_member_id: &str) -> JoinRequest {
    JoinRequest {
        new_member_id: new_member_id.into(),
        ..request(group, "")
    }
}

struct Harness {
    config: Arc<GroupConfig>,
    shard: GroupShard,
    now: Now,
    log: Vec<GroupRecord>,
    replies: BTreeMap<ReplyToken, GroupReply>,
    outstanding: BTreeSet<ReplyToken>,
    next_token: ReplyToken,
    /// The next append fails with this.
    append_error: Option<ResponseError>,
    /// Appends are not committed until [`Harness::commit`].
    holds_commits: bool,
    uncommitted: VecDeque<(i64, AfterAppend)>,
}

impl Harness {
    fn new(config: GroupConfig) -> Self {
        let config = Arc::new(config);
        let mut harness = Harness {
            shard: GroupShard::new(config.clone()),
            config,
            now: Now {
                wall_ms: 1_000_000,
                monotonic_ms: 0,
            },
            log: Vec::new(),
            replies: BTreeMap::new(),
            outstanding: BTreeSet::new(),
            next_token: 0,
            append_error: None,
            holds_commits: false,
            uncommitted: VecDeque::new(),
        };
        let effects = harness.shard.on_loaded(harness.now);
        harness.carry_out(effects);
        harness
    }

    /// Without the delay of a first rebalance.
    fn without_delay() -> Self {
        Self::new(GroupConfig {
            initial_rebalance_delay_ms: 0,
            ..GroupConfig::default()
        })
    }

    fn token(&mut self) -> ReplyToken {
        self.next_token += 1;
        self.outstanding.insert(self.next_token);
        self.next_token
    }

    fn carry_out(&mut self, effects: Effects) {
        let mut to_do = VecDeque::from([effects]);
        while let Some(effects) = to_do.pop_front() {
            for (token, reply) in effects.replies {
                assert!(
                    self.outstanding.remove(&token),
                    "token {token} is answered twice"
                );
                self.replies.insert(token, reply);
            }
            for append in effects.appends {
                let result = match self.append_error.take() {
                    Some(error) => Err(error),
                    None => {
                        let base_offset = self.log.len() as i64;
                        self.log.extend(append.records);
                        Ok(base_offset)
                    }
                };
                match result {
                    Ok(base_offset) if self.holds_commits => {
                        self.uncommitted.push_back((base_offset, append.then));
                    }
                    result => {
                        to_do.push_back(self.shard.on_appended(append.then, result, self.now))
                    }
                }
            }
        }
    }

    /// Everything that was appended is committed.
    fn commit(&mut self) {
        while let Some((base_offset, then)) = self.uncommitted.pop_front() {
            let effects = self.shard.on_appended(then, Ok(base_offset), self.now);
            self.carry_out(effects);
        }
    }

    /// Lets time pass, stopping at every deadline.
    fn advance(&mut self, by_ms: i64) {
        let end_ms = self.now.monotonic_ms + by_ms;
        while let Some(deadline_ms) = self
            .shard
            .next_deadline_ms()
            .filter(|at_ms| *at_ms <= end_ms)
        {
            self.set_time(deadline_ms.max(self.now.monotonic_ms));
            let effects = self.shard.on_time(self.now);
            self.carry_out(effects);
        }
        self.set_time(end_ms);
    }

    fn set_time(&mut self, monotonic_ms: i64) {
        self.now.wall_ms += monotonic_ms - self.now.monotonic_ms;
        self.now.monotonic_ms = monotonic_ms;
    }

    /// The broker is killed and started: whoever waited lost the connection.
    fn restart(&mut self) {
        let replayed = self.replayed();
        let old = std::mem::replace(&mut self.shard, replayed);
        for (token, reply) in old.unload().replies {
            assert!(self.outstanding.remove(&token));
            self.replies.insert(token, reply);
        }
        let effects = self.shard.on_loaded(self.now);
        self.carry_out(effects);
    }

    fn replayed(&self) -> GroupShard {
        let mut shard = GroupShard::new(self.config.clone());
        for (offset, record) in (0..).zip(&self.log) {
            let value = record.value().unwrap();
            let read = GroupRecord::decode(&record.key().unwrap(), value.as_deref());
            let read = read.unwrap().unwrap();
            assert_eq!(read, *record, "a record is read as it was written");
            shard.replay(offset, ReplayedRecord::Plain(read), self.now);
        }
        shard
    }

    fn join(&mut self, request: JoinRequest) -> ReplyToken {
        let token = self.token();
        let effects = self.shard.join(request, token, self.now);
        self.carry_out(effects);
        token
    }

    fn sync(
        &mut self,
        group: &str,
        member_id: &str,
        generation: i32,
        assignments: &[(&str, &str)],
    ) -> ReplyToken {
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        self.sync_request(SyncRequest {
            group_id: group.into(),
            generation,
            member_id: member_id.into(),
            instance_id: None,
            protocol_type: None,
            protocol_name: None,
            assignments: assignments
                .iter()
                .map(|(member_id, assignment)| (Arc::from(*member_id), bytes(assignment)))
                .collect(),
        })
    }

    fn sync_request(&mut self, request: SyncRequest) -> ReplyToken {
        let token = self.token();
        let effects = self.shard.sync(request, token, self.now);
        self.carry_out(effects);
        token
    }

    fn heartbeat(
        &mut self,
        group: &str,
        member_id: &str,
        generation: i32,
    ) -> Result<(), ResponseError> {
        self.shard
            .heartbeat(group, member_id, None, generation, self.now)
    }

    fn leave(&mut self, group: &str, member_id: &str) -> Result<(), ResponseError> {
        let leaving = LeavingMember {
            member_id: member_id.into(),
            instance_id: None,
            reason: "test".into(),
        };
        let (results, effects) = self.shard.leave(group, &[leaving], self.now);
        self.carry_out(effects);
        results[0]
    }

    fn commit_request(&mut self, request: &CommitRequest) -> (CommitOutcome, ReplyToken) {
        let token = self.token();
        let (outcome, effects) = self.shard.commit_offsets(request, token, self.now);
        self.carry_out(effects);
        (outcome, token)
    }

    /// Commits what must succeed.
    fn must_commit(&mut self, request: &CommitRequest) {
        let (outcome, token) = self.commit_request(request);
        assert_eq!(outcome, Ok(vec![Ok(()); request.offsets.len()]));
        assert_eq!(self.written(token), Ok(()));
    }

    fn joined(&self, token: ReplyToken) -> &JoinReply {
        match self.replies.get(&token) {
            Some(GroupReply::Join(reply)) => reply,
            other => panic!("no answer to a join: {other:?}"),
        }
    }

    fn join_error(&self, token: ReplyToken) -> Option<ResponseError> {
        self.joined(token).error
    }

    fn synced(&self, token: ReplyToken) -> &SyncReply {
        match self.replies.get(&token) {
            Some(GroupReply::Sync(reply)) => reply,
            other => panic!("no answer to a sync: {other:?}"),
        }
    }

    fn written(&self, token: ReplyToken) -> Result<(), ResponseError> {
        match self.replies.get(&token) {
            Some(GroupReply::Written(written)) => *written,
            other => panic!("no answer to a write: {other:?}"),
        }
    }

    fn is_parked(&self, token: ReplyToken) -> bool {
        self.outstanding.contains(&token)
    }

    fn group(&self, group: &str) -> &Group {
        self.shard.group(group).expect("the group exists")
    }

    fn state(&self, group: &str) -> GroupState {
        self.group(group).state()
    }

    /// A stable group of members "a", "b", … in generation 1 or 2.
    fn stable(&mut self, group: &str, members: &[&str]) -> i32 {
        let tokens: Vec<_> = members
            .iter()
            .map(|member_id| self.join(newcomer(group, member_id)))
            .collect();
        let mut tokens: BTreeMap<_, _> = members.iter().copied().zip(tokens).collect();
        for _ in 0..2 {
            if self.state(group) == GroupState::PreparingRebalance {
                for member_id in members {
                    let joined = &self.group(group).members()[*member_id];
                    if joined.awaiting_join.is_none() {
                        let token = self.join(request(group, member_id));
                        tokens.insert(member_id, token);
                    }
                }
            }
        }
        let generation = self.joined(tokens[members[0]]).generation;
        let leader = self.joined(tokens[members[0]]).leader.clone();
        for member_id in members {
            if **member_id != *leader {
                self.sync(group, member_id, generation, &[]);
            }
        }
        let assignments: Vec<_> = members
            .iter()
            .map(|member_id| (*member_id, *member_id))
            .collect();
        self.sync(group, &leader, generation, &assignments);
        assert_eq!(self.state(group), GroupState::Stable);
        generation
    }
}

/// A commit of offset `offset` for partition 0 of topic "t".
fn commit(group: &str, member_id: &str, generation: i32, offset: i64) -> CommitRequest {
    CommitRequest {
        group_id: group.into(),
        member_id: member_id.into(),
        instance_id: None,
        generation,
        retention_ms: None,
        unknown_group_error: ResponseError::IllegalGeneration,
        offsets: vec![to_commit("t", 0, offset)],
    }
}

fn to_commit(topic: &str, partition: i32, offset: i64) -> OffsetToCommit {
    OffsetToCommit {
        topic: topic.into(),
        topic_id: Uuid::from_u128(7),
        partition,
        offset,
        leader_epoch: 3,
        metadata: "m".into(),
    }
}
