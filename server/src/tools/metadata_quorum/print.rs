//! The quorum as text.

use std::io::{self, Write};

use highwater_storage::types::TopicId;
use kafka_protocol::messages::DescribeQuorumResponse;
use kafka_protocol::messages::describe_quorum_response::{Node, PartitionData, ReplicaState};

use crate::tools::client::KafkaError;
use crate::tools::table;

/// What a controller answers about the quorum.
#[derive(Debug)]
pub(super) struct Quorum {
    state: PartitionData,
    nodes: Vec<Node>,
}

impl Quorum {
    /// Takes the one partition out of the response.
    ///
    /// # Errors
    /// The partition's error, or when there is none.
    pub(super) fn new(mut response: DescribeQuorumResponse) -> Result<Self, KafkaError> {
        let topic = response.topics.pop();
        let state = topic
            .and_then(|mut topic| topic.partitions.pop())
            .ok_or_else(|| {
                KafkaError::of_client("UnknownServerException", "the response has no partition")
            })?;
        KafkaError::check(state.error_code, state.error_message.as_deref())?;
        Ok(Quorum {
            state,
            nodes: response.nodes,
        })
    }

    fn leader(&self) -> Option<&ReplicaState> {
        let mut voters = self.state.current_voters.iter();
        voters.find(|voter| voter.replica_id == self.state.leader_id)
    }

    /// `{"id": 1, "endpoints": ["CONTROLLER://127.0.0.1:9093"]}`
    fn replica(&self, replica: &ReplicaState) -> String {
        let mut fields = vec![format!("\"id\": {}", replica.replica_id.0)];
        if !replica.replica_directory_id.is_nil() {
            let id = TopicId(replica.replica_directory_id);
            fields.push(format!("\"directoryId\": \"{id}\""));
        }
        let node = self
            .nodes
            .iter()
            .find(|node| node.node_id == replica.replica_id);
        let listeners = node.map_or(&[][..], |node| &node.listeners);
        if !listeners.is_empty() {
            let listeners: Vec<_> = listeners
                .iter()
                .map(|listener| {
                    let host = bracketed(&listener.host);
                    format!("\"{}://{host}:{}\"", listener.name.as_str(), listener.port)
                })
                .collect();
            fields.push(format!("\"endpoints\": [{}]", listeners.join(", ")));
        }
        format!("{{{}}}", fields.join(", "))
    }

    fn replicas(&self, replicas: &[ReplicaState]) -> String {
        let replicas: Vec<_> = replicas
            .iter()
            .map(|replica| self.replica(replica))
            .collect();
        format!("[{}]", replicas.join(", "))
    }
}

