//! The beginning and the end of reassignments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, BrokerId,
};

use super::plan::{Assignment, Directories, Plan, format};
use super::{
    Failure, ReassignPartitionsArguments, generate, list_reassignments, log_dirs, throttle,
};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, KafkaError, TopicPartition, by_topic, topic_name};
use crate::tools::lists::joined;

/// How long the controller may take.
const TIMEOUT_MS: i32 = 60_000;

/// Starts the reassignment.
pub(super) async fn execute(
    arguments: &ReassignPartitionsArguments,
    plan: &Plan,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let proposed = plan.assignment()?;
    let under_way = list_reassignments(cluster, None).await?;
    if !arguments.additional && !under_way.is_empty() {
        return Err(Failure::Terse(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this \
             and create a new partition assignment in addition to the existing one. The --additional flag can also \
             be used to change the throttle by resubmitting the current reassignment."
                .to_owned(),
        ));
    }
    let nodes = cluster.nodes().await?;
    let mut brokers = proposed.values().flatten();
    if let Some(unknown) = brokers.find(|id| nodes.iter().all(|node| node.id != **id)) {
        return Err(ToolError::failed(format!("Unknown broker id {unknown}")).into());
    }
    let current = current(cluster, &proposed).await?;
    let directories = log_dirs::current(cluster, &current).await?;
    writeln!(
        out,
        "Current partition replica assignment\n\n{}\n\nSave this to use as the --reassignment-json-file option during \
         rollback",
        format(&current, &directories)?
    )?;
    let (rate, directory_rate) = (
        arguments.throttle,
        arguments.replica_alter_log_dirs_throttle,
    );
    if rate >= 0 || directory_rate >= 0 {
        writeln!(
            out,
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is \
             removed."
        )?;
    }
    if rate >= 0 {
        throttle::between_brokers(cluster, &under_way, &proposed, &current, rate, out).await?;
    }
    if directory_rate >= 0 {
        let brokers = plan.directories.keys().map(|replica| replica.broker);
        let brokers: BTreeSet<_> = brokers.collect();
        throttle::between_directories(cluster, &brokers, directory_rate, out).await?;
    }
    let wanted = proposed
        .iter()
        .map(|(partition, replicas)| (partition.clone(), Some(replicas.clone())));
    let may_change_factor = !arguments.disallow_replication_factor_change;
    let errors = alter(cluster, &wanted.collect(), may_change_factor).await?;
    if !errors.is_empty() {
        let text = format!("Error reassigning partition(s):\n{}", lines(&errors));
        return Err(Failure::Terse(text));
    }
    writeln!(
        out,
        "Successfully started partition reassignment{} for {}",
        if proposed.len() == 1 { "" } else { "s" },
        joined(proposed.keys())
    )?;
    if !plan.directories.is_empty() {
        let timeout = Duration::from_millis(arguments.timeout);
        log_dirs::execute(cluster, &plan.directories, timeout, out).await?;
    }
    Ok(())
}

/// The replicas that the partitions have now.
async fn current(cluster: &Cluster, proposed: &Assignment) -> Result<Assignment, KafkaError> {
    let topics: BTreeSet<_> = proposed
        .keys()
        .map(|partition| partition.topic.clone())
        .collect();
    let topics = generate::describe(cluster, &Vec::from_iter(topics)).await?;
    let mut current = generate::assignment(&topics);
    current.retain(|partition, _| proposed.contains_key(partition));
    let missing = proposed
        .keys()
        .filter(|partition| !current.contains_key(*partition));
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    match missing.is_empty() {
        true => Ok(current),
        false => {
            let text = format!("Unable to find partition: {}", missing.join(", "));
            Err(KafkaError::new(3, Some(&text)))
        }
    }
}

