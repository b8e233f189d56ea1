//! Keys: node, cluster and metadata log.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Int, List, Long, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("node.id", Int, None)
        .default_here("1")
        .at_least(0)
        .doc("Id of this node in its cluster."),
    ConfigKey::new("broker.id", Int, Some("-1"))
        .doc("Older name of `node.id`; when both are set they must agree."),
    ConfigKey::new("process.roles", List, None)
        .default_here("broker,controller")
        .list_of(&["broker", "controller"])
        .doc(
            "Roles of this process: `broker` hosts partitions and serves clients, `controller` \
             votes in the quorum that keeps the metadata.",
        ),
    ConfigKey::new("controller.listener.names", List, None)
        .default_here("")
        .doc(
            "Listeners of the controller, by name. A node with the controller role opens them \
             (they are in its `listeners`); a single node needs none, a broker only names them.",
        ),
    ConfigKey::new("controller.quorum.voters", List, Some("")).doc(
        "Controllers of the quorum as id@host:port, the same on every node. Without it a \
             node with the controller role is the only one.",
    ),
    ConfigKey::new("controller.quorum.bootstrap.servers", List, Some("")).doc(
        "Addresses by which a broker finds the controllers when it does not know \
             `controller.quorum.voters`.",
    ),
    ConfigKey::new("controller.quorum.auto.join.enable", Boolean, Some("false"))
        .not_supported_yet()
        .doc("Whether a controller joins the quorum by itself."),
    ConfigKey::new("controller.quorum.election.timeout.ms", Int, Some("1000"))
        .at_least(0)
        .doc("The most that a controller waits for votes before it asks for them again."),
    ConfigKey::new(
        "controller.quorum.election.backoff.max.ms",
        Int,
        Some("1000"),
    )
    .at_least(0)
    .no_counterpart("each controller draws its own time-outs for elections")
    .doc("Longest wait between two elections."),
    ConfigKey::new("controller.quorum.fetch.timeout.ms", Int, Some("2000"))
        .at_least(0)
        .doc(
            "Without word from the leader for half of this time, or for \
             controller.quorum.election.timeout.ms if that is shorter, the controllers elect another; \
             without word from a majority for so long, a leader decides nothing any more.",
        ),
    ConfigKey::new("controller.quorum.fetch.max.bytes", Int, Some("1048576"))
        .at_least(1)
        .doc("Bytes a controller asks for in one fetch."),
    ConfigKey::new(
        "controller.quorum.fetch.snapshot.max.bytes",
        Int,
        Some("1048576"),
    )
    .at_least(1)
    .doc("Bytes of a snapshot in one response."),
    ConfigKey::new("controller.quorum.request.timeout.ms", Int, Some("2000"))
        .at_least(0)
        .doc(
            "How long a controller waits for a response; of another voter not longer than it takes \
             to elect another leader.",
        ),
    ConfigKey::new("controller.quorum.retry.backoff.ms", Int, Some("20"))
        .at_least(0)
        .doc("How long a controller rests that could not reach another, at first."),
    ConfigKey::new("controller.quorum.append.linger.ms", Int, Some("25"))
        .at_least(0)
        .no_counterpart("writes that arrive during a sync share the next one")
        .doc("How long the leader gathers writes before it forces them to disk."),
    ConfigKey::new("controller.socket.timeout.ms", Int, Some("30000"))
        .doc("How long the controller waits for a broker."),
    ConfigKey::new(
        "controller.performance.sample.period.ms",
        Long,
        Some("60000"),
    )
    .at_least(100)
    .internal()
    .not_supported_yet()
    .doc("How often the controller reports its performance."),
    ConfigKey::new(
        "controller.performance.always.log.threshold.ms",
        Long,
        Some("2000"),
    )
    .at_least(0)
    .internal()
    .not_supported_yet()
    .doc("Controller work that takes longer than this is logged."),
    ConfigKey::new("broker.heartbeat.interval.ms", Int, Some("2000"))
        .doc("How often a broker tells the controller that it lives."),
    ConfigKey::new("broker.session.timeout.ms", Int, Some("9000"))
        .at_least(1)
        .doc("A broker without a heartbeat for this long is fenced."),
    ConfigKey::new("initial.broker.registration.timeout.ms", Int, Some("60000"))
        .doc("How long a broker tries to register at start."),
    ConfigKey::new("metadata.log.dir", Text, None)
        .doc("Directory of the metadata log. Only the first of `log.dirs` so far."),
    ConfigKey::new("metadata.log.segment.bytes", Int, Some("1073741824"))
        .at_least(8388608)
        .doc("Size at which a segment of the metadata log is closed."),
    ConfigKey::new("metadata.log.segment.ms", Long, Some("604800000"))
        .doc("Age at which a segment of the metadata log is closed."),
    ConfigKey::new(
        "metadata.log.max.record.bytes.between.snapshots",
        Long,
        Some("20971520"),
    )
    .at_least(1)
    .doc("Bytes of metadata records after which a snapshot is taken."),
    ConfigKey::new(
        "metadata.log.max.snapshot.interval.ms",
        Long,
        Some("3600000"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Longest time between two metadata snapshots."),
    ConfigKey::new("metadata.max.retention.bytes", Long, Some("104857600"))
        .not_supported_yet()
        .doc("Size up to which metadata is kept."),
    ConfigKey::new("metadata.max.retention.ms", Long, Some("604800000"))
        .not_supported_yet()
        .doc("How long metadata is kept."),
    ConfigKey::new("metadata.max.idle.interval.ms", Int, Some("500"))
        .at_least(0)
        .not_supported_yet()
        .doc("How often the controller writes a no-op record when nothing happens."),
    ConfigKey::new("internal.metadata.log.segment.bytes", Int, None)
        .internal()
        .not_supported_yet()
        .doc("Segment size of the metadata log, for tests of Apache Kafka."),
    ConfigKey::new(
        "internal.metadata.max.batch.size.in.bytes",
        Int,
        Some("8388608"),
    )
    .internal()
    .not_supported_yet()
    .doc("Largest batch of the metadata log, for tests of Apache Kafka."),
    ConfigKey::new("internal.metadata.delete.delay.millis", Long, Some("60000"))
        .internal()
        .not_supported_yet()
        .doc("Delay before metadata files are deleted, for tests of Apache Kafka."),
    ConfigKey::new("unstable.feature.versions.enable", Boolean, Some("false"))
        .internal()
        .not_supported_yet()
        .doc("Offers feature versions that are still being developed."),
    ConfigKey::new("config.providers", List, Some(""))
        .cluster_wide()
        .refused_unless_default()
        .doc("Classes that fetch values from elsewhere."),
];
