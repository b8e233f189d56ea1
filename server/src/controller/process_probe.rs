//! Whether the process of a broker is there: a host that is up refuses connections to a port on which nobody listens.
//!
//! Anything else proves nothing. A host that is down, a network that is cut and a process that hangs do not refuse.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use highwater_replication::cluster::{BrokerRegistration, ClusterImage};
use highwater_storage::{BrokerEpoch, BrokerId};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// How long a connection may take; one that is refused takes a round trip.
const PATIENCE: Duration = Duration::from_millis(500);
/// A process that is ending closes what it has one after the other: it is looked at so many times,
const LOOKS: u32 = 3;
/// and this long lies between.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Those of the `suspects` whose processes have ended: every listener that they advertise refuses connections.
pub(super) async fn processes_gone(
    image: &ClusterImage,
    suspects: Vec<(BrokerId, BrokerEpoch)>,
) -> BTreeSet<(BrokerId, BrokerEpoch)> {
    let looks = suspects.into_iter().filter_map(|suspect| {
        let broker = image.broker(suspect.0)?;
        Some(async move { is_gone(broker).await.then_some(suspect) })
    });
    join_all(looks).await.into_iter().flatten().collect()
}

/// What connecting to a listener shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Refused,
    Accepted,
    Nothing,
}

async fn is_gone(broker: &BrokerRegistration) -> bool {
    for look in 0..LOOKS {
        if look > 0 {
            sleep(BETWEEN_LOOKS).await;
        }
        let listeners = broker.end_points.iter();
        let seen = join_all(listeners.map(|at| look_at(&at.host, at.port))).await;
        if seen.contains(&Seen::Nothing) || seen.is_empty() {
            return false;
        }
        if seen.iter().all(|seen| *seen == Seen::Refused) {
            return true;
        }
    }
    false
}

async fn look_at(host: &str, port: u16) -> Seen {
    match timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Seen::Accepted,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Seen::Refused,
        Ok(Err(_)) | Err(_) => Seen::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_port_without_listener_refuses_and_one_with_a_silent_one_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert_eq!(look_at("127.0.0.1", port).await, Seen::Accepted);
        drop(listener);
        assert_eq!(look_at("127.0.0.1", port).await, Seen::Refused);
        assert_eq!(look_at("no-such-host.invalid", port).await, Seen::Nothing);
    }
}
