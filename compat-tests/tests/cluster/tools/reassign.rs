//! kafka-reassign-partitions.sh.

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster, for_each_shared_cluster};
use compat_tests::process::eventually;
use serde_json::{Value, json};

use super::{file_of, refused, tool};
use crate::support::{epochs_of_batches, produce_all};

/// A plan that gives partition 0 of a topic these replicas.
fn plan(topic: &str, replicas: &[i32]) -> tempfile::NamedTempFile {
    let partition = json!({"topic": topic, "partition": 0, "replicas": replicas});
    file_of(&json!({"version": 1, "partitions": [partition]}).to_string())
}

/// The data folders of these brokers.
fn folders(cluster: &Cluster, brokers: &[i32]) -> Vec<String> {
    let folders = brokers.iter().map(|&id| cluster.data(id).unwrap());
    folders.map(|folder| folder.display().to_string()).collect()
}

/// Runs the tool with a plan and one more action.
#[track_caller]
fn with_plan(cluster: &Cluster, plan: &tempfile::NamedTempFile, action: &[&str]) -> String {
    let file = ["--reassignment-json-file", plan.path().to_str().unwrap()];
    tool(cluster, "reassign-partitions", &[&file, action].concat())
}

#[track_caller]
fn wait_until_verified(cluster: &Cluster, plan: &tempfile::NamedTempFile, topic: &str) -> String {
    let done = format!("Reassignment of partition {topic}-0 is completed.");
    eventually(Cluster::PATIENCE, &done, || {
        let said = with_plan(cluster, plan, &["--verify"]);
        said.contains(&done).then_some(said)
    })
}

/// What kafka-configs.sh prints of a topic.
fn configs_of(cluster: &Cluster, topic: &str) -> String {
    let what = ["--describe", "--entity-type", "topics", "--entity-name"];
    tool(cluster, "configs", &[&what[..], &[topic]].concat())
}

#[test]
fn plan_is_generated_for_the_brokers_that_are_named() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("generated", &[&[1, 2], &[2, 3], &[3, 1]], &[]);
        let topics = file_of(r#"{"version": 1, "topics": [{"topic": "generated"}]}"#);
        let args = [
            "--topics-to-move-json-file",
            topics.path().to_str().unwrap(),
            "--broker-list",
            "1,3",
            "--generate",
        ];
        let printed = tool(cluster, "reassign-partitions", &args);
        let lines: Vec<&str> = printed.lines().collect();
        let [
            "Current partition replica assignment",
            current,
            "",
            "Proposed partition reassignment configuration",
            proposed,
        ] = lines[..]
        else {
            panic!("{printed}");
        };
        let current: Value = serde_json::from_str(current).unwrap();
        let wanted: Vec<Value> = (0..)
            .zip([[1, 2], [2, 3], [3, 1]])
            .map(|(partition, replicas)| {
                let folders = folders(cluster, &replicas);
                json!({"topic": "generated", "partition": partition, "replicas": replicas, "log_dirs": folders})
            })
            .collect();
        assert_eq!(current, json!({"version": 1, "partitions": wanted}));
        let proposed: Value = serde_json::from_str(proposed).unwrap();
        for partition in proposed["partitions"].as_array().unwrap() {
            let replicas = &partition["replicas"];
            assert!(
                *replicas == json!([1, 3]) || *replicas == json!([3, 1]),
                "{proposed}"
            );
        }
    });
}

