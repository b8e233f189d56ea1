//! What a broker acts in: time, the network, the record of what happened.

use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::state::leadership::{BrokerDirectory, BrokerStanding};
use highwater_storage::BrokerId;

use super::history::History;
use super::network::Network;
use super::notes::Notes;
use super::rules::Rule;
use super::setup::Setup;

/// Everything but the broker itself.
pub(crate) struct Around<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) network: &'a mut Network,
    pub(crate) history: &'a mut History,
    pub(crate) notes: &'a mut Notes,
    /// True time.
    pub(crate) now_ms: i64,
    /// The safety rule that is switched off.
    pub(crate) off: Option<Rule>,
}

impl Around<'_> {
    /// Whether a safety rule is switched off.
    pub(crate) fn is_off(&self, rule: Rule) -> bool {
        self.off == Some(rule)
    }

    /// How brokers stand in an image.
    pub(crate) fn directory(&self, image: &Arc<ClusterImage>) -> Directory {
        Directory {
            image: Arc::clone(image),
            all_are_active: self.is_off(Rule::ActiveIsr),
        }
    }
}

/// How brokers stand in one image.
pub(crate) struct Directory {
    image: Arc<ClusterImage>,
    all_are_active: bool,
}

impl BrokerDirectory for Directory {
    fn standing(&self, broker: BrokerId) -> Option<BrokerStanding> {
        let registration = self.image.broker(broker)?;
        Some(BrokerStanding {
            broker_epoch: registration.epoch,
            is_active: self.all_are_active || registration.is_active(),
        })
    }
}
