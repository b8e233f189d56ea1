//! kafka-get-offsets.sh and kafka-delete-records.sh.

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::java_tools;

use super::frame::{both, create_both, file_of, path};

fn produce(cluster: &Cluster, topic: &str, count: usize) {
    let lines = "a record\n".repeat(count);
    let bootstrap = cluster.bootstrap();
    let args = ["--bootstrap-server", bootstrap.as_str(), "--topic", topic];
    let run = java_tools::run("console-producer", &args, lines.as_bytes()).unwrap();
    assert_eq!(run.status, 0, "{run:?}");
}

#[test]
fn offsets_are_the_same_for_every_time_and_filter() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("go-a", &[&[1, 2], &[2, 3], &[3, 1]], &[]);
        cluster.create_topic("go-b", &[&[2]], &[]);
        produce(cluster, "go-b", 7);
        let offsets = |args: &[&str]| both(cluster, "get-offsets", args);
        assert_eq!(offsets(&["--topic", "go-b"]).same(), "go-b:0:7\n");
        for time in [
            "-1",
            "latest",
            "-2",
            "earliest",
            "-3",
            "max-timestamp",
            "-4",
            "-5",
            "latest-tiered",
            "0",
            "9999999999999",
        ] {
            offsets(&["--topic", "go-.*", "--time", time]).same();
        }
        offsets(&["--topic-partitions", "go-a:0-2,go-b:0"]).same();
        offsets(&[
            "--topic-partitions",
            "go-.*:1-,go-b:-1",
            "--exclude-internal-topics",
        ])
        .same();
        offsets(&["--topic", "go-a", "--partitions", "0,2"]).same();
        for args in [
            &["--topic", "nothing"][..],
            &["--topic", "go-a", "--partitions", "7"],
            &["--topic", "go-a", "--partitions", "x"],
            &["--topic", "go-a", "--time", "noon"],
            &["--topic", "go-a", "--topic-partitions", "go-a"],
        ] {
            offsets(args).refused();
        }
    });
}

#[test]
fn records_are_deleted_up_to_an_offset() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "dr-@", &[&[1, 2], &[2, 3]]);
        for topic in ["dr-viajava", "dr-viaours"] {
            produce(cluster, topic, 20);
        }
        let delete = |text: &str| {
            // Both topics of `@` in one file: the second tool finds done what the first did.
            let file = file_of(text);
            both(
                cluster,
                "delete-records",
                &["--offset-json-file", path(&file)],
            )
        };
        let entry = |topic: &str, partition: i32, offset: i64| {
            format!(r#"{{"topic":"{topic}","partition":{partition},"offset":{offset}}}"#)
        };
        let file =
            |entries: &[String]| format!(r#"{{"partitions":[{}],"version":1}}"#, entries.join(","));
        let printed = delete(&file(&[
            entry("dr-viajava", 0, 0),
            entry("dr-viajava", 1, -1),
        ]))
        .same_lines();
        assert_eq!(printed.len(), 4, "{printed:?}");
        delete(&file(&[entry("dr-viaours", 0, 9999)])).same();
        delete(&file(&[])).same();
        delete(&file(&[
            entry("dr-viaours", 0, 1),
            entry("dr-viaours", 0, 2),
        ]))
        .refused();
        delete(r#"{"partitions":[],"version":7}"#).refused();
        delete("{}").refused();
    });
}
