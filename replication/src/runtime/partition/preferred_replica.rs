//! Where a leader sends a consumer that may read from followers (KIP-392).

use highwater_storage::BrokerId;

use super::Partition;
use crate::cluster::ClusterImage;
use crate::state::leader::LeaderState;
use crate::state::leadership::Moment;
use crate::state::replica_progress::ReplicaProgress;
use crate::state::replica_selector::{ReplicaSelector, ReplicaView};

impl Partition {
    /// The replica that a consumer in `client_rack` should read from instead of this leader;
    /// `None` to read here, also on a follower.
    ///
    /// Candidates are live members of the in-sync replicas, and observers that are caught up.
    pub fn preferred_read_replica(&self, client_rack: &str, fetch_offset: i64) -> Option<BrokerId> {
        let selector = self.context.settings().replica_selector;
        if selector == ReplicaSelector::Leader || client_rack.is_empty() {
            return None;
        }
        // Before the lock, which a replica that follows may hold while it cuts its log.
        self.check_leader(None).ok()?;
        let image = self.context.image();
        let role = self.role.lock();
        let leader = role.replica.as_leader()?;
        let log_end_offset = self.log.log_end_offset();
        self.context.at_this_moment(|moment| {
            let followers = leader.followers().iter();
            let candidates = followers.filter(|(broker, progress)| {
                serves_reads(leader, *broker, progress, log_end_offset, moment)
            });
            let views = candidates
                .filter_map(|(broker, progress)| view(&image, *broker, progress, moment.now_ms));
            let leader_rack = rack(&image, self.context.local_broker());
            selector.select(client_rack, fetch_offset, leader_rack, views)
        })
    }
}

fn serves_reads(
    leader: &LeaderState,
    broker: BrokerId,
    progress: &ReplicaProgress,
    log_end_offset: i64,
    moment: &Moment<'_>,
) -> bool {
    if leader.is_observer(broker) {
        progress.is_caught_up(log_end_offset, moment)
    } else {
        leader.isr().committed().contains(&broker)
    }
}

fn view<'a>(
    image: &'a ClusterImage,
    broker: BrokerId,
    progress: &ReplicaProgress,
    now_ms: i64,
) -> Option<ReplicaView<'a>> {
    let registration = image.broker(broker).filter(|broker| !broker.fenced)?;
    let caught_up_ms = progress.last_caught_up_ms.unwrap_or(i64::MIN);
    Some(ReplicaView {
        broker,
        rack: registration.rack.as_deref(),
        log_start_offset: progress.log_start_offset,
        log_end_offset: progress.log_end_offset,
        since_caught_up_ms: now_ms.saturating_sub(caught_up_ms),
    })
}

fn rack(image: &ClusterImage, broker: BrokerId) -> Option<&str> {
    image.broker(broker)?.rack.as_deref()
}
