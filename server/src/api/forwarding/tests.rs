//! Handing requests on to a controller that a test plays.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use tokio::sync::watch;

use super::*;
use crate::controller::ControllerNode;
use crate::network::NetworkMetrics;
use crate::network::client::ClientConfig;
use crate::network::client::fake_node::{FakeNode, Received};
use crate::peer::controller_channel::{ControllerChannels, LocalController};

const CORRELATION_ID: i32 = 4711;

/// Hands a DeleteTopics request on to a controller that answers with what `answer` makes of the envelope.
async fn handed_on(
    answer: impl Fn(&Received, EnvelopeRequest) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<Vec<u8>, ResponseError> {
    let node = FakeNode::serving(&[(ApiKey::Envelope, 0, 0)], move |received| {
        let envelope = received.body::<EnvelopeRequest>();
        std::future::ready(answer(&received, envelope))
    })
    .await;
    let active = ControllerNode {
        id: 1,
        epoch: 1,
        host: "127.0.0.1".to_owned(),
        port: node.port,
    };
    let (_sender, active) = watch::channel(Some(active));
    let metrics = Arc::new(NetworkMetrics::default());
    let local = Arc::new(LocalController::new(Arc::clone(&metrics)));
    let channels = ControllerChannels::new(2, active, local, ClientConfig::named("test"));
    let channel = channels.channel("forwarding", Duration::from_secs(2));
    let ctx = RequestContext {
        api_key: ApiKey::DeleteTopics as i16,
        api_version: 6,
        correlation_id: CORRELATION_ID,
        peer: "10.1.2.3:999".parse().unwrap(),
        ..LocalController::new(metrics).context()
    };
    let body = hand_on(&channel, &ctx, request()).await?;
    Ok(body.to_vec())
}

/// The client's request as it came.
fn request() -> Bytes {
    let mut frame = BytesMut::new();
    RequestHeader::default()
        .with_request_api_key(ApiKey::DeleteTopics as i16)
        .with_request_api_version(6)
        .with_correlation_id(CORRELATION_ID)
        .with_client_id(Some(StrBytes::from_static_str("admin")))
        .encode(&mut frame, DeleteTopicsRequest::header_version(6))
        .unwrap();
    DeleteTopicsRequest::default()
        .encode(&mut frame, 6)
        .unwrap();
    frame.freeze()
}

/// A response to the request inside an envelope.
fn inside(correlation_id: i32) -> Bytes {
    let mut frame = BytesMut::new();
    ResponseHeader::default()
        .with_correlation_id(correlation_id)
        .encode(&mut frame, DeleteTopicsResponse::header_version(6))
        .unwrap();
    DeleteTopicsResponse::default()
        .encode(&mut frame, 6)
        .unwrap();
    frame.freeze()
}

#[tokio::test]
async fn the_envelope_says_who_asks_and_its_response_goes_to_the_client_as_it_is() {
    let answered = handed_on(|received, envelope| {
        assert_eq!(envelope.request_data, request());
        assert_eq!(&envelope.client_host_address[..], [10, 1, 2, 3]);
        let mut principal = envelope.request_principal.unwrap();
        assert_eq!(principal.get_i16(), 0, "the version comes first");
        let principal = DefaultPrincipalData::decode(&mut principal, 0).unwrap();
        assert_eq!((&*principal._type, &*principal.name), ("User", "ANONYMOUS"));
        let response = EnvelopeResponse::default().with_response_data(Some(inside(CORRELATION_ID)));
        received.answer(&response)
    })
    .await
    .unwrap();
    let expected = inside(CORRELATION_ID);
    assert_eq!(answered[..4], (expected.len() as i32).to_be_bytes());
    assert_eq!(answered[4..], expected);
}

#[tokio::test]
async fn what_is_wrong_with_the_envelope_is_not_told_to_the_client() {
    // CLUSTER_AUTHORIZATION_FAILED: the controller does not trust this broker.
    let refused =
        handed_on(|received, _| received.answer(&EnvelopeResponse::default().with_error_code(31)))
            .await;
    assert_eq!(refused, Err(ResponseError::UnknownServerError));
    let mixed_up = handed_on(|received, _| {
        let response = EnvelopeResponse::default().with_response_data(Some(inside(1)));
        received.answer(&response)
    })
    .await;
    assert_eq!(mixed_up, Err(ResponseError::UnknownServerError));
}

#[tokio::test]
async fn a_request_that_no_controller_takes_times_out() {
    let refused =
        handed_on(|received, _| received.answer(&EnvelopeResponse::default().with_error_code(41)))
            .await;
    assert_eq!(refused, Err(ResponseError::RequestTimedOut));
}

/// Every version of a request is refused with a response that has an encoding in it, with the error in it.
fn check_refusals<R: Forwarded>(make: impl Fn(i16) -> R) {
    for version in R::VERSIONS.min..=R::VERSIONS.max {
        let refused = make(version).refused(ResponseError::RequestTimedOut, version);
        let mut encoded = BytesMut::new();
        let result = refused.encode(&mut encoded, version);
        let name = std::any::type_name::<R>();
        assert!(result.is_ok(), "{name} {version}: {result:?}");
        let code = ResponseError::RequestTimedOut.code().to_be_bytes();
        assert!(
            encoded.windows(2).any(|window| window == code),
            "{name} {version}"
        );
    }
}

#[test]
fn every_refusal_has_an_encoding() {
    use kafka_protocol::messages::*;
    let name = || TopicName(StrBytes::from_static_str("topic"));
    check_refusals(|_| {
        let topic = create_topics_request::CreatableTopic::default().with_name(name());
        CreateTopicsRequest::default().with_topics(vec![topic])
    });
    check_refusals(|version| match version >= 6 {
        true => DeleteTopicsRequest::default().with_topics(vec![
            delete_topics_request::DeleteTopicState::default().with_name(Some(name())),
        ]),
        false => DeleteTopicsRequest::default().with_topic_names(vec![name()]),
    });
    check_refusals(|_| {
        let topic = create_partitions_request::CreatePartitionsTopic::default().with_name(name());
        CreatePartitionsRequest::default().with_topics(vec![topic])
    });
    check_refusals(|_| {
        let resource = alter_configs_request::AlterConfigsResource::default();
        AlterConfigsRequest::default().with_resources(vec![resource])
    });
    check_refusals(|_| {
        let resource = incremental_alter_configs_request::AlterConfigsResource::default();
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
    });
    check_refusals(|_| {
        let topic = elect_leaders_request::TopicPartitions::default()
            .with_topic(name())
            .with_partitions(vec![0, 1]);
        ElectLeadersRequest::default().with_topic_partitions(Some(vec![topic]))
    });
    check_refusals(|_| {
        let partition = alter_partition_reassignments_request::ReassignablePartition::default();
        let topic = alter_partition_reassignments_request::ReassignableTopic::default()
            .with_partitions(vec![partition]);
        AlterPartitionReassignmentsRequest::default().with_topics(vec![topic])
    });
    check_refusals(|_| ListPartitionReassignmentsRequest::default());
    check_refusals(|_| UnregisterBrokerRequest::default());
    check_refusals(|_| UpdateFeaturesRequest::default());
    check_refusals(|_| DescribeQuorumRequest::default());
}
