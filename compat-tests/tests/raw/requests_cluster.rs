//! The requests of [`crate::requests`] for the APIs about replicas, brokers and the quorum.

use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, ApiKey, BrokerId, DescribeQuorumRequest,
    ElectLeadersRequest, ListPartitionReassignmentsRequest, RequestKind, UnregisterBrokerRequest,
    UpdateFeaturesRequest,
};

use crate::requests::{Subject, Variant};
use crate::support::{s, topic_name};

const UNKNOWN: &str = "no-such-topic";

pub(crate) fn variants(key: ApiKey, version: i16, on: &Subject) -> Vec<Variant> {
    match key {
        ApiKey::ElectLeaders => elect_leaders(version, on),
        ApiKey::AlterPartitionReassignments => alter_partition_reassignments(on),
        ApiKey::ListPartitionReassignments => list_partition_reassignments(on),
        ApiKey::DescribeQuorum => describe_quorum(),
        ApiKey::UpdateFeatures => update_features(version),
        ApiKey::UnregisterBroker => {
            let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(99));
            vec![("unknown broker", RequestKind::UnregisterBroker(request))]
        }
        _ => Vec::new(),
    }
}

fn elect_leaders(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
    let request = |name: &str, election_type: i8| {
        let topic = TopicPartitions::default()
            .with_topic(topic_name(name))
            .with_partitions(vec![0]);
        let request = ElectLeadersRequest::default()
            .with_election_type(if version == 0 { 0 } else { election_type })
            .with_topic_partitions(Some(vec![topic]))
            .with_timeout_ms(10_000);
        RequestKind::ElectLeaders(request)
    };
    vec![
        ("leads already", request(&on.topic, 0)),
        ("unclean, has a leader", request(&on.topic, 1)),
        ("unknown topic", request(UNKNOWN, 0)),
    ]
}

fn alter_partition_reassignments(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::alter_partition_reassignments_request::{
        ReassignablePartition, ReassignableTopic,
    };
    let request = |name: &str, partition: i32, replicas: Option<Vec<i32>>| {
        let replicas = replicas.map(|ids| ids.into_iter().map(BrokerId).collect());
        let partition = ReassignablePartition::default()
            .with_partition_index(partition)
            .with_replicas(replicas);
        let topic = ReassignableTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![partition]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        RequestKind::AlterPartitionReassignments(request)
    };
    vec![
        ("to where it is", request(&on.topic, 0, Some(vec![1]))),
        ("nothing to cancel", request(&on.topic, 0, None)),
        ("unknown partition", request(&on.topic, 99, Some(vec![1]))),
        ("unknown topic", request(UNKNOWN, 0, Some(vec![1]))),
    ]
}

fn list_partition_reassignments(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
    let request = |topics: Option<Vec<ListPartitionReassignmentsTopics>>| {
        let request = ListPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(topics);
        RequestKind::ListPartitionReassignments(request)
    };
    let topic = ListPartitionReassignmentsTopics::default()
        .with_name(topic_name(&on.topic))
        .with_partition_indexes(vec![0]);
    vec![
        ("all", request(None)),
        ("one topic", request(Some(vec![topic]))),
    ]
}

fn describe_quorum() -> Vec<Variant> {
    use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
    let topic = TopicData::default()
        .with_topic_name(topic_name("__cluster_metadata"))
        .with_partitions(vec![PartitionData::default()]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    vec![("plain", RequestKind::DescribeQuorum(request))]
}

fn update_features(version: i16) -> Vec<Variant> {
    use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
    let update = FeatureUpdateKey::default()
        .with_feature(s("no.such.feature"))
        .with_max_version_level(1);
    let update = if version == 0 {
        update
    } else {
        update.with_upgrade_type(1)
    };
    let request = UpdateFeaturesRequest::default()
        .with_feature_updates(vec![update])
        .with_validate_only(version > 0);
    vec![("unknown feature", RequestKind::UpdateFeatures(request))]
}
