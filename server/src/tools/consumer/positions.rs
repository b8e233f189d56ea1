//! Where partitions are read: their leaders, and the offsets to begin at.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::{Answer, Consumer, Reset, Start, Subscription};
use crate::tools::client::{EARLIEST, KafkaError, LATEST, Results, TopicPartition, offsets_of};

/// What a leader has said about the offsets to begin at.
pub(super) struct ListedOffsets {
    leader: i32,
    partitions: Vec<TopicPartition>,
    result: Result<Results<i64>, KafkaError>,
}

/// How far a partition is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// The offset to fetch next; `None` until it is known.
    pub(super) fetch: Option<i64>,
    /// The offset behind what was handed out, which is committed.
    pub(super) consumed: Option<i64>,
    pub(super) leader: Option<i32>,
    /// Whether the committed offset was asked for already, or helps no more.
    pub(super) has_asked_group: bool,
}

impl Position {
    /// Whether something has to be found out before it can be fetched.
    pub(super) fn is_incomplete(&self) -> bool {
        self.fetch.is_none() || self.leader.is_none()
    }

    fn begin_at(&mut self, offset: i64) {
        (self.fetch, self.consumed) = (Some(offset), Some(offset));
    }
}

impl Consumer {
    /// Looks up what is not known of partitions, in one attempt: what stays unknown has its turn again after the retry
    /// backoff, and the others are fetched meanwhile. Leaders are asked for offsets as they are asked for records, so
    /// that one that does not answer holds up nobody else.
    pub(super) async fn look_up(&mut self) -> Result<(), KafkaError> {
        let is_due = Instant::now() >= self.next_look_up;
        if !is_due || !self.positions.values().any(Position::is_incomplete) {
            return Ok(());
        }
        self.find_leaders().await?;
        self.find_committed().await?;
        self.begin_to_list_offsets()?;
        self.next_look_up = Instant::now() + self.config.retry_backoff;
        Ok(())
    }

    /// The partitions whose offset is not known.
    fn without_offset(&self) -> Vec<TopicPartition> {
        let positions = self.positions.iter();
        positions
            .filter(|(_, position)| position.fetch.is_none())
            .map(|(partition, _)| partition.clone())
            .collect()
    }

    /// Asks where to begin what has no committed offset: where the subscription or the configuration says.
    fn begin_to_list_offsets(&mut self) -> Result<(), KafkaError> {
        let missing = self.without_offset();
        if missing.is_empty() {
            return Ok(());
        }
        let timestamp = match (&self.subscription, self.config.reset) {
            (Subscription::Partition(partition, Start::At(offset)), reset) => {
                if let Some(position) = self.positions.get_mut(partition)
                    && position.consumed.is_none()
                {
                    position.begin_at(*offset);
                    return Ok(());
                }
                timestamp(reset)
            }
            (Subscription::Partition(_, Start::Earliest), _) => Some(EARLIEST),
            (Subscription::Partition(_, Start::Latest), _) => Some(LATEST),
            (_, reset) => timestamp(reset),
        };
        let Some(timestamp) = timestamp else {
            return Err(no_offset(&missing));
        };
        let isolation_level = i8::from(self.config.is_read_committed);
        for (leader, partitions) in missing_of_leaders(&self.positions) {
            if self.busy.contains(&leader) {
                continue;
            }
            self.busy.push(leader);
            let client = self.cluster.connection(leader);
            self.in_flight.push(Box::pin(async move {
                let result = match client {
                    Some(client) => {
                        offsets_of(&client, &partitions, timestamp, isolation_level).await
                    }
                    // NOT_LEADER_OR_FOLLOWER: the leader has to be found.
                    None => Err(KafkaError::new(6, None)),
                };
                Answer::Offsets(ListedOffsets {
                    leader,
                    partitions,
                    result,
                })
            }));
        }
        Ok(())
    }

