//! Connections to the other brokers, made when somebody watches and kept while they are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_storage::BrokerId;
use parking_lot::Mutex;

use crate::network::client::{Client, ClientConfig};

/// Where a broker is, with a client for it.
type Peer = (String, u16, Arc<Client>);

/// The brokers that were asked something.
pub(super) struct Peers {
    listener_name: String,
    config: Arc<ClientConfig>,
    clients: Mutex<BTreeMap<BrokerId, Peer>>,
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
        let mut end_points = image.broker(broker)?.end_points.iter();
        let end_point = end_points.find(|end_point| end_point.name == self.listener_name)?;
        let mut clients = self.clients.lock();
        // A broker that was unregistered is not asked again.
        clients.retain(|known, _| image.broker(*known).is_some());
        if let Some((host, port, client)) = clients.get(&broker)
            && (host, port) == (&end_point.host, &end_point.port)
        {
            return Some(Arc::clone(client));
        }
        let (host, port) = (end_point.host.clone(), end_point.port);
        let client = Arc::new(Client::new(host.clone(), port, Arc::clone(&self.config)));
        clients.insert(broker, (host, port, Arc::clone(&client)));
        Some(client)
    }
}
