//! kafka-consumer-groups.sh and kafka-groups.sh.

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::clients::Client;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};

use super::rows;
use crate::support::{Batch, Member, balanced, create_topic, produce, tool, try_tool, unique};

/// A topic of two partitions with five and three records.
fn topic_with_records(broker: &Broker) -> String {
    let topic = unique("groups-tool");
    create_topic(broker, &topic, 2, &[]);
    produce(Client::FranzGo, broker, Batch::new(&topic, 0, 5));
    produce(
        Client::FranzGo,
        broker,
        Batch {
            partition: 1,
            ..Batch::new(&topic, 5, 3)
        },
    );
    topic
}

fn consume_all(broker: &Broker, topic: &str, group: &str) {
    let member = Member::join(Client::FranzGo, broker, topic, group);
    compat_tests::process::eventually(crate::support::LIMIT, "8 records", || {
        (member.said().records.len() == 8).then_some(())
    });
    member.leave();
}

#[test]
fn empty_group_is_described_reset_and_deleted() {
    for_each_broker(|broker| {
        let topic = topic_with_records(broker);
        let group = unique("tool-group");
        consume_all(broker, &topic, &group);
        // Remarks go to the other output.
        let groups = |args: &[&str]| {
            let run = try_tool(
                broker,
                "consumer-groups",
                &[args, &["--group", &group]].concat(),
                b"",
            );
            assert_eq!(run.status, 0, "{args:?}: {run:?}");
            format!("{}{}", run.err, run.out)
        };
        let header =
            "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID";
        let first = format!("Consumer group '{group}' has no active members.");
        let offsets = |rows_of: [[&str; 4]; 2]| {
            let mut expected = vec![first.clone(), header.to_owned()];
            expected.extend(rows_of.map(|row| format!("{group} {topic} {} - - -", row.join(" "))));
            expected
        };
        let table = |args: &[&str]| {
            rows(&groups(args))
                .iter()
                .map(|row| row.join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            table(&["--describe"]),
            offsets([["0", "5", "5", "0"], ["1", "3", "3", "0"]])
        );
        let state = table(&["--describe", "--state"]);
        assert_eq!(
            state[1..],
            [
                "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS".to_owned(),
                format!("{group} {} (1) - Empty 0", broker.bootstrap())
            ]
        );
        assert_eq!(
            table(&["--describe", "--members"]),
            [
                first.clone(),
                "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS".to_owned()
            ]
        );

        let mut dry = table(&[
            "--reset-offsets",
            "--to-earliest",
            "--all-topics",
            "--dry-run",
        ]);
        dry[1..].sort();
        let reset = |offsets: &[(i32, i64)]| {
            let mut rows = vec!["GROUP TOPIC PARTITION NEW-OFFSET".to_owned()];
            rows.extend(
                offsets
                    .iter()
                    .map(|(partition, offset)| format!("{group} {topic} {partition} {offset}")),
            );
            rows
        };
        assert_eq!(dry, reset(&[(0, 0), (1, 0)]));
        assert_eq!(
            table(&["--describe"]),
            offsets([["0", "5", "5", "0"], ["1", "3", "3", "0"]]),
            "a dry run"
        );
        let mut executed = table(&[
            "--reset-offsets",
            "--to-earliest",
            "--topic",
            &topic,
            "--execute",
        ]);
        executed[1..].sort();
        assert_eq!(executed, dry);
        let zero = format!("{topic}:0");
        for (how, offset) in [
            ("--shift-by=3", 3),
            ("--shift-by=-1", 2),
            ("--to-offset=100", 5),
            ("--to-latest", 5),
        ] {
            let moved = table(&["--reset-offsets", how, "--topic", &zero, "--execute"]);
            assert_eq!(moved, reset(&[(0, offset)]), "{how}");
        }
        let moved = table(&[
            "--reset-offsets",
            "--to-datetime",
            "2020-01-01T00:00:00.000",
            "--topic",
            &zero,
            "--execute",
        ]);
        assert_eq!(moved, reset(&[(0, 0)]));
        assert_eq!(
            table(&["--describe"]),
            offsets([["0", "0", "5", "5"], ["1", "0", "3", "3"]])
        );

        let deleted = table(&["--delete-offsets", "--topic", &topic]);
        assert_eq!(
            deleted,
            [
                format!("Request succeeded for deleting offsets from group {group}."),
                "TOPIC PARTITION STATUS".to_owned(),
                format!("{topic} 0 Successful"),
                format!("{topic} 1 Successful"),
            ]
        );
        assert_eq!(table(&["--describe"]), [first]);
        assert_eq!(
            table(&["--delete"]),
            [format!(
                "Deletion of requested consumer groups ('{group}') was successful."
            )]
        );
        let described = tool_output(broker, &["--describe", "--group", &group]);
        let gone = format!("GroupIdNotFoundException: Group {group} not found.");
        assert!(described.contains(&gone), "{described}");
        let again = tool_output(broker, &["--delete", "--group", &group]);
        assert!(
            again.contains(&format!("* Group '{group}' could not be deleted due to")),
            "{again}"
        );
    });
}

/// What the tool printed whatever its exit status: deleting an unknown group is reported in text only.
fn tool_output(broker: &Broker, args: &[&str]) -> String {
    let run = try_tool(broker, "consumer-groups", args, b"");
    format!("{}{}", run.out, run.err)
}

#[test]
fn live_group_shows_its_members_and_refuses_changes() {
    for_each_broker(|broker| {
        let topic = topic_with_records(broker);
        let group = unique("tool-live");
        let members = [Member::join(Client::Java, broker, &topic, &group)];
        balanced(&members, 2);
        let groups = |args: &[&str]| {
            tool(
                broker,
                "consumer-groups",
                &[args, &["--group", &group]].concat(),
            )
        };
        let described = groups(&["--describe"]);
        let table = rows(&described);
        assert_eq!(table.len(), 3, "{described}");
        for row in &table[1..] {
            assert_eq!(
                (row[0], row[1], row[7]),
                (group.as_str(), topic.as_str(), "/127.0.0.1"),
                "{described}"
            );
            assert!(row[6].starts_with("consumer-"), "{described}");
        }
        let members_text = groups(&["--describe", "--members", "--verbose"]);
        assert!(
            rows(&members_text)[1]
                .join(" ")
                .contains(&format!(" 2 - {topic}:0,1 ")),
            "{members_text}"
        );
        let state_text = groups(&["--describe", "--state"]);
        assert!(
            rows(&state_text)[1].join(" ").ends_with("range Stable 1"),
            "{state_text}"
        );

        let reset = [
            "--reset-offsets",
            "--to-earliest",
            "--topic",
            &topic,
            "--execute",
            "--group",
            &group,
        ];
        let output = tool_output(broker, &reset);
        let inactive = "Assignments can only be reset if the group";
        assert!(output.contains(inactive), "{output}");
        let output = tool_output(broker, &["--delete", "--group", &group]);
        assert!(output.contains("GroupNotEmptyException"), "{output}");
        let output = tool_output(
            broker,
            &["--delete-offsets", "--group", &group, "--topic", &topic],
        );
        assert!(
            output.contains("GroupSubscribedToTopicException"),
            "{output}"
        );
        for member in members {
            member.leave();
        }
    });
}

#[test]
fn groups_are_listed_with_their_state_and_type() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let topic = topic_with_records(broker);
        consume_all(broker, &topic, "listed");
        assert_eq!(tool(broker, "consumer-groups", &["--list"]), "listed\n");
        let listed = tool(broker, "consumer-groups", &["--list", "--state"]);
        assert_eq!(rows(&listed), [["GROUP", "STATE"], ["listed", "Empty"]]);
        let listed = tool(broker, "consumer-groups", &["--list", "--state", "stable"]);
        assert_eq!(rows(&listed), [["GROUP", "STATE"]]);
        let listed = tool(broker, "consumer-groups", &["--list", "--type"]);
        assert_eq!(rows(&listed), [["GROUP", "TYPE"], ["listed", "Classic"]]);
        let listed = tool(broker, "groups", &["--list"]);
        assert_eq!(
            rows(&listed),
            [
                ["GROUP", "TYPE", "PROTOCOL"],
                ["listed", "Classic", "consumer"]
            ]
        );
    });
}
