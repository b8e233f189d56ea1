use super::super::create_partitions::{MorePartitions, create_partitions};
use super::*;

fn more(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> MorePartitions {
    let assignments =
        assignments.map(|assignments| assignments.iter().map(|brokers| brokers.to_vec()).collect());
    MorePartitions {
        name: name.to_owned(),
        count,
        assignments,
    }
}

fn refusal(image: &ClusterImage, request: MorePartitions) -> ClusterError {
    let (records, mut results) =
        create_partitions(image, &[request]).expect("not refused as a whole");
    assert_eq!(records, []);
    results.remove(0).1.expect_err("a refusal")
}

#[test]
fn partitions_are_added_behind_those_that_exist() {
    let image = with_topic(&cluster_of(&[1, 2]), "t", 2);
    let (records, results) = create_partitions(&image, &[more("t", 4, None)]).expect("made");
    assert_eq!(results, [("t".to_owned(), Ok(()))]);
    let image = apply(&image, &records);
    assert_eq!(image.topic("t").expect("the topic").partitions.len(), 4);
    assert_eq!(image.partition_count(), 4);
    let (records, _) = create_partitions(&image, &[more("t", 5, Some(&[&[2]]))]).expect("made");
    let image = apply(&image, &records);
    assert_eq!(
        image.partition("t", 4).expect("the partition").leader,
        Some(BrokerId(2))
    );
}

#[test]
fn what_is_no_increase_or_does_not_fit_is_refused() {
    let image = with_topic(&cluster_of(&[1]), "t", 2);
    let text = |request| refusal(&image, request).to_string();
    assert_eq!(
        text(more("t", 2, None)),
        "Topic already has 2 partition(s)."
    );
    let no_increase = "The topic t currently has 2 partition(s); 1 would not be an increase.";
    assert_eq!(text(more("t", 1, None)), no_increase);
    assert_eq!(
        refusal(&image, more("nope", 4, None)),
        ClusterError::unknown_topic()
    );
    assert_eq!(
        text(more("t", 4, Some(&[&[1]]))),
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
    );
    assert!(text(more("t", 3, Some(&[&[9]]))).ends_with("but no such broker is registered."));
    assert!(text(more("t", 3, Some(&[&[]]))).ends_with("an empty replica list."));
    let excessive = "Excessively large number of additional partitions per request.";
    assert_eq!(text(more("t", 10_003, None)), excessive);
    assert_eq!(text(more("t", i32::MAX, None)), excessive);
}

#[test]
fn a_name_that_repeats_is_refused_once() {
    let image = with_topic(&cluster_of(&[1]), "t", 2);
    let (records, results) =
        create_partitions(&image, &[more("t", 3, None), more("t", 4, None)]).expect("judged");
    assert_eq!(records, []);
    assert_eq!(
        results,
        [(
            "t".to_owned(),
            Err(ClusterError::InvalidRequest(
                "Duplicate topic name.".to_owned()
            ))
        )]
    );
}
