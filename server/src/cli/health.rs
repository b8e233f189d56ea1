//! `highwater health`: asks a node whether it works, for health checks of containers and service managers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use kafka_protocol::messages::ApiVersionsRequest;
use kafka_protocol::protocol::StrBytes;

use super::settings::SettingsArguments;
use super::{failed, print};
use crate::network::client::{Client, ClientConfig};

/// Most that is read of what the node answers.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Whom to ask, and how long to wait.
#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    #[command(flatten)]
    settings: SettingsArguments,

    /// How long the answer may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
}

/// Asks, tells, and gives the exit code.
pub(super) fn health(arguments: &HealthArguments) -> ExitCode {
    match ask(arguments) {
        Ok(()) => print("healthy\n"),
        Err(error) => failed(&error),
    }
}

/// Asks the HTTP port, which knows most, or else a listener.
fn ask(arguments: &HealthArguments) -> anyhow::Result<()> {
    let (config, _) = arguments.settings.load(std::env::vars_os())?;
    let config = config.current();
    let patience = Duration::from_millis(arguments.timeout_ms);
    if let Some(http) = config.http_listeners.first() {
        ensure!(http.port != 0, "http.listeners has no fixed port to ask");
        let host = loopback_of(&http.host);
        return ask_http(host, http.port, patience)
            .with_context(|| format!("no good health of {host}:{}", http.port));
    }
    let listeners = config.network_listeners();
    let listener = listeners.iter().find(|listener| listener.port != 0);
    let listener =
        listener.context("neither http.listeners nor listeners has a fixed port to ask")?;
    ask_listener(loopback_of(&listener.host), listener.port, patience)
}

/// The address of this machine that is sure to be among those that a listener on `host` is bound to.
fn loopback_of(host: &str) -> &str {
    match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    }
}

fn ask_http(host: &str, port: u16, patience: Duration) -> anyhow::Result<()> {
    let address = (host, port).to_socket_addrs()?.next();
    let address = address.context("the name has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = BufReader::new(stream.take(MAX_ANSWER_BYTES));
    let mut status_line = String::new();
    answer.read_line(&mut status_line)?;
    let mut rest = String::new();
    answer.read_to_string(&mut rest)?;
    let reason = rest
        .split_once("\r\n\r\n")
        .map_or("", |(_, body)| body)
        .trim();
    match status_line.split_whitespace().nth(1) {
        Some("200") => Ok(()),
        Some(status) => bail!("status {status}: {reason}"),
        None => bail!("what answers there is no HTTP port"),
    }
}

/// A node that answers ApiVersions has its data open and serves.
fn ask_listener(host: &str, port: u16, patience: Duration) -> anyhow::Result<()> {
    let config = ClientConfig {
        request_timeout: patience,
        connection_setup_timeout: patience,
        ..ClientConfig::named(StrBytes::from_static_str("highwater-health"))
    };
    let client = Client::new(host, port, Arc::new(config));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(client.call(&ApiVersionsRequest::default()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::in_full;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn ask_one_that_answers(answer: &'static str) -> Result<(), String> {
        let server = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = server.local_addr().expect("an address").port();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().expect("a connection");
            let mut request = BufReader::new(stream.try_clone().expect("a handle"));
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                request.read_line(&mut line).expect("a line");
            }
            stream.write_all(answer.as_bytes()).expect("written");
        });
        let asked = ask_http("127.0.0.1", port, PATIENCE).map_err(|error| in_full(&error));
        serving.join().expect("served");
        asked
    }

    #[test]
    fn the_status_decides_and_the_reason_is_told() {
        assert_eq!(
            ask_one_that_answers("HTTP/1.1 200 OK\r\n\r\nhealthy\n"),
            Ok(())
        );
        let ill = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 5\r\n\r\nill!\n";
        assert_eq!(
            ask_one_that_answers(ill),
            Err("status 503: ill!".to_owned())
        );
        let other = "what answers there is no HTTP port";
        assert_eq!(ask_one_that_answers(""), Err(other.to_owned()));
    }

    #[test]
    fn every_interface_is_asked_on_this_machine() {
        assert_eq!(loopback_of(""), "127.0.0.1");
        assert_eq!(loopback_of("0.0.0.0"), "127.0.0.1");
        assert_eq!(loopback_of("::"), "::1");
        assert_eq!(loopback_of("192.0.2.1"), "192.0.2.1");
    }
}
