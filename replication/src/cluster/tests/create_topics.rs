use super::super::create_topics::{CreateTopicResult, NewTopic, create_topics};
use super::*;

fn create(
    image: &ClusterImage,
    topics: &[NewTopic],
) -> (Vec<MetadataRecord>, Vec<CreateTopicResult>) {
    create_topics(image, topics, DEFAULTS, &TestRules, &mut ids()).expect("not refused as a whole")
}

/// The error of the only topic of a request, which must make no records.
fn refusal(image: &ClusterImage, topic: NewTopic) -> ClusterError {
    let (records, mut results) = create(image, &[topic]);
    assert_eq!(records, []);
    results.remove(0).1.expect_err("a refusal")
}

fn manual(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let assignments = assignments
        .iter()
        .map(|(partition, brokers)| (*partition, brokers.to_vec()))
        .collect();
    NewTopic {
        assignments,
        ..topic(name, -1, -1)
    }
}

#[test]
fn a_new_topic_is_a_topic_record_then_configs_then_partitions() {
    let image = cluster_of(&[1]);
    let mut new = topic("t", 2, 1);
    new.configs = vec![
        ("b".to_owned(), Some("2".to_owned())),
        ("a".to_owned(), Some("1".to_owned())),
    ];
    let (records, results) = create(&image, &[new]);
    let kinds: Vec<i16> = records.iter().map(MetadataRecord::api_key).collect();
    assert_eq!(kinds, [2, 4, 4, 3, 3]);
    let created = results[0].1.as_ref().expect("created");
    assert_eq!((created.num_partitions, created.replication_factor), (2, 1));
    let image = apply(&image, &records);
    let topic = image.topic("t").expect("the topic");
    assert_eq!(topic.id, created.topic_id);
    assert_eq!(topic.partitions[1].leader, Some(BrokerId(1)));
    assert_eq!(topic.partitions[1].directories, [directory(1)]);
    assert_eq!(
        (
            topic.partitions[1].leader_epoch.0,
            topic.partitions[1].partition_epoch.0
        ),
        (0, 0)
    );
    assert_eq!(image.topic_configs("t").expect("configs")["a"], "1");
}

#[test]
fn minus_one_stands_for_the_defaults() {
    let (_, results) = create(&cluster_of(&[1]), &[topic("t", -1, -1)]);
    let created = results[0].1.as_ref().expect("created");
    assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
}

#[test]
fn leaders_are_spread_over_the_brokers() {
    let image = cluster_of(&[1, 2, 3]);
    let image = apply(&image, &create(&image, &[topic("t", 6, 2)]).0);
    let partitions = &image.topic("t").expect("the topic").partitions;
    for broker in [1, 2, 3] {
        let led = partitions
            .iter()
            .filter(|partition| partition.leader == Some(BrokerId(broker)))
            .count();
        assert_eq!(led, 2, "broker {broker}");
    }
    assert!(
        partitions
            .iter()
            .all(|partition| partition.replicas.len() == 2 && partition.isr == partition.replicas)
    );
    assert!(
        partitions
            .iter()
            .all(|partition| partition.replicas[0] != partition.replicas[1])
    );
}

#[test]
fn names_are_checked_as_kafka_does() {
    let image = with_topic(&cluster_of(&[1]), "a.b", 1);
    let invalid = |name: &str| refusal(&image, topic(name, 1, 1)).to_string();
    assert_eq!(
        invalid(""),
        "Topic name is invalid: the empty string is not allowed"
    );
    assert_eq!(invalid("."), "Topic name is invalid: '.' is not allowed");
    assert_eq!(invalid(".."), "Topic name is invalid: '..' is not allowed");
    assert!(invalid("a b").contains("'a b' contains one or more characters other than"));
    assert!(invalid(&"x".repeat(250)).ends_with("is longer than the max allowed length 249"));
    assert_eq!(
        invalid("a_b"),
        "Topic 'a_b' collides with existing topic: a.b"
    );
    assert_eq!(
        refusal(&image, topic("a.b", 1, 1)),
        ClusterError::TopicAlreadyExists("a.b".to_owned())
    );
    assert!(
        create(&image, &[topic(&"x".repeat(249), 1, 1)]).1[0]
            .1
            .is_ok()
    );
}

#[test]
fn a_collision_ends_when_the_other_topic_is_deleted() {
    let image = with_topic(&with_topic(&cluster_of(&[1]), "a.b", 1), "ab", 1);
    let id = image.topic("a.b").expect("the topic").id;
    let removed = apply(
        &image,
        &[super::super::records::RemoveTopicRecord { topic_id: id.0 }.into()],
    );
    assert!(create(&removed, &[topic("a_b", 1, 1)]).1[0].1.is_ok());
}

#[test]
fn the_metadata_log_and_names_that_repeat_are_refused_behind_the_others() {
    let request = [
        topic("dup", 1, 1),
        topic("__cluster_metadata", 1, 1),
        topic("ok", 1, 1),
        topic("dup", 1, 1),
    ];
    let (records, results) = create(&cluster_of(&[1]), &request);
    let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ok", "dup", "__cluster_metadata"]);
    assert_eq!(records.len(), 2);
    assert_eq!(
        results[1].1,
        Err(ClusterError::InvalidRequest(
            "Duplicate topic name.".to_owned()
        ))
    );
    let prohibited = "Creation of internal topic __cluster_metadata is prohibited.".to_owned();
    assert_eq!(results[2].1, Err(ClusterError::InvalidRequest(prohibited)));
}

