//! Joining, leaving, being silent, and coming back as a static member.

use super::*;

#[test]
fn version_0_takes_the_session_time_out_for_the_rebalance() {
    for_each_broker(|broker| {
        let group = "groups-v0";
        let mut first = prepare(broker, group);
        let mut second = connect(broker);
        let request = |member: &str| {
            join_request(group, member)
                .with_rebalance_timeout_ms(-1)
                .with_session_timeout_ms(10_000)
        };
        let joined = first.call(0, &request("")).unwrap();
        assert_eq!((joined.error_code, joined.generation_id), (code::NONE, 1));
        let member = joined.member_id.to_string();
        sync(&mut first, group, &member, 1, &[(&member, b"x")]);
        second.send(0, &request("")).unwrap();
        eventually(Duration::from_secs(10), "the rebalance is told", || {
            (heartbeat(&mut first, group, &member, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
        });
        first.send(0, &request(&member)).unwrap();
        let one = first.receive::<JoinGroupRequest>(0).unwrap();
        let two = second.receive::<JoinGroupRequest>(0).unwrap();
        assert_eq!((one.error_code, two.error_code), (code::NONE, code::NONE));
        assert_eq!(
            (one.generation_id, two.generation_id),
            (2, 2),
            "no endless rebalance"
        );
    });
}

#[test]
fn joins_that_cannot_fit_are_refused() {
    for_each_broker(|broker| {
        let group = "groups-misfits";
        let mut connection = prepare(broker, group);
        let member = alone(&mut connection, group);
        let mut refuses = |what: &str, request: JoinGroupRequest, expected: i16| {
            let reply = connection.call(JOIN, &request).unwrap();
            assert_eq!(reply.error_code, expected, "{what}: {reply:?}");
            assert_eq!(reply.generation_id, -1, "{what}");
        };
        let short = join_request(group, "").with_session_timeout_ms(10);
        refuses("short session", short, code::INVALID_SESSION_TIMEOUT);
        let long = join_request(group, "").with_session_timeout_ms(i32::MAX);
        refuses("long session", long, code::INVALID_SESSION_TIMEOUT);
        let other = join_request(group, "").with_protocols(vec![protocol("sticky")]);
        refuses(
            "no common protocol",
            other,
            code::INCONSISTENT_GROUP_PROTOCOL,
        );
        let kind = join_request(group, "").with_protocol_type(s("connect"));
        refuses("another type", kind, code::INCONSISTENT_GROUP_PROTOCOL);
        let none = join_request(group, "").with_protocols(vec![]);
        refuses("no protocols", none, code::INCONSISTENT_GROUP_PROTOCOL);
        refuses(
            "empty group id",
            join_request("", ""),
            code::INVALID_GROUP_ID,
        );
        refuses(
            "unknown member",
            join_request(group, "nobody"),
            code::UNKNOWN_MEMBER_ID,
        );
        refuses(
            "unknown group",
            join_request("no-group", "nobody"),
            code::UNKNOWN_MEMBER_ID,
        );
        assert_eq!(heartbeat(&mut connection, group, &member, 1), code::NONE);
        assert_eq!(
            heartbeat(&mut connection, group, &member, 2),
            code::ILLEGAL_GENERATION
        );
        let unknown = code::UNKNOWN_MEMBER_ID;
        assert_eq!(heartbeat(&mut connection, group, "nobody", 1), unknown);
        assert_eq!(heartbeat(&mut connection, "no-group", &member, 1), unknown);
        assert_eq!(
            heartbeat(&mut connection, "", &member, 1),
            code::INVALID_GROUP_ID
        );
        let wrong = sync(&mut connection, group, &member, 7, &[]);
        assert_eq!(wrong.error_code, code::ILLEGAL_GENERATION);
        assert_eq!(
            sync(&mut connection, "no-group", &member, 1, &[]).error_code,
            unknown
        );
    });
}

/// Two members in generation 2: their connections, ids, and which one leads.
fn pair(broker: &Broker, group: &str) -> [(Connection, String, JoinGroupResponse); 2] {
    let mut first = prepare(broker, group);
    let one = alone(&mut first, group);
    let mut second = connect(broker);
    let two = take_member_id(&mut second, group);
    second.send(JOIN, &join_request(group, &two)).unwrap();
    eventually(Duration::from_secs(10), "the rebalance is told", || {
        (heartbeat(&mut first, group, &one, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
    });
    first.send(JOIN, &join_request(group, &one)).unwrap();
    let joined = [
        first.receive::<JoinGroupRequest>(JOIN).unwrap(),
        second.receive::<JoinGroupRequest>(JOIN).unwrap(),
    ];
    for reply in &joined {
        assert_eq!((reply.error_code, reply.generation_id), (code::NONE, 2));
        let is_leader = reply.leader == reply.member_id;
        assert_eq!(reply.members.len(), if is_leader { 2 } else { 0 });
    }
    let [joined_first, joined_second] = joined;
    [(first, one, joined_first), (second, two, joined_second)]
}

#[test]
fn second_member_gets_its_share_from_the_leader() {
    for_each_broker(|broker| {
        let group = "groups-pair";
        let [(mut first, one, _), (mut second, two, _)] = pair(broker, group);
        assert_eq!(state(&mut first, group).0, "CompletingRebalance");
        // A commit has to wait for the new generation to be ready.
        let topic = "groups-pair-topic";
        let busy = commit(&mut first, group, &one, 2, topic, 5);
        assert_eq!(busy, code::REBALANCE_IN_PROGRESS);
        // The follower's sync waits for the leader's. The first one leads: it was there before.
        second
            .send(SYNC, &sync_request(group, &two, 2, &[]))
            .unwrap();
        let shares = [(one.as_str(), &b"one"[..]), (two.as_str(), &b"two"[..])];
        assert_eq!(
            &sync(&mut first, group, &one, 2, &shares).assignment[..],
            b"one"
        );
        let synced = second.receive::<SyncGroupRequest>(SYNC).unwrap();
        assert_eq!(
            (synced.error_code, &synced.assignment[..]),
            (code::NONE, &b"two"[..])
        );
        assert_eq!(
            state(&mut first, group),
            ("Stable".into(), "consumer".into())
        );
        assert_eq!(commit(&mut second, group, &two, 2, topic, 6), code::NONE);
        // A late sync gets the same again.
        assert_eq!(
            &sync(&mut second, group, &two, 2, &[]).assignment[..],
            b"two"
        );
    });
}

#[test]
fn leaving_while_others_wait_finishes_the_join() {
    for_each_broker(|broker| {
        let group = "groups-leave";
        let mut first = prepare(broker, group);
        let one = alone(&mut first, group);
        let mut second = connect(broker);
        let two = take_member_id(&mut second, group);
        second.send(JOIN, &join_request(group, &two)).unwrap();
        eventually(Duration::from_secs(10), "the rebalance is told", || {
            (heartbeat(&mut first, group, &one, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
        });
        assert_eq!(state(&mut first, group).0, "PreparingRebalance");
        // A commit of the last generation is still taken.
        assert_eq!(
            commit(&mut first, group, &one, 1, "groups-leave-topic", 3),
            code::NONE
        );
        assert_eq!(leave(&mut first, group, &one), code::NONE);
        let joined = second.receive::<JoinGroupRequest>(JOIN).unwrap();
        assert_eq!((joined.error_code, joined.generation_id), (code::NONE, 2));
        assert_eq!(joined.leader.as_str(), two);
        assert_eq!(leave(&mut first, group, &one), code::UNKNOWN_MEMBER_ID);
        assert_eq!(leave(&mut first, group, &two), code::NONE);
        assert_eq!(
            state(&mut first, group),
            ("Empty".into(), "consumer".into())
        );
    });
}

#[test]
fn silent_member_is_removed_and_the_others_go_on() {
    let options = BrokerOptions::new().set("group.min.session.timeout.ms", 100);
    for_each_broker_with(&options, |broker| {
        let group = "groups-silent";
        let mut first = prepare(broker, group);
        let short = |member: &str| {
            join_request(group, member)
                .with_session_timeout_ms(1500)
                .with_rebalance_timeout_ms(1500)
        };
        let one = first.call(JOIN, &short("")).unwrap().member_id.to_string();
        assert_eq!(
            first.call(JOIN, &short(&one)).unwrap().error_code,
            code::NONE
        );
        sync(&mut first, group, &one, 1, &[(&one, b"x")]);
        eventually(
            Duration::from_secs(20),
            "the silent member is removed",
            || (state(&mut connect(broker), group).0 == "Empty").then_some(()),
        );
        assert_eq!(
            heartbeat(&mut first, group, &one, 1),
            code::UNKNOWN_MEMBER_ID
        );
        // A member id that was handed out and never used is forgotten too.
        let pending = first.call(JOIN, &short("")).unwrap();
        assert_eq!(pending.error_code, code::MEMBER_ID_REQUIRED);
        eventually(
            Duration::from_secs(20),
            "the pending member is forgotten",
            || {
                let code = first
                    .call(JOIN, &short(&pending.member_id))
                    .unwrap()
                    .error_code;
                // Each try within the time joins: leave again and wait longer than it.
                if code == code::NONE {
                    leave(&mut first, group, &pending.member_id);
                    std::thread::sleep(Duration::from_millis(200));
                }
                (code == code::UNKNOWN_MEMBER_ID).then_some(())
            },
        );
    });
}

#[test]
fn abandoned_joins_cost_no_memory() {
    let options = BrokerOptions::new().set("group.min.session.timeout.ms", 100);
    on_highwater(&options, |broker| {
        let group = "groups-abandoned";
        wait_for_coordinator(broker, group);
        let request = join_request(group, "").with_session_timeout_ms(500);
        let abandon = |count: usize| {
            for _ in 0..count {
                let mut connection = connect(broker);
                connection.send(JOIN, &request).unwrap();
                connection.read_frame().unwrap().expect("an answer");
            }
        };
        abandon(500);
        let before = crate::process::resident_bytes(broker);
        abandon(5000);
        let mut connection = connect(broker);
        eventually(
            Duration::from_secs(30),
            "the group is forgotten or empty",
            || {
                ["Dead", "Empty"]
                    .contains(&state(&mut connection, group).0.as_str())
                    .then_some(())
            },
        );
        let grown = crate::process::resident_bytes(broker).saturating_sub(before);
        assert!(
            grown < 16 << 20,
            "5,000 abandoned joins took {} MiB",
            grown >> 20
        );
    });
}

#[test]
fn static_member_comes_back_without_a_rebalance_and_fences_its_old_self() {
    for_each_broker(|broker| {
        let group = "groups-static";
        let mut connection = prepare(broker, group);
        let fixed = |member: &str| {
            join_request(group, member).with_group_instance_id(Some(s("instance-1")))
        };
        let joined = connection.call(JOIN, &fixed("")).unwrap();
        assert_eq!(
            (joined.error_code, joined.generation_id),
            (code::NONE, 1),
            "no id is required"
        );
        let old = joined.member_id.to_string();
        let mut request = sync_request(group, &old, 1, &[(&old, b"mine")]);
        request.group_instance_id = Some(s("instance-1"));
        assert_eq!(
            connection.call(SYNC, &request).unwrap().error_code,
            code::NONE
        );

        let back = connection.call(JOIN, &fixed("")).unwrap();
        assert_eq!(
            (back.error_code, back.generation_id),
            (code::NONE, 1),
            "no rebalance"
        );
        let new = back.member_id.to_string();
        assert_ne!(old, new);
        let mut beat = |member: &str| {
            let request = HeartbeatRequest::default()
                .with_group_id(group_id(group))
                .with_member_id(s(member))
                .with_generation_id(1)
                .with_group_instance_id(Some(s("instance-1")));
            connection.call(3, &request).unwrap().error_code
        };
        assert_eq!(beat(&old), code::FENCED_INSTANCE_ID);
        assert_eq!(beat(&new), code::NONE);
        let mut late = commit_request(group, &old, 1, "groups-static-topic", 9);
        late.group_instance_id = Some(s("instance-1"));
        let reply = connection.call(8, &late).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::FENCED_INSTANCE_ID
        );
        let mut request = sync_request(group, &new, 1, &[]);
        request.group_instance_id = Some(s("instance-1"));
        assert_eq!(
            &connection.call(SYNC, &request).unwrap().assignment[..],
            b"mine"
        );
        // An administrator removes it by its instance id.
        let member = MemberIdentity::default().with_group_instance_id(Some(s("instance-1")));
        let request = LeaveGroupRequest::default()
            .with_group_id(group_id(group))
            .with_members(vec![member]);
        let reply = connection.call(4, &request).unwrap();
        assert_eq!(
            (reply.error_code, reply.members[0].error_code),
            (code::NONE, code::NONE)
        );
        assert_eq!(state(&mut connection, group).0, "Empty");
    });
}
