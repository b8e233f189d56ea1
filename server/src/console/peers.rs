//! Connections to the other brokers, made when somebody watches and kept while they are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_storage::BrokerId;
use parking_lot::Mutex;

use crate::network::client::{Client, ClientConfig};

/// The brokers that were asked something.
pub(super) struct Peers {
    listener_name: String,
    config: Arc<ClientConfig>,
    clients: Mutex<BTreeMap<BrokerId, Arc<Client>>>,
}

impl Peers {
    pub(super) fn new(listener_name: String, config: ClientConfig) -> Self {
        Peers {
            listener_name,
            config: Arc::new(config),
            clients: Mutex::default(),
        }
    }

    /// A client for where the broker is now; `None` when it has no such listener.
    pub(super) fn client(&self, image: &ClusterImage, broker: BrokerId) -> Option<Arc<Client>> {
        let end_point = image.broker(broker)?.end_point(&self.listener_name)?;
        let mut clients = self.clients.lock();
        // A broker that was unregistered is not asked again.
        clients.retain(|known, _| image.broker(*known).is_some());
        if let Some(client) = clients.get(&broker)
            && client.is_at(&end_point.host, end_point.port)
        {
            return Some(Arc::clone(client));
        }
        let config = Arc::clone(&self.config);
        let client = Arc::new(Client::new(end_point.host.clone(), end_point.port, config));
        clients.insert(broker, Arc::clone(&client));
        Some(client)
    }
}
