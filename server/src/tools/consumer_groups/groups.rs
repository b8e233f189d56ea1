//! The requests about whole groups.

use std::collections::BTreeMap;

use kafka_protocol::messages::consumer_group_describe_response::Assignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, DeleteGroupsRequest, DescribeGroupsRequest, GroupId,
    ListGroupsRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::super::client::{Cluster, KafkaError, NodeInfo, TopicPartition};
use super::super::consumer::decode_assignment;

/// GROUP_ID_NOT_FOUND
const NOT_FOUND: i16 = 69;

/// A group in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) type_: String,
    pub(super) state: String,
}

/// What is known of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) id: String,
    pub(super) state: String,
    pub(super) assignor: String,
    pub(super) coordinator: NodeInfo,
    pub(super) group_epoch: Option<i32>,
    pub(super) assignment_epoch: Option<i32>,
    pub(super) members: Vec<Member>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) host: String,
    pub(super) assignment: Vec<TopicPartition>,
    pub(super) target_assignment: Option<Vec<TopicPartition>>,
    pub(super) epoch: Option<i32>,
    /// Whether it uses the new protocol, where that is known (KIP-848).
    pub(super) is_upgraded: Option<bool>,
}

pub(super) fn group_id(id: &str) -> GroupId {
    GroupId(StrBytes::from_string(id.to_owned()))
}

fn texts(list: &[String]) -> Vec<StrBytes> {
    let list = list.iter();
    list.map(|text| StrBytes::from_string(text.clone()))
        .collect()
}

/// The groups of consumers in these states and of these types; no state and no type are all of them.
pub(super) async fn list(
    cluster: &Cluster,
    states: &[String],
    types: &[String],
) -> Result<Vec<Listed>, KafkaError> {
    let wanted = match types {
        [] => ["Classic", "Consumer"].map(str::to_owned).to_vec(),
        types => types.to_vec(),
    };
    let mut found = BTreeMap::new();
    for node in cluster.nodes().await? {
        let groups = cluster
            .retry("listGroups", async || {
                let client = cluster.client(node.id).await?;
                let request = |version| {
                    let mut request = ListGroupsRequest::default();
                    if version >= 4 {
                        request = request.with_states_filter(texts(states));
                    }
                    if version >= 5 {
                        request = request.with_types_filter(texts(&wanted));
                    }
                    request
                };
                let (_, response) = client.call_within(0..=5, request).await?;
                KafkaError::check(response.error_code, None)?;
                Ok(response.groups)
            })
            .await?;
        for group in groups {
            let protocol = group.protocol_type.as_str();
            let type_ = match group.group_type.as_str() {
                "" => "Classic",
                known => wanted
                    .iter()
                    .find(|type_| type_.eq_ignore_ascii_case(known))
                    .map_or("", String::as_str),
            };
            if (protocol.is_empty() || protocol == "consumer") && !type_.is_empty() {
                let listed = Listed {
                    id: group.group_id.to_string(),
                    type_: type_.to_owned(),
                    state: group.group_state.to_string(),
                };
                found.insert(listed.id.clone(), listed);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// A coordinator that has just answered.
fn node(cluster: &Cluster, id: i32) -> Result<NodeInfo, KafkaError> {
    // COORDINATOR_NOT_AVAILABLE
    cluster.info(id).ok_or_else(|| KafkaError::new(15, None))
}

/// What is known of a group.
///
/// # Errors
/// When there is no such group, too.
pub(super) async fn describe(cluster: &Cluster, id: &str) -> Result<Description, KafkaError> {
    match describe_new(cluster, id).await {
        Err(error) if error.code == NOT_FOUND || error.is_unsupported() => {
            describe_classic(cluster, id).await
        }
        result => result,
    }
}

async fn describe_new(cluster: &Cluster, id: &str) -> Result<Description, KafkaError> {
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![group_id(id)]);
    cluster
        .ask_coordinator("describeConsumerGroups", id, async |coordinator| {
            let response = cluster.try_node(coordinator, &request).await?;
            let group = response.groups.into_iter().next();
            let group = group.ok_or_else(|| KafkaError::new(-1, None))?;
            KafkaError::check(group.error_code, group.error_message.as_deref())?;
            let members = group.members.into_iter().map(|member| Member {
                id: member.member_id.to_string(),
                instance_id: member.instance_id.map(|id| id.to_string()),
                client_id: member.client_id.to_string(),
                host: member.client_host.to_string(),
                assignment: partitions(&member.assignment),
                target_assignment: Some(partitions(&member.target_assignment)),
                epoch: Some(member.member_epoch),
                is_upgraded: match member.member_type {
                    0 => Some(false),
                    1 => Some(true),
                    _ => None,
                },
            });
            Ok(Description {
                id: id.to_owned(),
                state: group.group_state.to_string(),
                assignor: group.assignor_name.to_string(),
                group_epoch: Some(group.group_epoch),
                assignment_epoch: Some(group.assignment_epoch),
                members: members.collect(),
                coordinator: node(cluster, coordinator)?,
            })
        })
        .await
}

fn partitions(assignment: &Assignment) -> Vec<TopicPartition> {
    let topics = assignment.topic_partitions.iter();
    topics
        .flat_map(|topic| {
            let indexes = topic.partitions.iter();
            indexes.map(|index| TopicPartition::new(topic.topic_name.0.as_str(), *index))
        })
        .collect()
}

async fn describe_classic(cluster: &Cluster, id: &str) -> Result<Description, KafkaError> {
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(id)]);
    cluster
        .ask_coordinator("describeConsumerGroups", id, async |coordinator| {
            let response = cluster.try_node(coordinator, &request).await?;
            let group = response.groups.into_iter().next();
            let group = group.ok_or_else(|| KafkaError::new(-1, None))?;
            KafkaError::check(group.error_code, group.error_message.as_deref())?;
            let protocol = group.protocol_type.as_str();
            if !protocol.is_empty() && protocol != "consumer" {
                let text = format!("GroupId {id} is not a consumer group ({protocol}).");
                return Err(KafkaError::of_client("IllegalArgumentException", text));
            }
            let members = group.members.into_iter().map(|member| Member {
                id: member.member_id.to_string(),
                instance_id: member.group_instance_id.map(|id| id.to_string()),
                client_id: member.client_id.to_string(),
                host: member.client_host.to_string(),
                // What cannot be read is another assignor's own.
                assignment: decode_assignment(member.member_assignment).unwrap_or_default(),
                target_assignment: None,
                epoch: None,
                is_upgraded: None,
            });
            Ok(Description {
                id: id.to_owned(),
                state: group.group_state.to_string(),
                assignor: group.protocol_data.to_string(),
                group_epoch: None,
                assignment_epoch: None,
                members: members.collect(),
                coordinator: node(cluster, coordinator)?,
            })
        })
        .await
}

/// Deletes a group.
///
/// # Errors
/// When it is not there or has members, for example.
pub(super) async fn delete(cluster: &Cluster, id: &str) -> Result<(), KafkaError> {
    let request = DeleteGroupsRequest::default().with_groups_names(vec![group_id(id)]);
    let code = |response: &kafka_protocol::messages::DeleteGroupsResponse| {
        response
            .results
            .first()
            .map_or(-1, |group| group.error_code)
    };
    let response = cluster
        .call_coordinator("deleteConsumerGroups", id, &request, code)
        .await?;
    KafkaError::check(code(&response), None)
}
