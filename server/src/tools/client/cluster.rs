//! The nodes of a cluster and the connections to them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use kafka_protocol::messages::{
    BrokerId, DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest, MetadataResponse,
};
use kafka_protocol::protocol::{Request, StrBytes};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::bootstrap::{parse_bootstrap, resolvable};
use super::reachable::ask_any;
use super::{ClientProperties, KafkaError};
use crate::network::client::{Backoff, Client, ClientConfig, random};
use crate::tools::ToolError;

/// `default.api.timeout.ms` of Kafka's AdminClient.
const DEFAULT_API_TIMEOUT_MS: u64 = 60_000;
/// The versions of FindCoordinator that ask for one key.
const FIND_ONE_COORDINATOR: RangeInclusive<i16> = 0..=3;
/// FindCoordinator's type of key for a group.
const GROUP_KEY: i8 = 0;
/// DescribeCluster's type of endpoint for brokers.
const BROKERS: i8 = 1;
/// DescribeCluster's type of endpoint for controllers.
const CONTROLLERS: i8 = 2;

/// What the bootstrap addresses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `--bootstrap-server`.
    Brokers,
    /// `--bootstrap-controller` (KIP-919).
    Controllers,
}

/// A node as the cluster's metadata tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeInfo {
    /// Its id.
    pub(crate) id: i32,
    /// Its advertised host.
    pub(crate) host: String,
    /// Its advertised port.
    pub(crate) port: i32,
    /// `broker.rack`, if it is set.
    pub(crate) rack: Option<String>,
}

/// A node that is known, and the connection to it.
struct Known {
    info: NodeInfo,
    client: Arc<Client>,
}

/// The client of a cluster. Connections are made when they are first used.
pub(crate) struct Cluster {
    endpoint: Endpoint,
    config: Arc<ClientConfig>,
    bootstrap: Vec<Arc<Client>>,
    known: Mutex<BTreeMap<i32, Known>>,
    /// The active controller as the controllers themselves tell it; -1 when it is not known.
    active_controller: AtomicI32,
    api_timeout: Duration,
    retry_backoff: Backoff,
}

impl Cluster {
    /// A client of the cluster that these addresses belong to. Nothing is connected yet.
    ///
    /// # Errors
    /// When the addresses or the properties are wrong.
    pub(crate) fn new(
        bootstrap_servers: &str,
        properties: &ClientProperties,
        client_id: &str,
    ) -> Result<Self, KafkaError> {
        Self::of(Endpoint::Brokers, bootstrap_servers, properties, client_id)
    }

    /// As [`new`](Self::new), with addresses of brokers or controllers.
    ///
    /// # Errors
    /// When the addresses or the properties are wrong.
    pub(crate) fn of(
        endpoint: Endpoint,
        bootstrap_servers: &str,
        properties: &ClientProperties,
        client_id: &str,
    ) -> Result<Self, KafkaError> {
        properties.check()?;
        let config = properties.client_config(client_id)?;
        let nodes = resolvable(parse_bootstrap(bootstrap_servers)?)?.into_iter();
        let client = |(host, port): (String, u16)| Client::new(host, port, Arc::clone(&config));
        Ok(Cluster {
            endpoint,
            bootstrap: nodes.map(client).map(Arc::new).collect(),
            config,
            known: Mutex::default(),
            active_controller: AtomicI32::new(-1),
            api_timeout: properties.millis("default.api.timeout.ms", DEFAULT_API_TIMEOUT_MS)?,
            retry_backoff: Backoff::new(
                properties.millis("retry.backoff.ms", 100)?,
                properties.millis("retry.backoff.max.ms", 1_000)?,
            ),
        })
    }

    /// What DescribeCluster calls the nodes that the bootstrap addresses are.
    pub(crate) fn endpoint_type(&self) -> i8 {
        match self.endpoint {
            Endpoint::Brokers => BROKERS,
            Endpoint::Controllers => CONTROLLERS,
        }
    }

