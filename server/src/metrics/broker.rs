//! Partitions, logs, groups and the cluster as this broker sees it.

use std::fmt;
use std::sync::Arc;

use highwater_replication::runtime::partition::{Partition, RoleView};

use super::families::{Families, Labels};
use crate::broker::Broker;
use crate::refusals::RefusalReason;

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
    let is_active = broker.controller.is_active();
    // Only the active controller counts them, so that the sum over all nodes is right.
    let offline = match is_active {
        true => image
            .topics()
            .flat_map(|topic| &topic.partitions)
            .filter(|partition| partition.leader.is_none())
            .count(),
        false => 0,
    };
    for (name, help, value) in [
        (
            "activecontrollercount",
            "1 on the active controller, else 0.",
            i64::from(is_active),
        ),
        (
            "offlinepartitionscount",
            "Partitions without a leader, on the active controller.",
            number(offline),
        ),
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
    let mut at_min_isr = 0;
    for partition in &partitions {
        waiting += partition.high_watermark_watch().waiting() + partition.log_end_watch().waiting();
        let view = partition.view();
        let RoleView::Leader {
            effective_min_isr,
            potential_isr,
            ..
        } = view.role
        else {
            continue;
        };
        led += 1;
        under_replicated += usize::from(view.isr.len() < potential_isr);
        under_min_isr += usize::from(view.isr.len() < effective_min_isr);
        at_min_isr += usize::from(view.isr.len() == effective_min_isr);
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
        (
            "atminisrpartitioncount",
            "Led partitions with as few in-sync replicas as are allowed.",
            at_min_isr,
        ),
    ] {
        families.gauge(&format!("{prefix}_{name}"), help, number(value))?;
    }
    replication(families, broker)?;
    families.gauges(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait for records or for their commit, counted once a partition.",
        [([("delayedoperation", "Fetch")], number(waiting))],
    )
}

fn replication(families: &mut Families<'_>, broker: &Broker) -> fmt::Result {
    let metrics = broker.replicas.context().metrics();
    for (name, help, counter) in [
        (
            "kafka_server_replicamanager_isrexpandspersec",
            "Changes by which a replica joined an ISR of this leader.",
            &metrics.isr_expands,
        ),
        (
            "kafka_server_replicamanager_isrshrinkspersec",
            "Changes by which replicas left an ISR of this leader.",
            &metrics.isr_shrinks,
        ),
        (
            "kafka_server_replicamanager_failedisrupdatespersec",
            "Changes of an ISR that the controller refused.",
            &metrics.failed_isr_updates,
        ),
        (
            "kafka_server_brokertopicmetrics_replicationbytesinpersec",
            "Bytes of records that were fetched from leaders.",
            &metrics.replication_bytes_in,
        ),
        (
            "kafka_server_brokertopicmetrics_replicationbytesoutpersec",
            "Bytes of records that were read for followers.",
            &metrics.replication_bytes_out,
        ),
        (
            "highwater_replica_truncations",
            "Times that a follower cut its log where the leader's diverges.",
            &metrics.truncations,
        ),
    ] {
        families.counter(name, help, counter.get())?;
    }
    families.counters(
        "highwater_replication_refused",
        "What was refused for the sake of replication, by reason.",
        RefusalReason::ALL.map(|reason| {
            let count = broker.refusals.count(reason);
            ([("reason", reason.as_str())], count)
        }),
    )?;
    let summary = broker.replicas.fetcher_summary();
    let prefix = "kafka_server_replicafetchermanager";
    for (name, help, value) in [
        (
            "fetchercount",
            "Replica fetchers.",
            number(summary.fetchers),
        ),
        (
            "failedpartitionscount",
            "Partitions that wait for a new leader epoch before they are fetched again.",
            number(summary.failed_partitions),
        ),
        (
            "maxlag",
            "Most records that a follower here lacks.",
            summary.max_lag,
        ),
    ] {
        families.gauge(&format!("{prefix}_{name}"), help, value)?;
    }
    Ok(())
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
