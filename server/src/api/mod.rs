//! The Kafka APIs: one file per API under its Kafka name, and the table that leads from an api key to its handler.
//!
//! To add an API, write `server/src/api/<kafka_api_name>.rs` with a `handle` function and add two lines here: its `mod`
//! and its line in the table of its group. A table says on which listeners its APIs are served; ApiVersions of a
//! listener is derived from that.

use std::sync::LazyLock;

use kafka_protocol::messages::*;

pub mod context;
pub(crate) mod dispatch;
pub mod error_code;
mod forwarding;
pub mod reply;
pub mod request_shape;
pub mod table;

pub use context::RequestContext;
pub use reply::{CloseReason, Reply, ResponseBody, ResponseWriter};
use table::{ApiEntry, api_table};

use crate::network::ListenerKind;

// Records: produce, fetch and the offsets of a log.

mod delete_records;
mod describe_producers;
mod fetch;
mod list_offsets;
mod offset_for_leader_epoch;
mod partitions;
mod pending;
mod produce;

const RECORDS: &[ApiEntry] = api_table! {
    on Broker;
    sync Produce(ProduceRequest) => produce::handle, advertised_from 0;
    sync Fetch(FetchRequest) => fetch::handle;
    sync ListOffsets(ListOffsetsRequest) => list_offsets::handle;
    sync OffsetForLeaderEpoch(OffsetForLeaderEpochRequest) => offset_for_leader_epoch::handle;
    async DeleteRecords(DeleteRecordsRequest) => delete_records::handle;
    sync DescribeProducers(DescribeProducersRequest) => describe_producers::handle;
};

// Topics: metadata of the cluster and changes of it.

mod cluster_nodes;
mod create_partitions;
mod create_topics;
mod current_leader;
mod delete_topics;
mod describe_topic_partitions;
mod init_producer_id;
mod metadata;
mod metadata_change;

const TOPICS: &[ApiEntry] = api_table! {
    on Broker;
    sync Metadata(MetadataRequest) => metadata::handle;
    sync DescribeTopicPartitions(DescribeTopicPartitionsRequest) => describe_topic_partitions::handle;
    async InitProducerId(InitProducerIdRequest) => init_producer_id::handle;
};

// Consumer groups and their offsets.
mod delete_groups;
mod describe_groups;
mod find_coordinator;
mod group_answer;
mod heartbeat;
mod join_group;
mod leave_group;
mod list_groups;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod sync_group;
mod topic_id_requests;

const GROUPS: &[ApiEntry] = api_table! {
    on Broker;
    sync OffsetCommit(topic_id_requests::OffsetCommit) => offset_commit::handle;
    sync OffsetFetch(topic_id_requests::OffsetFetch) => offset_fetch::handle;
    sync FindCoordinator(FindCoordinatorRequest) => find_coordinator::handle;
    sync JoinGroup(JoinGroupRequest) => join_group::handle;
    sync Heartbeat(HeartbeatRequest) => heartbeat::handle;
    sync LeaveGroup(LeaveGroupRequest) => leave_group::handle;
    sync SyncGroup(SyncGroupRequest) => sync_group::handle;
    sync DescribeGroups(DescribeGroupsRequest) => describe_groups::handle;
    sync ListGroups(ListGroupsRequest) => list_groups::handle;
    sync DeleteGroups(DeleteGroupsRequest) => delete_groups::handle;
    sync OffsetDelete(OffsetDeleteRequest) => offset_delete::handle;
};

// Configuration, and the description of brokers.

mod alter_configs;
mod config_changes;
mod config_entries;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod incremental_alter_configs;
mod list_config_resources;

const BROKERS: &[ApiEntry] = api_table! {
    on Broker;
    sync ListConfigResources(ListConfigResourcesRequest) => list_config_resources::handle;
    sync DescribeLogDirs(DescribeLogDirsRequest) => describe_log_dirs::handle;
};

// What administrators change and ask: answered by the active controller, wherever they ask.

mod alter_partition_reassignments;
mod describe_quorum;
mod elect_leaders;
mod list_partition_reassignments;
mod unregister_broker;
mod update_features;

