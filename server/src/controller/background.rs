//! What the active controller does by itself: it fences brokers that are silent, gives leaderships back to preferred
//! leaders, and elects unclean leaders where a topic allows it. A node that is not active does none of it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use highwater_replication::cluster::broker_changes::fence_broker;
use highwater_replication::cluster::elect_leaders::{balance_leaders, elect_unclean_leaders};
use highwater_replication::cluster::{ClusterImage, MetadataRecord, ReplicationDefaults};
use highwater_storage::BrokerId;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::process_probe::processes_gone;
use super::{BrokerSessions, ControllerError, ControllerHandle, Decision, replication_defaults};
use crate::config::DynamicConfig;

/// Elections of one pass, as in Kafka; when there may be more, the next pass follows at once.
const MAX_ELECTIONS: usize = 1000;

/// The periodic work of a controller. Dropping it ends the work.
#[derive(Debug)]
pub struct ControllerBackground {
    _tasks: JoinSet<()>,
}

/// What the work needs. Cheap to clone.
#[derive(Clone)]
struct Work {
    controller: ControllerHandle,
    sessions: Arc<BrokerSessions>,
    config: Arc<DynamicConfig>,
}

impl ControllerBackground {
    /// Begins the work of a node with the controller role. Must run inside a tokio runtime.
    pub fn start(
        controller: &ControllerHandle,
        sessions: &Arc<BrokerSessions>,
        config: &Arc<DynamicConfig>,
    ) -> Self {
        let work = Work {
            controller: controller.clone(),
            sessions: Arc::clone(sessions),
            config: Arc::clone(config),
        };
        let current = config.current();
        let mut tasks = JoinSet::new();
        tasks.spawn(work.clone().check_sessions());
        if current.auto_leader_rebalance_enable {
            let seconds = current.leader_imbalance_check_interval_seconds;
            tasks.spawn(every(millis(seconds.saturating_mul(1000)), {
                let work = work.clone();
                move || work.clone().run_elections("preferred", balance_leaders)
            }));
        }
        let interval_ms = current.unclean_leader_election_interval_ms;
        tasks.spawn(every(millis(interval_ms), move || {
            work.clone().run_elections("unclean", elect_unclean_leaders)
        }));
        Self { _tasks: tasks }
    }
}

/// Elections that are due: image, defaults, how many at most; the records, and whether there may be more.
type Elections = fn(&ClusterImage, &ReplicationDefaults, usize) -> (Vec<MetadataRecord>, bool);

