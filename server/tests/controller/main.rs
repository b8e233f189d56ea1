//! The controller's listener of a whole node in this process: a second broker, played by the test, follows the metadata,
//! registers, serves and leaves, as Apache Kafka's brokers do.

mod brokers;
mod node;
mod requests;

use node::*;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use highwater::broker::{BoundListeners, RunningBroker};
use highwater::config::{DynamicConfig, StaticConfig};
use highwater::log_dirs;
use highwater_replication::cluster::MetadataRecord;
use highwater_storage::record_batch::{Batches, DecompressLimits, decode_records};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::runtime::Runtime;
use uuid::Uuid;

const METADATA_TOPIC_ID: Uuid = Uuid::from_u128(1);
const ME: i32 = 2;

fn features() -> Vec<broker_registration_request::Feature> {
    let ranges = [
        ("metadata.version", 7, 33),
        ("eligible.leader.replicas.version", 0, 1),
    ];
    let feature = |(name, min, max): (&'static str, i16, i16)| {
        broker_registration_request::Feature::default()
            .with_name(StrBytes::from_static_str(name))
            .with_min_supported_version(min)
            .with_max_supported_version(max)
    };
    ranges.into_iter().map(feature).collect()
}

fn registration(node: &Node, incarnation: u128) -> BrokerRegistrationRequest {
    let listener = broker_registration_request::Listener::default()
        .with_name(StrBytes::from_static_str("PLAINTEXT"))
        .with_host(StrBytes::from_static_str("127.0.0.1"))
        .with_port(1);
    BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_cluster_id(node.cluster_id())
        .with_incarnation_id(Uuid::from_u128(incarnation))
        .with_listeners(vec![listener])
        .with_features(features())
        .with_log_dirs(vec![Uuid::from_u128(4711)])
        .with_previous_broker_epoch(-1)
}

fn heartbeat(epoch: i64, observer: &Observer) -> BrokerHeartbeatRequest {
    BrokerHeartbeatRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_broker_epoch(epoch)
        .with_current_metadata_offset(observer.next_offset - 1)
}

/// Broker 2, registered, caught up and in service; with its epoch.
fn join(node: &Node, client: &mut Client, observer: &mut Observer) -> i64 {
    let registered = client.call(&registration(node, 7), 4);
    assert_eq!(registered.error_code, 0);
    observer.catch_up(client);
    let beat = client.call(&heartbeat(registered.broker_epoch, observer), 1);
    assert_eq!((beat.error_code, beat.is_fenced), (0, false));
    registered.broker_epoch
}

fn create(client: &mut Client, name: &'static str, replicas: &[i32]) -> Uuid {
    let assignment = create_topics_request::CreatableReplicaAssignment::default()
        .with_broker_ids(replicas.iter().map(|id| BrokerId(*id)).collect());
    let topic = create_topics_request::CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_static_str(name)))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assignment]);
    let request = CreateTopicsRequest::default()
        .with_timeout_ms(10_000)
        .with_topics(vec![topic]);
    let response = client.call(&request, 7);
    assert_eq!(response.topics[0].error_code, 0);
    response.topics[0].topic_id
}