const ADMIN: &[ApiEntry] = api_table! {
    on Both;
    forwarded CreateTopics(CreateTopicsRequest) => create_topics::handle;
    forwarded DeleteTopics(DeleteTopicsRequest) => delete_topics::handle;
    forwarded CreatePartitions(CreatePartitionsRequest) => create_partitions::handle;
    forwarded AlterConfigs(AlterConfigsRequest) => alter_configs::handle;
    forwarded IncrementalAlterConfigs(IncrementalAlterConfigsRequest) => incremental_alter_configs::handle;
    forwarded ElectLeaders(ElectLeadersRequest) => elect_leaders::handle;
    forwarded AlterPartitionReassignments(AlterPartitionReassignmentsRequest) => alter_partition_reassignments::handle;
    forwarded ListPartitionReassignments(ListPartitionReassignmentsRequest) => list_partition_reassignments::handle;
    forwarded UnregisterBroker(UnregisterBrokerRequest) => unregister_broker::handle;
    forwarded UpdateFeatures(UpdateFeaturesRequest) => update_features::handle;
    forwarded DescribeQuorum(DescribeQuorumRequest) => describe_quorum::handle;
};

// What brokers and other controllers ask a controller.

mod allocate_producer_ids;
mod alter_partition;
mod assign_replicas_to_dirs;
mod broker_heartbeat;
mod broker_registration;
mod controller_registration;
mod envelope;
mod fetch_metadata;
mod fetch_snapshot;
mod metadata_quorum;

const CONTROLLER: &[ApiEntry] = api_table! {
    on Controller;
    async BrokerRegistration(BrokerRegistrationRequest) => broker_registration::handle;
    async BrokerHeartbeat(BrokerHeartbeatRequest) => broker_heartbeat::handle;
    async AlterPartition(AlterPartitionRequest) => alter_partition::handle;
    async AllocateProducerIds(AllocateProducerIdsRequest) => allocate_producer_ids::handle;
    async AssignReplicasToDirs(AssignReplicasToDirsRequest) => assign_replicas_to_dirs::handle;
    async ControllerRegistration(ControllerRegistrationRequest) => controller_registration::handle;
    async Envelope(EnvelopeRequest) => envelope::handle;
    sync Fetch(FetchRequest) => fetch_metadata::handle;
    async FetchSnapshot(FetchSnapshotRequest) => fetch_snapshot::handle;
};

// Known to every node, whatever its roles.
mod api_versions;

const ANYWHERE: &[ApiEntry] = api_table! {
    on Both;
    sync ApiVersions(ApiVersionsRequest) => api_versions::handle;
    sync DescribeConfigs(DescribeConfigsRequest) => describe_configs::handle;
    sync DescribeCluster(DescribeClusterRequest) => describe_cluster::handle;
};

const GROUPS_OF_APIS: [&[ApiEntry]; 7] = [
    RECORDS, TOPICS, GROUPS, BROKERS, ADMIN, CONTROLLER, ANYWHERE,
];

/// One more than the highest api key that a table may hold.
pub const API_KEYS: usize = 128;

type ByKey = [Option<&'static ApiEntry>; API_KEYS];

fn by_key(kind: ListenerKind) -> ByKey {
    let mut by_key = [None; API_KEYS];
    let all = GROUPS_OF_APIS.iter().copied().flatten();
    for entry in all.filter(|entry| entry.served_on.includes(kind)) {
        if let Some(slot) = usize::try_from(entry.key)
            .ok()
            .and_then(|key| by_key.get_mut(key))
        {
            *slot = Some(entry);
        }
    }
    by_key
}

static ON_BROKER: LazyLock<ByKey> = LazyLock::new(|| by_key(ListenerKind::Broker));
static ON_CONTROLLER: LazyLock<ByKey> = LazyLock::new(|| by_key(ListenerKind::Controller));

fn on(kind: ListenerKind) -> &'static ByKey {
    match kind {
        ListenerKind::Broker => &ON_BROKER,
        ListenerKind::Controller => &ON_CONTROLLER,
    }
}

/// The table's line for an api key on listeners of this kind.
pub fn api(kind: ListenerKind, key: i16) -> Option<&'static ApiEntry> {
    on(kind).get(usize::try_from(key).ok()?).copied().flatten()
}

/// Every API that is served on listeners of this kind, by ascending key.
pub fn apis(kind: ListenerKind) -> impl Iterator<Item = &'static ApiEntry> {
    on(kind).iter().copied().flatten()
}

/// Kafka's name of an api key that has a handler, else "Unknown".
pub fn api_name(key: i16) -> &'static str {
    let entry = api(ListenerKind::Broker, key).or_else(|| api(ListenerKind::Controller, key));
    entry.map_or("Unknown", |entry| entry.name)
}
