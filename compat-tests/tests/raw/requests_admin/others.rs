//! Requests about log directories, groups and producers.

use super::*;

pub(super) fn describe_log_dirs(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
    let request = |topics: Option<Vec<(&str, Vec<i32>)>>| {
        let topics = topics.map(|topics| {
            let topics = topics.into_iter().map(|(name, partitions)| {
                DescribableLogDirTopic::default()
                    .with_topic(topic_name(name))
                    .with_partitions(partitions)
            });
            topics.collect()
        });
        RequestKind::DescribeLogDirs(DescribeLogDirsRequest::default().with_topics(topics))
    };
    vec![
        ("one partition", request(Some(vec![(&on.topic, vec![0])]))),
        ("unknown topic", request(Some(vec![(UNKNOWN, vec![0])]))),
        (
            "unknown partition",
            request(Some(vec![(&on.topic, vec![99])])),
        ),
        ("no topics", request(Some(vec![]))),
        ("all", request(None)),
    ]
}

pub(super) fn delete_groups() -> Vec<Variant> {
    let request = |names: &[&str]| {
        RequestKind::DeleteGroups(
            DeleteGroupsRequest::default()
                .with_groups_names(names.iter().map(|name| group_id(name)).collect()),
        )
    };
    vec![
        ("unknown", request(&["no-such-group"])),
        ("empty id", request(&[""])),
        ("none", request(&[])),
    ]
}

pub(super) fn offset_delete(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::offset_delete_request::{
        OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    };
    let request = |group: &str, name: &str| {
        let topic = OffsetDeleteRequestTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![
                OffsetDeleteRequestPartition::default().with_partition_index(0),
            ]);
        RequestKind::OffsetDelete(
            OffsetDeleteRequest::default()
                .with_group_id(group_id(group))
                .with_topics(vec![topic]),
        )
    };
    vec![
        ("committed", request(&on.group, &on.topic)),
        ("unknown topic", request(&on.group, UNKNOWN)),
        ("unknown group", request("no-such-group", &on.topic)),
    ]
}

pub(super) fn describe_producers(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_producers_request::TopicRequest;
    let request = |name: &str, partitions: Vec<i32>| {
        let topic = TopicRequest::default()
            .with_name(topic_name(name))
            .with_partition_indexes(partitions);
        RequestKind::DescribeProducers(DescribeProducersRequest::default().with_topics(vec![topic]))
    };
    vec![
        ("two partitions", request(&on.topic, vec![0, 1])),
        ("unknown partition", request(&on.topic, vec![99])),
        ("unknown topic", request(UNKNOWN, vec![0])),
    ]
}
