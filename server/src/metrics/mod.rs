//! Metrics for Prometheus, under the names that the usual exporters give to Kafka's own.
//!
//! Nothing is kept here: the parts count with plain atomics, and what a scrape shows is read at the scrape.

mod broker;
mod families;
mod network;
mod process;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use self::families::Families;
use crate::broker::Broker;
use crate::console::Console;
use crate::controller::{ControllerError, Decision};
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
        let mut registry = Registry::default();
        registry.register_collector(Box::new(BrokerCollector(Arc::clone(&broker))));
        let config = broker.config.current();
        let console = Console::new(
            Arc::clone(&broker),
            config.inter_broker_listener_name.clone(),
            config.console_client(),
        );
        BrokerPages {
            broker,
            registry,
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

struct BrokerCollector(Arc<Broker>);

impl fmt::Debug for BrokerCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrokerCollector")
    }
}

impl Collector for BrokerCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut families = Families(encoder);
        network::encode(&mut families, &self.0.network_metrics)?;
        broker::encode(&mut families, &self.0)?;
        process::encode(&mut families)
    }
}
