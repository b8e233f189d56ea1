//! What is printed when the broker is ready.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::network::{Listener, ListenerKind};

/// What the message tells.
pub(super) struct Ready<'a> {
    pub(super) listeners: &'a [std::sync::Arc<Listener>],
    pub(super) http: &'a [std::net::SocketAddr],
    pub(super) node_id: i32,
    pub(super) cluster_id: &'a str,
    pub(super) log_dirs: Vec<PathBuf>,
    /// Those of `log.dirs` that it started without.
    pub(super) unusable_log_dirs: Vec<PathBuf>,
    pub(super) took: Duration,
}

impl Ready<'_> {
    /// One line with the addresses, then examples to copy.
    pub(super) fn message(&self) -> String {
        let addresses: Vec<String> = self
            .listeners
            .iter()
            .map(|listener| format!("{}://{}", listener.name, address(listener)))
            .collect();
        let mut text = format!(
            "Highwater {} is ready on {} ({} ms; node {}, cluster {}, data in {})\n",
            env!("CARGO_PKG_VERSION"),
            addresses.join(", "),
            self.took.as_millis(),
            self.node_id,
            self.cluster_id,
            self.data()
        );
        for http in self.http {
            let _ = writeln!(
                text,
                "Console on http://{http}/, metrics on http://{http}/metrics"
            );
        }
        let mut for_clients = self.listeners.iter();
        let first = for_clients.find(|listener| listener.kind == ListenerKind::Broker);
        let Some(bootstrap) = first.map(|listener| address(listener)) else {
            return text;
        };
        let _ = write!(
            text,
            "\nTry it:\n  \
             echo hello | kcat -b {bootstrap} -t greetings -P && kcat -b {bootstrap} -t greetings -C -e\n  \
             python3 -c \"from confluent_kafka import Producer; p = Producer({{'bootstrap.servers': '{bootstrap}'}}); \
             p.produce('greetings', 'hello from Python'); p.flush()\"\n\n"
        );
        text
    }

    fn data(&self) -> String {
        let list = |dirs: &[PathBuf]| {
            let dirs = dirs.iter().map(|dir| dir.display().to_string());
            dirs.collect::<Vec<_>>().join(", ")
        };
        let data = list(&self.log_dirs);
        match self.unusable_log_dirs.is_empty() {
            true => data,
            false => format!("{data}, without {}", list(&self.unusable_log_dirs)),
        }
    }
}

/// What clients are told, with brackets around an IPv6 address.
fn address(listener: &Listener) -> String {
    let host = listener.advertised_host.as_str();
    let port = listener.advertised_port;
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kafka_protocol::protocol::StrBytes;

    use super::*;

    #[test]
    fn the_message_names_the_real_ports_and_can_be_copied() {
        let listener = |name: &str, host: &'static str, port| {
            Arc::new(Listener {
                name: name.to_owned(),
                kind: ListenerKind::Broker,
                local_address: ([127, 0, 0, 1], port).into(),
                advertised_host: StrBytes::from_static_str(host),
                advertised_port: i32::from(port),
            })
        };
        let message = Ready {
            listeners: &[
                listener("PLAINTEXT", "127.0.0.1", 9092),
                listener("INSIDE", "::1", 9093),
            ],
            http: &[([127, 0, 0, 1], 9644).into()],
            node_id: 1,
            cluster_id: "5L6g3nShT-eMCtK--X86sw",
            log_dirs: vec!["./highwater-data".into(), "/disk2".into()],
            unusable_log_dirs: vec!["/disk3".into()],
            took: Duration::from_millis(12),
        }
        .message();
        let first = message.lines().next().expect("a line");
        assert!(first.contains(
            "is ready on PLAINTEXT://127.0.0.1:9092, INSIDE://[::1]:9093 (12 ms; node 1, cluster"
        ));
        assert!(first.ends_with(", data in ./highwater-data, /disk2, without /disk3)"));
        assert!(message.contains(
            "Console on http://127.0.0.1:9644/, metrics on http://127.0.0.1:9644/metrics\n"
        ));
        assert!(message.contains("  echo hello | kcat -b 127.0.0.1:9092 -t greetings -P && "));
        assert!(message.contains("{'bootstrap.servers': '127.0.0.1:9092'}"));
    }
}
