//! kafka-console-producer.sh and kafka-console-consumer.sh.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use compat_tests::cluster::for_each_shared_cluster;
use compat_tests::process::eventually;
use compat_tests::{java_tools, own_tools};

use super::frame::{both, both_plain, create_both, file_of, ours, path};

const LINES: &[u8] = "h1:v1,h2:NULL\tk1\tvalue one\nNULL\tk2\tNULL\nh:\tNULL\té\"q\\ \n".as_bytes();
const PARSED: &[&str] = &[
    "--reader-property",
    "parse.key=true",
    "--reader-property",
    "parse.headers=true",
    "--reader-property",
    "null.marker=NULL",
];
const EVERYTHING: &[&str] = &[
    "--formatter-property",
    "print.key=true",
    "--formatter-property",
    "print.headers=true",
    "--formatter-property",
    "print.partition=true",
    "--formatter-property",
    "print.offset=true",
];

#[test]
fn lines_become_records_alike() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "con-@", &[&[1, 2, 3], &[2, 3, 1]]);
        let bootstrap = cluster.bootstrap();
        let to = ["--bootstrap-server", &bootstrap, "--topic", "con-@"];
        for options in [
            &[][..],
            &["--sync"],
            &["--compression-codec"],
            &["--compression-codec", "zstd"],
            &["--request-required-acks", "1", "--batch-size", "1"],
            &["--request-required-acks", "0"],
            &["--command-property", "acks=0", "--sync"],
        ] {
            let args = [&to[..], PARSED, options].concat();
            both_plain("console-producer", &args, LINES).same();
        }
        // What each has written, read by each.
        for topic in ["con-viajava", "con-viaours"] {
            let read = [
                &["--topic", topic, "--from-beginning", "--max-messages", "21"],
                EVERYTHING,
            ]
            .concat();
            let printed = both(cluster, "console-consumer", &read).same_lines();
            assert_eq!(printed.len(), 21, "{printed:?}");
        }
        let read = |topic: &str, partition: &str| {
            let args = [
                "--topic",
                topic,
                "--partition",
                partition,
                "--from-beginning",
            ];
            let args = [&args[..], &["--timeout-ms", "1000"], EVERYTHING].concat();
            ours(cluster, "console-consumer", &args)
        };
        // Keys are hashed alike; what has none goes anywhere.
        let keyed = |partition: &str, topic: &str| -> Vec<String> {
            let text = read(topic, partition);
            let values = text.lines().filter(|line| line.contains("\tk1\t"));
            values
                .map(|line| line.split("\tk1\t").last().unwrap_or_default().to_owned())
                .collect()
        };
        for partition in ["0", "1"] {
            assert_eq!(
                keyed(partition, "con-viajava"),
                keyed(partition, "con-viaours")
            );
        }
        let explicit = ["--command-property", "enable.idempotence=true"];
        for acks in ["0", "1"] {
            let args = [&to[..], &explicit, &["--request-required-acks", acks]].concat();
            both_plain("console-producer", &args, b"").refused();
        }
        for args in [
            &["--reader-property", "parse.key=true"][..],
            &["--reader-property", "headers.separator=:"],
        ] {
            let args = [&to[..], args].concat();
            both_plain("console-producer", &args, b"no separator\n").refused_with("separator");
        }
    });
}

#[test]
fn lines_before_a_wrong_one_are_sent() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "part-@", &[&[1, 2, 3]]);
        let bootstrap = cluster.bootstrap();
        let to = ["--bootstrap-server", &bootstrap, "--topic", "part-@"];
        let args = [&to[..], &["--reader-property", "parse.key=true"]].concat();
        let lines = b"k\tone\nk\ttwo\nwrong\nk\tthree\n";
        both_plain("console-producer", &args, lines).refused_with("separator");
        let ends = both(cluster, "get-offsets", &["--topic", "part-@"]).same();
        assert_eq!(ends, "part-@:0:2\n");
        let read = ["--topic", "part-@", "--from-beginning"];
        let all = ["--max-messages", "-1", "--timeout-ms", "3000"];
        let printed = both(cluster, "console-consumer", &[&read[..], &all].concat()).same();
        assert_eq!(printed, "one\ntwo\n");
    });
}