/// Stops what is under way of the plan.
pub(super) async fn cancel(
    arguments: &ReassignPartitionsArguments,
    plan: &Plan,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let partitions: BTreeSet<_> = plan
        .entries
        .iter()
        .map(|(partition, _)| partition.clone())
        .collect();
    let partitions = Vec::from_iter(partitions);
    let under_way = list_reassignments(cluster, Some(&partitions)).await?;
    if under_way.is_empty() {
        writeln!(
            out,
            "None of the specified partition reassignments are active."
        )?;
    } else {
        let wanted = under_way.keys().map(|partition| (partition.clone(), None));
        let errors = alter(cluster, &wanted.collect(), true).await?;
        if !errors.is_empty() {
            return Err(Failure::Terse(format!(
                "Error cancelling partition reassignment{} for:\n{}",
                if errors.len() == 1 { "" } else { "s" },
                lines(&errors)
            )));
        }
        writeln!(
            out,
            "Successfully cancelled partition reassignment{} for: {}",
            if under_way.len() == 1 { "" } else { "s" },
            joined(under_way.keys())
        )?;
    }
    let places = log_dirs::places(cluster, plan.directories.keys().cloned()).await?;
    let moving = places
        .into_iter()
        .filter_map(|(replica, place)| match place.future {
            Some(_) => Some((replica, place.current?)),
            None => None,
        });
    let moving: Directories = moving.collect();
    if moving.is_empty() {
        // Kafka's tool does not end this line either.
        write!(out, "None of the specified partition moves are active.")?;
    } else {
        let timeout = Duration::from_millis(arguments.timeout);
        log_dirs::execute(cluster, &moving, timeout, out).await?;
    }
    if !arguments.preserve_throttles {
        throttle::clear(cluster, &plan.entries, out).await?;
    }
    Ok(())
}

fn lines(errors: &BTreeMap<TopicPartition, KafkaError>) -> String {
    let lines = errors
        .iter()
        .map(|(partition, error)| format!("{partition}: {}", error.message));
    lines.collect::<Vec<_>>().join("\n")
}

/// New replicas by partition; without any, the reassignment of the partition is cancelled.
type Wanted = BTreeMap<TopicPartition, Option<Vec<i32>>>;

/// Asks for new replicas; gives what is refused.
async fn alter(
    cluster: &Cluster,
    wanted: &Wanted,
    may_change_factor: bool,
) -> Result<BTreeMap<TopicPartition, KafkaError>, KafkaError> {
    let request = request(wanted, may_change_factor);
    let response = cluster
        .call_controller("alterPartitionReassignments", &request)
        .await?;
    KafkaError::check(response.error_code, response.error_message.as_deref())?;
    Ok(refused(&response))
}

fn request(wanted: &Wanted, may_change_factor: bool) -> AlterPartitionReassignmentsRequest {
    let topics = by_topic(wanted.keys()).into_iter().map(|(topic, indexes)| {
        let partitions = indexes.into_iter().map(|index| {
            let replicas = wanted
                .get(&TopicPartition::new(topic, index))
                .cloned()
                .flatten();
            let replicas = replicas.map(|ids| ids.into_iter().map(BrokerId).collect());
            ReassignablePartition::default()
                .with_partition_index(index)
                .with_replicas(replicas)
        });
        ReassignableTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(partitions.collect())
    });
    AlterPartitionReassignmentsRequest::default()
        .with_topics(topics.collect())
        .with_allow_replication_factor_change(may_change_factor)
        .with_timeout_ms(TIMEOUT_MS)
}

fn refused(response: &AlterPartitionReassignmentsResponse) -> BTreeMap<TopicPartition, KafkaError> {
    let topics = response.responses.iter();
    let refused = topics.flat_map(|topic| {
        topic.partitions.iter().filter_map(|partition| {
            let text = partition.error_message.as_deref();
            let error = KafkaError::check(partition.error_code, text).err()?;
            let key = TopicPartition::new(topic.name.0.as_str(), partition.partition_index);
            Some((key, error))
        })
    });
    refused.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_without_replicas_are_cancelled() {
        let wanted = Wanted::from([
            (TopicPartition::new("t", 0), Some(vec![2, 3])),
            (TopicPartition::new("t", 1), None),
        ]);
        let request = request(&wanted, false);
        assert!(!request.allow_replication_factor_change);
        let partitions = &request.topics[0].partitions;
        assert_eq!(partitions[0].replicas, Some(vec![BrokerId(2), BrokerId(3)]));
        assert_eq!(partitions[1].replicas, None);
    }
}
