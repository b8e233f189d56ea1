//! The same requests to both brokers, compared field by field.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use compat_tests::broker::{Broker, BrokerKind, BrokerOptions};
use compat_tests::each_broker::selected_brokers;
use kafka_protocol::messages::ApiKey;
use regex::Regex;

use crate::requests::{Subject, variants};
use crate::support::{
    batch, connect, create_topic, new_producer, produce_ok, wait_for_coordinator, wait_until_served,
};
use crate::versions::SERVED;

/// Where the two may differ: API, name of the request (or a `*`), field (or a `*`), and why.
const KNOWN_DIFFERENCES: &[(ApiKey, &str, &str, &str)] = &[
    (
        ApiKey::ApiVersions,
        "*",
        "*",
        "each broker lists its own APIs and features; versions.rs looks at them",
    ),
    (
        ApiKey::DescribeProducers,
        "unknown partition",
        "error_message",
        "ours says so in words",
    ),
    (
        ApiKey::DescribeConfigs,
        "broker, some",
        "value: Some(\"3000\")",
        "a single node's default of group.initial.rebalance.delay.ms is 0 in ours",
    ),
    (
        ApiKey::DescribeConfigs,
        "*",
        "highwater.observer.replicas",
        "observers are ours alone",
    ),
    (
        ApiKey::DescribeConfigs,
        "*",
        "Brokers whose replicas follow and serve reads",
        "the documentation of highwater.observer.replicas",
    ),
    (
        ApiKey::CreateTopics,
        "*",
        "highwater.observer.replicas",
        "observers are ours alone",
    ),
    (
        ApiKey::DescribeQuorum,
        "*",
        "*",
        "offsets, times and directory ids of the quorum are each broker's own",
    ),
    (
        ApiKey::DescribeLogDirs,
        "all",
        "partition_size",
        "internal topics hold records of other sizes",
    ),
];

/// Makes what the requests are about.
pub(crate) fn subject(broker: &Broker, name: &str) -> Subject {
    let topic = format!("{name}-topic");
    let topic_id = create_topic(broker, &topic, 2);
    for (empty, partitions) in [("compare-empty", 1), ("compare-grows", 1)] {
        create_topic(broker, empty, partitions);
    }
    let mut connection = connect(broker);
    for _ in 0..3 {
        produce_ok(&mut connection, &topic, 0, batch(2).encode());
    }
    let group = format!("{name}-group");
    wait_for_coordinator(broker, &group);
    wait_until_served(broker, &topic, 2);
    new_producer(&mut connection);
    Subject {
        topic,
        topic_id,
        group,
    }
}

/// Puts a fixed word in place of what differs from run to run; one field a piece.
fn normalised(reply: &str) -> Vec<String> {
    static REPLACED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            // No text of an error is compared, only whether there is one.
            (
                r#"error_message: Some\("([^"\\]|\\.)*"\)"#,
                "error_message: Some(text)",
            ),
            (
                r#"batch_index_error_message: Some\("([^"\\]|\\.)*"\)"#,
                "batch_index_error_message: Some(text)",
            ),
            (
                "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                "UUID",
            ),
            (r#"cluster_id: (Some\()?"[^"]*""#, "cluster_id: CLUSTER"),
            (r#"log_dir: "[^"]*""#, "log_dir: DIR"),
            ("(total|usable)_bytes: [0-9]+", "${1}_bytes: SOME"),
            ("port: [1-9][0-9]*", "port: PORT"),
            ("throttle_time_ms: [0-9]+", "throttle_time_ms: ANY"),
            ("session_id: [1-9-][0-9]*", "session_id: SESSION"),
            (r"producer_id: ProducerId\([0-9]+\)", "producer_id: SOME"),
            (r"(, )?unknown_tagged_fields: \{\}", ""),
        ]
        .into_iter()
        .map(|(pattern, with)| (Regex::new(pattern).expect("a valid pattern"), with))
        .collect()
    });
    let mut text = reply.to_owned();
    for (pattern, with) in REPLACED.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    text.replace(", ", ",\n")
        .replace("[", "[\n")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The answers of one broker: API, version, request, fields.
fn answers(broker: &Broker) -> Vec<(ApiKey, i16, &'static str, Vec<String>)> {
    let on = subject(broker, "compare");
    let mut connection = connect(broker);
    let mut out = Vec::new();
    for (key, min, max) in SERVED {
        for version in *min..=*max {
            for (name, request) in variants(*key, version, &on) {
                let what = format!("{} {key:?} v{version} {name}", broker.kind());
                connection.send_kind(*key, version, &request).expect(&what);
                let frame = connection.read_frame().expect(&what).expect(&what);
                let reply = frame.decode_kind(*key, version).expect(&what);
                out.push((*key, version, name, normalised(&format!("{reply:?}"))));
            }
        }
    }
    out
}

/// Lines that one side has and the other has not, as sets: the order of topics, groups and
/// configuration entries is free in the protocol.
fn difference(ours: &[String], theirs: &[String]) -> Vec<String> {
    let (a, b): (BTreeSet<_>, BTreeSet<_>) = (ours.iter().collect(), theirs.iter().collect());
    let mut out: Vec<String> = a
        .difference(&b)
        .map(|line| format!("  ours   {line}"))
        .collect();
    out.extend(b.difference(&a).map(|line| format!("  theirs {line}")));
    if out.is_empty() && ours.len() != theirs.len() {
        out.push(format!(
            "  ours has {} fields, theirs {}",
            ours.len(),
            theirs.len()
        ));
    }
    out
}

fn is_known(key: ApiKey, name: &str, line: &str) -> bool {
    KNOWN_DIFFERENCES.iter().any(|(k, n, field, _)| {
        *k == key && (*n == "*" || *n == name) && (*field == "*" || line.contains(field))
    })
}

#[test]
fn both_brokers_answer_the_same_field_by_field() {
    if selected_brokers().len() < 2 {
        eprintln!("one broker alone was selected: nothing to compare");
        return;
    }
    let options = BrokerOptions::new();
    let start = |kind: BrokerKind| Broker::start(kind, options.clone()).expect("the broker starts");
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| answers(&start(BrokerKind::ApacheKafka)));
        let ours = scope.spawn(|| answers(&start(BrokerKind::Highwater)));
        (
            ours.join().expect("our answers"),
            theirs.join().expect("their answers"),
        )
    });
    assert_eq!(ours.len(), theirs.len());
    let mut found = Vec::new();
    for ((key, version, name, ours), (.., theirs)) in ours.iter().zip(&theirs) {
        let lines: Vec<String> = difference(ours, theirs)
            .into_iter()
            .filter(|line| !is_known(*key, name, line))
            .collect();
        if !lines.is_empty() {
            found.push(format!("{key:?} v{version}, {name}:\n{}", lines.join("\n")));
        }
    }
    assert!(
        found.is_empty(),
        "{} answers differ:\n{}",
        found.len(),
        found.join("\n")
    );
}
