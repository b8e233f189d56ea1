//! The first of several nodes that can be reached.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::sleep;

use super::KafkaError;
use crate::network::client::{Client, ClientError};

/// How long a node is waited for before the next is connected to as well.
const HEAD_START: Duration = Duration::from_millis(300);

/// Asks one of these nodes after the other until one answers, first those that are connected to.
///
/// # Errors
/// The error of the last one, or the first that is not retriable.
pub(super) async fn ask_any<T>(
    mut clients: Vec<Arc<Client>>,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
) -> Result<T, KafkaError> {
    let mut last = KafkaError::retriable("TimeoutException", "there is no node to ask");
    while !clients.is_empty() {
        let index = first_reachable(&clients).await?;
        match ask(&clients.remove(index)).await {
            Ok(answer) => return Ok(answer),
            Err(error) => last = KafkaError::from(error),
        }
        if !last.is_retriable {
            break;
        }
    }
    Err(last)
}

/// The index of one that is connected to, else of the first that becomes so. They are tried in their order, each some
/// time after the one before or as soon as that has failed (as RFC 8305 does with addresses): one that is stopped and not
/// dead lets anybody connect and answers nobody.
async fn first_reachable(clients: &[Arc<Client>]) -> Result<usize, ClientError> {
    if let Some(index) = clients.iter().position(|client| client.is_connected()) {
        return Ok(index);
    }
    let mut untried = clients.iter().enumerate();
    let mut attempts = FuturesUnordered::new();
    loop {
        if let Some((index, client)) = untried.next() {
            attempts.push(async move { client.connect().await.map(|()| index) });
        }
        let is_last = untried.len() == 0;
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Err(error) if is_last && attempts.is_empty() => return Err(error),
                Err(_) => {}
                Ok(index) => return Ok(index),
            },
            () = sleep(HEAD_START), if !is_last => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use kafka_protocol::messages::{ApiKey, MetadataRequest, MetadataResponse};
    use tokio::time::timeout;

    use super::*;
    use crate::network::client::ClientConfig;
    use crate::network::client::fake_node::FakeNode;

    /// Longer than anything takes on a busy machine, and less than the clients wait.
    const LIMIT: Duration = Duration::from_secs(120);

    fn client_of(port: u16) -> Arc<Client> {
        let mut config = ClientConfig::named("c");
        config.request_timeout = LIMIT * 100;
        Arc::new(Client::new("127.0.0.1", port, Arc::new(config)))
    }

    async fn ask(clients: &[Arc<Client>]) -> Result<MetadataResponse, KafkaError> {
        let request = MetadataRequest::default();
        let asking = ask_any(clients.to_vec(), async |client: &Client| {
            client.call(&request).await
        });
        timeout(LIMIT, asking).await.expect("nobody hangs")
    }

    #[tokio::test]
    async fn a_node_that_is_stopped_or_gone_does_not_hold_up_what_another_answers() {
        let stopped = FakeNode::raw(|_| pending()).await;
        let quick = FakeNode::serving(&[(ApiKey::Metadata, 9, 9)], |request| async move {
            request.answer(&MetadataResponse::default().with_controller_id(7.into()))
        })
        .await;
        let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let gone_port = gone.local_addr().expect("an address").port();
        drop(gone);
        let clients = [stopped.port, gone_port, quick.port].map(client_of);
        // The second time there is a connection.
        for _ in 0..2 {
            let answer = ask(&clients).await.expect("an answer");
            assert_eq!(answer.controller_id, 7);
        }
        assert!(clients[2].is_connected() && !clients[0].is_connected());
        let error = ask(&clients[1..2]).await.expect_err("nobody is there");
        assert!(error.is_retriable, "{error}");
        ask(&[]).await.expect_err("there is nobody");
    }
}
