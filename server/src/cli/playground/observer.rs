//! Looks at the cluster while somebody watches: each broker is asked on its port for clients what it believes and where
//! its log ends, and its log is read from disk.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::admin;
use super::log_tail;
use super::narrator;
use super::plan::{BROKERS, CONTROLLER};
use super::view::{BrokerView, Process, View};
use super::world::World;
use crate::console::offsets;

/// How often the cluster is looked at.
const INTERVAL: Duration = Duration::from_millis(200);
/// Time for a broker to answer; one that takes longer is shown as one that does not.
const PATIENCE: Duration = Duration::from_millis(800);

/// Looks again and again; nothing is asked while nobody watches.
pub(super) async fn observe(world: Arc<World>) {
    loop {
        if !world.is_watched() {
            world.interest.notified().await;
        }
        look(&world).await;
        sleep(INTERVAL).await;
    }
}

/// Looks once, and tells what has changed.
async fn look(world: &Arc<World>) {
    let topic = world.state.lock().topic.clone();
    if topic.is_empty() {
        return;
    }
    let brokers = join_all(BROKERS.map(|id| broker(world, id, &topic))).await;
    let mut now = View {
        brokers,
        ..View::empty(&topic)
    };
    let events = {
        let mut state = world.state.lock();
        if state.topic != topic {
            return;
        }
        now.remember(&state.view);
        let events = narrator::of_views(&state.view, &now);
        state.view = now;
        events
    };
    for event in events {
        world.tell(event);
    }
}

async fn broker(world: &Arc<World>, id: i32, topic: &str) -> BrokerView {
    let process = world.process(id);
    let mut view = BrokerView::unknown(id, process);
    let links = world.network.links();
    view.is_cut_off = links.is_cut_between(id, CONTROLLER);
    if process == Process::Running
        && let Some(client) = world.clients.get(&id)
    {
        let partitions = vec![(Arc::from(topic), 0)];
        let asked = async {
            let belief = admin::belief(client, topic).await;
            let offsets = offsets::of_replicas(client, &partitions).await;
            (belief, offsets)
        };
        if let Ok((belief, offsets)) = timeout(PATIENCE, asked).await {
            view.belief = belief.ok().flatten();
            let offsets = offsets.ok().and_then(|answer| answer.into_values().next());
            if let Some(Ok(offsets)) = offsets {
                view.log_end_offset = Some(offsets.log_end_offset);
                view.high_watermark = offsets.high_watermark;
            }
        }
    }
    let (world, dir) = (Arc::clone(world), world.replica_dir(id, topic));
    let read = tokio::task::spawn_blocking(move || {
        let mut tails = world.tails.lock();
        let tail = tails.entry(id).or_default();
        if let Err(error) = tail.read(&dir) {
            tracing::debug!(%error, dir = %dir.display(), "a log cannot be read");
        }
        (tail.records(), tail.end(), log_tail::epochs(&dir))
    });
    if let Ok((records, end, epochs)) = read.await {
        view.tail = records;
        view.epochs = epochs;
        view.log_end_offset = view.log_end_offset.or(end);
    }
    view
}
