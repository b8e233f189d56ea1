//! The table of all keys, in groups.

mod cluster;
mod groups;
mod log;
mod metrics;
mod network;
mod producers;
mod quotas;
mod remote;
mod replication;
mod sasl;
mod security;
mod share_groups;
mod ssl;
mod streams_groups;
mod topics;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::ConfigKey;

pub(super) use replication::RACK_AWARE_REPLICA_SELECTOR;

/// Keys that belong together.
#[derive(Debug, Clone, Copy)]
pub struct KeyGroup {
    /// Title in the documentation.
    pub title: &'static str,
    /// The keys, the most used first.
    pub keys: &'static [ConfigKey],
}

/// All groups, in the order of the documentation.
pub static GROUPS: &[KeyGroup] = &[
    KeyGroup {
        title: "Sockets and listeners",
        keys: network::KEYS,
    },
    KeyGroup {
        title: "Node, cluster and metadata log",
        keys: cluster::KEYS,
    },
    KeyGroup {
        title: "Logs: directories, segments, retention, cleaning",
        keys: log::KEYS,
    },
    KeyGroup {
        title: "Topics",
        keys: topics::KEYS,
    },
    KeyGroup {
        title: "Replication and fetching",
        keys: replication::KEYS,
    },
    KeyGroup {
        title: "Idempotent producers and transactions",
        keys: producers::KEYS,
    },
    KeyGroup {
        title: "Consumer groups and their offsets",
        keys: groups::KEYS,
    },
    KeyGroup {
        title: "Streams groups",
        keys: streams_groups::KEYS,
    },
    KeyGroup {
        title: "Share groups",
        keys: share_groups::KEYS,
    },
    KeyGroup {
        title: "Metrics and the HTTP port",
        keys: metrics::KEYS,
    },
    KeyGroup {
        title: "Quotas",
        keys: quotas::KEYS,
    },
    KeyGroup {
        title: "Remote (tiered) storage",
        keys: remote::KEYS,
    },
    KeyGroup {
        title: "Security",
        keys: security::KEYS,
    },
    KeyGroup {
        title: "TLS",
        keys: ssl::KEYS,
    },
    KeyGroup {
        title: "SASL",
        keys: sasl::KEYS,
    },
];

/// All keys, group by group.
pub fn all() -> impl Iterator<Item = &'static ConfigKey> {
    GROUPS.iter().flat_map(|group| group.keys)
}

/// The key of this name.
pub fn find(name: &str) -> Option<&'static ConfigKey> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static ConfigKey>> =
        LazyLock::new(|| all().map(|key| (key.name, key)).collect());
    BY_NAME.get(name).copied()
}

/// Splits `listener.name.<listener>.<key>` into the listener's name and the key of the table; `None` for any other name.
pub fn find_for_listener(name: &str) -> Option<(&str, &'static ConfigKey)> {
    let (listener, rest) = name.strip_prefix("listener.name.")?.split_once('.')?;
    find(rest).map(|key| (listener, key))
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigValue, Support};
    use super::*;

    #[test]
    fn every_name_is_there_once_and_has_documentation() {
        let mut names = std::collections::BTreeSet::new();
        for key in all() {
            assert!(names.insert(key.name), "{} is there twice", key.name);
            assert!(key.doc.ends_with('.'), "{} has no documentation", key.name);
        }
        assert!(names.len() > 370, "only {} keys", names.len());
    }

    #[test]
    fn every_default_is_a_value_that_is_allowed() {
        for key in all() {
            for default in [key.default, key.kafka_default]
                .into_iter()
                .flatten()
                .filter(|text| !text.is_empty())
            {
                assert!(
                    key.parse(default).is_ok(),
                    "{}: {:?}",
                    key.name,
                    key.parse(default)
                );
                assert!(
                    key.is_default(&key.parse(default).expect("checked above")),
                    "{}",
                    key.name
                );
            }
            assert_eq!(
                key.default.is_none(),
                key.default_value() == ConfigValue::Null,
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let error = |name: &str, text: &str| {
            find(name)
                .expect("the key exists")
                .parse(text)
                .expect_err("the value is refused")
                .to_string()
        };
        assert_eq!(
            error("num.partitions", "0"),
            "invalid value '0' for num.partitions: a whole number from 1 to 2147483647 is expected"
        );
        assert_eq!(
            error("compression.gzip.level", "0"),
            "invalid value '0' for compression.gzip.level: a whole number from 1 to 9, or -1, is expected"
        );
        assert_eq!(
            error("auto.create.topics.enable", "1"),
            "invalid value '1' for auto.create.topics.enable: true or false is expected"
        );
        assert_eq!(
            error("log.cleanup.policy", "compact,shrink"),
            "invalid value 'compact,shrink' for log.cleanup.policy: a list of some of compact, delete is expected"
        );
        assert_eq!(
            error("log.cleaner.min.cleanable.ratio", "1.1"),
            "invalid value '1.1' for log.cleaner.min.cleanable.ratio: a number from 0 to 1 is expected"
        );
    }

    #[test]
    fn keys_of_one_listener_are_found_under_their_prefix() {
        let (listener, key) =
            find_for_listener("listener.name.plaintext.max.connections").expect("a known key");
        assert_eq!((listener, key.name), ("plaintext", "max.connections"));
        assert!(find_for_listener("listener.name.plaintext.no.such.key").is_none());
        assert!(find_for_listener("max.connections").is_none());
    }

    #[test]
    fn what_has_no_counterpart_says_why() {
        for key in all() {
            if let Support::NoCounterpart(reason) = key.support {
                assert!(!reason.is_empty(), "{}", key.name);
            }
        }
    }
}
