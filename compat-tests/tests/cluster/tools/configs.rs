//! kafka-configs.sh for the brokers of a cluster and for its topics.

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::process::eventually;

use super::{refused, tool};

fn of_broker(cluster: &Cluster, broker: &str, action: &[&str]) -> String {
    let entity = ["--entity-type", "brokers", "--entity-name", broker];
    tool(cluster, "configs", &[&entity, action].concat())
}

fn of_all_brokers(cluster: &Cluster, action: &[&str]) -> String {
    let entity = ["--entity-type", "brokers", "--entity-default"];
    tool(cluster, "configs", &[&entity, action].concat())
}

#[track_caller]
fn wait_until_described(cluster: &Cluster, broker: &str, wanted: &str) {
    let what = format!("broker {broker} says {wanted}");
    eventually(Cluster::PATIENCE, &what, || {
        of_broker(cluster, broker, &["--describe"])
            .contains(wanted)
            .then_some(())
    });
}

#[test]
fn setting_of_one_broker_goes_before_that_of_all_and_concerns_no_other() {
    for_each_shared_cluster(|cluster| {
        let set = of_all_brokers(
            cluster,
            &["--alter", "--add-config", "log.retention.ms=7200000"],
        );
        assert_eq!(
            set,
            "Completed updating default config for brokers in the cluster.\n"
        );
        let set = of_broker(
            cluster,
            "2",
            &["--alter", "--add-config", "log.retention.ms=3600000"],
        );
        assert_eq!(set, "Completed updating config for broker 2.\n");
        wait_until_described(
            cluster,
            "2",
            "  log.retention.ms=3600000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=3600000, \
             DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000, DEFAULT_CONFIG:log.retention.hours=168}\n",
        );
        for other in ["1", "3"] {
            let described = of_broker(cluster, other, &["--describe"]);
            assert!(!described.contains("log.retention.ms"), "{described}");
            wait_until_described_all(cluster, other, "log.retention.ms=7200000 sensitive=false");
        }
        of_broker(
            cluster,
            "2",
            &["--alter", "--delete-config", "log.retention.ms"],
        );
        wait_until_described_all(cluster, "2", "log.retention.ms=7200000 sensitive=false");
        of_all_brokers(cluster, &["--alter", "--delete-config", "log.retention.ms"]);
        wait_until_described_all(cluster, "2", "log.retention.ms=null sensitive=false");
    });
}

/// Waits until the whole configuration of a broker has such a line.
#[track_caller]
fn wait_until_described_all(cluster: &Cluster, broker: &str, wanted: &str) {
    let what = format!("broker {broker} says {wanted}");
    eventually(Cluster::PATIENCE, &what, || {
        of_broker(cluster, broker, &["--describe", "--all"])
            .contains(wanted)
            .then_some(())
    });
}

#[test]
fn min_insync_replicas_is_set_for_the_cluster_and_for_topics_and_not_for_one_broker() {
    for_each_shared_cluster(|cluster| {
        let one = [
            "--entity-type",
            "brokers",
            "--entity-name",
            "1",
            "--alter",
            "--add-config",
            "min.insync.replicas=1",
        ];
        let said = refused(cluster, "configs", &one);
        assert!(
            said.contains(
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            ),
            "{said}"
        );
        let default = [
            "--entity-type",
            "brokers",
            "--entity-default",
            "--alter",
            "--delete-config",
            "min.insync.replicas",
        ];
        let said = refused(cluster, "configs", &default);
        assert!(
            said.contains(
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            ),
            "{said}"
        );

        cluster.create_topic("strict", &[&[1, 2, 3]], &[]);
        let of_topic = |action: &[&str]| {
            let entity = ["--entity-type", "topics", "--entity-name", "strict"];
            tool(cluster, "configs", &[&entity, action].concat())
        };
        assert_eq!(
            of_topic(&["--alter", "--add-config", "min.insync.replicas=3"]),
            "Completed updating config for topic strict.\n"
        );
        eventually(Cluster::PATIENCE, "the topic's own setting", || {
            let described = of_topic(&["--describe"]);
            described
                .contains("  min.insync.replicas=3 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=3, ")
                .then_some(())
        });
        let at_min_isr = tool(
            cluster,
            "topics",
            &["--describe", "--at-min-isr-partitions", "--topic", "strict"],
        );
        assert!(
            at_min_isr
                .contains("Topic: strict\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3"),
            "{at_min_isr}"
        );
    });
}
