//! The rows that come from the metadata. Pure: images and answers in, rows out.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_replication::cluster::{
    BrokerRegistration, ClusterImage, PartitionImage, TopicImage,
};
use highwater_storage::BrokerId;
use serde_json::{Value, json};

use super::offsets::Answer;
use crate::controller::QuorumStatus;
use crate::web::rows::Rows;
use crate::web::{ConsoleQuery, PARTITIONS_PER_PAGE};

/// What each broker said of its replicas, or why it said nothing.
pub(super) type Answers = BTreeMap<BrokerId, Result<Answer, String>>;

/// A partition on the page.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) topic: Arc<str>,
    pub(super) number: i32,
    pub(super) partition: Arc<PartitionImage>,
}

/// The partitions that are shown of all that the query asks for.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) partitions: Vec<Shown>,
    topics: Vec<Arc<TopicImage>>,
    skip: usize,
    /// Partitions that match in all.
    matching: usize,
}

impl Page {
    /// The page that a query asks for; one beyond the last is empty.
    pub(super) fn of(image: &ClusterImage, query: &ConsoleQuery) -> Self {
        let mut page = Page {
            partitions: Vec::new(),
            topics: Vec::new(),
            skip: query.skip,
            matching: 0,
        };
        let matching = image.topics().filter(|topic| {
            let is_internal = topic.name.starts_with("__");
            (query.internal || !is_internal) && topic.name.contains(&query.topic)
        });
        for topic in matching {
            let count = topic.partitions.len();
            let end = query.skip.saturating_add(PARTITIONS_PER_PAGE);
            let from = query.skip.saturating_sub(page.matching).min(count);
            let to = end.saturating_sub(page.matching).min(count);
            if from < to {
                page.topics.push(Arc::clone(topic));
            }
            let numbered = (0..).zip(&topic.partitions).take(to).skip(from);
            page.partitions
                .extend(numbered.map(|(number, partition)| Shown {
                    topic: Arc::clone(&topic.name),
                    number,
                    partition: Arc::clone(partition),
                }));
            page.matching += count;
        }
        page
    }
}

/// The rows of the cluster, its controllers and the topics of the page.
pub(super) fn rows(
    image: &ClusterImage,
    quorum: &QuorumStatus,
    own_id: BrokerId,
    page: &Page,
) -> Rows {
    let mut rows = Rows::new();
    let (mut offline, mut under_replicated) = (0, 0);
    for partition in image.topics().flat_map(|topic| &topic.partitions) {
        offline += usize::from(partition.leader.is_none());
        under_replicated += usize::from(is_under_replicated(partition));
    }
    rows.insert(
        "cluster".to_owned(),
        json!({
            "cluster_id": &**image.cluster_id(),
            "node_id": own_id.0,
            "version": env!("CARGO_PKG_VERSION"),
            "controller": quorum.leader_id,
            "controller_epoch": quorum.leader_epoch,
            "topics": image.topic_count(),
            "partitions": image.partition_count(),
            "offline": offline,
            "under_replicated": under_replicated,
            "matching": page.matching,
            "skip": page.skip,
            "page_size": PARTITIONS_PER_PAGE,
        }),
    );
    for voter in &quorum.voters {
        let row = json!({
            "id": voter.id,
            "active": quorum.leader_id == Some(voter.id),
            "address": controller_address(image, voter.id),
        });
        rows.insert(format!("controller/{:08}", voter.id), row);
    }
    for topic in &page.topics {
        let configs: BTreeMap<&String, &String> = image
            .topic_configs(&topic.name)
            .map(|configs| configs.iter().collect())
            .unwrap_or_default();
        let under = topic.partitions.iter().filter(|p| is_under_replicated(p));
        let row = json!({
            "topic": &*topic.name,
            "partitions": topic.partitions.len(),
            "replication_factor": topic.partitions.first().map_or(0, |p| p.replicas.len()),
            "under_replicated": under.count(),
            "configs": configs,
        });
        rows.insert(format!("topic/{}", topic.name), row);
    }
    rows
}

fn is_under_replicated(partition: &PartitionImage) -> bool {
    partition.isr.len() < partition.replicas.len()
}

fn controller_address(image: &ClusterImage, id: i32) -> Option<String> {
    let controller = image.controllers().get(&id)?;
    let end_point = controller.end_points.first()?;
    Some(format!("{}:{}", end_point.host, end_point.port))
}

