//! One connection: requests in the order they are sent, responses in the same order.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use kafka_protocol::protocol::Request;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::request::{EncodedRequest, api, decode_response};
use super::state::State;
use super::{ClientConfig, ClientError};

/// A connection to one node. Requests are pipelined; a response that is late or out of order closes it for all.
pub struct Connection {
    address: Arc<str>,
    config: Arc<ClientConfig>,
    permits: Arc<Semaphore>,
    state: Mutex<State>,
}

impl Connection {
    /// Takes over a connected socket. `address` is what errors call the node.
    pub fn new(stream: TcpStream, address: Arc<str>, config: Arc<ClientConfig>) -> Self {
        Connection {
            address,
            permits: Arc::new(Semaphore::new(config.max_in_flight)),
            config,
            state: Mutex::new(State::new(stream)),
        }
    }

    /// Sends a request in a version and waits for its response.
    ///
    /// Dropping the future does not take the request back.
    ///
    /// # Errors
    /// When the request has no encoding in this version, or the connection ends before the response comes, by its
    /// time-out too.
    pub async fn call<R: Request>(
        &self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        let frame = self.exchange(request, version).await?;
        decode_response::<R>(frame, version).map_err(|reason| {
            self.close(&format!("a response of {} does not parse", api::<R>()));
            ClientError::Decode {
                address: self.address.clone(),
                api: api::<R>(),
                reason,
            }
        })
    }

    /// As [`call`](Self::call), but gives the response frame as it came: header and body, without the length prefix.
    pub async fn exchange<R: Request>(
        &self,
        request: &R,
        version: i16,
    ) -> Result<Bytes, ClientError> {
        let encoded = EncodedRequest::new(request, version, &self.config.client_id)?;
        self.within_limit(api::<R>(), self.send(encoded)).await
    }

    /// Sends a request that the node never answers: Produce with `acks=0`. Ends when the operating system has taken its
    /// last byte; what becomes of it then nobody tells. A node that cannot do what was asked closes the connection,
    /// which [`is_closed`](Self::is_closed) finds out.
    ///
    /// Dropping the future does not take the request back.
    ///
    /// # Errors
    /// When the request has no encoding in this version, or the connection ends before all of it is written, by its
    /// time-out too.
    pub async fn send_unanswered<R: Request>(
        &self,
        request: &R,
        version: i16,
    ) -> Result<(), ClientError> {
        let encoded = EncodedRequest::new(request, version, &self.config.client_id)?;
        let writing = async {
            let _permit = self.permit().await?;
            let ticket = self.state.lock().begin_unanswered(encoded)?;
            let mut writing = Writing {
                connection: self,
                ticket,
                is_done: false,
            };
            poll_fn(|cx| writing.poll(cx)).await
        };
        self.within_limit(api::<R>(), writing).await
    }

    /// Waits no longer than a request may take; then nothing is to be had from this connection any more.
    async fn within_limit<T>(
        &self,
        api: &'static str,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let limit = self.config.request_timeout;
        match timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => {
                self.close(&format!("{api} timed out"));
                Err(ClientError::TimedOut {
                    address: self.address.clone(),
                    api,
                    timeout: limit,
                })
            }
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, ClientError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| self.closed_error("it takes no more requests"))
    }

    async fn send(&self, request: EncodedRequest) -> Result<Bytes, ClientError> {
        let permit = self.permit().await?;
        let correlation_id = self.state.lock().begin(request, permit)?;
        let mut pending = Pending {
            connection: self,
            correlation_id,
            is_done: false,
        };
        poll_fn(|cx| pending.poll(cx)).await
    }

    pub(super) fn config(&self) -> &ClientConfig {
        &self.config
    }

    pub(super) fn closed_error(&self, reason: &str) -> ClientError {
        ClientError::Closed {
            address: self.address.clone(),
            reason: reason.into(),
        }
    }

    /// Ends the connection. Requests that wait for a response get an error with `reason`.
    pub fn close(&self, reason: &str) {
        let error = self.closed_error(reason);
        self.state.lock().close(error);
    }

    /// Whether the connection has ended. Finds out whether the node closed it while nobody was waiting.
    pub fn is_closed(&self) -> bool {
        let mut state = self.state.lock();
        if let Some(found) = state.find_silent_end() {
            state.close(self.closed_error(found));
        }
        state.is_closed()
    }
}

/// One request's wait for its response; dropping it leaves the response to nobody.
struct Pending<'a> {
    connection: &'a Connection,
    correlation_id: i32,
    is_done: bool,
}

impl Pending<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ClientError>> {
        let connection = self.connection;
        let mut state = connection.state.lock();
        let polled = state.poll_response(self.correlation_id, connection, cx);
        self.is_done = polled.is_ready();
        polled
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.connection.state.lock().abandon(self.correlation_id);
        }
    }
}

/// The wait until a request that is not answered is written.
struct Writing<'a> {
    connection: &'a Connection,
    ticket: u64,
    is_done: bool,
}

impl Writing<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        let mut state = self.connection.state.lock();
        let polled = state.poll_written(self.ticket, self.connection, cx);
        self.is_done = polled.is_ready();
        polled
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.connection.state.lock().abandon_writing(self.ticket);
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Requests whose response is outstanding.
    pub(super) fn in_flight(&self) -> usize {
        self.state.lock().in_flight()
    }
}