/// An IPv6 address in brackets, any other host as it is.
pub(super) fn bracketed(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// Prints `--status`.
pub(super) fn status(cluster_id: &str, quorum: &Quorum, out: &mut dyn Write) -> io::Result<()> {
    let state = &quorum.state;
    let leader = quorum.leader();
    let last = state
        .current_voters
        .iter()
        .min_by_key(|voter| voter.log_end_offset);
    let (lag, lag_ms) = match (leader, last) {
        (Some(leader), Some(last)) => (
            leader.log_end_offset - last.log_end_offset,
            time_lag(leader, last),
        ),
        _ => (-1, -1),
    };
    writeln!(
        out,
        "ClusterId:              {cluster_id}\n\
         LeaderId:               {}\n\
         LeaderEpoch:            {}\n\
         HighWatermark:          {}\n\
         MaxFollowerLag:         {lag}\n\
         MaxFollowerLagTimeMs:   {lag_ms}\n\
         CurrentVoters:          {}\n\
         CurrentObservers:       {}",
        state.leader_id.0,
        state.leader_epoch,
        state.high_watermark,
        quorum.replicas(&state.current_voters),
        quorum.replicas(&state.observers)
    )
}

/// How long after the leader a voter was caught up; -1 where one of both is not known.
fn time_lag(leader: &ReplicaState, voter: &ReplicaState) -> i64 {
    let (of_leader, of_voter) = (
        leader.last_caught_up_timestamp,
        voter.last_caught_up_timestamp,
    );
    if leader.replica_id == voter.replica_id {
        0
    } else if of_leader < 0 || of_voter < 0 {
        -1
    } else {
        of_leader - of_voter
    }
}

/// Prints `--replication`; with the time of now, times are told as how long ago they were.
pub(super) fn replication(
    quorum: &Quorum,
    now_ms: Option<i64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let end = quorum.leader().map_or(-1, |leader| leader.log_end_offset);
    let time = |timestamp: i64| match now_ms {
        Some(now_ms) if timestamp >= 0 => format!("{} ms ago", (now_ms - timestamp).max(0)),
        _ => timestamp.to_string(),
    };
    let row = |replica: &ReplicaState, status: &str| {
        vec![
            replica.replica_id.0.to_string(),
            TopicId(replica.replica_directory_id).to_string(),
            replica.log_end_offset.to_string(),
            (end - replica.log_end_offset).to_string(),
            time(replica.last_fetch_timestamp),
            time(replica.last_caught_up_timestamp),
            status.to_owned(),
        ]
    };
    let voters = quorum.state.current_voters.iter();
    let followers = voters.filter(|voter| voter.replica_id != quorum.state.leader_id);
    let mut rows: Vec<_> = quorum
        .leader()
        .map(|leader| row(leader, "Leader"))
        .into_iter()
        .collect();
    rows.extend(followers.map(|voter| row(voter, "Follower")));
    let observers = quorum.state.observers.iter();
    rows.extend(observers.map(|observer| row(observer, "Observer")));
    table::print(
        &[
            "NodeId",
            "DirectoryId",
            "LogEndOffset",
            "Lag",
            "LastFetchTimestamp",
            "LastCaughtUpTimestamp",
            "Status",
        ],
        &rows,
        out,
    )
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::BrokerId;
    use kafka_protocol::messages::describe_quorum_response::Listener;
    use uuid::Uuid;

    use super::*;

    fn quorum() -> Quorum {
        let replica = |id, end, caught_up| {
            ReplicaState::default()
                .with_replica_id(BrokerId(id))
                .with_log_end_offset(end)
                .with_last_fetch_timestamp(caught_up)
                .with_last_caught_up_timestamp(caught_up)
        };
        let listener = Listener::default()
            .with_name("C".to_owned().into())
            .with_host("::1".to_owned().into())
            .with_port(9093);
        let node = Node::default()
            .with_node_id(BrokerId(2))
            .with_listeners(vec![listener]);
        let state = PartitionData::default()
            .with_leader_id(BrokerId(2))
            .with_leader_epoch(3)
            .with_high_watermark(9)
            .with_current_voters(vec![replica(1, 7, 900), replica(2, 10, 1000)])
            .with_observers(vec![
                replica(5, 9, -1).with_replica_directory_id(Uuid::from_u128(1)),
            ]);
        Quorum {
            state,
            nodes: vec![node],
        }
    }

    #[test]
    fn the_status_tells_leader_and_lag() {
        let mut out = Vec::new();
        status("abc", &quorum(), &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "ClusterId:              abc\n\
             LeaderId:               2\n\
             LeaderEpoch:            3\n\
             HighWatermark:          9\n\
             MaxFollowerLag:         3\n\
             MaxFollowerLagTimeMs:   100\n\
             CurrentVoters:          [{\"id\": 1}, {\"id\": 2, \"endpoints\": [\"C://[::1]:9093\"]}]\n\
             CurrentObservers:       [{\"id\": 5, \"directoryId\": \"AAAAAAAAAAAAAAAAAAAAAQ\"}]\n"
        );
    }

    #[test]
    fn the_replicas_are_a_table_with_the_leader_first() {
        let mut out = Vec::new();
        replication(&quorum(), Some(1500), &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let rows: Vec<Vec<_>> = text
            .lines()
            .map(|line| line.split('\t').map(str::trim_end).collect())
            .collect();
        let id = "AAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(
            rows[1],
            ["2", id, "10", "0", "500 ms ago", "500 ms ago", "Leader", ""]
        );
        assert_eq!(
            rows[2],
            [
                "1",
                id,
                "7",
                "3",
                "600 ms ago",
                "600 ms ago",
                "Follower",
                ""
            ]
        );
        assert_eq!(rows[3][4..], ["-1", "-1", "Observer", ""]);
    }
}
