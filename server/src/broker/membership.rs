//! A broker as a member of its cluster: it registers, sends heartbeats, follows those who lead, and leaves in order.

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::runtime::replica_manager::Peers;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Broker;
use super::start::StartError;
use super::wiring::BrokerRegistration;
use crate::config::BrokerConfig;
use crate::controller::Controller;
use crate::peer::alter_partition::PeerAlterPartition;
use crate::peer::directory_assignments::tell_directories;
use crate::peer::leader_endpoint::PeerEndpoints;
use crate::peer::lifecycle::{BrokerLifecycle, LifecycleEnded};

/// How long a broker that stops waits for others to take over what it leads.
const CONTROLLED_SHUTDOWN_PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits while no controller is active: the others may be stopping too.
const NO_CONTROLLER_PATIENCE: Duration = Duration::from_secs(3);

/// What a membership is made from.
pub(super) struct MembershipParts<'a> {
    pub(super) broker: &'a Arc<Broker>,
    pub(super) config: &'a BrokerConfig,
    pub(super) registration: BrokerRegistration,
}

/// The broker's place in the cluster.
pub(super) struct Membership {
    lifecycle: Arc<BrokerLifecycle>,
    controlled_shutdown: bool,
    tasks: JoinSet<()>,
}

impl Membership {
    /// Begins to replicate and to register. `controller` is that of this process, if there is one.
    pub(super) async fn enter(
        parts: MembershipParts<'_>,
        controller: Option<&Controller>,
    ) -> Result<Self, StartError> {
        let MembershipParts {
            broker,
            config,
            registration,
        } = parts;
        let session_timeout_ms = u64::from(config.broker_session_timeout_ms.unsigned_abs());
        let session_timeout = Duration::from_millis(session_timeout_ms);
        let handle = broker.controller.clone();
        let lifecycle = BrokerLifecycle::new(config.lifecycle(), &handle);
        if let Some(controller) = controller
            && config.quorum.is_quorum_of_one()
            && is_alone(broker)
        {
            // Nobody else is there to be asked, or to be told first of the end of the run before.
            let BrokerRegistration {
                request,
                last_stop_was_clean,
            } = &registration;
            let epoch = controller
                .register(request.clone(), *last_stop_was_clean)
                .await?;
            lifecycle.set_registered(epoch);
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(tell_broker_epoch(Arc::clone(broker)));
        tasks.spawn(watch_session(Arc::clone(broker), Arc::clone(&lifecycle)));
        broker
            .replicas
            .start(peers(broker, config), &Handle::current());
        let channel = broker.controllers.channel("heartbeat", session_timeout / 2);
        tasks.spawn(Arc::clone(&lifecycle).run(registration.request, channel, handle));
        tasks.spawn(tell_directories(
            Arc::clone(&broker.replicas),
            broker.controller.clone(),
            broker.controllers.channel("directories", session_timeout),
        ));
        lifecycle.set_ready_to_unfence();
        Ok(Self {
            lifecycle,
            controlled_shutdown: config.controlled_shutdown_enable,
            tasks,
        })
    }

    /// Waits until the controllers have let the broker in.
    pub(super) async fn until_running(&self) -> Result<(), LifecycleEnded> {
        self.lifecycle.until_running().await
    }

    /// Has others take over what this broker leads, as far as there are any, and waits for it.
    pub(super) async fn leave(&self, broker: &Arc<Broker>) {
        let is_registered = broker.controller.broker_epoch().0 >= 0;
        if !self.controlled_shutdown || !is_registered || is_alone(broker) {
            return;
        }
        let let_go = self
            .lifecycle
            .controlled_shutdown(CONTROLLED_SHUTDOWN_PATIENCE);
        let was_let_go = tokio::select! {
            was_let_go = let_go => was_let_go,
            () = no_controller(broker) => false,
        };
        match was_let_go {
            true => tracing::info!("other brokers lead what this one led"),
            false => tracing::warn!(
                "stopping although no controller has moved away what this broker leads"
            ),
        }
    }

    /// Sends no more heartbeats.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Whether no other broker is registered.
fn is_alone(broker: &Broker) -> bool {
    let image = broker.image();
    let own = broker.controller.broker_id();
    image.brokers().keys().all(|id| *id == own)
}

/// The ways to other brokers and to the active controller.
fn peers(broker: &Arc<Broker>, config: &BrokerConfig) -> Peers {
    let controller = broker.controller.clone();
    let image = {
        let controller = controller.clone();
        move || controller.image()
    };
    let endpoints = PeerEndpoints::new(
        controller.broker_id(),
        config.inter_broker_listener_name.clone(),
        config.replica_client(),
        image,
    );
    let patience = Duration::from_millis(u64::from(
        config.controller_socket_timeout_ms.unsigned_abs(),
    ));
    let channel = broker.controllers.channel("alter-partition", patience);
    Peers {
        endpoints: Arc::new(endpoints),
        controller: Arc::new(PeerAlterPartition::new(channel, controller)),
    }
}

/// Tells those who replicate in which run this broker is registered.
async fn tell_broker_epoch(broker: Arc<Broker>) {
    let mut epochs = broker.controller.watch_broker_epoch();
    loop {
        let epoch = *epochs.borrow_and_update();
        if epoch.0 >= 0 {
            broker.replicas.context().set_broker_epoch(epoch);
        }
        if epochs.changed().await.is_err() {
            return;
        }
    }
}

/// Tells partitions until when the controllers cannot have fenced this broker without its knowing.
async fn watch_session(broker: Arc<Broker>, lifecycle: Arc<BrokerLifecycle>) {
    if lifecycle.until_running().await.is_err() {
        return;
    }
    let mut session_end = lifecycle.session_end();
    let mut was_expired = false;
    loop {
        let now = Instant::now();
        let end = session_end.borrow_and_update().unwrap_or(now);
        broker.replicas.context().set_session_end(end);
        let is_expired = end <= now;
        if is_expired != was_expired {
            was_expired = is_expired;
            match is_expired {
                true => tracing::warn!(
                    "this broker is fenced, or no heartbeat was answered for a session: others may lead what this broker led, it stops serving it"
                ),
                false => tracing::info!("heartbeats are answered again"),
            }
        }
        tokio::select! {
            changed = session_end.changed() => if changed.is_err() {
                return;
            },
            () = sleep_until(end), if !is_expired => {}
        }
    }
}

/// Ends when no controller has been active for a while.
async fn no_controller(broker: &Broker) {
    let mut active = broker.controller.active_controller();
    loop {
        let is_back = active.wait_for(Option::is_some);
        if tokio::time::timeout(NO_CONTROLLER_PATIENCE, is_back)
            .await
            .is_err()
        {
            return;
        }
        if active.wait_for(Option::is_none).await.is_err() {
            return;
        }
    }
}
