//! Partitions, logs, groups and the cluster as this broker sees it.

use std::fmt;
use std::sync::Arc;

use highwater_replication::runtime::partition::Partition;

use super::families::{Families, Labels};
use crate::broker::Broker;

/// Kafka's numbers of a broker's states.
const RUNNING: i64 = 3;
const STOPPING: i64 = 6;

pub(super) fn encode(families: &mut Families<'_>, broker: &Broker) -> fmt::Result {
    let state = if broker.is_stopping() {
        STOPPING
    } else {
        RUNNING
    };
    families.gauge(
        "kafka_server_kafkaserver_brokerstate",
        "3 while running, 6 while stopping.",
        state,
    )?;
    cluster(families, broker)?;
    replicas(families, broker)?;
    families.gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Incremental fetch sessions that are remembered.",
        number(broker.fetch_sessions.len()),
    )?;
    families.counter(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Incremental fetch sessions that had to make room.",
        broker.fetch_sessions.evictions(),
    )?;
    families.gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Groups that this broker coordinates.",
        broker
            .groups
            .list()
            .map_or(0, |groups| number(groups.len())),
    )?;
    logs(families, broker)
}

fn cluster(families: &mut Families<'_>, broker: &Broker) -> fmt::Result {
    let image = broker.image();
    let active = image
        .brokers()
        .values()
        .filter(|registered| registered.is_active())
        .count();
    let prefix = "kafka_controller_kafkacontroller";
    for (name, help, value) in [
        ("activecontrollercount", "1 on the active controller.", 1),
        (
            "activebrokercount",
            "Brokers that may lead.",
            number(active),
        ),
        (
            "fencedbrokercount",
            "Brokers that may not lead.",
            number(image.brokers().len() - active),
        ),
        (
            "globaltopiccount",
            "Topics of the cluster.",
            number(image.topic_count()),
        ),
        (
            "globalpartitioncount",
            "Partitions of the cluster.",
            number(image.partition_count()),
        ),
    ] {
        families.gauge(&format!("{prefix}_{name}"), help, value)?;
    }
    families.gauge(
        "kafka_server_raft_metrics_log_end_offset",
        "End of the metadata that is in effect.",
        image.offset() + 1,
    )?;
    families.gauge(
        "kafka_server_raft_metrics_current_epoch",
        "Epoch of the metadata that is in effect.",
        i64::from(image.epoch()),
    )
}

fn replicas(families: &mut Families<'_>, broker: &Broker) -> fmt::Result {
    let partitions = broker.replicas.partitions();
    let (mut led, mut under_replicated, mut under_min_isr, mut waiting) = (0, 0, 0, 0);
    for partition in &partitions {
        let leadership = partition.view();
        waiting += partition.high_watermark_watch().waiting() + partition.log_end_watch().waiting();
        if !leadership.is_leader() {
            continue;
        }
        let min_isr = partition.log().config().min_insync_replicas;
        let min_isr = usize::try_from(min_isr)
            .unwrap_or(0)
            .min(leadership.replicas.len());
        led += 1;
        under_replicated += usize::from(leadership.isr.len() < leadership.replicas.len());
        under_min_isr += usize::from(leadership.isr.len() < min_isr);
    }
    let prefix = "kafka_server_replicamanager";
    for (name, help, value) in [
        (
            "partitioncount",
            "Partitions that this broker hosts.",
            partitions.len(),
        ),
        ("leadercount", "Partitions that this broker leads.", led),
        (
            "offlinereplicacount",
            "Partitions whose log cannot be used.",
            broker.replicas.offline_count(),
        ),
        (
            "underreplicatedpartitions",
            "Led partitions with a replica outside the ISR.",
            under_replicated,
        ),
        (
            "underminisrpartitioncount",
            "Led partitions with too few in-sync replicas.",
            under_min_isr,
        ),
    ] {
        families.gauge(&format!("{prefix}_{name}"), help, number(value))?;
    }
    families.gauges(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait for records or for their commit, counted once a partition.",
        [([("delayedoperation", "Fetch")], number(waiting))],
    )
}

fn logs(families: &mut Families<'_>, broker: &Broker) -> fmt::Result {
    let partitions: Vec<(Arc<Partition>, String)> = broker
        .replicas
        .partitions()
        .into_iter()
        .map(|partition| {
            let number = partition.topic_partition().partition.to_string();
            (partition, number)
        })
        .collect();
    let mut family = |name: &str, help: &str, value: fn(&Partition) -> i64| {
        families.gauges(
            name,
            help,
            partitions.iter().map(|(partition, number)| {
                let topic = &*partition.topic_partition().topic;
                let labels: Labels<'_, 2> = [("topic", topic), ("partition", number)];
                (labels, value(partition))
            }),
        )
    };
    family(
        "kafka_log_log_size",
        "Bytes of a partition's log.",
        |partition| i64::try_from(partition.log().size_in_bytes()).unwrap_or(i64::MAX),
    )?;
    family(
        "kafka_log_log_numlogsegments",
        "Segments of a partition's log.",
        |partition| number(partition.log().segment_count()),
    )?;
    family(
        "kafka_log_log_logstartoffset",
        "First offset of a partition.",
        |partition| partition.log().log_start_offset(),
    )?;
    family(
        "kafka_log_log_logendoffset",
        "Next offset of a partition.",
        |partition| partition.log().log_end_offset(),
    )?;
    family(
        "kafka_cluster_partition_laststableoffsetlag",
        "Offsets between the last stable offset and the high watermark.",
        |partition| partition.log().high_watermark() - partition.log().last_stable_offset(),
    )
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
