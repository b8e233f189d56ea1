//! Groups as their coordinators tell of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::{
    DescribeGroupsRequest, GroupId, ListGroupsRequest, OffsetFetchRequest,
};
use serde_json::{Value, json};

use super::offsets::error_name;
use crate::network::client::{Client, ClientError};

/// Groups that are shown, the first by name; of a coordinator no more are described.
const MAX_GROUPS: usize = 50;
/// Partitions of a group that are shown, those with the most lag.
const MAX_PARTITIONS: usize = 20;
/// Partitions of all groups whose end is asked for.
const MAX_ENDS: usize = 1000;
/// OffsetFetch for several groups at once, by the names of topics.
const OFFSET_FETCH_VERSIONS: std::ops::RangeInclusive<i16> = 8..=9;

/// One group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GroupRow {
    group_id: String,
    state: String,
    protocol: String,
    members: usize,
    committed: BTreeMap<(Arc<str>, i32), i64>,
    /// The ends that are known of what is committed.
    ends: BTreeMap<(Arc<str>, i32), i64>,
}

/// Asks a broker for the groups that it coordinates.
pub(super) async fn of_coordinator(client: &Client) -> Result<Vec<GroupRow>, ClientError> {
    let listed = client.call(&ListGroupsRequest::default()).await?;
    let mut ids: Vec<GroupId> = listed
        .groups
        .into_iter()
        .map(|group| group.group_id)
        .collect();
    ids.sort();
    ids.truncate(MAX_GROUPS);
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let describe = DescribeGroupsRequest::default().with_groups(ids.clone());
    let described = client.call(&describe).await?;
    let (_, fetched) = client
        .call_within(OFFSET_FETCH_VERSIONS, |_| {
            let groups = ids.into_iter().map(|group_id| {
                OffsetFetchRequestGroup::default()
                    .with_group_id(group_id)
                    .with_topics(None)
            });
            OffsetFetchRequest::default().with_groups(groups.collect())
        })
        .await?;
    Ok(described
        .groups
        .iter()
        .map(|group| {
            let mut offsets = fetched.groups.iter();
            let offsets = offsets.find(|offsets| offsets.group_id == group.group_id);
            GroupRow::new(group, offsets)
        })
        .collect())
}

/// The groups that are shown of all, by name.
pub(super) fn keep_first(groups: &mut Vec<GroupRow>) {
    groups.sort_by(|one, other| one.group_id.cmp(&other.group_id));
    groups.truncate(MAX_GROUPS);
}

/// What some group has committed, as far as its end is asked for.
pub(super) fn committed_partitions(groups: &[GroupRow]) -> BTreeSet<(Arc<str>, i32)> {
    let all = groups.iter().flat_map(|group| group.committed.keys());
    all.take(MAX_ENDS).cloned().collect()
}

impl GroupRow {
    fn new(group: &DescribedGroup, offsets: Option<&OffsetFetchResponseGroup>) -> Self {
        let mut committed = BTreeMap::new();
        for topic in offsets.iter().flat_map(|offsets| &offsets.topics) {
            let name: Arc<str> = topic.name.0.as_str().into();
            for partition in &topic.partitions {
                if partition.error_code == 0 && partition.committed_offset >= 0 {
                    let key = (Arc::clone(&name), partition.partition_index);
                    committed.insert(key, partition.committed_offset);
                }
            }
        }
        GroupRow {
            group_id: group.group_id.0.to_string(),
            state: match group.error_code {
                0 => group.group_state.to_string(),
                code => error_name(code),
            },
            protocol: group.protocol_data.to_string(),
            members: group.members.len(),
            committed,
            ends: BTreeMap::new(),
        }
    }

    /// Takes note of where the partitions end.
    pub(super) fn set_ends(&mut self, ends: &BTreeMap<(Arc<str>, i32), i64>) {
        let known = self.committed.keys();
        self.ends = known
            .filter_map(|partition| Some((partition.clone(), *ends.get(partition)?)))
            .collect();
    }

    fn lag(&self, partition: &(Arc<str>, i32)) -> Option<i64> {
        let end = self.ends.get(partition)?;
        Some((end - self.committed.get(partition)?).max(0))
    }

    /// The row of the page.
    pub(super) fn to_row(&self) -> (String, Value) {
        let mut partitions: Vec<_> = self
            .committed
            .iter()
            .map(|(partition, committed)| (self.lag(partition), partition, committed))
            .collect();
        let lag: Option<i64> = match partitions.is_empty() {
            true => None,
            false => partitions.iter().map(|(lag, ..)| *lag).sum(),
        };
        partitions.sort_by_key(|(lag, ..)| std::cmp::Reverse(*lag));
        let total = partitions.len();
        partitions.truncate(MAX_PARTITIONS);
        let partitions: Vec<Value> = partitions
            .into_iter()
            .map(|(lag, partition, committed)| {
                json!({
                    "topic": &*partition.0,
                    "partition": partition.1,
                    "committed": committed,
                    "end": self.ends.get(partition),
                    "lag": lag,
                })
            })
            .collect();
        let row = json!({
            "group": self.group_id,
            "state": self.state,
            "protocol": self.protocol,
            "members": self.members,
            "lag": lag,
            "partition_count": total,
            "partitions": partitions,
        });
        (format!("group/{}", self.group_id), row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition: i32) -> (Arc<str>, i32) {
        ("orders".into(), partition)
    }

    #[test]
    fn lag_is_the_sum_of_what_is_known_and_the_worst_comes_first() {
        let mut group = GroupRow {
            group_id: "g".to_owned(),
            committed: [(key(0), 5), (key(1), 2), (key(2), 9)].into(),
            ..GroupRow::default()
        };
        group.set_ends(&[(key(0), 6), (key(1), 12), (key(2), 8), (key(3), 1)].into());
        let (name, row) = group.to_row();
        assert_eq!(name, "group/g");
        assert_eq!(row["lag"], 11, "an end that is behind counts as none");
        assert_eq!(row["partitions"][0]["partition"], 1);
        assert_eq!(row["partitions"][0]["lag"], 10);
        group.set_ends(&[(key(0), 6)].into());
        let (_, row) = group.to_row();
        assert_eq!(row["lag"], Value::Null, "not all ends are known");
    }

    #[test]
    fn only_so_many_partitions_are_told() {
        let mut group = GroupRow {
            committed: (0..100).map(|partition| (key(partition), 0)).collect(),
            ..GroupRow::default()
        };
        group.set_ends(&(0..100).map(|partition| (key(partition), 1)).collect());
        let (_, row) = group.to_row();
        assert_eq!(row["partition_count"], 100);
        assert_eq!(
            row["partitions"].as_array().map(Vec::len),
            Some(MAX_PARTITIONS)
        );
        assert_eq!(row["lag"], 100);
    }
}
