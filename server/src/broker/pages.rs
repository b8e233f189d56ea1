//! What a broker shows on its HTTP port.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::Broker;
use crate::console::Console;
use crate::controller::{ControllerError, Decision};
use crate::metrics;
use crate::web::rows::Rows;
use crate::web::{ConsoleQuery, Pages};

/// The pages of the HTTP port, over a running broker.
pub struct BrokerPages {
    broker: Arc<Broker>,
    registry: Registry,
    console: Console,
}

impl BrokerPages {
    /// Pages over `broker`.
    pub fn new(broker: Arc<Broker>) -> Self {
        let config = broker.config.current();
        let console = Console::new(
            Arc::clone(&broker),
            config.inter_broker_listener_name.clone(),
            config.console_client(),
        );
        Self {
            registry: metrics::registry(Arc::clone(&broker)),
            broker,
            console,
        }
    }
}

impl Pages for BrokerPages {
    fn metrics(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    /// The controller answers, and its log can be written, where this node is the active controller. Others work without
    /// it: that the cluster has none is not cured by a restart of theirs. Partitions that are offline do not count: a
    /// restart would take the others down with them.
    fn health(&self) -> BoxFuture<'_, Result<(), String>> {
        let answer = self
            .broker
            .controller
            .submit(|_, _| Decision::unchanged(()));
        Box::pin(async move {
            match answer.await {
                Ok(()) | Err(ControllerError::NotController { .. }) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn ready(&self) -> Result<(), String> {
        if self.broker.is_stopping() {
            Err("stopping".to_owned())
        } else {
            Ok(())
        }
    }

    fn console(&self, query: &ConsoleQuery) -> BoxFuture<'_, Rows> {
        let query = query.clone();
        Box::pin(async move { self.console.rows(&query).await })
    }
}
