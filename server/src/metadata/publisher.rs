//! The latest image, and those who act on what changes in it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Acts on a new image, on the thread that publishes it: a request's response waits for it. Must not submit a request
/// and wait for it.
pub type MetadataSubscriber = Box<dyn Fn(&Arc<ClusterImage>, &ClusterDelta) + Send + Sync>;

/// Hands out the latest image.
pub struct MetadataPublisher {
    image: ArcSwap<ClusterImage>,
    published_offset: watch::Sender<i64>,
    /// Locked while an image is published, so that none is missed by those who join.
    subscribers: Mutex<Vec<MetadataSubscriber>>,
}

impl MetadataPublisher {
    /// Starts with `image`, of which subscribers are not told: they are built from it.
    pub fn new(image: Arc<ClusterImage>, subscribers: Vec<MetadataSubscriber>) -> Self {
        Self {
            published_offset: watch::Sender::new(image.offset()),
            image: ArcSwap::new(image),
            subscribers: Mutex::new(subscribers),
        }
    }

    /// The latest image whose changes every subscriber has acted on, or is acting on.
    pub fn image(&self) -> Arc<ClusterImage> {
        self.image.load_full()
    }

    /// Offset of the last record of the latest image, and word of each change: what this node has acted on.
    pub fn published_offset(&self) -> watch::Receiver<i64> {
        self.published_offset.subscribe()
    }

    /// Adds subscribers that were built from `image`: they are told what has changed since, and of all that follows.
    pub fn join(&self, image: &ClusterImage, subscribers: Vec<MetadataSubscriber>) {
        let mut joined = self.subscribers.lock();
        let latest = self.image();
        let delta = ClusterDelta::between(image, &latest);
        if !delta.is_empty() {
            for subscriber in &subscribers {
                subscriber(&latest, &delta);
            }
        }
        joined.extend(subscribers);
    }

    /// Lets go of all subscribers, which may hold what holds this.
    pub fn close(&self) {
        self.subscribers.lock().clear();
    }

    /// Makes `image` the latest: those who act on changes first, in the order they subscribed, so that who reads the
    /// new image finds its partitions at work.
    pub(crate) fn publish(&self, image: &Arc<ClusterImage>, delta: &ClusterDelta) {
        {
            let subscribers = self.subscribers.lock();
            if !delta.is_empty() {
                for subscriber in subscribers.iter() {
                    subscriber(image, delta);
                }
            }
            self.image.store(image.clone());
        }
        self.published_offset.send_replace(image.offset());
    }
}

impl std::fmt::Debug for MetadataPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataPublisher")
            .field("offset", &self.image.load().offset())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use highwater_replication::cluster::MetadataRecord;
    use highwater_replication::cluster::records::TopicRecord;
    use uuid::Uuid;

    use super::*;

    fn with_topic(image: &ClusterImage, id: u128) -> (Arc<ClusterImage>, ClusterDelta) {
        let record: MetadataRecord = TopicRecord {
            name: format!("topic-{id}"),
            topic_id: Uuid::from_u128(id),
        }
        .into();
        let applied = image.apply(&[record], image.offset() + 1, 1);
        let (image, delta) = applied.expect("it fits");
        (Arc::new(image), delta)
    }

    #[test]
    fn who_joins_late_is_told_what_has_changed_since_its_image() {
        let first = Arc::new(ClusterImage::empty("c"));
        let publisher = MetadataPublisher::new(first.clone(), Vec::new());
        let (second, delta) = with_topic(&first, 1);
        publisher.publish(&second, &delta);
        let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
        let subscriber: MetadataSubscriber = {
            let seen = seen.clone();
            Box::new(move |image: &Arc<ClusterImage>, delta| {
                seen.lock().push(delta.created_topics.len());
                assert!(delta.created_topics.len() <= image.topic_count());
            })
        };
        publisher.join(&first, vec![subscriber]);
        assert_eq!(*seen.lock(), [1]);
        let (third, delta) = with_topic(&second, 2);
        publisher.publish(&third, &delta);
        assert_eq!(*seen.lock(), [1, 1]);
        assert_eq!(*publisher.published_offset().borrow(), 1);
    }
}
