//! Tests of the typed configuration.

use super::super::keys;
use super::super::{Support, UpdateMode};
use super::*;

fn config(entries: &[(&str, &str)]) -> Result<BrokerConfig, String> {
    StaticConfig::from_entries(entries.iter().copied())
        .and_then(|config| BrokerConfig::from_static(&config))
        .map_err(|error| error.to_string())
}

#[test]
fn the_defaults_are_those_of_a_single_node_on_loopback() {
    let config = config(&[]).expect("the defaults");
    assert_eq!(config.node_id, 1);
    assert_eq!(
        (config.listeners[0].host.as_str(), config.listeners[0].port),
        ("127.0.0.1", 9092)
    );
    assert_eq!(config.log_dirs, [PathBuf::from("./highwater-data")]);
    assert_eq!(config.offsets_topic_replication_factor, 1);
    assert_eq!(config.group_initial_rebalance_delay_ms, 0);
    assert_eq!(config.http_listeners, []);
}

#[test]
fn every_key_that_acts_is_read_and_every_key_that_is_read_acts() {
    const READ_BY_HAND: [&str; 15] = [
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "http.listeners",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "max.connections.per.ip.overrides",
        "metadata.log.dir",
        "process.roles",
        "security.inter.broker.protocol",
    ];
    let synonyms: Vec<&str> = highwater_storage::TOPIC_CONFIG_KEYS
        .iter()
        .filter(|key| key.unsupported_reason().is_none())
        .flat_map(|key| key.synonyms.iter().map(|synonym| synonym.name))
        .collect();
    let read: std::collections::BTreeSet<&str> = FIELD_KEYS
        .iter()
        .copied()
        .chain(READ_BY_HAND)
        .chain(synonyms)
        .collect();
    for key in keys::all().filter(|key| key.support == Support::Active) {
        assert!(
            read.contains(key.name),
            "{} is said to act, but nothing reads it",
            key.name
        );
    }
    for name in read {
        let key = keys::find(name).expect(name);
        assert_eq!(
            key.support,
            Support::Active,
            "{name} is read, but said not to act"
        );
    }
}

#[test]
fn topic_defaults_follow_the_strongest_key_that_is_set() {
    let default = |entries: &[(&str, &str)], key: &str| {
        config(entries).expect("a configuration").topic_defaults[key].clone()
    };
    assert_eq!(
        config(&[]).expect("the defaults").topic_defaults,
        BTreeMap::new()
    );
    assert_eq!(
        default(&[("log.retention.hours", "1")], "retention.ms"),
        "3600000"
    );
    assert_eq!(
        default(
            &[("log.retention.hours", "1"), ("log.retention.minutes", "2")],
            "retention.ms"
        ),
        "120000"
    );
    assert_eq!(
        default(
            &[("log.retention.minutes", "2"), ("log.retention.ms", "7")],
            "retention.ms"
        ),
        "7"
    );
    assert_eq!(
        default(&[("log.retention.hours", "-1")], "retention.ms"),
        "-1"
    );
    assert_eq!(
        default(&[("log.flush.scheduler.interval.ms", "9")], "flush.ms"),
        "9"
    );
    assert_eq!(
        default(&[("log.cleanup.policy", "compact")], "cleanup.policy"),
        "compact"
    );
}

#[test]
fn the_old_name_of_the_node_id_is_taken_and_must_agree() {
    assert_eq!(
        config(&[("broker.id", "7")]).expect("the old name").node_id,
        7
    );
    assert_eq!(
        config(&[("broker.id", "7"), ("node.id", "7")])
            .expect("the same")
            .node_id,
        7
    );
    assert!(
        config(&[("broker.id", "7"), ("node.id", "8")])
            .expect_err("not the same")
            .contains("contradict")
    );
}

#[test]
fn each_role_has_the_listeners_that_it_needs() {
    let voters = ("controller.quorum.voters", "1@a:9093,2@b:9093,3@c:9093");
    let names = ("controller.listener.names", "CONTROLLER");
    let combined = config(&[
        voters,
        names,
        ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
    ]);
    let combined = combined.expect("one of three nodes");
    assert_eq!(combined.listeners[0].port, 9092);
    assert_eq!(combined.controller_listeners[0].port, 9093);
    assert_eq!(combined.inter_broker_listener_name, "PLAINTEXT");
    assert_eq!(combined.network_listeners().len(), 2);

    let error = config(&[voters]).expect_err("the other controllers cannot reach it");
    assert!(
        error.contains("others must reach this controller"),
        "{error}"
    );

    let controller = [("process.roles", "controller"), names];
    let alone = |listeners| {
        config(&[
            controller[0],
            controller[1],
            voters,
            ("listeners", listeners),
        ])
    };
    let only = alone("CONTROLLER://:9093").expect("a controller");
    assert_eq!(
        (only.listeners.len(), only.controller_listeners.len()),
        (0, 1)
    );
    let error = alone("PLAINTEXT://:9092,CONTROLLER://:9093").expect_err("not for brokers");
    assert!(
        error.contains("only listeners of controller.listener.names"),
        "{error}"
    );

    let broker = [("process.roles", "broker"), voters, ("node.id", "4")];
    let with = |key, value| config(&[broker[0], broker[1], broker[2], (key, value)]);
    let error = with("listeners", "PLAINTEXT://:9092").expect_err("no name");
    assert!(
        error.contains("name of the controllers' listener"),
        "{error}"
    );
    assert!(with("controller.listener.names", "CONTROLLER").is_ok());
    let error = with("controller.listener.names", "PLAINTEXT").expect_err("its own listener");
    assert!(error.contains("no name of `listeners`"), "{error}");
}