impl Work {
    /// Looks for silent brokers several times in a session, and when one whose process seems gone has had its time.
    async fn check_sessions(self) {
        let config = *self.sessions.config();
        let interval = millis(config.check_interval_ms());
        // One millisecond more, as only what is longer than the grace counts.
        let grace = config.disconnect_grace_ms.map(|grace| millis(grace + 1));
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut gone = self.controller.quorum().gone();
        let mut active = self.controller.active_controller();
        let mut early: Option<Instant> = None;
        loop {
            let is_due = async {
                match early {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let is_suspected = tokio::select! {
                _ = ticks.tick() => false,
                () = is_due => {
                    early = None;
                    false
                }
                () = self.sessions.until_disconnected() => true,
                Ok(()) = gone.changed() => true,
                // Who became active knows already who is gone.
                Ok(()) = active.changed() => self.active_epoch().is_some(),
            };
            let ids = gone.borrow_and_update().clone();
            self.suspect(&ids);
            if is_suspected {
                early = early.or_else(|| Some(Instant::now() + grace?));
                self.look_for_suspects().await;
            }
            self.fence_silent_brokers().await;
        }
    }

    /// Takes the brokers whose processes are gone for dead, unless they are heard of within the grace.
    fn suspect(&self, gone: &BTreeSet<i32>) {
        let Some(epoch) = self.active_epoch().filter(|_| !gone.is_empty()) else {
            return;
        };
        let image = self.controller.image();
        self.sessions.with(epoch, &image, |liveness, now_ms| {
            for broker in gone.iter().filter_map(|id| image.broker(BrokerId(*id))) {
                liveness.on_disconnected(broker.id, broker.epoch, now_ms);
            }
        });
    }

    /// Looks whether the processes of suspects are there; those whose are not get no grace.
    async fn look_for_suspects(&self) {
        let Some(epoch) = self.active_epoch() else {
            return;
        };
        let image = self.controller.image();
        let suspects = self
            .sessions
            .with(epoch, &image, |liveness, _| liveness.suspects(&image));
        let gone = processes_gone(&image, suspects).await;
        self.sessions.with(epoch, &image, |liveness, _| {
            for (id, epoch) in gone {
                liveness.on_process_gone(id, epoch);
            }
        });
    }

    /// Fences the brokers whose sessions are over, one after the other, so that each sees what the one before changed.
    async fn fence_silent_brokers(&self) {
        while let Some(epoch) = self.active_epoch() {
            let image = self.controller.image();
            let is_silent = self.sessions.with(epoch, &image, |liveness, now_ms| {
                liveness.expired_broker(&image, now_ms).is_some()
            });
            if !is_silent {
                return;
            }
            let (sessions, defaults) = (Arc::clone(&self.sessions), self.defaults());
            let fenced = self.controller.submit(move |image, _| {
                // Asked again: it may have been heard of since.
                let silent = sessions.with(epoch, image, |liveness, now_ms| {
                    liveness.expired_broker(image, now_ms)
                });
                let records = silent.map(|id| fence_broker(image, &defaults, id));
                match (silent, records) {
                    (Some(id), Some(Ok(records))) => Decision {
                        records,
                        response: Ok(Some(id)),
                    },
                    (_, Some(Err(error))) => Decision::unchanged(Err(error)),
                    _ => Decision::unchanged(Ok(None)),
                }
            });
            match fenced.await {
                Ok(Ok(Some(BrokerId(broker_id)))) => {
                    tracing::warn!(broker_id, "fenced a broker that is silent");
                }
                Ok(Ok(None)) => return,
                Ok(Err(error)) => return tracing::error!(%error, "a broker cannot be fenced"),
                Err(error) => return log_failure("fencing", &error),
            }
        }
    }

    async fn run_elections(self, kind: &'static str, elections: Elections) {
        while self.active_epoch().is_some() {
            let defaults = self.defaults();
            let elected = self.controller.submit(move |image, _| {
                let (records, may_be_more) = elections(image, &defaults, MAX_ELECTIONS);
                Decision {
                    response: (records.len(), may_be_more),
                    records,
                }
            });
            match elected.await {
                Ok((0, _)) => return,
                Ok((elected, may_be_more)) => {
                    tracing::info!(kind, elected, "elected leaders");
                    if !may_be_more {
                        return;
                    }
                }
                Err(error) => return log_failure(kind, &error),
            }
        }
    }

    /// The epoch that this node is the active controller in, if it is.
    fn active_epoch(&self) -> Option<i32> {
        let active = self.controller.active_controller();
        let epoch = active.borrow().as_ref().map(|node| node.epoch);
        epoch.filter(|_| self.controller.is_active())
    }

    fn defaults(&self) -> ReplicationDefaults {
        replication_defaults(&self.config.current())
    }
}

fn log_failure(what: &str, error: &ControllerError) {
    match error {
        ControllerError::NotController { .. } | ControllerError::Stopping => {
            tracing::debug!(what, %error, "work of the controller ends");
        }
        error => tracing::error!(what, %error, "work of the controller failed"),
    }
}

/// Runs `work` every `interval`; a run that takes longer delays the next.
async fn every<W: Future<Output = ()>>(interval: Duration, work: impl Fn() -> W) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work().await;
    }
}

/// A configured time; what is negative or beyond a year never comes within this run.
fn millis(ms: i64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    u64::try_from(ms).map_or(YEAR, |ms| Duration::from_millis(ms.max(1)).min(YEAR))
}
