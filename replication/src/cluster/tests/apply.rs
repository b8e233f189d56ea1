use super::super::ApplyError;
use super::super::producer_ids::allocate_producer_ids;
use super::super::records::*;
use super::super::replay::{Replay, ReplayError};
use super::*;

fn change(image: &ClusterImage, change: PartitionChangeRecord) -> ClusterImage {
    let topic_id = image.topic("t").expect("the topic").id.0;
    apply(
        image,
        &[PartitionChangeRecord {
            topic_id,
            partition_id: 0,
            ..change
        }
        .into()],
    )
}

#[test]
fn a_leader_field_raises_the_leader_epoch_even_for_the_same_leader() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let image = change(
        &image,
        PartitionChangeRecord {
            leader: 1,
            ..Default::default()
        },
    );
    let partition = image.partition("t", 0).expect("the partition");
    assert_eq!(
        (partition.leader_epoch.0, partition.partition_epoch.0),
        (1, 1)
    );
    let image = change(
        &image,
        PartitionChangeRecord {
            isr: Some(vec![1]),
            ..Default::default()
        },
    );
    let partition = image.partition("t", 0).expect("the partition");
    assert_eq!(
        (partition.leader_epoch.0, partition.partition_epoch.0),
        (1, 2)
    );
    let image = change(
        &image,
        PartitionChangeRecord {
            leader: NO_LEADER,
            ..Default::default()
        },
    );
    assert_eq!(image.partition("t", 0).expect("the partition").leader, None);
}

#[test]
fn clearing_elr_touches_only_partitions_that_have_some() {
    let image = with_topic(&with_topic(&cluster_of(&[1]), "t", 2), "u", 1);
    let elr = PartitionChangeRecord {
        eligible_leader_replicas: Some(vec![2]),
        ..Default::default()
    };
    let image = change(&image, elr);
    let record = ClearElrRecord {
        topic_name: String::new(),
    };
    let (image, delta) = image
        .apply(&[record.into()], image.offset() + 1, 1)
        .expect("applied");
    assert_eq!(
        image
            .partition("t", 0)
            .expect("the partition")
            .eligible_leader_replicas,
        []
    );
    let id = image.topic("t").expect("the topic").id;
    assert_eq!(
        delta.changed_partitions,
        std::collections::BTreeMap::from([(id, [0].into())])
    );
}

#[test]
fn records_that_do_not_fit_the_image_are_errors() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let id = image.topic("t").expect("the topic").id;
    let error = |record: MetadataRecord| {
        image
            .apply(&[record], image.offset() + 1, 1)
            .expect_err("an error")
    };
    let unknown = Uuid::from_u128(999);
    assert!(matches!(
        error(RemoveTopicRecord { topic_id: unknown }.into()),
        ApplyError::UnknownTopic { .. }
    ));
    let partition = PartitionRecord {
        topic_id: unknown,
        ..Default::default()
    };
    assert!(matches!(
        error(partition.into()),
        ApplyError::UnknownTopic { .. }
    ));
    let gap = PartitionRecord {
        topic_id: id.0,
        partition_id: 5,
        ..Default::default()
    };
    assert!(matches!(
        error(gap.into()),
        ApplyError::UnknownPartition { .. }
    ));
    let absent = PartitionChangeRecord {
        topic_id: id.0,
        partition_id: 5,
        ..Default::default()
    };
    assert!(matches!(
        error(absent.into()),
        ApplyError::UnknownPartition { .. }
    ));
    let again = TopicRecord {
        name: "t".to_owned(),
        topic_id: unknown,
    };
    assert!(matches!(
        error(again.into()),
        ApplyError::TopicExists { .. }
    ));
    let fence = BrokerRegistrationChangeRecord {
        broker_id: 1,
        broker_epoch: 12_345,
        fenced: 1,
        ..Default::default()
    };
    assert!(matches!(
        error(fence.into()),
        ApplyError::UnknownBroker { .. }
    ));
    let config = ConfigRecord {
        resource_type: 99,
        ..Default::default()
    };
    assert_eq!(error(config.into()), ApplyError::UnknownResourceType(99));
}

#[test]
fn a_topic_made_and_deleted_in_one_step_leaves_no_trace_in_the_delta() {
    let image = cluster_of(&[1]);
    let topic_id = Uuid::from_u128(5);
    let records = [
        TopicRecord {
            name: "t".to_owned(),
            topic_id,
        }
        .into(),
        PartitionRecord {
            topic_id,
            partition_id: 0,
            ..Default::default()
        }
        .into(),
        RemoveTopicRecord { topic_id }.into(),
    ];
    let (after, delta) = image
        .apply(&records, image.offset() + 3, 1)
        .expect("applied");
    assert!(delta.is_empty(), "{delta:?}");
    assert_eq!(after.topic_count(), 0);
}

#[test]
fn a_name_deleted_and_made_again_in_one_step_is_both_in_the_delta() {
    let image = with_topic(&cluster_of(&[1]), "t", 1);
    let old = image.topic("t").expect("the topic").id;
    let topic_id = Uuid::from_u128(5);
    let records = [
        RemoveTopicRecord { topic_id: old.0 }.into(),
        TopicRecord {
            name: "t".to_owned(),
            topic_id,
        }
        .into(),
    ];
    let (_, delta) = image
        .apply(&records, image.offset() + 2, 1)
        .expect("applied");
    assert_eq!(
        delta
            .deleted_topics
            .iter()
            .map(|topic| topic.id)
            .collect::<Vec<_>>(),
        [old]
    );
    assert_eq!(delta.created_topics, [TopicId(topic_id)].into());
}

#[test]
fn blocks_of_producer_ids_never_overlap() {
    let mut image = cluster_of(&[1]);
    let epoch = image.broker(BrokerId(1)).expect("registered").epoch;
    let mut expected = 0;
    for _ in 0..5 {
        let (records, block) = allocate_producer_ids(&image, BrokerId(1), epoch).expect("a block");
        assert_eq!(block, expected..expected + 1000);
        expected = block.end;
        image = apply(&image, &records);
    }
    let last = ProducerIdsRecord {
        broker_id: 1,
        broker_epoch: 1,
        next_producer_id: i64::MAX - 5,
    };
    let exhausted = apply(&image, &[last.into()]);
    assert!(allocate_producer_ids(&exhausted, BrokerId(1), epoch).is_err());
}

#[test]
fn records_of_a_transaction_take_effect_together_at_its_end() {
    let topic = |name: &str| -> MetadataRecord {
        TopicRecord {
            name: name.to_owned(),
            topic_id: Uuid::from_u128(1),
        }
        .into()
    };
    let begin = || MetadataRecord::from(BeginTransactionRecord { name: None });
    let mut replay = Replay::default();
    assert_eq!(
        replay.push([topic("a"), begin(), topic("b")]),
        Ok(vec![topic("a")])
    );
    assert!(replay.in_transaction());
    assert_eq!(replay.push([topic("c")]), Ok(vec![]));
    assert_eq!(
        replay.push([EndTransactionRecord {}.into(), topic("d")]),
        Ok(vec![topic("b"), topic("c"), topic("d")])
    );
    assert_eq!(
        replay.push([
            begin(),
            topic("e"),
            AbortTransactionRecord { reason: None }.into()
        ]),
        Ok(vec![])
    );
    assert_eq!(
        replay.push([EndTransactionRecord {}.into()]),
        Err(ReplayError::NoTransaction)
    );
    assert_eq!(
        replay.push([begin(), begin()]),
        Err(ReplayError::NestedTransaction)
    );
}
