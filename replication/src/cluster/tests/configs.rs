use super::super::configs::{ConfigOperation, incremental_alter_configs, legacy_alter_configs};
use super::super::records::{ClearElrRecord, ConfigRecord};
use super::*;

fn alter(
    image: &ClusterImage,
    resource: &ConfigResource,
    operations: &[(&str, ConfigOperation)],
) -> Result<ClusterImage, ClusterError> {
    let operations: Vec<_> = operations
        .iter()
        .map(|(key, operation)| ((*key).to_owned(), operation.clone()))
        .collect();
    Ok(apply(
        image,
        &incremental_alter_configs(image, resource, &operations, &TestRules)?,
    ))
}

fn set(value: &str) -> ConfigOperation {
    ConfigOperation::Set(value.to_owned())
}

fn append(value: &str) -> ConfigOperation {
    ConfigOperation::Append(value.to_owned())
}

fn subtract(value: &str) -> ConfigOperation {
    ConfigOperation::Subtract(value.to_owned())
}

fn value(image: &ClusterImage, resource: &ConfigResource, key: &str) -> Option<String> {
    image.configs(resource)?.get(key).cloned()
}

#[test]
fn values_are_set_and_deleted() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let topic = ConfigResource::topic("t");
    let image = alter(&image, &topic, &[("a", set("1")), ("b", set("2"))]).expect("set");
    assert_eq!(value(&image, &topic, "a").as_deref(), Some("1"));
    let image = alter(
        &image,
        &topic,
        &[
            ("a", ConfigOperation::Delete),
            ("nope", ConfigOperation::Delete),
        ],
    )
    .expect("deleted");
    assert_eq!(value(&image, &topic, "a"), None);
    let image = alter(&image, &topic, &[("b", ConfigOperation::Delete)]).expect("deleted");
    assert_eq!(image.configs(&topic), None);
}

#[test]
fn lists_grow_from_the_default_and_shrink() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let topic = ConfigResource::topic("t");
    let image = alter(
        &image,
        &topic,
        &[("cleanup.policy", append("compact,delete"))],
    )
    .expect("appended");
    assert_eq!(
        value(&image, &topic, "cleanup.policy").as_deref(),
        Some("delete,compact")
    );
    let image = alter(
        &image,
        &topic,
        &[("cleanup.policy", subtract("delete,nope"))],
    )
    .expect("subtracted");
    assert_eq!(
        value(&image, &topic, "cleanup.policy").as_deref(),
        Some("compact")
    );
    let image =
        alter(&image, &topic, &[("cleanup.policy", subtract("compact"))]).expect("subtracted");
    assert_eq!(value(&image, &topic, "cleanup.policy").as_deref(), Some(""));
    let error = alter(&image, &topic, &[("retention.ms", append("1"))]).expect_err("no list");
    assert_eq!(
        error.to_string(),
        "Can't APPEND to key retention.ms because its type is not LIST."
    );
}

#[test]
fn one_bad_value_refuses_all_changes_of_the_resource() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let error = alter(
        &image,
        &ConfigResource::topic("t"),
        &[("a", set("1")), ("b", set("bad"))],
    );
    assert_eq!(
        error.err(),
        Some(ClusterError::InvalidConfig("bad b".to_owned()))
    );
    let long = alter(
        &image,
        &ConfigResource::topic("t"),
        &[("a", set(&"x".repeat(32_768)))],
    );
    assert!(
        matches!(long, Err(ClusterError::InvalidConfig(text)) if text.contains("maximum value size of 32767"))
    );
}

#[test]
fn a_value_that_stays_makes_a_record_for_brokers_only() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    for (resource, records_for_same_value) in [
        (ConfigResource::topic("t"), 0),
        (ConfigResource::broker(BrokerId(1)), 1),
    ] {
        let image = alter(&image, &resource, &[("a", set("1"))]).expect("set");
        let again = [("a".to_owned(), set("1"))];
        let records =
            incremental_alter_configs(&image, &resource, &again, &TestRules).expect("judged");
        assert_eq!(records.len(), records_for_same_value);
    }
}

#[test]
fn legacy_alter_sets_exactly_what_is_named() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let topic = ConfigResource::topic("t");
    let image = alter(&image, &topic, &[("a", set("1")), ("b", set("2"))]).expect("set");
    let configs = ConfigMap::from([
        ("b".to_owned(), "3".to_owned()),
        ("c".to_owned(), "4".to_owned()),
    ]);
    let image = apply(
        &image,
        &legacy_alter_configs(&image, &topic, &configs, &TestRules).expect("altered"),
    );
    assert_eq!(**image.configs(&topic).expect("configs"), configs);
    let bad = ConfigMap::from([("b".to_owned(), "bad".to_owned())]);
    assert!(legacy_alter_configs(&image, &topic, &bad, &TestRules).is_err());
}

#[test]
fn configurations_of_what_does_not_exist_are_refused() {
    let image = cluster_of(&[1]);
    let topic = alter(&image, &ConfigResource::topic("nope"), &[("a", set("1"))]);
    let text = "The topic 'nope' does not exist.".to_owned();
    assert_eq!(
        topic.err(),
        Some(ClusterError::UnknownTopicOrPartition(text))
    );
    let broker = alter(
        &image,
        &ConfigResource::broker(BrokerId(7)),
        &[("a", set("1"))],
    );
    assert!(matches!(
        broker,
        Err(ClusterError::BrokerIdNotRegistered(_))
    ));
    assert!(
        alter(
            &image,
            &ConfigResource::default_broker(),
            &[("a", set("1"))]
        )
        .is_ok()
    );
}

#[test]
fn min_insync_replicas_of_brokers_cannot_change_while_elr_is_in_use() {
    let image = cluster_of(&[1]);
    let key = "min.insync.replicas";
    let broker = alter(
        &image,
        &ConfigResource::broker(BrokerId(1)),
        &[(key, set("2"))],
    )
    .expect_err("refused");
    assert_eq!(
        broker.to_string(),
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    );
    let default = ConfigResource::default_broker();
    let removed = alter(&image, &default, &[(key, ConfigOperation::Delete)]).expect_err("refused");
    assert_eq!(
        removed.to_string(),
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    );
    let operations = [(key.to_owned(), set("2"))];
    let records =
        incremental_alter_configs(&image, &default, &operations, &TestRules).expect("set");
    assert_eq!(
        records[1],
        ClearElrRecord {
            topic_name: String::new()
        }
        .into()
    );
}

#[test]
fn min_insync_replicas_of_a_topic_forgets_its_eligible_leaders() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let operations = [("min.insync.replicas".to_owned(), set("2"))];
    let records =
        incremental_alter_configs(&image, &ConfigResource::topic("t"), &operations, &TestRules)
            .expect("set");
    let expected: ConfigRecord = ConfigRecord {
        resource_type: 2,
        resource_name: "t".to_owned(),
        name: "min.insync.replicas".to_owned(),
        value: Some("2".to_owned()),
    };
    assert_eq!(
        records,
        [
            expected.into(),
            ClearElrRecord {
                topic_name: "t".to_owned()
            }
            .into()
        ]
    );
}