#[test]
fn counts_that_make_no_sense_are_refused() {
    let image = cluster_of(&[1]);
    for partitions in [0, -2] {
        assert!(matches!(
            refusal(&image, topic("t", partitions, 1)),
            ClusterError::InvalidPartitions(_)
        ));
    }
    // The replication factor is looked at first.
    for (partitions, replicas) in [(1, 0), (1, -2), (0, 0)] {
        let error = refusal(&image, topic("t", partitions, replicas));
        assert!(
            matches!(error, ClusterError::InvalidReplicationFactor(_)),
            "{error}"
        );
    }
    assert_eq!(
        refusal(&image, topic("t", 1, 3)).to_string(),
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because \
         only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    );
}

#[test]
fn more_than_10000_partitions_refuse_the_whole_request() {
    let image = cluster_of(&[1]);
    let create =
        |topics: &[NewTopic]| create_topics(&image, topics, DEFAULTS, &TestRules, &mut ids());
    let too_many = create(&[topic("a", 9_999, 1), topic("b", 2, 1)]);
    let text = "Excessively large number of partitions per request.".to_owned();
    assert_eq!(too_many.err(), Some(ClusterError::PolicyViolation(text)));
    // One topic of 10,000 partitions needs a record more than one request may.
    assert_eq!(
        create(&[topic("a", 10_000, 1)]).err(),
        Some(ClusterError::excessively_large_batch())
    );
    assert!(create(&[topic("a", 9_999, 1)]).is_ok());
}

#[test]
fn manual_assignments_are_checked_as_kafka_does() {
    let image = cluster_of(&[1, 2]);
    let both = NewTopic {
        num_partitions: 1,
        ..manual("t", &[(0, &[1])])
    };
    assert!(
        refusal(&image, both)
            .to_string()
            .ends_with("numPartitions was not set to -1.")
    );
    let both = NewTopic {
        replication_factor: 1,
        ..manual("t", &[(0, &[1])])
    };
    assert!(
        refusal(&image, both)
            .to_string()
            .ends_with("replication factor was not set to -1.")
    );
    type Assignments = &'static [(i32, &'static [i32])];
    let table: [(Assignments, &str); 7] = [
        (
            &[(0, &[1]), (0, &[1])],
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            &[(0, &[1]), (2, &[1])],
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            &[(1, &[1])],
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            &[(0, &[])],
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            &[(0, &[7])],
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            &[(0, &[1, 1])],
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            &[(0, &[1, 2]), (1, &[1])],
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with \
             previous partitions, which have 2 replica(s).",
        ),
    ];
    for (assignments, text) in table {
        let error = refusal(&image, manual("t", assignments));
        assert_eq!(
            error,
            ClusterError::InvalidReplicaAssignment(text.to_owned())
        );
    }
}

#[test]
fn a_manual_assignment_keeps_its_order() {
    let image = cluster_of(&[1, 2]);
    let image = apply(
        &image,
        &create(&image, &[manual("t", &[(1, &[1, 2]), (0, &[2, 1])])]).0,
    );
    let partitions = &image.topic("t").expect("the topic").partitions;
    assert_eq!(partitions[0].replicas, [BrokerId(2), BrokerId(1)]);
    assert_eq!(partitions[0].leader, Some(BrokerId(2)));
    assert_eq!(partitions[0].directories, [directory(2), directory(1)]);
    assert_eq!(partitions[1].leader, Some(BrokerId(1)));
}

#[test]
fn fenced_brokers_take_replicas_but_neither_lead_nor_join_the_isr() {
    let image = cluster_of(&[1]);
    let image = super::registration::restart(&image, 2, None);
    let image = apply(&image, &create(&image, &[topic("t", 1, 2)]).0);
    let partition = image.partition("t", 0).expect("the partition");
    assert_eq!(partition.replicas, [BrokerId(1), BrokerId(2)]);
    assert_eq!(partition.isr, [BrokerId(1)]);
    let all_fenced = refusal(&image, manual("u", &[(0, &[2])]));
    assert!(
        all_fenced
            .to_string()
            .ends_with("for partition 0 are fenced or in controlled shutdown.")
    );
}

#[test]
fn bad_configurations_refuse_the_topic_and_leave_the_others() {
    let image = cluster_of(&[1]);
    let with = |name: &str, configs: &[(&str, Option<&str>)]| {
        let configs = configs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)))
            .collect();
        NewTopic {
            configs,
            ..topic(name, 1, 1)
        }
    };
    let request = [
        with("a", &[("k", Some("bad"))]),
        with("b", &[("x", None), ("y", None)]),
        with("c", &[("k", Some("v"))]),
    ];
    let (records, results) = create(&image, &request);
    assert_eq!(
        results[0].1,
        Err(ClusterError::InvalidConfig("bad k".to_owned()))
    );
    let null = "Null value not supported for topic configs: x,y".to_owned();
    assert_eq!(results[1].1, Err(ClusterError::InvalidConfig(null)));
    assert!(results[2].1.is_ok());
    assert_eq!(records.len(), 3);
}