    /// Makes `attempt` until it succeeds, fails for good, or `default.api.timeout.ms` has passed. `call` is what
    /// Java's AdminClient names the call in its message.
    ///
    /// # Errors
    /// The first error that is not retriable, or a TimeoutException with the last one that was.
    pub(crate) async fn retry<T>(
        &self,
        call: &str,
        mut attempt: impl AsyncFnMut() -> Result<T, KafkaError>,
    ) -> Result<T, KafkaError> {
        let deadline = Instant::now() + self.api_timeout;
        let mut failures = 0;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) if error.is_retriable => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            let rest = self.retry_backoff.after(failures, random());
            if Instant::now() + rest >= deadline {
                return Err(timed_out(call, &error));
            }
            if failures == 1 && error.code == 0 {
                tell_once(&error);
            }
            sleep(rest).await;
        }
    }

    /// Asks any node that answers: what is known first, then the bootstrap addresses. Retried.
    ///
    /// # Errors
    /// When none answers in time or the request cannot be made.
    pub(crate) async fn call_any<R: Request>(
        &self,
        call: &str,
        request: &R,
    ) -> Result<R::Response, KafkaError> {
        self.retry(call, async || self.try_any(request).await).await
    }

    /// Asks for what only the controller does: the active one where the bootstrap addresses are controllers, else any
    /// broker, which hands it on. Retried.
    ///
    /// # Errors
    /// As [`call_any`](Self::call_any).
    pub(crate) async fn call_controller<R: Request>(
        &self,
        call: &str,
        request: &R,
    ) -> Result<R::Response, KafkaError> {
        if self.endpoint == Endpoint::Brokers {
            return self.call_any(call, request).await;
        }
        self.retry(call, async || {
            self.refresh().await?;
            let active = self.active_controller.load(Ordering::Relaxed);
            if active < 0 {
                let text = "there is no active controller";
                return Err(KafkaError::retriable("TimeoutException", text));
            }
            self.try_node(active, request).await
        })
        .await
    }

    /// One attempt of [`call_any`](Self::call_any): each node once, first those that are connected to.
    ///
    /// # Errors
    /// The error of the last node, or the first that is not retriable.
    pub(crate) async fn try_any<R: Request>(&self, request: &R) -> Result<R::Response, KafkaError> {
        let mut clients = self.known_clients();
        clients.extend(self.bootstrap.iter().cloned());
        ask_any(clients, async |client| client.call(request).await).await
    }

    /// The connections to the nodes that the metadata has named, in the order of their ids.
    fn known_clients(&self) -> Vec<Arc<Client>> {
        let known = self.known.lock();
        let clients = known.values().map(|node| Arc::clone(&node.client));
        clients.collect()
    }

    /// Asks one node. One attempt.
    ///
    /// # Errors
    /// When it is not in the metadata, cannot be reached or does not answer.
    pub(crate) async fn try_node<R: Request>(
        &self,
        id: i32,
        request: &R,
    ) -> Result<R::Response, KafkaError> {
        let client = self.client(id).await?;
        Ok(client.call(request).await?)
    }

    /// Asks one node, and again while that may help.
    ///
    /// # Errors
    /// As [`try_node`](Self::try_node), after `default.api.timeout.ms`.
    pub(crate) async fn call_node<R: Request>(
        &self,
        call: &str,
        id: i32,
        request: &R,
    ) -> Result<R::Response, KafkaError> {
        self.retry(call, async || self.try_node(id, request).await)
            .await
    }

    /// The connection to a node; the metadata is asked where the node is not known yet.
    ///
    /// # Errors
    /// When the metadata has no such node, or nobody answers.
    pub(crate) async fn client(&self, id: i32) -> Result<Arc<Client>, KafkaError> {
        if let Some(client) = self.connection(id) {
            return Ok(client);
        }
        self.refresh().await?;
        self.connection(id).ok_or_else(|| {
            KafkaError::retriable(
                "TimeoutException",
                format!("node {id} is not in the metadata"),
            )
        })
    }

    /// The connection to a node that the metadata has named.
    pub(crate) fn connection(&self, id: i32) -> Option<Arc<Client>> {
        let known = self.known.lock();
        known.get(&id).map(|node| Arc::clone(&node.client))
    }

    /// All nodes, in the order of their ids. Retried.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn nodes(&self) -> Result<Vec<NodeInfo>, KafkaError> {
        self.retry("listNodes", async || self.refresh().await)
            .await?;
        let known = self.known.lock();
        Ok(known.values().map(|node| node.info.clone()).collect())
    }

    /// A node that the metadata has named.
    pub(crate) fn info(&self, id: i32) -> Option<NodeInfo> {
        let known = self.known.lock();
        known.get(&id).map(|node| node.info.clone())
    }

    /// Asks for the nodes. One attempt.
    async fn refresh(&self) -> Result<(), KafkaError> {
        match self.endpoint {
            Endpoint::Brokers => {
                // No topics: only the brokers are wanted.
                let request = MetadataRequest::default()
                    .with_topics(Some(Vec::new()))
                    .with_allow_auto_topic_creation(true);
                self.try_metadata(&request).await.map(drop)
            }
            Endpoint::Controllers => {
                let request = DescribeClusterRequest::default().with_endpoint_type(CONTROLLERS);
                let response = self.try_any(&request).await?;
                let text = response.error_message.as_deref();
                KafkaError::check(response.error_code, text)?;
                let BrokerId(active) = response.controller_id;
                self.active_controller.store(active, Ordering::Relaxed);
                let nodes = response.brokers.iter();
                self.learn(nodes.map(|node| NodeInfo {
                    id: node.broker_id.0,
                    host: node.host.to_string(),
                    port: node.port,
                    rack: node.rack.as_ref().map(ToString::to_string),
                }));
                Ok(())
            }
        }
    }

    /// Sends a Metadata request to any node and learns the nodes from its response. One attempt.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn try_metadata(
        &self,
        request: &MetadataRequest,
    ) -> Result<MetadataResponse, KafkaError> {
        let response = self.try_any(request).await?;
        let nodes = response.brokers.iter();
        self.learn(nodes.map(|node| NodeInfo {
            id: node.node_id.0,
            host: node.host.to_string(),
            port: node.port,
            rack: node.rack.as_ref().map(ToString::to_string),
        }));
        Ok(response)
    }

    /// Replaces what is known; the connections to nodes whose address has not changed are kept.
    fn learn(&self, nodes: impl Iterator<Item = NodeInfo>) {
        let mut known = self.known.lock();
        let mut before = std::mem::take(&mut *known);
        for info in nodes {
            let Ok(port) = u16::try_from(info.port) else {
                continue;
            };
            let client = match before.remove(&info.id) {
                Some(node) if (&node.info.host, node.info.port) == (&info.host, info.port) => {
                    node.client
                }
                _ => Arc::new(Client::new(
                    info.host.clone(),
                    port,
                    Arc::clone(&self.config),
                )),
            };
            known.insert(info.id, Known { info, client });
        }
    }

    /// The broker that coordinates a group. One attempt.
    ///
    /// # Errors
    /// When nobody answers or no coordinator is available, which is retriable.
    pub(crate) async fn try_coordinator(&self, group: &str) -> Result<i32, KafkaError> {
        let key = StrBytes::from_string(group.to_owned());
        if self.known.lock().is_empty() {
            self.refresh().await?;
        }
        let request = |_| {
            FindCoordinatorRequest::default()
                .with_key(key.clone())
                .with_key_type(GROUP_KEY)
        };
        let (_, response) = ask_any(self.known_clients(), async |client| {
            client.call_within(FIND_ONE_COORDINATOR, request).await
        })
        .await?;
        KafkaError::check(response.error_code, response.error_message.as_deref())?;
        let BrokerId(coordinator) = response.node_id;
        Ok(coordinator)
    }

    /// Asks the coordinator of a group, found anew for each attempt. `ask` gets its id.
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub(crate) async fn ask_coordinator<T>(
        &self,
        call: &str,
        group: &str,
        ask: impl AsyncFn(i32) -> Result<T, KafkaError>,
    ) -> Result<T, KafkaError> {
        self.retry(call, async || ask(self.try_coordinator(group).await?).await)
            .await
    }

    /// Sends a request to the coordinator of a group, found anew for each attempt. `error_code` takes the code out of
    /// the response: a coordinator that has moved or loads is asked again.
    ///
    /// # Errors
    /// As [`retry`](Self::retry); an error code that is not retriable is in the response.
    pub(crate) async fn call_coordinator<R: Request>(
        &self,
        call: &str,
        group: &str,
        request: &R,
        error_code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, KafkaError> {
        self.ask_coordinator(call, group, async |id| {
            let response = self.try_node(id, request).await?;
            match error_code(&response) {
                // COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
                code @ 14..=16 => Err(KafkaError::new(code, None)),
                _ => Ok(response),
            }
        })
        .await
    }
}

/// The end of a call that was retried, as Java's AdminClient words it, with the cause.
fn timed_out(call: &str, cause: &KafkaError) -> KafkaError {
    let message = match cause.code {
        0 => format!(
            "Timed out waiting for a node assignment. Call: {call} ({})",
            cause.message
        ),
        _ => format!("Call {call} timed out: {cause}"),
    };
    KafkaError::of_client("TimeoutException", message)
}

/// Tells once that a call waits for a node, so that nobody wonders.
fn tell_once(error: &KafkaError) {
    ToolError::warn(&format!("{}; trying again", error.message));
}
