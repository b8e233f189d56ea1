use super::*;

fn parse(key: &str, value: &str) -> Result<LogConfig, ConfigError> {
    LogConfig::from_overrides(&BTreeMap::new(), [(key, value)])
}

#[test]
fn defaults_of_the_table_and_of_the_struct_are_the_same() {
    let defaults: BTreeMap<&'static str, String> = TOPIC_CONFIG_KEYS
        .iter()
        .filter_map(|key| Some((key.name, key.default?.to_owned())))
        .collect();
    assert_eq!(
        LogConfig::from_overrides(&defaults, []).expect("defaults are valid"),
        LogConfig::default()
    );
}

#[test]
fn a_value_is_spelled_the_same_after_it_was_read() {
    for key in TOPIC_CONFIG_KEYS {
        if let Some(default) = key.default {
            let value = key.parse(default).expect("a default is valid");
            assert_eq!(value.to_string(), default, "{}", key.name);
        }
    }
}

#[test]
fn bad_values_are_refused_with_kafkas_words() {
    let table = [
        (
            "retention.ms",
            "-2",
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "10",
            "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "unclean.leader.election.enable",
            "yes",
            "Invalid value yes for configuration unclean.leader.election.enable: Expected value to be either true or false",
        ),
        (
            "compression.type",
            "none",
            "Invalid value none for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.zstd.level",
            "23",
            "Invalid value 23 for configuration compression.zstd.level: Value must be no more than 22",
        ),
        (
            "min.cleanable.dirty.ratio",
            "1.1",
            "Invalid value 1.1 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "message.timestamp.type",
            "createtime",
            "Invalid value createtime for configuration message.timestamp.type: String must be one of: CreateTime, LogAppendTime",
        ),
        (
            "index.interval.bytes",
            "",
            "Invalid value  for configuration index.interval.bytes: Not a number of type INT",
        ),
        ("foo.bar", "1", "Unknown topic config name: foo.bar"),
    ];
    for (key, value, text) in table {
        assert_eq!(parse(key, value).expect_err(key).to_string(), text);
    }
    assert!(parse("cleanup.policy", "delete,").is_err());
    assert!(parse("min.cleanable.dirty.ratio", "NaN").is_err());
    assert!(parse("leader.replication.throttled.replicas", "1-2").is_err());
    assert!(parse("leader.replication.throttled.replicas", "*").is_ok());
    assert!(parse("follower.replication.throttled.replicas", "0:1,1:2").is_ok());
    assert!(parse("highwater.observer.replicas", "1,-2").is_err());
    assert!(parse("highwater.observer.replicas", "one").is_err());
}

#[test]
fn values_that_nothing_would_act_on_are_refused() {
    let table = [
        ("remote.storage.enable", "true"),
        ("local.retention.ms", "5"),
        ("local.retention.bytes", "5"),
        ("remote.log.copy.disable", "true"),
        ("remote.copy.lag.ms", "5"),
        ("remote.copy.lag.bytes", "5"),
        ("remote.log.delete.on.disable", "true"),
        ("errors.deadletterqueue.group.enable", "true"),
    ];
    for (key, value) in table {
        assert!(
            matches!(parse(key, value), Err(ConfigError::NotSupported { .. })),
            "{key}"
        );
        let default = topic_config_key(key).and_then(|key| key.default);
        assert!(parse(key, default.expect("has a default")).is_ok(), "{key}");
    }
}

#[test]
fn lists_are_trimmed_and_rid_of_repeats() {
    let both = CleanupPolicy {
        delete: true,
        compact: true,
    };
    let policy = |text| parse("cleanup.policy", text).map(|config| config.cleanup_policy);
    assert_eq!(policy(" delete , compact "), Ok(both));
    assert_eq!(policy(""), Ok(CleanupPolicy::default()));
    let key = topic_config_key("cleanup.policy").expect("known");
    assert_eq!(
        key.parse("delete,delete").map(|value| value.to_string()),
        Ok("delete".to_owned())
    );
}

#[test]
fn lags_that_exclude_each_other_are_refused() {
    let result = LogConfig::from_overrides(
        &BTreeMap::new(),
        [
            ("min.compaction.lag.ms", "100"),
            ("max.compaction.lag.ms", "50"),
        ],
    );
    assert!(matches!(result, Err(ConfigError::Conflict(_))));
}

#[test]
fn the_strongest_broker_synonym_gives_the_default() {
    let broker = |key: &str| match key {
        "log.retention.hours" => Some("2"),
        "log.retention.minutes" => Some("3"),
        "log.roll.hours" => Some("1"),
        "message.max.bytes" => Some("2000"),
        _ => None,
    };
    let defaults = LogConfig::defaults_from_broker(broker).expect("valid");
    let config =
        LogConfig::from_overrides(&defaults, [("max.message.bytes", " 5 ")]).expect("valid");
    assert_eq!(config.retention_ms, 180_000);
    assert_eq!(config.segment_ms, 3_600_000);
    assert_eq!(config.max_message_bytes, 5);
    assert_eq!(defaults["max.message.bytes"], "2000");
}

#[test]
fn a_bad_broker_value_is_reported_by_the_brokers_key() {
    let broker = |key: &str| (key == "log.retention.hours").then_some("two");
    let error = LogConfig::defaults_from_broker(broker).expect_err("not a number");
    assert!(error.to_string().contains("log.retention.hours"), "{error}");
}
