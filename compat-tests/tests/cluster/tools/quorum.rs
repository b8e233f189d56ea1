//! kafka-metadata-quorum.sh.

use compat_tests::cluster::{Cluster, ClusterOptions, Shape, for_each_cluster};
use compat_tests::java_tools::{ToolRun, blank, rows, run};
use compat_tests::process::eventually;

use super::tool;

fn describe(cluster: &Cluster, what: &str) -> String {
    tool(cluster, "metadata-quorum", &["describe", what])
}

/// The value behind `key:` in what `--status` prints.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.strip_prefix(':'))
        .unwrap_or_else(|| panic!("no {key} in {status}"))
        .trim()
}

/// The objects of a printed list, sorted: Apache Kafka's order is that of a hash table.
fn objects(list: &str) -> Vec<&str> {
    let inner = list.trim_start_matches("[{").trim_end_matches("}]");
    let mut objects: Vec<&str> = inner.split("}, {").collect();
    objects.sort_unstable();
    objects
}

#[test]
fn status_and_replication_show_voters_and_observers() {
    let shape = Shape::Separate {
        controllers: 3,
        brokers: 2,
    };
    let options = ClusterOptions::new().shape(shape);
    for_each_cluster(&options, |cluster| {
        let status = describe(cluster, "--status");
        let keys: Vec<&str> = status
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, _)| key)
            .collect();
        assert_eq!(
            keys,
            [
                "ClusterId",
                "LeaderId",
                "LeaderEpoch",
                "HighWatermark",
                "MaxFollowerLag",
                "MaxFollowerLagTimeMs",
                "CurrentVoters",
                "CurrentObservers"
            ]
        );
        let quorum = cluster.quorum(1).unwrap();
        assert_eq!(value(&status, "LeaderId"), quorum.leader.to_string());
        assert_eq!(value(&status, "LeaderEpoch"), quorum.epoch.to_string());
        let voters = [3001, 3002, 3003].map(|id| {
            let address = cluster.controller_address(id).unwrap();
            format!("\"id\": {id}, \"endpoints\": [\"CONTROLLER://{address}\"]")
        });
        assert_eq!(objects(value(&status, "CurrentVoters")), voters);
        let observers = blank(value(&status, "CurrentObservers"), &["\"directoryId\": "]);
        assert_eq!(
            objects(&observers),
            [
                "\"id\": 1, \"directoryId\": *",
                "\"id\": 2, \"directoryId\": *"
            ]
        );

        // Everybody follows.
        let table = eventually(Cluster::PATIENCE, "all are near the end", || {
            let table = describe(cluster, "--replication");
            let near = rows(&table)[1..]
                .iter()
                .all(|row| row[3].parse::<i64>().is_ok_and(|lag| lag < 20));
            near.then_some(table)
        });
        let mut rows = rows(&table);
        assert_eq!(
            rows.remove(0),
            [
                "NodeId",
                "DirectoryId",
                "LogEndOffset",
                "Lag",
                "LastFetchTimestamp",
                "LastCaughtUpTimestamp",
                "Status"
            ]
        );
        let mut roles: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[6])).collect();
        roles.sort_unstable();
        let leader = quorum.leader.to_string();
        let voter = |id| (id, if id == leader { "Leader" } else { "Follower" });
        assert_eq!(
            roles,
            [
                ("1", "Observer"),
                ("2", "Observer"),
                voter("3001"),
                voter("3002"),
                voter("3003")
            ]
        );

        // The controllers answer the same themselves.
        let controllers = cluster.bootstrap_controllers();
        let args = [
            "--bootstrap-controller",
            &controllers,
            "describe",
            "--status",
        ];
        let ToolRun {
            status: code,
            out,
            err,
        } = run("metadata-quorum", &args, b"").unwrap();
        assert_eq!(code, 0, "{err}");
        for key in ["ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters"] {
            assert_eq!(value(&out, key), value(&status, key));
        }
    });
}
