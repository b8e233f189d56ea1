//! Random operations with restarts: the live state is the replayed one, and nobody waits for ever.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Join {
        group: u8,
        client: u8,
        knows_id: bool,
        other_topic: bool,
    },
    Sync {
        group: u8,
        client: u8,
    },
    Heartbeat {
        group: u8,
        client: u8,
    },
    Leave {
        group: u8,
        client: u8,
    },
    Commit {
        group: u8,
        client: u8,
        partition: i32,
        offset: i64,
    },
    SimpleCommit {
        group: u8,
        partition: i32,
        offset: i64,
        retention_ms: Option<i64>,
    },
    DeleteOffsets {
        group: u8,
        partition: i32,
    },
    DeleteGroup {
        group: u8,
    },
    DeleteTopic,
    Advance {
        ms: i64,
    },
    FailNextAppend,
    HoldCommits,
    Commits,
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let group = || 0..2_u8;
    let client = || 0..4_u8;
    prop_oneof![
        6 => (group(), client(), prop::bool::weighted(0.8), prop::bool::weighted(0.3)).prop_map(
            |(group, client, knows_id, other_topic)| Op::Join { group, client, knows_id, other_topic }
        ),
        6 => (group(), client()).prop_map(|(group, client)| Op::Sync { group, client }),
        2 => (group(), client()).prop_map(|(group, client)| Op::Heartbeat { group, client }),
        1 => (group(), client()).prop_map(|(group, client)| Op::Leave { group, client }),
        4 => (group(), client(), 0..3, 0..100_i64).prop_map(
            |(group, client, partition, offset)| Op::Commit { group, client, partition, offset }
        ),
        2 => (group(), 0..3, 0..100_i64, prop::option::of(1..2_000_000_i64)).prop_map(
            |(group, partition, offset, retention_ms)| Op::SimpleCommit { group, partition, offset, retention_ms }
        ),
        1 => (group(), 0..3).prop_map(|(group, partition)| Op::DeleteOffsets { group, partition }),
        1 => group().prop_map(|group| Op::DeleteGroup { group }),
        1 => Just(Op::DeleteTopic),
        4 => prop_oneof![8 => 1..4_000_i64, 2 => 4_000..12_000_i64, 1 => Just(40_000), 1 => Just(700_000)].prop_map(|ms| Op::Advance { ms }),
        1 => Just(Op::FailNextAppend),
        1 => Just(Op::HoldCommits),
        2 => Just(Op::Commits),
        2 => Just(Op::Restart),
    ]
}

/// What a client remembers.
#[derive(Clone, Default)]
struct Client {
    member_id: String,
    generation: i32,
    join: Option<ReplyToken>,
}

struct Model {
    h: Harness,
    clients: BTreeMap<(u8, u8), Client>,
    next_member: u32,
}

impl Model {
    fn group_name(group: u8) -> String {
        format!("g{group}")
    }

    /// A client reads the answer to its JoinGroup, if there is one.
    fn client(&mut self, group: u8, client: u8) -> Client {
        let known = self.clients.entry((group, client)).or_default();
        if let Some(GroupReply::Join(reply)) =
            known.join.and_then(|token| self.h.replies.get(&token))
        {
            known.member_id = reply.member_id.to_string();
            known.generation = reply.generation;
        }
        known.clone()
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Join {
                group,
                client,
                knows_id,
                other_topic,
            } => {
                self.next_member += 1;
                let known = self.client(group, client);
                let name = Self::group_name(group);
                let member_id = if knows_id {
                    known.member_id.as_str()
                } else {
                    ""
                };
                let topic = if other_topic { "u" } else { "t" };
                let token = self.h.join(JoinRequest {
                    new_member_id: format!("m{}", self.next_member).into(),
                    // Clients 2 and 3 share an instance id.
                    instance_id: (client >= 2).then(|| format!("i{}", 2).into()),
                    requires_known_member_id: client == 0,
                    protocols: vec![MemberProtocol {
                        name: "range".into(),
                        metadata: subscription(topic),
                    }],
                    ..request(&name, member_id)
                });
                self.clients.entry((group, client)).or_default().join = Some(token);
            }
            Op::Sync { group, client } => {
                let known = self.client(group, client);
                let name = Self::group_name(group);
                self.h.sync(
                    &name,
                    &known.member_id,
                    known.generation,
                    &[(&known.member_id, "mine")],
                );
            }
            Op::Heartbeat { group, client } => {
                let known = self.client(group, client);
                let _ =
                    self.h
                        .heartbeat(&Self::group_name(group), &known.member_id, known.generation);
            }
            Op::Leave { group, client } => {
                let known = self.client(group, client);
                let _ = self.h.leave(&Self::group_name(group), &known.member_id);
            }
            Op::Commit {
                group,
                client,
                partition,
                offset,
            } => {
                let known = self.client(group, client);
                let name = Self::group_name(group);
                let _ = self.h.commit_request(&CommitRequest {
                    offsets: vec![
                        to_commit("t", partition, offset),
                        to_commit("u", partition, offset),
                    ],
                    ..commit(&name, &known.member_id, known.generation, offset)
                });
            }
            Op::SimpleCommit {
                group,
                partition,
                offset,
                retention_ms,
            } => {
                let _ = self.h.commit_request(&CommitRequest {
                    offsets: vec![to_commit("t", partition, offset)],
                    retention_ms,
                    ..commit(&Self::group_name(group), "", -1, offset)
                });
            }
            Op::DeleteOffsets { group, partition } => {
                let token = self.h.token();
                let partitions = [(Arc::from("t"), partition)];
                let (_, effects) =
                    self.h
                        .shard
                        .delete_offsets(&Self::group_name(group), &partitions, token);
                self.h.carry_out(effects);
            }
            Op::DeleteGroup { group } => {
                let token = self.h.token();
                let groups = [Arc::from(Self::group_name(group))];
                let (_, effects) = self.h.shard.delete_groups(&groups, token);
                self.h.carry_out(effects);
            }
            Op::DeleteTopic => {
                let effects = self
                    .h
                    .shard
                    .on_topics_deleted(&[("u".into(), Uuid::from_u128(7))]);
                self.h.carry_out(effects);
            }
            Op::Advance { ms } => self.h.advance(ms),
            Op::FailNextAppend => self.h.append_error = Some(ResponseError::NotCoordinator),
            Op::HoldCommits => self.h.holds_commits = true,
            Op::Commits => {
                self.h.holds_commits = false;
                self.h.commit();
            }
            Op::Restart => {
                self.h.holds_commits = false;
                self.h.commit();
                self.h.restart();
            }
        }
    }

    /// Group by group: offsets, and what is stored of a group at rest.
    fn check(&self) {
        if !self.h.uncommitted.is_empty() {
            return;
        }
        let replayed = self.h.replayed();
        let offsets = |shard: &GroupShard| -> BTreeMap<String, TopicOffsets> {
            let groups = shard.groups().filter(|group| !group.offsets().is_empty());
            groups
                .map(|group| (group.id().to_string(), group.offsets().clone()))
                .collect()
        };
        assert_eq!(offsets(&self.h.shard), offsets(&replayed));
        for live in self.h.shard.groups() {
            live.assert_consistent(&self.h);
            let Some(stored) = replayed.group(live.id()) else {
                assert_ne!(live.state(), GroupState::Stable, "a stable group is stored");
                continue;
            };
            if live.state() == GroupState::Stable {
                assert_eq!(live.describe(), stored.describe());
                assert_eq!(live.leader, stored.leader);
                assert_eq!(live.generation, stored.generation);
                assert_eq!(live.static_members, stored.static_members);
            }
        }
    }
}

