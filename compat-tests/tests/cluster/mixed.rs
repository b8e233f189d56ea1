//! Brokers of both implementations in one cluster: the broker half of Highwater speaks Kafka's own protocols, so that it
//! can live under Apache Kafka's controller and follow Apache Kafka's leaders.

use compat_tests::broker::BrokerKind;
use compat_tests::cluster::{Cluster, ClusterOptions, Shape};
use compat_tests::each_broker::selected_brokers;
use compat_tests::raw::code;

use super::support::{LONG, epochs_of_batches, one, produce, produce_all};

/// Broker of Apache Kafka.
const APACHE: i32 = 1;
/// Broker of Highwater.
const HIGHWATER: i32 = 2;

/// One controller and one broker of Apache Kafka, and a broker of Highwater. Features of the cluster that Highwater does
/// not have are not in use.
fn mixed() -> ClusterOptions {
    let shape = Shape::Separate {
        controllers: 1,
        brokers: 2,
    };
    let mut options = ClusterOptions::new()
        .shape(shape)
        .node_of(HIGHWATER, BrokerKind::Highwater);
    for feature in ["transaction", "group", "share", "streams"] {
        options = options.feature(&format!("{feature}.version"), 0);
    }
    options
}

#[test]
fn a_broker_of_highwater_is_in_the_isr_of_a_leader_of_apache_kafka() {
    if selected_brokers().len() < 2 {
        return;
    }
    let mut cluster = Cluster::start(BrokerKind::ApacheKafka, &mixed())
        .unwrap_or_else(|error| panic!("{error:#}"));
    let topic = "mixed";
    let replicas = [APACHE, HIGHWATER];
    cluster.create_topic(topic, &[&replicas], &[("min.insync.replicas", "2")]);
    let mut leader = cluster.connect(APACHE).unwrap();
    for offset in 0..20 {
        let value = format!("{offset}");
        assert_eq!(produce_all(&mut leader, topic, &value), offset);
    }
    let on_leader = epochs_of_batches(&cluster, APACHE, topic, 20);
    let on_follower = epochs_of_batches(&cluster, HIGHWATER, topic, 20);
    assert_eq!(on_follower, on_leader);

    cluster.kill(HIGHWATER).unwrap();
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &[APACHE]);
    let refused = produce(&mut leader, topic, -1, LONG, one("refused"));
    assert_eq!(refused.error_code, code::NOT_ENOUGH_REPLICAS, "{refused:?}");
    let by_the_leader_alone = produce(&mut leader, topic, 1, LONG, one("alone"));
    assert_eq!(by_the_leader_alone.error_code, code::NONE);

    cluster.start_again(HIGHWATER).unwrap();
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &replicas);
    assert_eq!(produce_all(&mut leader, topic, "together again"), 21);
    let on_leader = epochs_of_batches(&cluster, APACHE, topic, 22);
    let on_follower = epochs_of_batches(&cluster, HIGHWATER, topic, 22);
    assert_eq!(on_follower, on_leader);

    // It asks the controller to be let go, and is.
    let status = cluster.stop(HIGHWATER).unwrap();
    assert!(status.success(), "{status}");
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &[APACHE]);
}