    /// Begins where a leader has said; what it could not say is looked up again, of the leader then.
    ///
    /// # Errors
    /// When it is refused for good.
    pub(super) fn on_offsets(&mut self, listed: ListedOffsets) -> Result<(), KafkaError> {
        self.busy.retain(|leader| *leader != listed.leader);
        let found = match listed.result {
            Err(error) if error.is_retriable => {
                let partitions = listed.partitions.into_iter();
                partitions
                    .map(|partition| (partition, Err(error.clone())))
                    .collect()
            }
            result => result?,
        };
        let has_group = self.membership.is_some();
        for (partition, offset) in found {
            let Some(position) = self.positions.get_mut(&partition) else {
                continue;
            };
            // Assigned anew meanwhile: what the group has committed comes first.
            if position.fetch.is_some() || (has_group && !position.has_asked_group) {
                continue;
            }
            match offset {
                Ok(offset) => position.begin_at(offset),
                Err(error) if error.is_retriable => position.leader = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks a group once for what it has committed of each partition. After OFFSET_OUT_OF_RANGE that helps no more.
    async fn find_committed(&mut self) -> Result<(), KafkaError> {
        let (Some(group), true) = (&self.config.group, self.membership.is_some()) else {
            return Ok(());
        };
        let is_open = |position: &Position| position.fetch.is_none() && !position.has_asked_group;
        if !self.positions.values().any(is_open) {
            return Ok(());
        }
        let committed = self.cluster.committed(group).await?;
        for (partition, position) in &mut self.positions {
            if !is_open(position) {
                continue;
            }
            position.has_asked_group = true;
            if let Some(committed) = committed.get(partition) {
                position.begin_at(committed.offset);
            }
        }
        Ok(())
    }

    async fn find_leaders(&mut self) -> Result<(), KafkaError> {
        let missing: Vec<_> = self
            .positions
            .iter()
            .filter(|(_, position)| position.leader.is_none())
            .map(|(partition, _)| partition.clone())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let leaders = match self
            .cluster
            .leaders_now(&missing.into_iter().collect())
            .await
        {
            Err(error) if error.is_retriable => return Ok(()),
            result => result?,
        };
        for (partition, leader) in leaders {
            let leader = match leader {
                Err(error) if error.is_retriable => continue,
                result => result?,
            };
            if let Some(position) = self.positions.get_mut(&partition) {
                position.leader = (leader >= 0).then_some(leader);
            }
        }
        Ok(())
    }
}

/// The partitions whose offset is not known, by leader; one without a leader is in none.
fn missing_of_leaders(
    positions: &BTreeMap<TopicPartition, Position>,
) -> BTreeMap<i32, Vec<TopicPartition>> {
    let mut of_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
    for (partition, position) in positions {
        if let (None, Some(leader)) = (position.fetch, position.leader) {
            of_leader.entry(leader).or_default().push(partition.clone());
        }
    }
    of_leader
}

fn timestamp(reset: Reset) -> Option<i64> {
    match reset {
        Reset::Earliest => Some(EARLIEST),
        Reset::Latest => Some(LATEST),
        Reset::None => None,
    }
}

pub(super) fn no_offset(partitions: &[TopicPartition]) -> KafkaError {
    let names: Vec<_> = partitions.iter().map(ToString::to_string).collect();
    KafkaError::of_client(
        "NoOffsetForPartitionException",
        format!(
            "Undefined offset with no reset policy for partitions: [{}]",
            names.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_a_leader_does_not_hold_up_the_others() {
        let position = |fetch, leader| Position {
            fetch,
            leader,
            ..Position::default()
        };
        let positions = [
            position(None, None),
            position(None, Some(2)),
            position(Some(5), Some(2)),
            position(Some(5), None),
            position(None, Some(3)),
        ];
        let positions = (0..).zip(positions);
        let positions: BTreeMap<_, _> = positions
            .map(|(index, position)| (TopicPartition::new("t", index), position))
            .collect();
        let incomplete = positions.values().map(Position::is_incomplete);
        assert_eq!(
            incomplete.collect::<Vec<_>>(),
            [true, true, false, true, true]
        );
        let expected =
            [(2, 1), (3, 4)].map(|(leader, p)| (leader, vec![TopicPartition::new("t", p)]));
        assert_eq!(missing_of_leaders(&positions), BTreeMap::from(expected));
    }
}
