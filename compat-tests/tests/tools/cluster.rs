//! kafka-broker-api-versions.sh and kafka-metadata-quorum.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::{both, both_plain, without_numbers};

#[test]
fn versions_of_all_brokers_are_printed() {
    for_each_shared_cluster(|cluster| {
        let printed = both(cluster, "broker-api-versions", &[]).same_lines();
        let brokers = printed
            .iter()
            .filter(|line| line.contains(" (id: "))
            .count();
        assert_eq!(brokers, 3);
    });
}

/// Observers and voters come in the order of a hash table from Apache Kafka, and offsets go on.
#[test]
fn the_quorum_is_described_alike() {
    for_each_shared_cluster(|cluster| {
        let quorum = |args: &[&str]| both(cluster, "metadata-quorum", args);
        quorum(&["describe", "--status"]).same_after(without_numbers);
        let shape = |text: &str| {
            let rows = text.lines().map(|line| {
                let cells: Vec<_> = line.split('\t').map(str::trim_end).collect();
                match cells[0] {
                    "NodeId" => cells.join("|"),
                    _ => format!("{}|{}|{}", cells[0], cells[1], cells[6]),
                }
            });
            rows.collect::<Vec<_>>().join("\n")
        };
        let replicas = quorum(&["describe", "--replication"]).same_after(shape);
        assert_eq!(replicas.lines().count(), 4, "{replicas}");
        let shape = |text: &str| {
            let times = text
                .lines()
                .skip(1)
                .map(|line| line.matches(" ms ago").count());
            format!("{:?}", times.collect::<Vec<_>>())
        };
        quorum(&["describe", "--replication", "--human-readable"]).same_after(shape);
        let remove = [
            "remove-controller",
            "--controller-id",
            "7",
            "--controller-directory-id",
            "AAAAAAAAAAAAAAAAAAAAAQ",
        ];
        quorum(&[&remove[..], &["--dry-run"]].concat()).same();
        quorum(&remove).refused();
        for args in [
            &["describe"][..],
            &["describe", "--status", "--replication"],
            &["describe", "--status", "--human-readable"],
            &["add-controller"],
            &[
                "remove-controller",
                "-i",
                "-7",
                "-d",
                "AAAAAAAAAAAAAAAAAAAAAQ",
            ],
        ] {
            quorum(args).refused();
        }
        let controllers = cluster.bootstrap_controllers();
        let args = [
            "--bootstrap-controller",
            controllers.as_str(),
            "describe",
            "--status",
        ];
        both_plain("metadata-quorum", &args, b"").same_after(without_numbers);
    });
}
