//! Work that comes back at intervals: retention, flushing, checkpoints, compaction. Each runs on a blocking thread, one
//! of a kind at a time, and the storage crate is told the time. Between two runs there is one timer and nothing else.

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::runtime::replica_manager::ReplicaManager;
use highwater_storage::LogManager;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use super::now_ms;
use crate::config::BrokerConfig;

/// How often files of closed and deleted logs are looked through, and segments that were rolled are forced to disk.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(5);
/// How long stopping waits for work that is running; compaction of a large log is cut off safely by the next start.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// The periodic work of a broker.
pub(super) struct Background {
    logs: Arc<LogManager>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Background {
    /// Begins all periodic work, at the intervals of the configuration at start. Must run inside a tokio runtime.
    pub(super) fn start(replicas: &Arc<ReplicaManager>, config: &BrokerConfig) -> Self {
        let mut background = Background {
            logs: Arc::clone(replicas.logs()),
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
        };
        let first = millis(config.log_initial_task_delay_ms);
        let logs = replicas.logs();
        background.every(
            "retention",
            first,
            millis(config.log_retention_check_interval_ms),
            {
                let logs = Arc::clone(logs);
                move || {
                    for topic_partition in logs.run_retention(now_ms()) {
                        tracing::debug!(%topic_partition, "retention moved the log start");
                    }
                }
            },
        );
        let checkpoints = [
            i64::from(config.log_flush_offset_checkpoint_interval_ms),
            i64::from(config.log_flush_start_offset_checkpoint_interval_ms),
            config.replica_high_watermark_checkpoint_interval_ms,
        ];
        let checkpoint_interval = millis(checkpoints.into_iter().min().unwrap_or(i64::MAX));
        background.every("checkpoints", checkpoint_interval, checkpoint_interval, {
            let logs = Arc::clone(logs);
            move || {
                if let Err(error) = logs.write_checkpoints() {
                    tracing::error!(%error, "checkpoints cannot be written");
                }
            }
        });
        let flush_interval =
            millis(config.log_flush_scheduler_interval_ms).min(HOUSEKEEPING_INTERVAL);
        background.every("flush", flush_interval, flush_interval, {
            let logs = Arc::clone(logs);
            move || logs.run_flush(now_ms())
        });
        background.every(
            "deletion of files",
            HOUSEKEEPING_INTERVAL,
            HOUSEKEEPING_INTERVAL,
            {
                let logs = Arc::clone(logs);
                move || logs.delete_renamed(now_ms())
            },
        );
        background.every(
            "partitions that had no space",
            HOUSEKEEPING_INTERVAL,
            HOUSEKEEPING_INTERVAL,
            {
                let replicas = Arc::clone(replicas);
                move || {
                    if replicas.offline_count() > 0 {
                        replicas.reopen_offline(now_ms());
                    }
                    replicas.look_for_space();
                }
            },
        );
        if config.log_cleaner_enable {
            let backoff = millis(config.log_cleaner_backoff_ms);
            let logs = Arc::clone(logs);
            let stop = background.stop.subscribe();
            background.every("cleaner", backoff, backoff, move || {
                while !*stop.borrow() && logs.run_cleaner(now_ms()) {}
            });
        }
        background
    }

    /// Runs `work` first after `first`, then every `interval`; a run that takes longer delays the next.
    fn every(
        &mut self,
        name: &'static str,
        first: Duration,
        interval: Duration,
        work: impl Fn() + Send + Sync + 'static,
    ) {
        let mut stop = self.stop.subscribe();
        let work = Arc::new(work);
        self.tasks.spawn(async move {
            let start = tokio::time::Instant::now() + first;
            let mut ticks = interval_at(start, interval.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
                let work = Arc::clone(&work);
                let run: JoinHandle<()> = spawn_blocking(move || work());
                if let Err(error) = run.await {
                    // The panic hook has logged the place; the next run tries again.
                    tracing::error!(name, %error, "periodic work failed");
                }
            }
        });
    }

    /// Stops all periodic work and waits for what is running.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        self.logs.stop_cleaner();
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP_PATIENCE, all_ended).await.is_err() {
            tracing::warn!("periodic work is still running, stopping without it");
        }
    }
}

/// A configured time; what is negative or beyond a year never comes within this run.
fn millis(ms: i64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    u64::try_from(ms).map_or(YEAR, |ms| Duration::from_millis(ms).min(YEAR))
}
