use super::super::delete_topics::{DeleteTopicResult, TopicToDelete, delete_topics};
use super::*;

fn named(name: &str) -> TopicToDelete {
    TopicToDelete {
        name: Some(name.to_owned()),
        id: TopicId::ZERO,
    }
}

fn by_id(id: TopicId) -> TopicToDelete {
    TopicToDelete { name: None, id }
}

fn invalid(text: &str) -> Result<(), ClusterError> {
    Err(ClusterError::InvalidRequest(text.to_owned()))
}

#[test]
fn topics_go_by_name_and_by_id_with_their_configurations() {
    let image = with_topic(&with_topic(&cluster_of(&[1]), "a", 2), "b", 1);
    let set = super::super::configs::config_record(
        &ConfigResource::topic("b"),
        "k",
        Some("v".to_owned()),
    );
    let image = apply(&image, &[set]);
    let id = image.topic("b").expect("the topic").id;
    let (records, results) = delete_topics(&image, &[named("a"), by_id(id)]).expect("judged");
    assert!(results.iter().all(|result| result.result.is_ok()));
    let last_offset = image.offset() + records.len() as i64;
    let (after, delta) = image.apply(&records, last_offset, 1).expect("applied");
    assert_eq!((after.topic_count(), after.partition_count()), (0, 0));
    assert_eq!(after.topic_configs("b"), None);
    assert!(delta.changed_configs.contains(&ConfigResource::topic("b")));
    let mut names: Vec<&str> = delta
        .deleted_topics
        .iter()
        .map(|topic| &*topic.name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn requests_that_contradict_themselves_delete_nothing() {
    let image = with_topic(&cluster_of(&[1]), "a", 1);
    let id = image.topic("a").expect("the topic").id;
    let unknown = TopicId(Uuid::from_u128(77));
    let both = TopicToDelete {
        name: Some("a".to_owned()),
        id,
    };
    let result_of = |request: &[TopicToDelete]| -> Vec<DeleteTopicResult> {
        let (records, results) = delete_topics(&image, request).expect("judged");
        assert_eq!(records, []);
        results
    };
    let results = result_of(&[both]);
    assert_eq!(
        results[0].result,
        invalid("You may not specify both topic name and topic id.")
    );
    assert_eq!((results[0].name.as_deref(), results[0].id), (Some("a"), id));
    let results = result_of(&[by_id(TopicId::ZERO)]);
    assert_eq!(
        results[0].result,
        invalid("Neither topic name nor id were specified.")
    );
    assert_eq!(
        result_of(&[named("a"), named("a")])[0].result,
        invalid("Duplicate topic name.")
    );
    assert_eq!(
        result_of(&[by_id(id), by_id(id)])[0].result,
        invalid("Duplicate topic id.")
    );
    assert_eq!(
        result_of(&[named("nope")])[0].result,
        Err(ClusterError::unknown_topic())
    );
    assert_eq!(
        result_of(&[by_id(unknown)])[0].result,
        Err(ClusterError::UnknownTopicId)
    );
    let twice = result_of(&[named("a"), by_id(id)]);
    assert_eq!(twice.len(), 1);
    assert_eq!(
        twice[0].result,
        invalid("The provided topic name maps to an ID that was already supplied.")
    );
}

#[test]
fn a_topic_made_again_has_another_id_and_starts_afresh() {
    let image = with_topic(&cluster_of(&[1]), "a", 2);
    let old = image.topic("a").expect("the topic").id;
    let (records, _) = delete_topics(&image, &[named("a")]).expect("judged");
    let image = with_topic(&apply(&image, &records), "a", 1);
    let topic = image.topic("a").expect("the topic");
    assert_ne!(topic.id, old);
    assert_eq!(topic.partitions.len(), 1);
    assert_eq!(image.topic_by_id(old), None);
}
