//! Keys: idempotent producers and transactions.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Int, Short};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("producer.id.expiration.ms", Int, Some("86400000"))
        .at_least(1)
        .doc("A producer that has written nothing for this long is forgotten."),
    ConfigKey::new(
        "producer.id.expiration.check.interval.ms",
        Int,
        Some("600000"),
    )
    .at_least(1)
    .internal()
    .no_counterpart("they are looked for whenever retention is checked")
    .doc("How often forgotten producers are looked for."),
    ConfigKey::new("transactional.id.expiration.ms", Int, Some("604800000"))
        .at_least(1)
        .not_supported_yet()
        .doc("An unused transactional id is forgotten after this time."),
    ConfigKey::new("transaction.max.timeout.ms", Int, Some("900000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest transaction time-out a producer may ask for."),
    ConfigKey::new(
        "transaction.partition.verification.enable",
        Boolean,
        Some("true"),
    )
    .cluster_wide()
    .not_supported_yet()
    .doc("Whether a transactional write is checked against the coordinator."),
    ConfigKey::new(
        "transaction.two.phase.commit.enable",
        Boolean,
        Some("false"),
    )
    .not_supported_yet()
    .doc("Whether transactions may be part of a two-phase commit elsewhere."),
    ConfigKey::new("transaction.state.log.replication.factor", Short, Some("3"))
        .default_here("1")
        .at_least(1)
        .not_supported_yet()
        .doc("Replicas of `__transaction_state`."),
    ConfigKey::new("transaction.state.log.num.partitions", Int, Some("50"))
        .at_least(1)
        .not_supported_yet()
        .doc("Partitions of `__transaction_state`."),
    ConfigKey::new("transaction.state.log.min.isr", Int, Some("2"))
        .default_here("1")
        .at_least(1)
        .not_supported_yet()
        .doc("min.insync.replicas of `__transaction_state`."),
    ConfigKey::new(
        "transaction.state.log.segment.bytes",
        Int,
        Some("104857600"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Segment size of `__transaction_state`."),
    ConfigKey::new(
        "transaction.state.log.load.buffer.size",
        Int,
        Some("5242880"),
    )
    .at_least(1)
    .no_counterpart("logs are read through the page cache")
    .doc("Bytes read at a time when `__transaction_state` is loaded."),
    ConfigKey::new(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Int,
        Some("10000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("How often overdue transactions are looked for."),
    ConfigKey::new(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Int,
        Some("3600000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("How often expired transactional ids are looked for."),
    ConfigKey::new("add.partitions.to.txn.retry.backoff.ms", Int, Some("20"))
        .at_least(1)
        .not_supported_yet()
        .doc("First wait of the broker before it asks the coordinator again."),
    ConfigKey::new(
        "add.partitions.to.txn.retry.backoff.max.ms",
        Int,
        Some("100"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Longest wait of the broker before it asks the coordinator again."),
];
