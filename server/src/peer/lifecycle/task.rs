//! Carries out what the life cycle decides.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use highwater_replication::cluster::registration::BrokerRegistrationRequest as Registration;
use highwater_storage::BrokerEpoch;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{BrokerHeartbeatResponse, BrokerRegistrationResponse};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::request::{self, Heartbeat};
use super::state::{BrokerState, Communication, HeartbeatAnswer, Lifecycle, LifecycleSettings};
use crate::controller::ControllerHandle;
use crate::peer::controller_channel::{ChannelError, ControllerChannel};

/// Why a broker does not come to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleEnded {
    /// The controllers did not take it in time.
    #[error("the broker was not registered by the controllers: {0}")]
    NotRegistered(Arc<str>),
    /// Another process has registered under its id, or it was taken out of the cluster.
    #[error(
        "another process is registered under the id of this broker, or it was unregistered: {0}"
    )]
    Superseded(Arc<str>),
    /// It was told to stop.
    #[error("the broker is stopping")]
    Stopping,
}

/// The life of one run of this broker. Handles ask and tell; [`run`](Self::run) talks to the controller.
pub struct BrokerLifecycle {
    lifecycle: Mutex<Lifecycle>,
    /// Something was told that may make a request due.
    told: Notify,
    state: watch::Sender<BrokerState>,
    session_end: watch::Sender<Option<Instant>>,
    /// Why the registration was refused last.
    refusal: Mutex<Arc<str>>,
    started: Instant,
}

/// What became of a request.
enum Outcome {
    Registered(i64),
    Heartbeat(HeartbeatAnswer),
    /// The controller knows this run of the broker no more.
    Stale(Arc<str>),
    Failed(Arc<str>),
}