#[test]
fn records_become_lines_alike() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("con-read", &[&[1, 2, 3]], &[]);
        let bootstrap = cluster.bootstrap();
        let args = ["--bootstrap-server", &bootstrap, "--topic", "con-read"];
        let args = [&args[..], PARSED].concat();
        let run = own_tools::run("console-producer", &args, LINES).unwrap();
        assert_eq!(run.status, 0, "{run:?}");
        let first = ["--topic", "con-read", "--partition", "0", "--offset", "0"];
        let read = |args: &[&str]| {
            let args = [&first[..], args].concat();
            both(cluster, "console-consumer", &args)
        };
        let serialization = "org.apache.kafka.common.serialization";
        let bytes = format!("{serialization}.BytesDeserializer");
        let string = format!("{serialization}.StringDeserializer");
        let long = format!("{serialization}.LongDeserializer");
        for args in [
            &[][..],
            &["--formatter-property", "print.timestamp=true"],
            &[
                "--formatter-property",
                "print.key=true",
                "--formatter-property",
                "key.separator= = ",
            ],
            &[
                "--property",
                "print.headers=true",
                "--property",
                "headers.separator=|",
            ],
            &[
                "--formatter-property",
                "null.literal=nil",
                "--formatter-property",
                "line.separator=;",
            ],
            &[
                "--formatter-property",
                "print.epoch=true",
                "--formatter-property",
                "print.delivery=true",
            ],
            &["--formatter-property", "print.value=false"],
            &["--value-deserializer", &bytes],
            &[
                "--key-deserializer",
                &string,
                "--formatter-property",
                "print.key=true",
            ],
            &[
                "--formatter",
                "org.apache.kafka.tools.consumer.NoOpMessageFormatter",
            ],
            &[
                "--formatter",
                "org.apache.kafka.tools.consumer.LoggingMessageFormatter",
            ],
            &["--isolation-level", "read_committed"],
        ] {
            read(&[args, &["--max-messages", "3"]].concat()).same();
        }
        read(&["--max-messages", "1", "--value-deserializer", &long])
            .refused_with("Processed a total of 1 messages");
        let skipping = ["--skip-message-on-error", "--value-deserializer", &long];
        read(&[&skipping[..], &["--max-messages", "3"]].concat()).same();
        read(&["--timeout-ms", "500"]).same();
        for args in [
            &["--topic", "con-read", "--include", "con-read"][..],
            &["--topic", "con-read", "--partition", "0", "--offset", "-1"],
            &["--topic", "con-read", "--offset", "1"],
            &[
                "--topic",
                "con-read",
                "--group",
                "a",
                "--command-property",
                "group.id=b",
            ],
            &["--topic", "con-read", "--partition", "0", "--group", "a"],
        ] {
            both(cluster, "console-consumer", args).refused_with("");
        }
    });
}

#[test]
fn a_group_goes_on_where_it_was() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "con-group-@", &[&[1, 2], &[2, 3]]);
        let bootstrap = cluster.bootstrap();
        for topic in ["con-group-viajava", "con-group-viaours"] {
            let args = ["--bootstrap-server", &bootstrap, "--topic", topic];
            // Keys, so that each partition has some: what is not read yet need not have an offset to commit.
            let args = [&args[..], &["--reader-property", "parse.key=true"]].concat();
            let lines: String = (0..10)
                .map(|number| format!("{number}\t{number}\n"))
                .collect();
            let run = own_tools::run("console-producer", &args, lines.as_bytes()).unwrap();
            assert_eq!(run.status, 0, "{run:?}");
        }
        let read = |count: &str| {
            let args = [
                "--include",
                "con-group-@",
                "--group",
                "con-group-@",
                "--from-beginning",
            ];
            let args = [
                &args[..],
                &["--max-messages", count, "--timeout-ms", "20000"],
            ]
            .concat();
            both(cluster, "console-consumer", &args)
        };
        let count = |text: &str| text.lines().count().to_string();
        assert_eq!(read("4").same_after(count), "4");
        assert_eq!(read("6").same_after(count), "6");
        let args = ["--describe", "--group", "con-group-@"];
        let lag = |text: &str| {
            let rows = java_tools::rows(text).into_iter();
            let rows = rows.filter(|row| row[0] == "con-group-@");
            let lags: Vec<i64> = rows.map(|row| row[5].parse().unwrap()).collect();
            format!("{lags:?}")
        };
        assert_eq!(
            both(cluster, "consumer-groups", &args).same_after(lag),
            "[0, 0]"
        );
    });
}

