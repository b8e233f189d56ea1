//! What the console shows: brokers, controllers, topics, partitions with the log end offset and the high watermark of
//! each replica, and groups with their lag.
//!
//! Leaders, in-sync replicas and epochs come from this node's copy of the metadata and cost no request. Where a value
//! lives on another broker, that one is asked over its listener for brokers in Kafka's own requests, and only for the
//! partitions of the page that is watched: the log end offset by ListOffsets as the debugging consumer (replica -2),
//! which every replica answers for itself; its high watermark by a Fetch at that offset, which has no records; groups
//! by ListGroups, DescribeGroups and OffsetFetch. A broker that does not answer in time is shown as one that did not.

mod groups;
mod metadata;
pub mod offsets;
mod peers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use highwater_replication::cluster::ClusterImage;
use highwater_storage::BrokerId;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use self::groups::GroupRow;
use self::metadata::Page;
use self::offsets::{Answer, TopicPartitions};
use self::peers::Peers;
use crate::broker::Broker;
use crate::network::client::ClientConfig;
use crate::web::ConsoleQuery;
use crate::web::rows::Rows;

/// Time for a broker to answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long what is known of groups is shown before it is asked for again, by whomever.
const GROUPS_INTERVAL: Duration = Duration::from_secs(3);

/// The console of one broker.
pub struct Console {
    broker: Arc<Broker>,
    peers: Peers,
    groups: Mutex<Option<(Instant, Arc<Vec<GroupRow>>)>>,
}

impl Console {
    /// The console of `broker`, which reaches the others over the listener for brokers.
    pub fn new(broker: Arc<Broker>, listener_name: String, client: ClientConfig) -> Self {
        let client = ClientConfig {
            request_timeout: PATIENCE,
            connection_setup_timeout: PATIENCE,
            ..client
        };
        Console {
            broker,
            peers: Peers::new(listener_name, client),
            groups: Mutex::default(),
        }
    }

    /// What is shown now.
    pub async fn rows(&self, query: &ConsoleQuery) -> Rows {
        let image = self.broker.image();
        let quorum = self.broker.controller.quorum_status(self.broker.now_ms());
        let page = Page::of(&image, query);
        let (answers, groups) = tokio::join!(self.offsets(&image, &page), self.groups(&image));
        let mut rows = metadata::rows(&image, &quorum, self.broker.controller.broker_id(), &page);
        rows.extend(metadata::broker_rows(&image, &answers));
        rows.extend(metadata::partition_rows(&page, &image, &answers));
        rows.extend(groups.iter().map(GroupRow::to_row));
        rows
    }

    /// What each active broker says of its replicas on the page.
    async fn offsets(
        &self,
        image: &ClusterImage,
        page: &Page,
    ) -> BTreeMap<BrokerId, Result<Answer, String>> {
        let mut wanted: BTreeMap<BrokerId, TopicPartitions> = BTreeMap::new();
        for shown in &page.partitions {
            for replica in shown.partition.replicas.iter().copied() {
                if image.is_active(replica) {
                    let of_broker = wanted.entry(replica).or_default();
                    of_broker.push((Arc::clone(&shown.topic), shown.number));
                }
            }
        }
        let asked = wanted.into_iter().map(async |(broker, partitions)| {
            let answer = self.ask(image, broker, async |client| {
                offsets::of_replicas(client, &partitions).await
            });
            (broker, answer.await)
        });
        join_all(asked).await.into_iter().collect()
    }

    /// The groups, as of a moment ago at most.
    async fn groups(&self, image: &ClusterImage) -> Arc<Vec<GroupRow>> {
        let mut known = self.groups.lock().await;
        if let Some((asked, groups)) = &*known
            && asked.elapsed() < GROUPS_INTERVAL
        {
            return Arc::clone(groups);
        }
        let active: BTreeSet<BrokerId> = image
            .brokers()
            .values()
            .filter(|broker| broker.is_active())
            .map(|broker| broker.id)
            .collect();
        let asked = active.iter().map(async |broker| {
            let groups = self.ask(image, *broker, groups::of_coordinator).await;
            groups.unwrap_or_default()
        });
        let mut found: Vec<GroupRow> = join_all(asked).await.into_iter().flatten().collect();
        groups::keep_first(&mut found);
        let ends = self.ends(image, &found).await;
        for group in &mut found {
            group.set_ends(&ends);
        }
        let groups = Arc::new(found);
        *known = Some((Instant::now(), Arc::clone(&groups)));
        groups
    }

    /// Where consumers of what the groups have committed stand at the latest: the high watermarks, from the leaders.
    async fn ends(
        &self,
        image: &ClusterImage,
        groups: &[GroupRow],
    ) -> BTreeMap<(Arc<str>, i32), i64> {
        let mut led: BTreeMap<BrokerId, TopicPartitions> = BTreeMap::new();
        for (topic, partition) in groups::committed_partitions(groups) {
            if let Some(leader) = image.partition(&topic, partition).and_then(|p| p.leader) {
                led.entry(leader).or_default().push((topic, partition));
            }
        }
        let asked = led.into_iter().map(async |(leader, partitions)| {
            let ends = self.ask(image, leader, async |client| {
                offsets::for_consumers(client, &partitions).await
            });
            ends.await.unwrap_or_default()
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Asks a broker something; the text says why there is no answer.
    async fn ask<T>(
        &self,
        image: &ClusterImage,
        broker: BrokerId,
        question: impl AsyncFnOnce(
            &crate::network::client::Client,
        ) -> Result<T, crate::network::client::ClientError>,
    ) -> Result<T, String> {
        let client = self
            .peers
            .client(image, broker)
            .ok_or("it has no address for brokers")?;
        match timeout(PATIENCE, question(&client)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}
