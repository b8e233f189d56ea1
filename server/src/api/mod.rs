//! The Kafka APIs: one file per API under its Kafka name, and the table that leads from an api key to its handler.
//!
//! To add an API, write `server/src/api/<kafka_api_name>.rs` with a `handle` function and add two lines here: its `mod`
//! and its line in the table of its group. ApiVersions is derived from the tables.

use std::sync::LazyLock;

use kafka_protocol::messages::*;

pub mod context;
pub(crate) mod dispatch;
pub mod error_code;
pub mod reply;
pub mod request_shape;
pub mod table;

pub use context::RequestContext;
pub use reply::{CloseReason, Reply, ResponseBody, ResponseWriter};
use table::{ApiEntry, api_table};

// Records: produce, fetch and the offsets of a log.

mod delete_records;
mod describe_producers;
mod fetch;
mod list_offsets;
mod offset_for_leader_epoch;
mod partitions;
mod produce;

const RECORDS: &[ApiEntry] = api_table! {
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
mod delete_topics;
mod describe_topic_partitions;
mod init_producer_id;
mod metadata;
mod metadata_change;

const TOPICS: &[ApiEntry] = api_table! {
    sync Metadata(MetadataRequest) => metadata::handle;
    async CreateTopics(CreateTopicsRequest) => create_topics::handle;
    async DeleteTopics(DeleteTopicsRequest) => delete_topics::handle;
    async CreatePartitions(CreatePartitionsRequest) => create_partitions::handle;
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
    sync DescribeConfigs(DescribeConfigsRequest) => describe_configs::handle;
    async AlterConfigs(AlterConfigsRequest) => alter_configs::handle;
    async IncrementalAlterConfigs(IncrementalAlterConfigsRequest) => incremental_alter_configs::handle;
    sync ListConfigResources(ListConfigResourcesRequest) => list_config_resources::handle;
    sync DescribeCluster(DescribeClusterRequest) => describe_cluster::handle;
    sync DescribeLogDirs(DescribeLogDirsRequest) => describe_log_dirs::handle;
};

// The connection itself.
mod api_versions;

const CONNECTION: &[ApiEntry] = api_table! {
    sync ApiVersions(ApiVersionsRequest) => api_versions::handle;
};

const GROUPS_OF_APIS: [&[ApiEntry]; 5] = [RECORDS, TOPICS, GROUPS, BROKERS, CONNECTION];

/// One more than the highest api key that a table may hold.
pub const API_KEYS: usize = 128;

static BY_KEY: LazyLock<[Option<&'static ApiEntry>; API_KEYS]> = LazyLock::new(|| {
    let mut by_key = [None; API_KEYS];
    for entry in GROUPS_OF_APIS.iter().copied().flatten() {
        if let Some(slot) = usize::try_from(entry.key)
            .ok()
            .and_then(|key| by_key.get_mut(key))
        {
            *slot = Some(entry);
        }
    }
    by_key
});

/// The table's line for an api key.
pub fn api(key: i16) -> Option<&'static ApiEntry> {
    BY_KEY.get(usize::try_from(key).ok()?).copied().flatten()
}

/// Every API that is served, by ascending key.
pub fn apis() -> impl Iterator<Item = &'static ApiEntry> {
    BY_KEY.iter().copied().flatten()
}

/// Kafka's name of an api key that has a handler, else "Unknown".
pub fn api_name(key: i16) -> &'static str {
    api(key).map_or("Unknown", |entry| entry.name)
}
