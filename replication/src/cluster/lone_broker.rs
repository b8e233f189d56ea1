//! The only broker of a cluster whose only controller is the same process starts again: nobody else could have led
//! meanwhile, and nobody is to be told first, so it is registered and in service with one write and keeps what it leads.

use highwater_storage::types::BrokerEpoch;

use super::error::ClusterError;
use super::image::ClusterImage;
use super::partition_change::PartitionChangeBuilder;
use super::records::{BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord};
use super::registration::{BrokerRegistrationRequest, check_registration, registration_record};
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// The records that register the only broker, unfence it and elect it where nobody leads, and its epoch.
///
/// `last_stop_was_clean` says whether every log directory was closed cleanly by the run that registered last. If not,
/// what it leads gets a new leader epoch, so that records lost with an unsynced tail cannot be mistaken for new ones.
pub fn register_lone_broker(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    request: BrokerRegistrationRequest,
    last_stop_was_clean: bool,
) -> Result<(Vec<MetadataRecord>, BrokerEpoch), ClusterError> {
    check_registration(image, &request)?;
    let id = request.id;
    let epoch = BrokerEpoch(image.offset() + 1);
    let directories_take_replicas = BrokerRegistrationChangeRecord {
        broker_id: id.0,
        broker_epoch: epoch.0,
        cordoned_log_dirs: Some(Vec::new()),
        ..BrokerRegistrationChangeRecord::default()
    };
    let unfenced = BrokerRegistrationChangeRecord {
        fenced: -1,
        cordoned_log_dirs: None,
        ..directories_take_replicas.clone()
    };
    let mut records = vec![
        registration_record(request, epoch, None).into(),
        unfenced.into(),
        directories_take_replicas.into(),
    ];
    let last_offset = image.offset() + records.len() as i64;
    let (image, _) = image
        .apply(&records, last_offset, image.epoch())
        .map_err(|error| ClusterError::UnknownServerError(error.to_string()))?;
    for topic in image.topics() {
        let rules = TopicRules::of(&image, topic, defaults);
        for (index, partition) in topic.partitions.iter().enumerate() {
            let index = index as i32;
            let change = match partition.leader {
                None => PartitionChangeBuilder::new(&image, &rules, index, partition)
                    .election_of_topic()
                    .build(),
                Some(leader) => {
                    (leader == id && !last_stop_was_clean).then(|| PartitionChangeRecord {
                        partition_id: index,
                        topic_id: topic.id.0,
                        leader: id.0,
                        ..PartitionChangeRecord::default()
                    })
                }
            };
            records.extend(change.map(MetadataRecord::from));
        }
    }
    Ok((records, epoch))
}
