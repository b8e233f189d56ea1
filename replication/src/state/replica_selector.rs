//! Which replica a consumer should read from (KIP-392).

use highwater_storage::BrokerId;

/// A replica that may serve a consumer's fetch, as its leader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaView<'a> {
    /// Its broker.
    pub broker: BrokerId,
    /// The broker's rack (`broker.rack`).
    pub rack: Option<&'a str>,
    /// Its log start offset.
    pub log_start_offset: i64,
    /// Its log end offset.
    pub log_end_offset: i64,
    /// How long ago it had everything, in ms.
    pub since_caught_up_ms: i64,
}

impl ReplicaView<'_> {
    /// Whether it has what follows `fetch_offset`.
    #[must_use]
    pub fn covers(&self, fetch_offset: i64) -> bool {
        (self.log_start_offset..=self.log_end_offset).contains(&fetch_offset)
    }
}

/// `replica.selector.class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaSelector {
    /// None is set, or `org.apache.kafka.common.replica.LeaderSelector`: the leader.
    #[default]
    Leader,
    /// `org.apache.kafka.common.replica.RackAwareReplicaSelector`: a replica in the consumer's
    /// rack.
    RackAware,
}

impl ReplicaSelector {
    /// The replica to send the consumer to; `None` when it should stay with the leader.
    ///
    /// `others` are the live replicas beside the leader that are in sync or serve reads as
    /// observers; only those that cover `fetch_offset` are candidates. Within the rack the leader
    /// is preferred, then the replica with the most records, then the one that caught up last.
    #[must_use]
    pub fn select<'a>(
        self,
        client_rack: &str,
        fetch_offset: i64,
        leader_rack: Option<&str>,
        others: impl IntoIterator<Item = ReplicaView<'a>>,
    ) -> Option<BrokerId> {
        if self == Self::Leader || client_rack.is_empty() || leader_rack == Some(client_rack) {
            return None;
        }
        others
            .into_iter()
            .filter(|view| view.rack == Some(client_rack) && view.covers(fetch_offset))
            .max_by_key(|view| (view.log_end_offset, -view.since_caught_up_ms, view.broker))
            .map(|view| view.broker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(broker: i32, rack: &'static str, log_end_offset: i64) -> ReplicaView<'static> {
        ReplicaView {
            broker: BrokerId(broker),
            rack: Some(rack),
            log_start_offset: 5,
            log_end_offset,
            since_caught_up_ms: 0,
        }
    }

    fn select(rack: &str, offset: i64, others: &[ReplicaView<'static>]) -> Option<i32> {
        ReplicaSelector::RackAware
            .select(rack, offset, Some("r1"), others.iter().copied())
            .map(|broker| broker.0)
    }

    #[test]
    fn a_consumer_is_sent_to_the_replica_of_its_rack() {
        let others = [view(2, "r2", 10), view(3, "r3", 10)];
        assert_eq!(select("r2", 7, &others), Some(2));
        assert_eq!(select("r3", 7, &others), Some(3));
    }

    #[test]
    fn it_stays_with_the_leader_in_the_leaders_rack_and_where_no_replica_is() {
        let others = [view(2, "r1", 10), view(3, "r3", 10)];
        assert_eq!(select("r1", 7, &others), None);
        assert_eq!(select("r9", 7, &others), None);
        assert_eq!(select("", 7, &others), None);
    }

    #[test]
    fn a_replica_that_lacks_the_offset_is_no_candidate() {
        let others = [view(2, "r2", 10)];
        assert_eq!(select("r2", 11, &others), None);
        assert_eq!(select("r2", 4, &others), None);
        assert_eq!(select("r2", 10, &others), Some(2));
    }

    #[test]
    fn of_several_the_most_caught_up_is_taken() {
        let others = [view(2, "r2", 10), view(3, "r2", 12)];
        assert_eq!(select("r2", 7, &others), Some(3));
        let stale = ReplicaView {
            since_caught_up_ms: 500,
            ..view(3, "r2", 10)
        };
        assert_eq!(select("r2", 7, &[view(2, "r2", 10), stale]), Some(2));
    }

    #[test]
    fn without_a_selector_the_leader_serves() {
        let selected = ReplicaSelector::Leader.select("r2", 7, Some("r1"), [view(2, "r2", 10)]);
        assert_eq!(selected, None);
    }
}