impl Group {
    /// The counts that are kept beside the members agree with them.
    fn assert_consistent(&self, h: &Harness) {
        let awaiting = self
            .members
            .values()
            .filter(|m| m.awaiting_join.is_some())
            .count();
        assert_eq!(self.awaiting_join, awaiting);
        assert_eq!(self.members.is_empty(), self.leader.is_none());
        assert!(
            self.leader
                .iter()
                .all(|leader| self.members.contains_key(leader))
        );
        let mut supported: HashMap<Arc<str>, usize> = HashMap::new();
        for protocol in self.members.values().flat_map(|m| &m.protocols) {
            *supported.entry(protocol.name.clone()).or_default() += 1;
        }
        assert_eq!(self.supported_protocols, supported);
        let statics = self
            .members
            .values()
            .filter(|m| m.instance_id.is_some())
            .count();
        assert_eq!(self.static_members.len(), statics);
        for member in self.members.values() {
            let parked = [member.awaiting_join, member.awaiting_sync];
            assert!(
                parked
                    .iter()
                    .flatten()
                    .all(|token| h.outstanding.contains(token))
            );
            let is_watched = member
                .timer_at_ms
                .is_some_and(|at_ms| at_ms <= member.heartbeat_deadline_ms);
            assert!(
                is_watched || member.has_satisfied_heartbeat(),
                "nobody watches {}",
                member.id
            );
        }
        let group = || self.id.clone();
        let has_timer = |at_ms: Option<i64>, key| {
            at_ms.is_some_and(|at_ms| h.shard.timers.contains(at_ms, key))
        };
        if self.state == GroupState::PreparingRebalance {
            let deadline_ms = self.join_timer.map(|timer| timer.deadline_ms);
            assert!(
                has_timer(deadline_ms, TimerKey::Join { group: group() }),
                "joining has an end"
            );
        }
        if !self.pending_syncs.is_empty() {
            assert!(
                has_timer(self.sync_deadline_ms, TimerKey::Sync { group: group() }),
                "so has syncing"
            );
        }
        for (member_id, deadline_ms) in &self.pending_joins {
            assert!(has_timer(Some(*deadline_ms), self.heartbeat_key(member_id)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn live_state_is_the_replayed_one_and_every_request_is_answered(
        ops in prop::collection::vec(op(), 1..80),
        delay_ms in prop_oneof![Just(0_i64), Just(3_000)],
    ) {
        let config = GroupConfig {
            initial_rebalance_delay_ms: delay_ms,
            offsets_retention_ms: 3_600_000,
            max_size: 3,
            ..GroupConfig::default()
        };
        let mut model = Model { h: Harness::new(config), clients: BTreeMap::new(), next_member: 0 };
        for op in ops {
            model.run(op);
            model.check();
        }
        // Without any further request, time alone answers whoever waits.
        model.h.holds_commits = false;
        model.h.commit();
        model.h.advance(2 * 60 * 60 * 1_000);
        prop_assert!(model.h.outstanding.is_empty(), "never answered: {:?}", model.h.outstanding);
        for group in model.h.shard.groups() {
            prop_assert_eq!(group.state(), GroupState::Empty);
        }
    }
}
