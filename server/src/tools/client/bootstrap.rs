//! `--bootstrap-server host:port,host:port`.

use std::net::ToSocketAddrs as _;

use super::KafkaError;
use crate::tools::ToolError;

/// Reads the list; IPv6 addresses are in brackets.
///
/// # Errors
/// In Kafka's words, for an entry that is no host with a port.
pub(super) fn parse_bootstrap(list: &str) -> Result<Vec<(String, u16)>, KafkaError> {
    let entries = list.split(',').map(str::trim);
    let entries = entries.filter(|entry| !entry.is_empty());
    let nodes = entries.map(|entry| {
        parse_entry(entry).ok_or_else(|| {
            let text = format!("Invalid url in bootstrap.servers: {entry}");
            KafkaError::config(text)
        })
    });
    let nodes: Vec<_> = nodes.collect::<Result<_, _>>()?;
    if nodes.is_empty() {
        let text = "No bootstrap urls given in bootstrap.servers";
        return Err(KafkaError::config(text));
    }
    Ok(nodes)
}

/// Leaves out the hosts that have no address, and says so.
///
/// # Errors
/// In Kafka's words, when none has one.
pub(super) fn resolvable(nodes: Vec<(String, u16)>) -> Result<Vec<(String, u16)>, KafkaError> {
    let has_address = |(host, port): &(String, u16)| {
        let found = (host.as_str(), *port).to_socket_addrs();
        let has_address = found.is_ok_and(|mut found| found.next().is_some());
        if !has_address {
            ToolError::warn(&format!(
                "Couldn't resolve server {host}:{port} from bootstrap.servers as DNS resolution failed for {host}"
            ));
        }
        has_address
    };
    let nodes: Vec<_> = nodes.into_iter().filter(has_address).collect();
    match nodes.is_empty() {
        false => Ok(nodes),
        true => {
            let text = "No resolvable bootstrap urls given in bootstrap.servers";
            Err(KafkaError::config(text))
        }
    }
}

fn parse_entry(entry: &str) -> Option<(String, u16)> {
    // A protocol in front of the host is allowed, as in a listener.
    let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let (host, port) = entry.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port = port.parse().ok().filter(|&port| port > 0)?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read() {
        let node = |host: &str, port| (host.to_owned(), port);
        assert_eq!(
            parse_bootstrap("a:1, b.c:9092,[::1]:3,PLAINTEXT://d:4"),
            Ok(vec![
                node("a", 1),
                node("b.c", 9092),
                node("::1", 3),
                node("d", 4)
            ])
        );
    }

    #[test]
    fn hosts_without_an_address_are_left_out() {
        let node = |host: &str| (host.to_owned(), 1);
        // Top-level domain that never has an address (RFC 2606).
        let nodes = vec![node("nobody.invalid"), node("127.0.0.1")];
        assert_eq!(resolvable(nodes), Ok(vec![node("127.0.0.1")]));
        let error = resolvable(vec![node("nobody.invalid")]).expect_err("none");
        assert_eq!(
            error.message,
            "No resolvable bootstrap urls given in bootstrap.servers"
        );
    }

    #[test]
    fn what_is_no_host_and_port_is_refused() {
        for list in [
            "a", "a:", "a:x", "a:0", "a:70000", ":1", "::1:9092", "[::1:9", "a:1,b",
        ] {
            let error = parse_bootstrap(list).expect_err(list);
            assert!(
                error
                    .message
                    .starts_with("Invalid url in bootstrap.servers: "),
                "{error}"
            );
        }
        assert!(parse_bootstrap(",").is_err());
    }
}
