//! Groups described, listed and deleted.

use super::*;

#[test]
fn groups_are_described_listed_and_deleted() {
    for_each_broker(|broker| {
        let group = "groups-admin";
        let topic = "groups-admin-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(state(&mut connection, group).0, "Dead", "not there yet");
        let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
        let reply = connection.call(6, &request).unwrap();
        assert_eq!(reply.groups[0].error_code, code::GROUP_ID_NOT_FOUND);
        assert_eq!(reply.groups[0].group_state.as_str(), "Dead");

        commit(&mut connection, group, "", -1, topic, 7);
        assert_eq!(
            state(&mut connection, group),
            ("Empty".into(), String::new())
        );
        let member = alone(&mut connection, group);
        let reply = connection.call(4, &request).unwrap();
        let shown = &reply.groups[0];
        assert_eq!(shown.group_state.as_str(), "Stable");
        assert_eq!(shown.protocol_data.as_str(), "range");
        assert_eq!(shown.members.len(), 1);
        assert_eq!(shown.members[0].member_id.as_str(), member);
        assert_eq!(shown.members[0].client_id.as_str(), "raw");
        assert_eq!(shown.members[0].client_host.as_str(), "/127.0.0.1");
        assert_eq!(&shown.members[0].member_metadata[..], b"metadata");
        assert_eq!(&shown.members[0].member_assignment[..], b"all");

        let listed = |connection: &mut Connection, states: &[&str]| {
            let request = ListGroupsRequest::default()
                .with_states_filter(states.iter().map(|name| s(name)).collect());
            let reply = connection.call(5, &request).unwrap();
            reply
                .groups
                .into_iter()
                .find(|g| g.group_id == group_id(group))
        };
        let found = listed(&mut connection, &[]).expect("it is listed");
        let shown = (found.group_state.as_str(), found.protocol_type.as_str());
        assert_eq!(shown, ("Stable", "consumer"));
        assert_eq!(found.group_type.to_lowercase(), "classic");
        assert!(listed(&mut connection, &["Empty"]).is_none());
        assert!(listed(&mut connection, &["stable"]).is_some());

        let delete = |connection: &mut Connection, group: &str| {
            let request = DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)]);
            connection.call(2, &request).unwrap().results[0].error_code
        };
        assert_eq!(delete(&mut connection, group), code::NON_EMPTY_GROUP);
        assert_eq!(
            delete(&mut connection, "no-such-group"),
            code::GROUP_ID_NOT_FOUND
        );
        let delete_offset = |connection: &mut Connection, group: &str| {
            let topic = OffsetDeleteRequestTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![
                    OffsetDeleteRequestPartition::default().with_partition_index(0),
                ]);
            let request = OffsetDeleteRequest::default()
                .with_group_id(group_id(group))
                .with_topics(vec![topic]);
            let reply = connection.call(0, &request).unwrap();
            let part = reply
                .topics
                .first()
                .and_then(|topic| topic.partitions.first());
            (reply.error_code, part.map(|part| part.error_code))
        };
        let unknown = (code::GROUP_ID_NOT_FOUND, None);
        assert_eq!(delete_offset(&mut connection, "no-such-group"), unknown);
        assert_eq!(leave(&mut connection, group, &member), code::NONE);
        assert_eq!(
            state(&mut connection, group),
            ("Empty".into(), "consumer".into())
        );
        assert_eq!(
            delete_offset(&mut connection, group),
            (code::NONE, Some(code::NONE))
        );
        assert_eq!(committed(&mut connection, group, topic), -1);
        eventually(Duration::from_secs(10), "the group is deleted", || {
            let found = delete(&mut connection, group);
            [code::NONE, code::GROUP_ID_NOT_FOUND]
                .contains(&found)
                .then_some(())
        });
        assert_eq!(state(&mut connection, group).0, "Dead");
        assert!(listed(&mut connection, &[]).is_none());
    });
}
