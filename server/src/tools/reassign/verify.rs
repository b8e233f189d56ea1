//! How far a reassignment is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::log_dirs::{Place, places};
use super::plan::{Assignment, Plan, Replica};
use super::{Failure, generate, list_reassignments, throttle};
use crate::tools::client::{Cluster, KafkaError, TopicPartition};
use crate::tools::lists::joined;

/// The state of one partition.
#[derive(Debug, PartialEq, Eq)]
struct State {
    current: Vec<i32>,
    target: Vec<i32>,
    is_done: bool,
}

/// Prints the state of each partition and move; when nothing is under way, takes throttles away.
pub(super) async fn verify(
    plan: &Plan,
    preserve_throttles: bool,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let under_way = list_reassignments(cluster, None).await?;
    let partitions = plan.entries.iter().map(|(partition, _)| partition);
    let at_rest = partitions.filter(|partition| !under_way.contains_key(partition));
    let topics = at_rest.map(|partition| partition.topic.as_str()).collect();
    let replicas = replicas_of(cluster, topics).await?;
    let mut states = BTreeMap::new();
    for (partition, target) in &plan.entries {
        let (current, is_done) = match under_way.get(partition) {
            Some(reassignment) => (reassignment.replicas.clone(), false),
            None => (replicas.get(partition).cloned().unwrap_or_default(), true),
        };
        let state = State {
            current,
            target: target.clone(),
            is_done,
        };
        states.insert(partition.clone(), state);
    }
    print_states(&states, out)?;
    let places = places(cluster, plan.directories.keys().cloned()).await?;
    let moves: Vec<_> = plan
        .directories
        .iter()
        .map(|(replica, target)| move_state(replica, target, places.get(replica)))
        .collect();
    let lines: Vec<_> = moves.iter().map(|(line, _)| line.as_str()).collect();
    writeln!(out, "{}", lines.join("\n"))?;
    let is_done = under_way.is_empty() && moves.iter().all(|(_, is_done)| *is_done);
    if is_done && !preserve_throttles {
        throttle::clear(cluster, &plan.entries, out).await?;
    }
    Ok(())
}

/// The replicas of the topics' partitions; nothing of a topic that does not exist.
async fn replicas_of(cluster: &Cluster, topics: BTreeSet<&str>) -> Result<Assignment, KafkaError> {
    let mut replicas = Assignment::new();
    for topic in topics {
        match generate::describe(cluster, &[topic.to_owned()]).await {
            Ok(topics) => replicas.extend(generate::assignment(&topics)),
            Err(error) if error.class == "UnknownTopicOrPartitionException" => {}
            Err(error) => return Err(error),
        }
    }
    Ok(replicas)
}

fn print_states(states: &BTreeMap<TopicPartition, State>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Status of partition reassignment:")?;
    for (partition, state) in states {
        if !state.is_done {
            writeln!(
                out,
                "Reassignment of partition {partition} is still in progress."
            )?;
        } else if state.current == state.target {
            writeln!(out, "Reassignment of partition {partition} is completed.")?;
        } else {
            writeln!(
                out,
                "There is no active reassignment of partition {partition}, but replica set is {} rather than {}.",
                joined(&state.current),
                joined(&state.target)
            )?;
        }
    }
    Ok(())
}

/// What is said of a move to a directory, and whether it is over. One that has no replica is not, as in Kafka: throttles
/// stay.
fn move_state(replica: &Replica, target: &str, place: Option<&Place>) -> (String, bool) {
    let (partition, broker) = (&replica.partition, replica.broker);
    match place {
        None => {
            let text = format!(
                "Partition {partition} cannot be found in any live log directory on broker {broker}."
            );
            (text, false)
        }
        Some(Place { current: None, .. }) => {
            let text = format!(
                "Partition {partition} is not found in any live log dir on broker {broker}. There is likely an \
                 offline log directory on the broker."
            );
            (text, false)
        }
        Some(Place {
            future: Some(future),
            ..
        }) if future == target => {
            let text = format!("Reassignment of replica {replica} is still in progress.");
            (text, false)
        }
        Some(Place {
            future: Some(future),
            ..
        }) => {
            let text = format!(
                "Partition {partition} on broker {broker} is being moved to log dir {future} instead of {target}."
            );
            (text, false)
        }
        Some(Place {
            current: Some(current),
            future: None,
        }) if current == target => {
            let text = format!("Reassignment of replica {replica} completed successfully.");
            (text, true)
        }
        Some(Place {
            current: Some(current),
            future: None,
        }) => {
            let text = format!(
                "Partition {partition} on broker {broker} is not being moved from log dir {current} to {target}."
            );
            (text, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_partition_is_a_line() {
        let state = |current: &[i32], is_done| State {
            current: current.to_vec(),
            target: vec![2, 3],
            is_done,
        };
        let states = BTreeMap::from([
            (TopicPartition::new("t", 0), state(&[2, 3], true)),
            (TopicPartition::new("t", 1), state(&[1, 2], true)),
            (TopicPartition::new("t", 2), state(&[1, 2, 3], false)),
        ]);
        let mut out = Vec::new();
        print_states(&states, &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "Status of partition reassignment:\n\
             Reassignment of partition t-0 is completed.\n\
             There is no active reassignment of partition t-1, but replica set is 1,2 rather than 2,3.\n\
             Reassignment of partition t-2 is still in progress.\n"
        );
    }

    #[test]
    fn the_state_of_a_move_is_a_line() {
        let replica = Replica {
            broker: 1,
            partition: TopicPartition::new("t", 0),
        };
        let state = |current: Option<&str>, future: Option<&str>| {
            let place = Place {
                current: current.map(str::to_owned),
                future: future.map(str::to_owned),
            };
            move_state(&replica, "/b", Some(&place))
        };
        let (text, is_done) = move_state(&replica, "/b", None);
        assert!(text.contains("cannot be found") && !is_done, "{text}");
        let (text, is_done) = state(None, None);
        assert_eq!(
            text,
            "Partition t-0 is not found in any live log dir on broker 1. There is likely an offline log directory on \
             the broker."
        );
        assert!(!is_done);
        let (text, is_done) = state(Some("/a"), Some("/b"));
        assert_eq!(
            (text.as_str(), is_done),
            ("Reassignment of replica t-0-1 is still in progress.", false)
        );
        assert!(!state(Some("/a"), Some("/c")).1);
        assert!(
            state(Some("/b"), None)
                .0
                .ends_with("completed successfully.")
        );
        assert!(
            state(Some("/a"), None)
                .0
                .ends_with("is not being moved from log dir /a to /b.")
        );
    }
}