#[test]
fn committed_offsets_are_printed_alike() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("con-offsets", &[&[1, 2]], &[]);
        let args = [
            "--reset-offsets",
            "--group",
            "con-offsets",
            "--topic",
            "con-offsets",
        ];
        let args = [&args[..], &["--to-latest", "--execute"]].concat();
        ours(cluster, "consumer-groups", &args);
        for formatter in ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"] {
            let class = format!("org.apache.kafka.tools.consumer.{formatter}");
            let args = ["--topic", "__consumer_offsets", "--from-beginning"];
            let args = [&args[..], &["--timeout-ms", "3000", "--formatter", &class]].concat();
            // Other tests write there too.
            let own = |text: &str| -> String {
                let records = text.replace("}{\"key\"", "}\n{\"key\"");
                let records = records.lines().filter(|line| line.contains("con-offsets"));
                records.collect::<Vec<_>>().join("\n")
            };
            let printed = both(cluster, "console-consumer", &args).same_after(own);
            if formatter == "OffsetsMessageFormatter" {
                assert!(printed.contains("\"offset\":0"), "{printed}");
            }
        }
    });
}

/// A line that is too large is told and left out; what comes before and after it is stored.
#[test]
fn odd_lines_become_records_alike() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "con-odd-@", &[&[1]]);
        let bootstrap = cluster.bootstrap();
        let to = ["--bootstrap-server", &bootstrap, "--topic", "con-odd-@"];
        let large = "x".repeat(2_000_000);
        let lines = format!("before\n{large}\n\r\nafter\r\n\n no end").into_bytes();
        let lines = [&lines[..], b"\xff\xfe\0"].concat();
        both_plain("console-producer", &to, &lines).same();
        let args = [&to[..], &["--sync"]].concat();
        both_plain("console-producer", &args, &lines).refused_with("The message is 2000088 bytes");
        // A file may be meant for another client too.
        let file = file_of("no.such.property=1\nmax.poll.records=5\n");
        let args = [&to[..], &["--command-config", path(&file)]].concat();
        both_plain("console-producer", &args, b"known\n").same();
        // What cannot be sent is told, and no failure unless each record is waited for.
        let wrong = ["--bootstrap-server", &bootstrap, "--topic", "con-\u{f6}dd"];
        both_plain("console-producer", &wrong, b"1\n2\n").same();
        let args = [&wrong[..], &["--sync"]].concat();
        both_plain("console-producer", &args, b"1\n2\n").refused_with("InvalidTopicException");
        let args = ["--topic", "con-odd-@", "--from-beginning"];
        let args = [&args[..], &["--timeout-ms", "3000"]].concat();
        let printed = both(cluster, "console-consumer", &args).same();
        let after = "after\n\n no end\u{fffd}\u{fffd}\0\n";
        assert_eq!(printed, format!("before\n\n{after}before\nknown\n"));
    });
}

/// What was typed last waits for more to come; it is sent before a signal ends the tool.
#[test]
fn what_was_read_is_sent_before_a_signal_ends_the_producer() {
    for_each_shared_cluster(|cluster| {
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            let topic = format!("con-signal-{code}");
            let bootstrap = cluster.bootstrap();
            let mut child = own_tools::command("console-producer")
                .unwrap()
                .args(["--bootstrap-server", &bootstrap, "--topic", &topic])
                .args(["--timeout", "600000"])
                .args(["--command-property", "delivery.timeout.ms=900000"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            input.write_all(b"one\n").unwrap();
            // The topic is created for the first line.
            eventually(Duration::from_secs(30), "the topic", || {
                let list = ["--list", "--topic", topic.as_str()];
                (ours(cluster, "topics", &list) == format!("{topic}\n")).then_some(())
            });
            std::thread::sleep(Duration::from_secs(1));
            let pid = child.id().to_string();
            let sent = Command::new("kill").args(["-s", signal, &pid]).status();
            assert!(sent.unwrap().success());
            let status = eventually(Duration::from_secs(30), "the end", || {
                child.try_wait().unwrap()
            });
            assert_eq!(status.code(), Some(code), "{signal}");
            let args = ["--topic", topic.as_str(), "--from-beginning"];
            let args = [&args[..], &["--max-messages", "1", "--timeout-ms", "20000"]].concat();
            assert_eq!(ours(cluster, "console-consumer", &args), "one\n");
        }
    });
}
