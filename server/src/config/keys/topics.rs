//! Keys: topics.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Class, Int};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("auto.create.topics.enable", Boolean, Some("true"))
        .doc("Whether a client that asks for an unknown topic makes it."),
    ConfigKey::new("num.partitions", Int, Some("1"))
        .at_least(1)
        .doc("Partitions of a topic made without a count."),
    ConfigKey::new("default.replication.factor", Int, Some("1"))
        .doc("Replicas of a topic made without a factor."),
    ConfigKey::new("delete.topic.enable", Boolean, Some("true"))
        .doc("Whether topics may be deleted."),
    ConfigKey::new("min.insync.replicas", Int, Some("1"))
        .at_least(1)
        .cluster_wide()
        .doc("In-sync replicas that a write with acks=all needs."),
    ConfigKey::new("create.topic.policy.class.name", Class, None)
        .refused_unless_default()
        .doc("Class that judges the creation of topics."),
    ConfigKey::new("alter.config.policy.class.name", Class, None)
        .refused_unless_default()
        .doc("Class that judges changes of configurations."),
    ConfigKey::new("max.request.partition.size.limit", Int, Some("2000"))
        .at_least(1)
        .doc("Partitions that one DescribeTopicPartitions response may hold."),
];