#[test]
fn values_that_contradict_are_refused() {
    for (key, value) in [
        ("socket.send.buffer.bytes", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "host"),
        ("max.connections.per.ip.overrides", "host:-1"),
        ("offsets.topic.compression.codec", "5"),
        ("log.retention.ms", "0"),
        ("log.retention.hours", "-2"),
        ("log.roll.ms", "0"),
        ("log.dirs", ""),
        ("http.listeners", "nowhere"),
        ("http.listeners", "[::1:80"),
    ] {
        let error = config(&[(key, value)]).expect_err(key);
        assert!(
            error.starts_with(&format!("invalid value '{value}' for {key}: ")),
            "{error}"
        );
    }
    let overrides = config(&[
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "127.0.0.1:3, ::1:2"),
    ]);
    let overrides = overrides
        .expect("someone gets in")
        .max_connections_per_ip_overrides;
    assert_eq!(
        overrides,
        BTreeMap::from([
            ([127, 0, 0, 1].into(), 3),
            (IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), 2)
        ])
    );
    let http = config(&[("http.listeners", "127.0.0.1:9644, http://[::1]:0, :8080")])
        .expect("three")
        .http_listeners;
    let http: Vec<_> = http
        .iter()
        .map(|address| (address.host.as_str(), address.port))
        .collect();
    assert_eq!(http, [("127.0.0.1", 9644), ("::1", 0), ("", 8080)]);
}

#[test]
fn keys_that_may_change_at_run_time_are_followed_at_run_time() {
    const FOLLOWED_BY_A_PART: [&str; 7] = [
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "log.cleaner.io.max.bytes.per.second",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.replica.fetchers",
    ];
    let synonyms: Vec<&str> = highwater_storage::TOPIC_CONFIG_KEYS
        .iter()
        .flat_map(|key| key.synonyms.iter().map(|synonym| synonym.name))
        .collect();
    for key in keys::all().filter(|key| key.support == Support::Active) {
        let followed = synonyms.contains(&key.name) || FOLLOWED_BY_A_PART.contains(&key.name);
        let dynamic = key.update_mode != UpdateMode::ReadOnly;
        assert!(
            !dynamic || followed,
            "{} is not followed at run time",
            key.name
        );
    }
}

#[test]
fn the_configuration_that_apache_kafka_ships_is_taken_as_it_is() {
    let text = include_bytes!("../../tests/cli/kraft_single_node.properties");
    let entries = super::super::parse_properties(text).expect("well-formed");
    let config = StaticConfig::from_entries(entries).expect("acceptable entries");
    assert_eq!(config.notices(), []);
    let config = BrokerConfig::from_static(&config).expect("a configuration");
    let listeners: Vec<_> = config
        .listeners
        .iter()
        .map(|listener| {
            (
                listener.name.as_str(),
                listener.port,
                listener.advertised_host.as_str(),
            )
        })
        .collect();
    assert_eq!(listeners, [("PLAINTEXT", 9092, "localhost")]);
    assert_eq!(config.controller_listeners[0].name, "CONTROLLER");
    assert!(config.quorum.is_quorum_of_one());
    assert_eq!(config.log_dirs, [PathBuf::from("/tmp/kraft-combined-logs")]);
}

#[test]
fn the_metadata_log_lies_in_the_first_data_directory() {
    let dirs = ("log.dirs", "/a,/b");
    assert!(config(&[dirs, ("metadata.log.dir", "/a")]).is_ok());
    let error = config(&[dirs, ("metadata.log.dir", "/b")]).expect_err("another place");
    assert!(
        error.contains("the metadata log lies in the first of log.dirs"),
        "{error}"
    );
}

#[test]
fn the_rate_of_the_cleaner_reaches_the_logs() {
    const KEY: &str = "log.cleaner.io.max.bytes.per.second";
    let rate = |entries: &[(&str, &str)]| {
        config(entries).map(|config| config.log_manager().cleaner_io_max_bytes_per_second)
    };
    assert_eq!(rate(&[]), Ok(f64::MAX));
    assert_eq!(rate(&[(KEY, "1.5e6")]), Ok(1_500_000.0));
    for bad in ["0", "-1", "0.5", "fast"] {
        let error = rate(&[(KEY, bad)]).expect_err(bad);
        assert!(error.contains(KEY), "{error}");
    }
}
