//! The answer to each forwarded request when it could not be handed on: one error for all of it, in the form of its API.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse as IncrementalResourceResponse;
use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Request, StrBytes};
use uuid::Uuid;

/// The version of ElectLeaders from which the response has an error of its own.
const ELECTION_ERROR_CODE_FROM: i16 = 1;

/// A request that only the active controller can answer.
pub(crate) trait Forwarded: Request {
    /// The response that says `error` of everything that the request of `version` asks for.
    fn refused(&self, error: ResponseError, version: i16) -> Self::Response;
}

impl Forwarded for CreateTopicsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> CreateTopicsResponse {
        let topics = self.topics.iter().map(|topic| {
            CreatableTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(error.code())
                .with_error_message(None)
                .with_configs(Some(Vec::new()))
        });
        CreateTopicsResponse::default().with_topics(topics.collect())
    }
}

impl Forwarded for DeleteTopicsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> DeleteTopicsResponse {
        let result = |name: Option<TopicName>, topic_id| {
            DeletableTopicResult::default()
                .with_name(name)
                .with_topic_id(topic_id)
                .with_error_code(error.code())
        };
        let states = self.topics.iter();
        let states = states.map(|topic| result(topic.name.clone(), topic.topic_id));
        let names = self.topic_names.iter();
        let names = names.map(|name| result(Some(name.clone()), Uuid::nil()));
        DeleteTopicsResponse::default().with_responses(states.chain(names).collect())
    }
}

impl Forwarded for CreatePartitionsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> CreatePartitionsResponse {
        let results = self.topics.iter().map(|topic| {
            CreatePartitionsTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(error.code())
                .with_error_message(None)
        });
        CreatePartitionsResponse::default().with_results(results.collect())
    }
}

impl Forwarded for AlterConfigsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> AlterConfigsResponse {
        let responses = self.resources.iter().map(|resource| {
            AlterConfigsResourceResponse::default()
                .with_error_code(error.code())
                .with_error_message(None)
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
        });
        AlterConfigsResponse::default().with_responses(responses.collect())
    }
}

impl Forwarded for IncrementalAlterConfigsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> IncrementalAlterConfigsResponse {
        let responses = self.resources.iter().map(|resource| {
            IncrementalResourceResponse::default()
                .with_error_code(error.code())
                .with_error_message(None)
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
        });
        IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
    }
}

impl Forwarded for ElectLeadersRequest {
    fn refused(&self, error: ResponseError, version: i16) -> ElectLeadersResponse {
        let topics = self.topic_partitions.iter().flatten().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                PartitionResult::default()
                    .with_partition_id(*partition)
                    .with_error_code(error.code())
                    .with_error_message(None)
            });
            ReplicaElectionResult::default()
                .with_topic(topic.topic.clone())
                .with_partition_result(partitions.collect())
        });
        let response =
            ElectLeadersResponse::default().with_replica_election_results(topics.collect());
        match version >= ELECTION_ERROR_CODE_FROM {
            true => response.with_error_code(error.code()),
            false => response,
        }
    }
}

impl Forwarded for AlterPartitionReassignmentsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> AlterPartitionReassignmentsResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                ReassignablePartitionResponse::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(error.code())
                    .with_error_message(None)
            });
            ReassignableTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        AlterPartitionReassignmentsResponse::default()
            .with_error_code(error.code())
            .with_error_message(None)
            .with_responses(topics.collect())
    }
}

impl Forwarded for ListPartitionReassignmentsRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> ListPartitionReassignmentsResponse {
        let topics = self.topics.iter().flatten().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|partition| {
                OngoingPartitionReassignment::default().with_partition_index(*partition)
            });
            OngoingTopicReassignment::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        ListPartitionReassignmentsResponse::default()
            .with_error_code(error.code())
            .with_error_message(None)
            .with_topics(topics.collect())
    }
}

impl Forwarded for UnregisterBrokerRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> UnregisterBrokerResponse {
        UnregisterBrokerResponse::default()
            .with_error_code(error.code())
            .with_error_message(None)
    }
}

impl Forwarded for UpdateFeaturesRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> UpdateFeaturesResponse {
        UpdateFeaturesResponse::default()
            .with_error_code(error.code())
            .with_error_message(Some(StrBytes::from_string(error.to_string())))
    }
}

impl Forwarded for DescribeQuorumRequest {
    fn refused(&self, error: ResponseError, _version: i16) -> DescribeQuorumResponse {
        DescribeQuorumResponse::default()
            .with_error_code(error.code())
            .with_error_message(None)
    }
}