#[test]
fn replicas_move_with_their_records_under_a_throttle_that_verify_removes() {
    for_each_shared_cluster(|cluster| {
        let topic = "moved";
        cluster.create_topic(topic, &[&[1, 2]], &[]);
        let mut leader = cluster.connect(1).unwrap();
        for value in 0..20 {
            produce_all(&mut leader, topic, &format!("{value}"));
        }
        let to = plan(topic, &[3, 2]);
        let printed = with_plan(cluster, &to, &["--execute", "--throttle", "10000000"]);
        let folders = serde_json::to_string(&folders(cluster, &[1, 2])).unwrap();
        assert_eq!(
            printed,
            format!(
                "Current partition replica assignment\n\n\
                 {{\"version\":1,\"partitions\":[{{\"topic\":\"moved\",\"partition\":0,\"replicas\":[1,2],\
                 \"log_dirs\":{folders}}}]}}\n\n\
                 Save this to use as the --reassignment-json-file option during rollback\n\
                 Warning: You must run --verify periodically, until the reassignment completes, to ensure the \
                 throttle is removed.\n\
                 The inter-broker throttle limit was set to 10000000 B/s\n\
                 Successfully started partition reassignment for moved-0\n"
            )
        );
        let configs = configs_of(cluster, topic);
        for throttled in [
            "leader.replication.throttled.replicas=0:1,0:2",
            "follower.replication.throttled.replicas=0:3",
        ] {
            assert!(configs.contains(throttled), "{configs}");
        }
        let verified = wait_until_verified(cluster, &to, topic);
        assert_eq!(
            verified,
            "Status of partition reassignment:\nReassignment of partition moved-0 is completed.\n\n\
             Clearing broker-level throttles on brokers 1,2,3\nClearing topic-level throttles on topic moved\n"
        );
        let view = cluster.wait_for_leader_and_isr(topic, 0, 3, &[2, 3]);
        assert_eq!(view.replicas, [3, 2]);
        let configs = configs_of(cluster, topic);
        assert!(!configs.contains("throttled"), "{configs}");
        assert_eq!(epochs_of_batches(cluster, 3, topic, 20).len(), 20);
        assert_eq!(
            tool(cluster, "reassign-partitions", &["--list"]),
            "No partition reassignments found.\n"
        );
    });
}

#[test]
fn reassignment_that_waits_is_listed_and_can_be_cancelled() {
    let options = ClusterOptions::new().with_controller_apart().with_network();
    for_each_cluster(&options, |cluster| {
        let topic = "waiting";
        cluster.create_topic(topic, &[&[1, 2]], &[]);
        let mut leader = cluster.connect(1).unwrap();
        produce_all(&mut leader, topic, "kept");
        // Broker 3 hears of it and cannot fetch.
        cluster.network().unwrap().cut(1, 3);
        let to = plan(topic, &[1, 3]);
        with_plan(cluster, &to, &["--execute"]);
        cluster.wait_for_partition(topic, 0, "3 is being added", |view| {
            view.replicas == [1, 3, 2]
        });
        let list = || tool(cluster, "reassign-partitions", &["--list"]);
        assert_eq!(
            list(),
            "Current partition reassignments:\nwaiting-0: replicas: 1,3,2. adding: 3. removing: 2.\n"
        );
        let verified = with_plan(cluster, &to, &["--verify", "--preserve-throttles"]);
        assert!(
            verified.contains("Reassignment of partition waiting-0 is still in progress."),
            "{verified}"
        );
        produce_all(&mut leader, topic, "written meanwhile");
        let again = plan(topic, &[2, 1]);
        let file = [
            "--reassignment-json-file",
            again.path().to_str().unwrap(),
            "--execute",
        ];
        let said = refused(cluster, "reassign-partitions", &file);
        assert!(
            said.contains("Cannot execute because there is an existing partition assignment."),
            "{said}"
        );

        let cancelled = with_plan(cluster, &to, &["--cancel"]);
        assert!(
            cancelled.contains("Successfully cancelled partition reassignment for: waiting-0"),
            "{cancelled}"
        );
        let view = cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 2]);
        assert_eq!(view.replicas, [1, 2]);
        assert_eq!(list(), "No partition reassignments found.\n");
        let cancelled = with_plan(cluster, &to, &["--cancel"]);
        assert!(
            cancelled.contains("None of the specified partition moves are active."),
            "{cancelled}"
        );

        // The same again with a whole network.
        cluster.network().unwrap().heal();
        with_plan(cluster, &to, &["--execute"]);
        wait_until_verified(cluster, &to, topic);
        let view = cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 3]);
        assert_eq!(view.replicas, [1, 3]);
        assert_eq!(epochs_of_batches(cluster, 3, topic, 2).len(), 2);
    });
}