impl BrokerLifecycle {
    /// A life that begins now, with the metadata as `controller` has it.
    pub fn new(settings: LifecycleSettings, controller: &ControllerHandle) -> Arc<Self> {
        let lifecycle = Lifecycle::new(settings, controller.image().offset(), 0);
        Arc::new(BrokerLifecycle {
            state: watch::Sender::new(lifecycle.state()),
            session_end: watch::Sender::new(None),
            lifecycle: Mutex::new(lifecycle),
            told: Notify::new(),
            refusal: Mutex::new("no controller answered".into()),
            started: Instant::now(),
        })
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn instant(&self, ms: i64) -> Instant {
        self.started + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }

    /// Where the broker is, and word of each change.
    pub fn state(&self) -> watch::Receiver<BrokerState> {
        self.state.subscribe()
    }

    /// See [`Lifecycle::session_end_ms`]; with word of each change.
    pub fn session_end(&self) -> watch::Receiver<Option<Instant>> {
        self.session_end.subscribe()
    }

    /// Waits until no controller has taken a heartbeat for a session, or until this broker is fenced: others may lead then
    /// what it leads.
    pub(super) async fn until_session_ends(&self) {
        let mut session_end = self.session_end();
        loop {
            let end = *session_end.borrow_and_update();
            let Some(end) = end.filter(|end| *end > Instant::now()) else {
                return;
            };
            tokio::select! {
                // The sender lives as long as `self`.
                _ = session_end.changed() => {}
                () = sleep_until(end) => {}
            }
        }
    }

    /// Tells the life cycle something from outside of [`run`](Self::run).
    fn tell<R>(&self, tell: impl FnOnce(&mut Lifecycle, i64) -> R) -> R {
        let told = self.update(tell);
        self.told.notify_one();
        told
    }

    /// Tells the life cycle something, and those who wait what that makes of the state.
    fn update<R>(&self, tell: impl FnOnce(&mut Lifecycle, i64) -> R) -> R {
        let mut lifecycle = self.lifecycle.lock();
        let told = tell(&mut lifecycle, self.now_ms());
        let now = lifecycle.state();
        let end = lifecycle.session_end_ms().map(|ms| self.instant(ms));
        self.session_end.send_if_modified(|known| {
            let before = std::mem::replace(known, end);
            before != end
        });
        self.state.send_if_modified(|state| {
            let before = std::mem::replace(state, now);
            if before != now {
                tracing::info!(
                    ?before,
                    ?now,
                    broker_epoch = lifecycle.broker_epoch(),
                    "broker state"
                );
            }
            before != now
        });
        told
    }

    /// The broker was registered by other means than [`run`](Self::run), which goes on from there.
    pub fn set_registered(&self, epoch: BrokerEpoch) {
        self.tell(|lifecycle, now_ms| lifecycle.on_registered(epoch.0, now_ms));
    }

    /// The broker is ready to lead and to serve: from now on it asks to be unfenced.
    pub fn set_ready_to_unfence(&self) {
        self.tell(Lifecycle::on_ready_to_unfence);
    }

    /// Waits until the broker is unfenced for the first time.
    ///
    /// # Errors
    /// When it will not be.
    pub async fn until_running(&self) -> Result<(), LifecycleEnded> {
        let mut state = self.state();
        // The sender lives as long as `self`.
        let reached = state.wait_for(|state| *state >= BrokerState::Running).await;
        match reached.map(|state| *state) {
            Ok(BrokerState::Running) => Ok(()),
            _ if self.lifecycle.lock().is_superseded() => {
                Err(LifecycleEnded::Superseded(self.refusal.lock().clone()))
            }
            _ if self.lifecycle.lock().broker_epoch().is_none() => {
                Err(LifecycleEnded::NotRegistered(self.refusal.lock().clone()))
            }
            _ => Err(LifecycleEnded::Stopping),
        }
    }

    /// Asks the controller to move the broker's leaderships away, and waits until it is let go, at most for `patience`, and
    /// no longer than its session: then there is nothing left to hand over. Says whether it was let go.
    pub async fn controlled_shutdown(&self, patience: Duration) -> bool {
        self.tell(Lifecycle::on_begin_controlled_shutdown);
        let mut state = self.state();
        let waiting = async {
            tokio::select! {
                // The sender lives as long as `self`.
                _ = state.wait_for(|state| *state == BrokerState::ShuttingDown) => {}
                () = self.until_session_ends() => {}
            }
        };
        // Whether it was let go is asked below: one that is let go is fenced by the same answer, which ends its session.
        let _ = timeout(patience, waiting).await;
        self.lifecycle.lock().state() == BrokerState::ShuttingDown
    }

    /// Registers the broker and sends heartbeats until it is let go.
    pub async fn run(
        self: Arc<Self>,
        registration: Registration,
        channel: ControllerChannel,
        controller: ControllerHandle,
    ) {
        let mut offset = controller.publisher().published_offset();
        let mut in_flight: Option<BoxFuture<'static, Outcome>> = None;
        loop {
            let published = *offset.borrow_and_update();
            let communication = self.update(|lifecycle, now_ms| {
                lifecycle.on_metadata_offset(published, now_ms);
                if let Err(error) = lifecycle.check(now_ms) {
                    tracing::error!(%error, last = &**self.refusal.lock(), "shutting down");
                }
                lifecycle.next(now_ms)
            });
            if *self.state.borrow() == BrokerState::ShuttingDown {
                return;
            }
            if let Some(communication) = communication {
                let (channel, id) = (channel.clone(), registration.id.0);
                in_flight = Some(match communication {
                    Communication::Register => {
                        let request = request::registration(&registration);
                        Box::pin(async move { registered(channel.call(&request).await) })
                    }
                    Communication::Heartbeat {
                        broker_epoch,
                        metadata_offset,
                        want_fence,
                        want_shut_down,
                    } => {
                        let heartbeat = Heartbeat {
                            broker_epoch,
                            metadata_offset,
                            want_fence,
                            want_shut_down,
                        };
                        let request = request::heartbeat(id, heartbeat);
                        Box::pin(async move { answered(channel.call(&request).await) })
                    }
                });
            }
            let due_ms = self.lifecycle.lock().due_ms();
            let due = async {
                match due_ms {
                    Some(ms) => sleep_until(self.instant(ms)).await,
                    None => pending().await,
                }
            };
            let outcome = async {
                match &mut in_flight {
                    Some(request) => request.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                outcome = outcome => {
                    in_flight = None;
                    self.on_outcome(outcome, &controller);
                }
                () = due => {}
                () = self.told.notified() => {}
                // The sender lives as long as the controller's handle.
                _ = offset.changed() => {}
            }
        }
    }

    fn on_outcome(&self, outcome: Outcome, controller: &ControllerHandle) {
        match outcome {
            Outcome::Registered(broker_epoch) => {
                tracing::info!(broker_epoch, "registered with the controller");
                controller.set_broker_epoch(BrokerEpoch(broker_epoch));
                self.update(|lifecycle, now_ms| lifecycle.on_registered(broker_epoch, now_ms));
            }
            Outcome::Heartbeat(answer) => {
                self.update(|lifecycle, now_ms| lifecycle.on_heartbeat(answer, now_ms));
            }
            Outcome::Stale(reason) => {
                tracing::error!(
                    reason = &*reason,
                    "the controller knows this run of the broker no more"
                );
                *self.refusal.lock() = reason;
                self.update(Lifecycle::on_stale_epoch);
            }
            Outcome::Failed(reason) => {
                tracing::warn!(reason = &*reason, "the controller did not take it");
                *self.refusal.lock() = reason;
                self.update(Lifecycle::on_failure);
            }
        }
    }
}

/// What was refused and why.
fn refused(api: &str, error_code: i16) -> Arc<str> {
    let error = ResponseError::try_from_code(error_code);
    let error = error.map_or_else(|| error_code.to_string(), |error| error.to_string());
    format!("{api} was refused: {error}").into()
}

fn registered(response: Result<BrokerRegistrationResponse, ChannelError>) -> Outcome {
    match response {
        Ok(response) if response.error_code == 0 => Outcome::Registered(response.broker_epoch),
        Ok(response) => Outcome::Failed(refused("the registration", response.error_code)),
        Err(error) => Outcome::Failed(error.to_string().into()),
    }
}

fn answered(response: Result<BrokerHeartbeatResponse, ChannelError>) -> Outcome {
    match response {
        Ok(response) if response.error_code == 0 => Outcome::Heartbeat(HeartbeatAnswer {
            is_caught_up: response.is_caught_up,
            is_fenced: response.is_fenced,
            should_shut_down: response.should_shut_down,
        }),
        Ok(response) => {
            let reason = refused("the heartbeat", response.error_code);
            match response.error_code == ResponseError::StaleBrokerEpoch.code() {
                true => Outcome::Stale(reason),
                false => Outcome::Failed(reason),
            }
        }
        Err(error) => Outcome::Failed(error.to_string().into()),
    }
}

impl std::fmt::Debug for BrokerLifecycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerLifecycle")
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}