/// The rows of the brokers. What is counted is counted over all partitions.
pub(super) fn broker_rows(image: &ClusterImage, answers: &Answers) -> Rows {
    let mut counts: BTreeMap<BrokerId, (usize, usize)> = BTreeMap::new();
    for partition in image.topics().flat_map(|topic| &topic.partitions) {
        for replica in &partition.replicas {
            counts.entry(*replica).or_default().1 += 1;
        }
        if let Some(leader) = partition.leader {
            counts.entry(leader).or_default().0 += 1;
        }
    }
    let row = |broker: &BrokerRegistration| {
        let (leads, replicas) = counts.get(&broker.id).copied().unwrap_or_default();
        let refusal = answers
            .get(&broker.id)
            .and_then(|answer| answer.as_ref().err());
        json!({
            "id": broker.id.0,
            "state": state(broker),
            "address": broker.end_points.first().map(|e| format!("{}:{}", e.host, e.port)),
            "rack": broker.rack,
            "broker_epoch": broker.epoch.0,
            "leads": leads,
            "replicas": replicas,
            "no_answer": refusal,
        })
    };
    let brokers = image.brokers().values();
    brokers
        .map(|broker| (format!("broker/{:08}", broker.id.0), row(broker)))
        .collect()
}

fn state(broker: &BrokerRegistration) -> &'static str {
    match (broker.fenced, broker.in_controlled_shutdown) {
        (true, _) => "fenced",
        (false, true) => "shutting down",
        (false, false) => "active",
    }
}

/// The rows of the partitions on the page.
pub(super) fn partition_rows(page: &Page, image: &ClusterImage, answers: &Answers) -> Rows {
    let rows = page.partitions.iter().map(|shown| {
        let key = format!("partition/{}/{:06}", shown.topic, shown.number);
        (key, partition_row(shown, image, answers))
    });
    rows.collect()
}

