//! Tests of changes at run time and descriptions.

use super::*;

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn dynamic(entries: &[(&str, &str)]) -> DynamicConfig {
    let base = StaticConfig::from_entries(entries.iter().copied()).expect("acceptable entries");
    DynamicConfig::new(base).expect("a configuration")
}

fn entry(entries: &[BrokerConfigEntry], name: &str) -> BrokerConfigEntry {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .cloned()
        .expect("the key is described")
}

fn synonyms_of(entry: &BrokerConfigEntry) -> Vec<(&str, &str, ConfigSource)> {
    entry
        .synonyms
        .iter()
        .map(|synonym| {
            (
                synonym.name.as_str(),
                synonym.value.as_deref().unwrap_or("null"),
                synonym.source,
            )
        })
        .collect()
}

#[test]
fn the_override_of_one_broker_wins_over_that_of_all_and_both_over_the_file() {
    let config = dynamic(&[("log.retention.hours", "2"), ("max.connections", "10")]);
    assert_eq!(config.current().topic_defaults["retention.ms"], "7200000");
    config.apply(
        &map(&[("log.retention.ms", "5"), ("max.connections", "20")]),
        &map(&[("max.connections", "30")]),
    );
    assert_eq!(config.current().topic_defaults["retention.ms"], "5");
    assert_eq!(config.current().max_connections, 30);
    config.apply(&map(&[]), &map(&[]));
    assert_eq!(
        (
            config.current().max_connections,
            config.current().topic_defaults["retention.ms"].as_str()
        ),
        (10, "7200000")
    );
}

#[test]
fn bad_overrides_have_no_effect_and_do_not_undo_the_good_ones() {
    let config = dynamic(&[]);
    let bad = [
        ("max.connections", "20"),
        ("node.id", "9"),
        ("log.segment.bytes", "x"),
        ("no.such.key", "1"),
    ];
    let current = config.apply(&map(&bad), &map(&[]));
    assert_eq!((current.max_connections, current.node_id), (20, 1));
    assert_eq!(current.topic_defaults.get("segment.bytes"), None);
}

#[test]
fn changes_are_judged_as_kafka_judges_them() {
    let config = dynamic(&[]);
    let judge = |scope, key: &str, value: &str| {
        config.validate(
            scope,
            &map(&[(key, value)]),
            &BTreeSet::from([key.to_owned()]),
        )
    };
    let all = DynamicScope::AllBrokers;
    assert_eq!(judge(all, "log.retention.ms", "900000"), Ok(()));
    assert_eq!(
        judge(all, "log.retention.foo", "3"),
        Ok(()),
        "unknown keys are kept"
    );
    assert_eq!(judge(all, "num.io.threads", "9"), Ok(()));
    assert_eq!(
        judge(all, "node.id", "7"),
        Err("Cannot update these configs dynamically: [node.id]".to_owned())
    );
    assert!(judge(all, "log.retention.ms", "abc").is_err());
    assert!(judge(all, "log.retention.ms", "0").is_err());
    assert!(judge(all, "min.insync.replicas", "0").is_err());
    let rate = "leader.replication.throttled.rate";
    assert_eq!(judge(DynamicScope::Broker, rate, "5"), Ok(()));
    let unsupported = "replica.alter.log.dirs.io.max.bytes.per.second";
    let set = judge(DynamicScope::Broker, unsupported, "5");
    assert!(set.is_err_and(|error| error.contains("not supported yet")));
    let taken_away = config.validate(
        DynamicScope::Broker,
        &map(&[]),
        &BTreeSet::from([unsupported.to_owned()]),
    );
    assert_eq!(taken_away, Ok(()));
}

#[test]
fn values_are_described_with_all_their_sources() {
    let config = dynamic(&[
        ("log.retention.hours", "100"),
        ("foo.bar", "1"),
        ("ssl.keystore.password", "xyz"),
    ]);
    let entries = config.describe(
        &map(&[("log.retention.ms", "900000")]),
        &map(&[("max.connections", "7")]),
    );

    let retention = entry(&entries, "log.retention.ms");
    assert_eq!(retention.value.as_deref(), Some("900000"));
    assert_eq!(
        synonyms_of(&retention),
        [
            (
                "log.retention.ms",
                "900000",
                ConfigSource::DynamicDefaultBroker
            ),
            ("log.retention.hours", "100", ConfigSource::StaticBroker),
            ("log.retention.hours", "168", ConfigSource::Default),
        ]
    );
    let connections = entry(&entries, "max.connections");
    assert_eq!(
        (connections.source, connections.read_only),
        (ConfigSource::DynamicBroker, false)
    );
    let unset = entry(&entries, "log.roll.ms");
    assert_eq!(
        (unset.value, unset.source, unset.synonyms),
        (None, ConfigSource::Default, vec![])
    );
    let unknown = entry(&entries, "foo.bar");
    assert_eq!(
        (unknown.value, unknown.sensitive, unknown.source),
        (None, true, ConfigSource::StaticBroker)
    );
    let password = entry(&entries, "ssl.keystore.password");
    assert_eq!(
        (
            password.value.as_deref(),
            password.synonyms[0].value.as_deref()
        ),
        (None, None)
    );
    assert!(entry(&entries, "node.id").read_only);
    assert!(
        !entries
            .iter()
            .any(|entry| entry.name == "log.initial.task.delay.ms"),
        "internal keys stay hidden"
    );
    assert!(
        entries.windows(2).all(|pair| pair[0].name < pair[1].name),
        "sorted"
    );
}

#[test]
fn the_resource_of_all_brokers_has_its_own_entries_only() {
    let config = dynamic(&[("log.retention.ms", "5")]);
    let entries = config.describe_all_brokers(&map(&[("log.retention.ms", "900000")]));
    assert_eq!(entries.len(), 1);
    assert_eq!(
        synonyms_of(&entries[0]),
        [(
            "log.retention.ms",
            "900000",
            ConfigSource::DynamicDefaultBroker
        )]
    );
}

#[test]
fn a_topic_key_has_the_brokers_keys_as_synonyms() {
    let config = dynamic(&[("log.roll.hours", "3")]);
    let list = config.topic_synonyms("segment.ms", &map(&[]), &map(&[]));
    let names: Vec<_> = list
        .iter()
        .map(|synonym| (synonym.name.as_str(), synonym.source))
        .collect();
    assert_eq!(
        names,
        [
            ("log.roll.hours", ConfigSource::StaticBroker),
            ("log.roll.hours", ConfigSource::Default)
        ]
    );
    assert_eq!(
        config.topic_synonyms("no.such.key", &map(&[]), &map(&[])),
        []
    );
}
