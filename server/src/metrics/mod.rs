//! Metrics for Prometheus, under the names that the usual exporters give to Kafka's own.
//!
//! Nothing is kept here: the parts count with plain atomics, and what a scrape shows is read at the scrape.

mod broker;
mod families;
mod network;
mod process;

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use self::families::Families;
use crate::broker::Broker;

/// What a broker counts; it is read when the registry is encoded.
pub fn registry(broker: Arc<Broker>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(BrokerCollector(broker)));
    registry
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