fn partition_row(shown: &Shown, image: &ClusterImage, answers: &Answers) -> Value {
    let partition = &shown.partition;
    let key = (Arc::clone(&shown.topic), shown.number);
    let replica = |id: &BrokerId| {
        let said = match answers.get(id) {
            Some(Ok(answer)) => answer.get(&key).cloned(),
            Some(Err(reason)) => Some(Err(reason.clone())),
            None if image.broker(*id).is_some() => Some(Err("fenced".to_owned())),
            None => Some(Err("not registered".to_owned())),
        };
        let offsets = said.as_ref().and_then(|said| said.as_ref().ok());
        json!({
            "id": id.0,
            "in_sync": partition.isr.contains(id),
            "log_end_offset": offsets.map(|offsets| offsets.log_end_offset),
            "high_watermark": offsets.and_then(|offsets| offsets.high_watermark),
            "error": said.as_ref().and_then(|said| said.as_ref().err()),
        })
    };
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
    let out_of_sync = partition
        .replicas
        .iter()
        .filter(|id| !partition.isr.contains(id));
    json!({
        "topic": &*shown.topic,
        "partition": shown.number,
        "leader": partition.leader.map(|leader| leader.0),
        "leader_epoch": partition.leader_epoch.0,
        "partition_epoch": partition.partition_epoch.0,
        "isr": ids(&partition.isr),
        "out_of_sync": out_of_sync.map(|id| id.0).collect::<Vec<_>>(),
        "eligible_leader_replicas": ids(&partition.eligible_leader_replicas),
        "replicas": partition.replicas.iter().map(replica).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use highwater_replication::cluster::MetadataRecord;
    use highwater_replication::cluster::records::{
        PartitionRecord, RegisterBrokerRecord, TopicRecord, UnfenceBrokerRecord,
    };
    use uuid::Uuid;

    use super::*;
    use crate::console::offsets::ReplicaOffsets;

    const QUORUM: QuorumStatus = QuorumStatus {
        leader_id: Some(3001),
        leader_epoch: 4,
        high_watermark: 0,
        voters: Vec::new(),
        observers: Vec::new(),
    };

    /// Brokers 1 and 2, the latter fenced, and topics with so many partitions each.
    fn image(topics: &[(&str, i32)]) -> ClusterImage {
        let mut records: Vec<MetadataRecord> = Vec::new();
        for broker_id in [1, 2] {
            let record = RegisterBrokerRecord {
                broker_id,
                fenced: true,
                ..RegisterBrokerRecord::default()
            };
            records.push(record.into());
        }
        let unfence = UnfenceBrokerRecord {
            id: 1,
            ..UnfenceBrokerRecord::default()
        };
        records.push(unfence.into());
        for (at, (name, partitions)) in topics.iter().enumerate() {
            let topic_id = Uuid::from_u128(at as u128 + 1);
            let topic = TopicRecord {
                name: (*name).to_owned(),
                topic_id,
            };
            records.push(topic.into());
            for partition_id in 0..*partitions {
                let partition = PartitionRecord {
                    partition_id,
                    topic_id,
                    replicas: vec![1, 2],
                    isr: vec![1],
                    leader: 1,
                    leader_epoch: 3,
                    partition_epoch: 5,
                    ..PartitionRecord::default()
                };
                records.push(partition.into());
            }
        }
        let (image, _) = ClusterImage::empty("cluster")
            .apply(&records, 0, 1)
            .expect("records that fit");
        image
    }

    fn shown(page: &Page) -> Vec<String> {
        let shown = page.partitions.iter();
        shown
            .map(|shown| format!("{}-{}", shown.topic, shown.number))
            .collect()
    }

    #[test]
    fn a_page_has_only_so_many_partitions_of_the_topics_that_match() {
        let image = image(&[("__offsets", 3), ("a", 30), ("b", 40), ("c", 1)]);
        let query = |topic: &str, skip, internal| ConsoleQuery {
            topic: topic.to_owned(),
            skip,
            internal,
        };
        let first = Page::of(&image, &query("", 0, false));
        assert_eq!((first.partitions.len(), first.matching), (50, 71));
        assert_eq!(shown(&first).last().map(String::as_str), Some("b-19"));
        let second = Page::of(&image, &query("", 50, false));
        assert_eq!(second.partitions.len(), 21);
        assert_eq!(shown(&second)[0], "b-20");
        let topics: Vec<&str> = second.topics.iter().map(|topic| &*topic.name).collect();
        assert_eq!(topics, ["b", "c"]);
        assert_eq!(shown(&Page::of(&image, &query("c", 0, false))), ["c-0"]);
        assert_eq!(Page::of(&image, &query("__", 0, true)).matching, 3);
        for skip in [1000, usize::MAX] {
            let beyond = Page::of(&image, &query("", skip, false));
            assert_eq!((beyond.partitions.len(), beyond.matching), (0, 71));
        }
    }

    #[test]
    fn a_partition_tells_each_replica_and_who_did_not_answer() {
        let image = image(&[("t", 1)]);
        let page = Page::of(&image, &ConsoleQuery::default());
        let offsets = ReplicaOffsets {
            log_end_offset: 7,
            high_watermark: Some(6),
        };
        let answers = [(
            BrokerId(1),
            Ok(Answer::from([(("t".into(), 0), Ok(offsets))])),
        )];
        let rows = partition_rows(&page, &image, &answers.into());
        let row = &rows["partition/t/000000"];
        assert_eq!(row["leader_epoch"], 3);
        assert_eq!(row["out_of_sync"], json!([2]));
        let leader = json!({"id": 1, "in_sync": true, "log_end_offset": 7, "high_watermark": 6, "error": null});
        let fenced = json!({"id": 2, "in_sync": false, "log_end_offset": null, "high_watermark": null, "error": "fenced"});
        assert_eq!(row["replicas"], json!([leader, fenced]));
        let silent = [(BrokerId(1), Err("no answer in time".to_owned()))].into();
        let rows = partition_rows(&page, &image, &silent);
        assert_eq!(
            rows["partition/t/000000"]["replicas"][0]["error"],
            "no answer in time"
        );
        let rows = broker_rows(&image, &silent);
        assert_eq!(rows["broker/00000001"]["no_answer"], "no answer in time");
        assert_eq!(rows["broker/00000001"]["leads"], 1);
        assert_eq!(rows["broker/00000002"]["state"], "fenced");
    }

    #[test]
    fn the_cluster_counts_what_is_in_trouble() {
        let image = image(&[("t", 3)]);
        let page = Page::of(&image, &ConsoleQuery::default());
        let rows = rows(&image, &QUORUM, BrokerId(1), &page);
        assert_eq!(rows["cluster"]["under_replicated"], 3);
        assert_eq!(rows["cluster"]["offline"], 0);
        assert_eq!(rows["cluster"]["controller"], 3001);
        assert_eq!(rows["topic/t"]["under_replicated"], 3);
    }
}
