//! What a topic gets whose creator does not say.

use highwater_replication::cluster::create_topics::TopicDefaults;

use crate::config::BrokerConfig;

/// What topics get that do not say: `num.partitions` and `default.replication.factor`.
pub fn topic_defaults(config: &BrokerConfig) -> TopicDefaults {
    TopicDefaults {
        num_partitions: config.num_partitions,
        replication_factor: i16::try_from(config.default_replication_factor).unwrap_or(i16::MAX),
    }
}
