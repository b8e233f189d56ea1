//! The way to the active controller, wherever it is: within this process or over its controller listener.

mod local;
mod request;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

pub use local::{LocalController, LocalError};
pub use request::ControllerRequest;

use crate::controller::ControllerNode;
use crate::network::client::{Client, ClientConfig, ClientError};

/// The rest before a request is sent again, unless word of another controller comes first.
const RETRY_BACKOFF: Duration = Duration::from_millis(50);

/// Why a request to the controller has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChannelError {
    /// No controller answered in time.
    #[error("the active controller did not answer {api} within {patience:?}: {last}")]
    TimedOut {
        /// The API that was called.
        api: &'static str,
        /// How long it was tried.
        patience: Duration,
        /// What became of the last attempt.
        last: Arc<str>,
    },
    /// The request cannot be made, or its answer cannot be understood; asking again does not help.
    #[error(transparent)]
    Client(ClientError),
    /// The controller of this process could not serve the request.
    #[error("{api} on this node: {source}")]
    Local {
        /// The API that was called.
        api: &'static str,
        /// What happened.
        source: LocalError,
    },
}

/// What all channels of a node share.
#[derive(Clone)]
pub struct ControllerChannels {
    node_id: i32,
    active: watch::Receiver<Option<ControllerNode>>,
    local: Arc<LocalController>,
    client: ClientConfig,
}

impl ControllerChannels {
    /// Channels of the node `node_id` to whoever `active` names. Requests to this node itself go to `local`; `client`
    /// is how others are reached.
    pub fn new(
        node_id: i32,
        active: watch::Receiver<Option<ControllerNode>>,
        local: Arc<LocalController>,
        client: ClientConfig,
    ) -> Self {
        ControllerChannels {
            node_id,
            active,
            local,
            client,
        }
    }

    /// A channel with a connection of its own, so that its requests do not wait for those of another. Requests are
    /// repeated for as long as `patience`. `name` is what logs call it.
    pub fn channel(&self, name: &'static str, patience: Duration) -> ControllerChannel {
        let mut client = self.client.clone();
        client.request_timeout = client.request_timeout.min(patience);
        ControllerChannel {
            name,
            patience,
            client_config: Arc::new(client),
            called: Arc::default(),
            channels: self.clone(),
        }
    }
}

/// Sends requests to the active controller, and again when another has become active meanwhile. Cheap to clone; clones
/// share a connection.
#[derive(Clone)]
pub struct ControllerChannel {
    name: &'static str,
    patience: Duration,
    client_config: Arc<ClientConfig>,
    called: Arc<Mutex<Option<Called>>>,
    channels: ControllerChannels,
}

/// The controller that was called last, if it was another node.
struct Called {
    host: String,
    port: u16,
    client: Arc<Client>,
}

/// What became of one attempt.
enum Attempt<R> {
    Answered(R),
    /// It did not reach the active controller; the reason.
    TryAgain(Arc<str>),
}

impl ControllerChannel {
    /// Sends a request to the active controller and waits for its answer, for as long as the channel's patience.
    ///
    /// A request whose connection breaks is sent again, as in Kafka: the controller may get it twice.
    ///
    /// # Errors
    /// When no controller answered in time, or the request cannot be served at all. Refusals are in the response.
    pub async fn call<R: ControllerRequest>(
        &self,
        request: &R,
    ) -> Result<R::Response, ChannelError> {
        self.call_within(request, self.patience).await
    }

    /// As [`call`](Self::call), with another patience than the channel's.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_within<R: ControllerRequest>(
        &self,
        request: &R,
        patience: Duration,
    ) -> Result<R::Response, ChannelError> {
        let deadline = Instant::now() + patience;
        let mut active = self.channels.active.clone();
        let mut last: Arc<str> = "no controller is active".into();
        let timed_out = |last| ChannelError::TimedOut {
            api: R::NAME,
            patience,
            last,
        };
        loop {
            let node = active.borrow_and_update().clone();
            if let Some(node) = node {
                let attempt = async {
                    tokio::select! {
                        biased;
                        attempt = self.attempt(&node, request) => attempt,
                        () = superseded(&node, active.clone()) => {
                            Ok(Attempt::TryAgain("another controller became active".into()))
                        }
                    }
                };
                match timeout_at(deadline, attempt).await {
                    Ok(Ok(Attempt::Answered(response))) => return Ok(response),
                    Ok(Ok(Attempt::TryAgain(reason))) => last = reason,
                    Ok(Err(error)) => return Err(error),
                    Err(_) => return Err(timed_out(last)),
                }
                tracing::debug!(
                    channel = self.name,
                    api = R::NAME,
                    controller = node.id,
                    reason = &*last,
                    "asking the controller again"
                );
            }
            let rest = match active.borrow().is_some() {
                true => deadline.min(Instant::now() + RETRY_BACKOFF),
                false => deadline,
            };
            match timeout_at(rest, active.changed()).await {
                Ok(Ok(())) => {}
                // Nobody will ever tell of another controller: this node is stopping.
                Ok(Err(_)) => return Err(timed_out(last)),
                Err(_) if rest >= deadline => return Err(timed_out(last)),
                Err(_) => {}
            }
        }
    }

    async fn attempt<R: ControllerRequest>(
        &self,
        node: &ControllerNode,
        request: &R,
    ) -> Result<Attempt<R::Response>, ChannelError> {
        let response = if node.id == self.channels.node_id {
            match self.channels.local.call(request).await {
                Ok(response) => response,
                Err(LocalError::NotReady) => {
                    return Ok(Attempt::TryAgain(
                        "this node is starting or stopping".into(),
                    ));
                }
                Err(source) => {
                    return Err(ChannelError::Local {
                        api: R::NAME,
                        source,
                    });
                }
            }
        } else {
            match self.client_of(node).call(request).await {
                Ok(response) => response,
                Err(error) if error.is_retriable() => {
                    return Ok(Attempt::TryAgain(error.to_string().into()));
                }
                Err(error) => return Err(ChannelError::Client(error)),
            }
        };
        Ok(match R::is_not_controller(&response) {
            true => Attempt::TryAgain(format!("node {} is not active", node.id).into()),
            false => Attempt::Answered(response),
        })
    }

    fn client_of(&self, node: &ControllerNode) -> Arc<Client> {
        let mut called = self.called.lock();
        if let Some(called) = &*called
            && (&called.host, called.port) == (&node.host, node.port)
        {
            return Arc::clone(&called.client);
        }
        let client = Client::new(&node.host, node.port, Arc::clone(&self.client_config));
        let client = Arc::new(client);
        let former = called.replace(Called {
            host: node.host.clone(),
            port: node.port,
            client: Arc::clone(&client),
        });
        // Requests that wait for the former one are for a controller that is not active any more.
        if let Some(former) = former {
            former.client.disconnect("another controller is active");
        }
        client
    }
}

/// Waits until another controller than `node` is active. While none is, `node` may still answer.
async fn superseded(node: &ControllerNode, mut active: watch::Receiver<Option<ControllerNode>>) {
    let other = |active: &Option<ControllerNode>| active.as_ref().is_some_and(|now| now != node);
    if active.wait_for(other).await.is_err() {
        // Nobody will ever tell of another: this node is stopping.
        std::future::pending::<()>().await;
    }
}

impl std::fmt::Debug for ControllerChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerChannel")
            .field("name", &self.name)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
