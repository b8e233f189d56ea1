//! Random requests against the image and against a plain model of what a cluster is.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::ClusterDelta;
use super::super::configs::{ConfigOperation, incremental_alter_configs};
use super::super::create_partitions::{MorePartitions, create_partitions};
use super::super::create_topics::create_topics;
use super::super::delete_topics::{TopicToDelete, delete_topics};
use super::super::producer_ids::allocate_producer_ids;
use super::*;

#[derive(Debug, Clone)]
enum Request {
    Create(u8, i32),
    Delete(u8),
    Grow(u8, i32),
    Set(u8, u8, String),
    Unset(u8, u8),
    ProducerIds,
    RestartBroker,
}

fn request() -> impl Strategy<Value = Request> {
    let name = 0u8..6;
    let key = 0u8..3;
    prop_oneof![
        4 => (name.clone(), 1i32..5).prop_map(|(name, count)| Request::Create(name, count)),
        2 => name.clone().prop_map(Request::Delete),
        2 => (name.clone(), 1i32..8).prop_map(|(name, count)| Request::Grow(name, count)),
        2 => (name.clone(), key.clone(), "[a-z]{1,3}").prop_map(|(name, key, value)| Request::Set(name, key, value)),
        1 => (name, key).prop_map(|(name, key)| Request::Unset(name, key)),
        1 => Just(Request::ProducerIds),
        1 => Just(Request::RestartBroker),
    ]
}

/// What the requests should have made: name to number of partitions and configurations.
#[derive(Debug, Default)]
struct Model {
    topics: BTreeMap<String, (i32, BTreeMap<String, String>)>,
    next_producer_id: i64,
}

fn topic_name(index: u8) -> String {
    format!("topic-{index}")
}

/// The records of a request, and the model after it.
fn judge(
    image: &ClusterImage,
    model: &mut Model,
    request: &Request,
    next_id: &mut u128,
) -> Vec<MetadataRecord> {
    let broker = BrokerId(1);
    match request {
        Request::Create(index, count) => {
            let name = topic_name(*index);
            let mut draw = || {
                *next_id += 1;
                TopicId(Uuid::from_u128(*next_id))
            };
            let created = create_topics(
                image,
                &[topic(&name, *count, 1)],
                DEFAULTS,
                &TestRules,
                &mut draw,
            );
            let (records, results) = created.expect("judged");
            assert_eq!(results[0].1.is_ok(), !model.topics.contains_key(&name));
            model
                .topics
                .entry(name)
                .or_insert((*count, BTreeMap::new()));
            records
        }
        Request::Delete(index) => {
            let name = topic_name(*index);
            let request = [TopicToDelete {
                name: Some(name.clone()),
                id: TopicId::ZERO,
            }];
            let (records, results) = delete_topics(image, &request).expect("judged");
            assert_eq!(
                results[0].result.is_ok(),
                model.topics.remove(&name).is_some()
            );
            records
        }
        Request::Grow(index, count) => {
            let name = topic_name(*index);
            let request = [MorePartitions {
                name: name.clone(),
                count: *count,
                assignments: None,
            }];
            let (records, results) = create_partitions(image, &request).expect("judged");
            let grows = model
                .topics
                .get_mut(&name)
                .filter(|(current, _)| *current < *count);
            assert_eq!(results[0].1.is_ok(), grows.is_some());
            if let Some((current, _)) = grows {
                *current = *count;
            }
            records
        }
        Request::Set(index, key, value) => {
            let (name, key) = (topic_name(*index), format!("key-{key}"));
            let operations = [(key.clone(), ConfigOperation::Set(value.clone()))];
            let altered = incremental_alter_configs(
                image,
                &ConfigResource::topic(name.as_str()),
                &operations,
                &TestRules,
            );
            let topic = model.topics.get_mut(&name).filter(|_| value != "bad");
            assert_eq!(altered.is_ok(), topic.is_some());
            if let Some((_, configs)) = topic {
                configs.insert(key, value.clone());
            }
            altered.unwrap_or_default()
        }
        Request::Unset(index, key) => {
            let (name, key) = (topic_name(*index), format!("key-{key}"));
            let operations = [(key.clone(), ConfigOperation::Delete)];
            let altered = incremental_alter_configs(
                image,
                &ConfigResource::topic(name.as_str()),
                &operations,
                &TestRules,
            );
            if let Some((_, configs)) = model.topics.get_mut(&name) {
                configs.remove(&key);
            }
            altered.unwrap_or_default()
        }
        Request::ProducerIds => {
            let epoch = image.broker(broker).expect("registered").epoch;
            let (records, block) = allocate_producer_ids(image, broker, epoch).expect("a block");
            assert_eq!(block.start, model.next_producer_id);
            model.next_producer_id = block.end;
            records
        }
        Request::RestartBroker => {
            let previous = image.broker(broker).map(|broker| broker.epoch);
            let request = super::super::registration::BrokerRegistrationRequest {
                incarnation_id: Uuid::from_u128(image.offset() as u128 + 500_000),
                previous_broker_epoch: previous,
                ..super::registration::request(1)
            };
            let nobody = super::liveness::idle(image);
            let registered =
                super::super::registration::register_broker(image, &RULES, &nobody, request, 0);
            let (mut records, epoch) = registered.expect("registers");
            let fenced = apply(image, &records);
            let unfenced =
                super::super::broker_changes::unfence_broker(&fenced, &RULES, broker, epoch);
            records.extend(unfenced.expect("registered"));
            records
        }
    }
}

