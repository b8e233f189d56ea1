//! DeleteTopics: by name or by id.

use std::collections::{BTreeMap, BTreeSet};

use highwater_storage::types::TopicId;

use super::error::{ClusterError, check_record_count};
use super::image::ClusterImage;
use super::records::{MetadataRecord, RemoveTopicRecord};

/// One topic that shall go: a name, an id, or (refused) both or neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicToDelete {
    /// The name, if the topic is named.
    pub name: Option<String>,
    /// The id, zero if the topic is named.
    pub id: TopicId,
}

/// What became of one topic of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteTopicResult {
    /// Name of the topic, as far as it may be told.
    pub name: Option<String>,
    /// Id of the topic, zero if it is not known.
    pub id: TopicId,
    /// Whether it is deleted.
    pub result: Result<(), ClusterError>,
}

/// The records that delete what can be deleted, and one result for each topic. An error refuses the whole request.
pub fn delete_topics(
    image: &ClusterImage,
    topics: &[TopicToDelete],
) -> Result<(Vec<MetadataRecord>, Vec<DeleteTopicResult>), ClusterError> {
    let mut results = Vec::with_capacity(topics.len());
    let mut refuse = |name: Option<&str>, id: TopicId, error: ClusterError| {
        results.push(DeleteTopicResult {
            name: name.map(str::to_owned),
            id,
            result: Err(error),
        });
    };
    let invalid = |text: &str| ClusterError::InvalidRequest(text.to_owned());

    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ids: BTreeMap<TopicId, usize> = BTreeMap::new();
    for topic in topics {
        match (topic.name.as_deref(), topic.id.is_zero()) {
            (Some(name), true) => *names.entry(name).or_default() += 1,
            (None, false) => *ids.entry(topic.id).or_default() += 1,
            (None, true) => refuse(
                None,
                topic.id,
                invalid("Neither topic name nor id were specified."),
            ),
            (Some(name), false) => {
                refuse(
                    Some(name),
                    topic.id,
                    invalid("You may not specify both topic name and topic id."),
                );
            }
        }
    }
    // Id to the name that the topic is answered with.
    let mut deletable: BTreeMap<TopicId, String> = BTreeMap::new();
    for (id, times) in &ids {
        match image.topic_by_id(*id) {
            _ if *times > 1 => refuse(None, *id, invalid("Duplicate topic id.")),
            None => refuse(None, *id, ClusterError::UnknownTopicId),
            Some(topic) => {
                deletable.insert(*id, topic.name.to_string());
            }
        }
    }
    let mut named_twice: BTreeSet<TopicId> = BTreeSet::new();
    for (name, times) in &names {
        match image.topic(name) {
            _ if *times > 1 => refuse(Some(name), TopicId::ZERO, invalid("Duplicate topic name.")),
            None => refuse(Some(name), TopicId::ZERO, ClusterError::unknown_topic()),
            Some(topic) if ids.contains_key(&topic.id) => {
                named_twice.insert(topic.id);
                let text = "The provided topic name maps to an ID that was already supplied.";
                refuse(Some(name), topic.id, invalid(text));
            }
            Some(topic) => {
                deletable.insert(topic.id, (*name).to_owned());
            }
        }
    }
    deletable.retain(|id, _| !named_twice.contains(id));
    check_record_count(deletable.len())?;
    let records = deletable
        .keys()
        .map(|id| RemoveTopicRecord { topic_id: id.0 }.into())
        .collect();
    results.extend(deletable.into_iter().map(|(id, name)| DeleteTopicResult {
        name: Some(name),
        id,
        result: Ok(()),
    }));
    Ok((records, results))
}
