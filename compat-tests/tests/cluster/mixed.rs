//! Brokers of both implementations in one cluster: the broker half of Highwater speaks Kafka's own protocols, so that it
//! can live under Apache Kafka's controller and follow Apache Kafka's leaders.

use std::time::Duration;

use compat_tests::broker::BrokerKind;
use compat_tests::cluster::{Cluster, ClusterOptions, Shape};
use compat_tests::each_broker::selected_brokers;
use compat_tests::process::eventually;
use compat_tests::raw::{Connection, code, s};
use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
};

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

/// As [`produce_all`], of a leader that acts on what its metadata show only a moment later.
#[track_caller]
fn produce_when_ready(leader: &mut Connection, topic: &str, value: &str) -> i64 {
    eventually(Cluster::PATIENCE, "a write is taken", || {
        let reply = produce(leader, topic, -1, LONG, one(value));
        (reply.error_code == code::NONE).then_some(reply.base_offset)
    })
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
    assert_eq!(produce_when_ready(&mut leader, topic, "0"), 0);
    for offset in 1..20 {
        let value = format!("{offset}");
        assert_eq!(produce_all(&mut leader, topic, &value), offset);
    }
    let on_leader = epochs_of_batches(&cluster, APACHE, topic, 20);
    let on_follower = epochs_of_batches(&cluster, HIGHWATER, topic, 20);
    assert_eq!(on_follower, on_leader);

    cluster.kill(HIGHWATER).unwrap();
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &[APACHE]);
    // What it takes before it acts on that is not committed yet.
    let wait = Duration::from_millis(200);
    eventually(Cluster::PATIENCE, "acks=all is refused", || {
        let reply = produce(&mut leader, topic, -1, wait, one("refused"));
        (reply.error_code == code::NOT_ENOUGH_REPLICAS).then_some(())
    });
    let by_the_leader_alone = produce(&mut leader, topic, 1, LONG, one("alone"));
    assert_eq!(by_the_leader_alone.error_code, code::NONE);
    let alone = by_the_leader_alone.base_offset;

    cluster.start_again(HIGHWATER).unwrap();
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &replicas);
    assert_eq!(
        produce_when_ready(&mut leader, topic, "together again"),
        alone + 1
    );
    let on_leader = epochs_of_batches(&cluster, APACHE, topic, alone + 2);
    let on_follower = epochs_of_batches(&cluster, HIGHWATER, topic, alone + 2);
    assert_eq!(on_follower, on_leader);

    // It asks the controller to be let go, and is.
    let status = cluster.stop(HIGHWATER).unwrap();
    assert!(status.success(), "{status}");
    cluster.wait_for_leader_and_isr(topic, 0, APACHE, &[APACHE]);
}

/// A quota, a password for SCRAM and an access control entry, in a cluster that checks such entries.
fn set_what_only_apache_kafka_acts_on(connection: &mut Connection) {
    let entity = EntityData::default()
        .with_entity_type(s("user"))
        .with_entity_name(Some(s("somebody")));
    let quota = OpData::default()
        .with_key(s("producer_byte_rate"))
        .with_value(1e6);
    let entry = EntryData::default()
        .with_entity(vec![entity])
        .with_ops(vec![quota]);
    let request = AlterClientQuotasRequest::default().with_entries(vec![entry]);
    let reply = connection.call(1, &request).unwrap();
    assert_eq!(reply.entries[0].error_code, code::NONE, "{reply:?}");

    let password = ScramCredentialUpsertion::default()
        .with_name(s("somebody"))
        .with_mechanism(1)
        .with_iterations(4096)
        .with_salt(vec![1; 16].into())
        .with_salted_password(vec![2; 32].into());
    let request = AlterUserScramCredentialsRequest::default().with_upsertions(vec![password]);
    let reply = connection.call(0, &request).unwrap();
    assert_eq!(reply.results[0].error_code, code::NONE, "{reply:?}");

    // Somebody may read the topic "secret".
    let entry = AclCreation::default()
        .with_resource_type(2)
        .with_resource_name(s("secret"))
        .with_resource_pattern_type(3)
        .with_principal(s("User:somebody"))
        .with_host(s("*"))
        .with_operation(3)
        .with_permission_type(3);
    let request = CreateAclsRequest::default().with_creations(vec![entry]);
    let reply = connection.call(3, &request).unwrap();
    assert_eq!(reply.results[0].error_code, code::NONE, "{reply:?}");
}

#[test]
fn quotas_passwords_and_access_control_of_apache_kafka_do_not_stop_a_broker_of_highwater() {
    if selected_brokers().len() < 2 {
        return;
    }
    let mut options = mixed();
    for node in [APACHE, 3001] {
        options = options
            .set_on(
                node,
                "authorizer.class.name",
                "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            )
            .set_on(node, "super.users", "User:ANONYMOUS");
    }
    let mut cluster = Cluster::start(BrokerKind::ApacheKafka, &options)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let topic = "mixed";
    let replicas = [APACHE, HIGHWATER];
    cluster.create_topic(topic, &[&replicas], &[("min.insync.replicas", "2")]);
    let mut leader = cluster.connect(APACHE).unwrap();
    set_what_only_apache_kafka_acts_on(&mut leader);
    assert_eq!(produce_when_ready(&mut leader, topic, "one"), 0);
    // What comes after it in the metadata is acted on.
    cluster.create_topic("after", &[&replicas], &[("min.insync.replicas", "2")]);
    let log = cluster.node(HIGHWATER).unwrap().log();
    for line in ["access control lists", "client quotas", "SCRAM credentials"] {
        let told = log.lines().filter(|text| text.contains(line)).count();
        assert_eq!(told, 1, "{line}:\n{log}");
    }
    // And at a start from what it has on its disk.
    cluster.stop(HIGHWATER).unwrap();
    cluster.start_again(HIGHWATER).unwrap();
    for topic in [topic, "after"] {
        cluster.wait_for_leader_and_isr(topic, 0, APACHE, &replicas);
    }
    assert_eq!(produce_when_ready(&mut leader, topic, "two"), 1);
    assert_eq!(produce_when_ready(&mut leader, "after", "one"), 0);
}