fn assert_is(image: &ClusterImage, model: &Model) {
    let topics = image.topics().map(|topic| {
        let configs = image
            .topic_configs(&topic.name)
            .map(|configs| ConfigMap::clone(configs))
            .unwrap_or_default();
        assert_eq!(image.topic_by_id(topic.id), Some(topic));
        assert!(
            topic
                .partitions
                .iter()
                .all(|partition| partition.leader == Some(BrokerId(1)))
        );
        (
            topic.name.to_string(),
            (topic.partitions.len() as i32, configs),
        )
    });
    assert_eq!(topics.collect::<BTreeMap<_, _>>(), model.topics);
    assert_eq!(image.topic_count(), model.topics.len());
    assert_eq!(
        image.partition_count() as i32,
        model.topics.values().map(|(count, _)| count).sum::<i32>()
    );
    assert_eq!(image.next_producer_id(), model.next_producer_id);
    assert!(image.is_active(BrokerId(1)));
}

/// What a reader of deltas knows, who never looks at the image but for what a delta names.
fn follow(known: &mut BTreeMap<TopicId, usize>, image: &ClusterImage, delta: &ClusterDelta) {
    for topic in &delta.deleted_topics {
        assert!(
            known.remove(&topic.id).is_some(),
            "an unknown topic was deleted"
        );
    }
    for id in &delta.created_topics {
        assert_eq!(known.insert(*id, 0), None);
    }
    for (id, partitions) in &delta.changed_partitions {
        let topic = image
            .topic_by_id(*id)
            .expect("a changed partition is of a living topic");
        let count = known
            .get_mut(id)
            .expect("a changed partition is of a known topic");
        for partition in partitions {
            assert!(topic.partition(*partition).is_some());
            *count = (*count).max(*partition as usize + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_image_is_the_model_and_the_replayed_log_and_the_snapshot(
        requests in prop::collection::vec(request(), 1..60),
        group in 1usize..4,
    ) {
        let start = cluster_of(&[1]);
        let mut image = start.clone();
        let mut model = Model::default();
        let mut next_id = 0;
        let mut log: Vec<Vec<u8>> = Vec::new();
        let (mut known, mut known_by_images) = (BTreeMap::new(), BTreeMap::new());
        for requests in requests.chunks(group) {
            // Deltas of a group are merged, as the controller does.
            let (before, mut delta) = (image.clone(), ClusterDelta::default());
            for request in requests {
                let records = judge(&image, &mut model, request, &mut next_id);
                log.extend(records.iter().map(MetadataRecord::encode));
                let last_offset = image.offset() + records.len() as i64;
                let (next, changed) = image.apply(&records, last_offset, 1).expect("records fit");
                image = next;
                delta.merge(changed);
                assert_is(&image, &model);
            }
            follow(&mut known, &image, &delta);
            // The same from the images alone, but for what was changed and changed back.
            let between = ClusterDelta::between(&before, &image);
            follow(&mut known_by_images, &image, &between);
            prop_assert_eq!(&between.created_topics, &delta.created_topics);
            prop_assert!(between.changed_configs.is_subset(&delta.changed_configs));
            prop_assert!(between.changed_brokers.is_subset(&delta.changed_brokers));
            prop_assert_eq!(ClusterDelta::between(&image, &image), ClusterDelta::default());
        }
        let counts = image.topics().map(|topic| (topic.id, topic.partitions.len()));
        prop_assert_eq!(&known, &known_by_images);
        prop_assert_eq!(known, counts.collect::<BTreeMap<_, _>>());

        let records: Vec<MetadataRecord> =
            log.iter().map(|value| MetadataRecord::decode(value).expect("a record")).collect();
        prop_assert_eq!(&apply(&start, &records), &image);

        let snapshot: Vec<MetadataRecord> = image
            .to_records()
            .iter()
            .map(|record| MetadataRecord::decode(&record.encode()).expect("a record"))
            .collect();
        let (restored, _) =
            ClusterImage::empty("test-cluster").apply(&snapshot, image.offset(), 1).expect("a snapshot fits");
        prop_assert_eq!(&restored, &image);
    }
}
