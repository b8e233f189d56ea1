//! Which log directory a replica lies in.

use super::super::assign_dirs::{DirectoryAssignment, assign_replicas_to_dirs};
use super::*;

fn assignment(image: &ClusterImage, directory: Uuid, partition: i32) -> DirectoryAssignment {
    DirectoryAssignment {
        directory,
        topic_id: image.topic("t").expect("the topic").id,
        partition,
    }
}

pub(super) fn assign(image: &ClusterImage, broker: i32, places: &[(Uuid, i32)]) -> ClusterImage {
    let id = BrokerId(broker);
    let epoch = image.broker(id).expect("registered").epoch;
    let request: Vec<DirectoryAssignment> = places
        .iter()
        .map(|(directory, partition)| assignment(image, *directory, *partition))
        .collect();
    let (records, results) =
        assign_replicas_to_dirs(image, &RULES, id, epoch, &request).expect("judged");
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    apply(image, &records)
}

#[test]
fn a_broker_says_where_its_replica_lies() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &[]);
    assert_eq!(partition(&image).directories, [1, 2].map(directory));
    let moved = assign(&image, 2, &[(directory(2), 0)]);
    assert_eq!(moved, image, "nothing new");
    // In a directory that is not online it is of no use.
    let lost = assign(&image, 1, &[(Uuid::from_u128(777), 0)]);
    assert_eq!(
        partition(&lost).directory_of(BrokerId(1)),
        Uuid::from_u128(777)
    );
    assert_eq!(state(&lost), (vec![2], vec![], vec![], 2, 1, 1));
}

#[test]
fn only_a_replica_of_the_broker_has_a_place_on_it() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1]], &[]);
    let id = BrokerId(2);
    let epoch = image.broker(id).expect("registered").epoch;
    let request = [
        assignment(&image, directory(2), 0),
        assignment(&image, directory(2), 1),
        DirectoryAssignment {
            topic_id: TopicId(Uuid::from_u128(4711)),
            ..assignment(&image, directory(2), 0)
        },
    ];
    let (records, results) =
        assign_replicas_to_dirs(&image, &RULES, id, epoch, &request).expect("judged");
    assert_eq!(records, []);
    assert!(
        matches!(results[0], Err(ClusterError::NotLeaderOrFollower(_))),
        "{results:?}"
    );
    assert_eq!(results[1], Err(ClusterError::unknown_topic()));
    assert_eq!(results[2], Err(ClusterError::UnknownTopicId));
}
