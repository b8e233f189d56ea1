//! Keys: logs: directories, segments, retention, cleaning.

use crate::config::key::{ConfigKey, ConfigType::*};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("log.dirs", List, None)
        .doc("Directories that hold the data; more than one is separated by commas."),
    ConfigKey::new("log.dir", List, Some("/tmp/kafka-logs"))
        .default_here("./highwater-data")
        .doc("Directory that holds the data; used when `log.dirs` is absent."),
    ConfigKey::new("cordoned.log.dirs", List, Some(""))
        .per_broker()
        .not_supported_yet()
        .doc("Data directories that get no new partitions."),
    ConfigKey::new("log.segment.bytes", Int, Some("1073741824"))
        .at_least(1048576)
        .cluster_wide()
        .doc("Size at which a segment file is closed and the next one begun."),
    ConfigKey::new("log.roll.ms", Long, None)
        .cluster_wide()
        .doc("Age at which a segment is closed even when it is not full."),
    ConfigKey::new("log.roll.hours", Int, Some("168"))
        .at_least(1)
        .doc("As `log.roll.ms`, in hours; used when that is absent."),
    ConfigKey::new("log.roll.jitter.ms", Long, None)
        .cluster_wide()
        .doc("Random time taken off `log.roll.ms`, so that not all segments roll at once."),
    ConfigKey::new("log.roll.jitter.hours", Int, Some("0"))
        .at_least(0)
        .doc("As `log.roll.jitter.ms`, in hours; used when that is absent."),
    ConfigKey::new("log.index.size.max.bytes", Int, Some("10485760"))
        .at_least(4)
        .cluster_wide()
        .doc("Largest size of an offset or time index."),
    ConfigKey::new("log.index.interval.bytes", Int, Some("4096"))
        .at_least(0)
        .cluster_wide()
        .doc("Bytes of records between two index entries."),
    ConfigKey::new("log.preallocate", Boolean, Some("false"))
        .cluster_wide()
        .doc("Reserve the whole file when a segment is begun."),
    ConfigKey::new("log.retention.ms", Long, None)
        .cluster_wide()
        .doc("How long records are kept; -1 for ever."),
    ConfigKey::new("log.retention.minutes", Int, None)
        .doc("As `log.retention.ms`, in minutes; used when that is absent."),
    ConfigKey::new("log.retention.hours", Int, Some("168"))
        .doc("As `log.retention.ms`, in hours; used when neither of the others is set."),
    ConfigKey::new("log.retention.bytes", Long, Some("-1"))
        .cluster_wide()
        .doc("Size up to which a partition is kept; -1 without limit."),
    ConfigKey::new("log.retention.check.interval.ms", Long, Some("300000"))
        .at_least(1)
        .doc("How often retention is checked."),
    ConfigKey::new("log.cleanup.policy", List, Some("delete"))
        .list_of(&["compact", "delete"])
        .cluster_wide()
        .doc("What happens to old records: delete, compact, or both."),
    ConfigKey::new("log.segment.delete.delay.ms", Long, Some("60000"))
        .at_least(0)
        .cluster_wide()
        .doc("How long a deleted file stays on disk under its `.deleted` name."),
    ConfigKey::new(
        "log.flush.interval.messages",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(1)
    .cluster_wide()
    .doc("Records after which a partition is forced to disk."),
    ConfigKey::new("log.flush.interval.ms", Long, None)
        .cluster_wide()
        .doc("Time after which a partition's records are forced to disk."),
    ConfigKey::new(
        "log.flush.scheduler.interval.ms",
        Long,
        Some("9223372036854775807"),
    )
    .doc(
        "How often `log.flush.interval.ms` is checked; its value also serves when \
             that is absent.",
    ),
    ConfigKey::new(
        "log.flush.offset.checkpoint.interval.ms",
        Int,
        Some("60000"),
    )
    .at_least(0)
    .doc("How often the recovery points are written down."),
    ConfigKey::new(
        "log.flush.start.offset.checkpoint.interval.ms",
        Int,
        Some("60000"),
    )
    .at_least(0)
    .doc("How often the log start offsets are written down."),
    ConfigKey::new("log.initial.task.delay.ms", Long, Some("30000"))
        .at_least(0)
        .internal()
        .doc("How long after the start the periodic log tasks wait before their first run."),
    ConfigKey::new("log.message.timestamp.type", Text, Some("CreateTime"))
        .one_of(&["CreateTime", "LogAppendTime"])
        .cluster_wide()
        .doc("Whether a record's timestamp is the producer's or the time of the append."),
    ConfigKey::new(
        "log.message.timestamp.before.max.ms",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(0)
    .cluster_wide()
    .doc("How far in the past a producer's timestamp may lie."),
    ConfigKey::new("log.message.timestamp.after.max.ms", Long, Some("3600000"))
        .at_least(0)
        .cluster_wide()
        .doc("How far in the future a producer's timestamp may lie."),
    ConfigKey::new("log.cleaner.enable", Boolean, Some("true"))
        .doc("Whether compacted topics are cleaned at all."),
    ConfigKey::new("log.cleaner.threads", Int, Some("1"))
        .at_least(0)
        .cluster_wide()
        .no_counterpart("cleaning runs on one background task")
        .doc("Threads that clean compacted topics."),
    ConfigKey::new("log.cleaner.dedupe.buffer.size", Long, Some("134217728"))
        .doc("Memory for the map of keys during cleaning."),
    ConfigKey::new("log.cleaner.io.buffer.size", Int, Some("524288"))
        .at_least(0)
        .cluster_wide()
        .no_counterpart("segments are read through the page cache")
        .doc("Memory for the cleaner's input and output."),
    ConfigKey::new("log.cleaner.io.buffer.load.factor", Double, Some("0.9"))
        .cluster_wide()
        .no_counterpart("the map of keys is filled up to its size")
        .doc("How full the map of keys may become."),
    ConfigKey::new(
        "log.cleaner.io.max.bytes.per.second",
        Double,
        Some("1.7976931348623157E308"),
    )
    .at_least(1)
    .cluster_wide()
    .doc("Limit on what the cleaner reads and writes."),
    ConfigKey::new("log.cleaner.backoff.ms", Long, Some("15000"))
        .at_least(0)
        .doc("How long the cleaner rests when there is nothing to clean."),
    ConfigKey::new("log.cleaner.min.cleanable.ratio", Double, Some("0.5"))
        .between_real(0.0, 1.0)
        .cluster_wide()
        .doc("Share of uncleaned bytes from which a log is cleaned."),
    ConfigKey::new("log.cleaner.min.compaction.lag.ms", Long, Some("0"))
        .at_least(0)
        .cluster_wide()
        .doc("Records younger than this are not compacted."),
    ConfigKey::new(
        "log.cleaner.max.compaction.lag.ms",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(1)
    .cluster_wide()
    .doc("Records older than this are compacted whatever the ratio."),
    ConfigKey::new("log.cleaner.delete.retention.ms", Long, Some("86400000"))
        .at_least(0)
        .cluster_wide()
        .doc("How long a tombstone stays after the first cleaning."),
    ConfigKey::new("internal.log.segment.bytes", Int, None)
        .at_least(1)
        .internal()
        .doc("As `log.segment.bytes`, without its lower bound; for tests."),
    ConfigKey::new("log.dir.failure.timeout.ms", Long, Some("30000"))
        .at_least(1)
        .not_supported_yet()
        .doc("How long a broker may fail to report a broken directory before it stops."),
    ConfigKey::new("num.recovery.threads.per.data.dir", Int, Some("2"))
        .at_least(1)
        .doc("Logs of one directory that are opened at the same time."),
    ConfigKey::new("num.replica.alter.log.dirs.threads", Int, None)
        .not_supported_yet()
        .doc("Threads that move replicas between directories."),
    ConfigKey::new("message.max.bytes", Int, Some("1048588"))
        .at_least(0)
        .cluster_wide()
        .doc("Largest record batch that is accepted."),
    ConfigKey::new("max.decompressed.message.bytes", Int, Some("2147483639"))
        .between(1, 2147483639)
        .cluster_wide()
        .doc("Largest size of a record batch once its records are decompressed."),
    ConfigKey::new("compression.type", Text, Some("producer"))
        .one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .cluster_wide()
        .doc("Codec of stored batches; `producer` keeps the producer's."),
    ConfigKey::new("compression.gzip.level", Int, Some("-1"))
        .between(1, 9)
        .or_minus_one()
        .cluster_wide()
        .doc("Level when batches are stored with gzip; -1 for the codec's own."),
    ConfigKey::new("compression.lz4.level", Int, Some("9"))
        .between(1, 17)
        .cluster_wide()
        .doc("Level when batches are stored with lz4."),
    ConfigKey::new("compression.zstd.level", Int, Some("3"))
        .between(-131072, 22)
        .cluster_wide()
        .doc("Level when batches are stored with zstd."),
    ConfigKey::new("log.local.retention.bytes", Long, Some("-2"))
        .at_least(-2)
        .cluster_wide()
        .refused_unless_default()
        .doc(
            "Size kept locally of a partition with remote storage; -2 takes `log.\
             retention.bytes`.",
        ),
    ConfigKey::new("log.local.retention.ms", Long, Some("-2"))
        .at_least(-2)
        .cluster_wide()
        .refused_unless_default()
        .doc("Time records stay local with remote storage; -2 takes `log.retention.ms`."),
    ConfigKey::new("log.remote.copy.lag.bytes", Long, Some("-1"))
        .at_least(-1)
        .cluster_wide()
        .refused_unless_default()
        .doc("Bytes that stay uncopied to remote storage."),
    ConfigKey::new("log.remote.copy.lag.ms", Long, Some("0"))
        .at_least(-1)
        .cluster_wide()
        .refused_unless_default()
        .doc("Age that records must reach before they are copied to remote storage."),
];
