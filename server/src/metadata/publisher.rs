//! The latest image, and those who act on what changes in it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use tokio::sync::watch;

/// Acts on a new image, on the controller's thread: a request's response waits for it. Must not submit a request and
/// wait for it.
pub type MetadataSubscriber = Box<dyn Fn(&Arc<ClusterImage>, &ClusterDelta) + Send + Sync>;

/// Hands out the latest image.
pub struct MetadataPublisher {
    image: ArcSwap<ClusterImage>,
    published_offset: watch::Sender<i64>,
    subscribers: Vec<MetadataSubscriber>,
}

impl MetadataPublisher {
    /// Starts with `image`, of which subscribers are not told: they are built from it.
    pub fn new(image: Arc<ClusterImage>, subscribers: Vec<MetadataSubscriber>) -> Self {
        Self {
            published_offset: watch::Sender::new(image.offset()),
            image: ArcSwap::new(image),
            subscribers,
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

    /// Makes `image` the latest: those who act on changes first, in the order they subscribed, so that who reads the
    /// new image finds its partitions at work.
    pub(crate) fn publish(&self, image: &Arc<ClusterImage>, delta: &ClusterDelta) {
        if !delta.is_empty() {
            for subscriber in &self.subscribers {
                subscriber(image, delta);
            }
        }
        self.image.store(image.clone());
        self.published_offset.send_replace(image.offset());
    }
}

impl std::fmt::Debug for MetadataPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataPublisher")
            .field("offset", &self.image.load().offset())
            .field("subscribers", &self.subscribers.len())
            .finish()
    }
}
