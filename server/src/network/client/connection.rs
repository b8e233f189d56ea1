//! One connection: requests in the order they are sent, responses in the same order.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::protocol::Request;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::request::{EncodedRequest, api, decode_response};
use super::{ClientConfig, ClientError};

/// Bytes of a response's length prefix.
const LENGTH_BYTES: usize = 4;
/// Room for what is read before a response's length is known.
const READ_BYTES: usize = 4 * 1024;
/// A buffer that had to be larger than this is given back once it is empty.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// A request whose response is outstanding, or has come and was not taken yet.
enum Exchange {
    /// Nobody has the response yet; woken when it comes. A request that was not polled yet has no waker.
    Waiting(Option<Waker>, OwnedSemaphorePermit),
    /// Whoever asked is gone; the response is thrown away when it comes.
    Abandoned(OwnedSemaphorePermit),
    /// The response frame, without its length prefix.
    Arrived(Bytes),
    /// The response was taken or thrown away.
    Done,
}

/// What the requests of a connection share. Whoever polls a response does the reading and writing for all.
struct State {
    /// `None` once the connection is closed; then `closed` says why.
    stream: Option<TcpStream>,
    closed: Option<ClientError>,
    unsent: VecDeque<Bytes>,
    read_buffer: BytesMut,
    /// In the order they were sent; their correlation ids are consecutive.
    exchanges: VecDeque<Exchange>,
    /// How many at the front of `exchanges` have their response.
    answered: usize,
    next_correlation_id: i32,
    /// The request whose waker the socket has: when it is done, another must take over.
    driver: Option<i32>,
}

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
            state: Mutex::new(State {
                stream: Some(stream),
                closed: None,
                unsent: VecDeque::new(),
                read_buffer: BytesMut::new(),
                exchanges: VecDeque::new(),
                answered: 0,
                next_correlation_id: 0,
                driver: None,
            }),
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
        let limit = self.config.request_timeout;
        match timeout(limit, self.send(encoded)).await {
            Ok(response) => response,
            Err(_) => {
                self.close(&format!("{} timed out", api::<R>()));
                Err(ClientError::TimedOut {
                    address: self.address.clone(),
                    api: api::<R>(),
                    timeout: limit,
                })
            }
        }
    }

    async fn send(&self, request: EncodedRequest) -> Result<Bytes, ClientError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| self.closed("it takes no more requests"))?;
        let correlation_id = self.state.lock().begin(request, permit)?;
        let mut pending = Pending {
            connection: self,
            correlation_id,
            is_done: false,
        };
        poll_fn(|cx| pending.poll(cx)).await
    }

    fn closed(&self, reason: &str) -> ClientError {
        ClientError::Closed {
            address: self.address.clone(),
            reason: reason.into(),
        }
    }

    /// Ends the connection. Requests that wait for a response get an error with `reason`.
    pub fn close(&self, reason: &str) {
        let error = self.closed(reason);
        self.state.lock().close(error);
    }

    /// Whether the connection has ended. Finds out whether the node closed it while nobody was waiting.
    pub fn is_closed(&self) -> bool {
        let mut state = self.state.lock();
        if let Some(found) = state.find_silent_end() {
            state.close(self.closed(found));
        }
        state.stream.is_none()
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

impl State {
    /// Puts a request in line to be sent by whoever polls next.
    fn begin(
        &mut self,
        request: EncodedRequest,
        permit: OwnedSemaphorePermit,
    ) -> Result<i32, ClientError> {
        if let Some(error) = &self.closed {
            return Err(error.clone());
        }
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        self.unsent.push_back(request.into_frame(correlation_id));
        self.exchanges.push_back(Exchange::Waiting(None, permit));
        Ok(correlation_id)
    }

    /// Where the exchange is, if it is not over yet.
    fn index(&self, correlation_id: i32) -> Option<usize> {
        let behind = self.next_correlation_id.wrapping_sub(correlation_id);
        self.exchanges
            .len()
            .checked_sub(usize::try_from(behind).ok()?)
    }

    fn poll_response(
        &mut self,
        correlation_id: i32,
        connection: &Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, ClientError>> {
        if !self.has_arrived(correlation_id)
            && let Err(reason) = self.drive(correlation_id, &connection.config, cx)
        {
            self.close(connection.closed(&reason));
        }
        if let Some(response) = self.take(correlation_id) {
            self.hand_over(correlation_id);
            return Poll::Ready(Ok(response));
        }
        if let Some(error) = &self.closed {
            return Poll::Ready(Err(error.clone()));
        }
        self.driver = Some(correlation_id);
        if let Some(Exchange::Waiting(waker, _)) = self
            .index(correlation_id)
            .and_then(|index| self.exchanges.get_mut(index))
        {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }

    fn has_arrived(&self, correlation_id: i32) -> bool {
        let exchange = self.index(correlation_id).map(|i| &self.exchanges[i]);
        matches!(exchange, Some(Exchange::Arrived(_)))
    }

    fn take(&mut self, correlation_id: i32) -> Option<Bytes> {
        let index = self.index(correlation_id)?;
        let exchange = self.exchanges.get_mut(index)?;
        if !matches!(exchange, Exchange::Arrived(_)) {
            return None;
        }
        let taken = std::mem::replace(exchange, Exchange::Done);
        self.forget_done();
        match taken {
            Exchange::Arrived(response) => Some(response),
            _ => None,
        }
    }

    fn abandon(&mut self, correlation_id: i32) {
        let index = self.index(correlation_id);
        if let Some(exchange) = index.and_then(|index| self.exchanges.get_mut(index)) {
            *exchange = match std::mem::replace(exchange, Exchange::Done) {
                Exchange::Waiting(_, permit) => Exchange::Abandoned(permit),
                Exchange::Abandoned(permit) => Exchange::Abandoned(permit),
                Exchange::Arrived(_) | Exchange::Done => Exchange::Done,
            };
            self.forget_done();
        }
        self.hand_over(correlation_id);
    }

    fn forget_done(&mut self) {
        while matches!(self.exchanges.front(), Some(Exchange::Done)) {
            self.exchanges.pop_front();
            self.answered = self.answered.saturating_sub(1);
        }
    }

    /// When the socket would wake a request that is done, wakes another to take its place.
    fn hand_over(&mut self, correlation_id: i32) {
        if self.driver.is_some_and(|driver| driver != correlation_id) {
            return;
        }
        self.driver = None;
        let waiting = self.exchanges.iter().find_map(|exchange| match exchange {
            Exchange::Waiting(Some(waker), _) => Some(waker),
            _ => None,
        });
        if let Some(waker) = waiting {
            waker.wake_by_ref();
        }
    }

    /// Sends what is unsent, and reads until the wanted response is here or nothing more is.
    fn drive(
        &mut self,
        correlation_id: i32,
        config: &ClientConfig,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        self.flush(cx).map_err(|error| error.to_string())?;
        loop {
            while let Some(frame) = self.next_frame(config.max_response_bytes)? {
                self.deliver(frame)?;
            }
            if self.has_arrived(correlation_id) {
                return Ok(());
            }
            let Some(stream) = &mut self.stream else {
                return Ok(());
            };
            let reading = pin!(stream.read_buf(&mut self.read_buffer));
            match reading.poll(cx) {
                Poll::Ready(Ok(0)) => return Err("the node closed it".to_owned()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let (Some(stream), Some(frame)) = (&mut self.stream, self.unsent.front_mut()) {
            match Pin::new(stream).poll_write(cx, frame)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => frame.advance(written),
                Poll::Pending => return Ok(()),
            }
            if frame.is_empty() {
                self.unsent.pop_front();
            }
        }
        Ok(())
    }

    /// The next response that is here to its last byte; else makes room for it.
    fn next_frame(&mut self, max_response_bytes: usize) -> Result<Option<Bytes>, String> {
        let buffer = &mut self.read_buffer;
        let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else {
            buffer.reserve(READ_BYTES);
            return Ok(None);
        };
        let length = i32::from_be_bytes(*prefix);
        let frame_bytes = usize::try_from(length)
            .ok()
            .filter(|bytes| (LENGTH_BYTES..=max_response_bytes).contains(bytes))
            .ok_or_else(|| {
                format!(
                    "a response of {length} bytes, where at most {max_response_bytes} are taken"
                )
            })?;
        let end = LENGTH_BYTES + frame_bytes;
        if buffer.len() < end {
            // Pages that are not written to cost nothing, so the room for the whole response is taken at once.
            buffer.reserve(end - buffer.len());
            return Ok(None);
        }
        buffer.advance(LENGTH_BYTES);
        let frame = buffer.split_to(frame_bytes).freeze();
        if buffer.is_empty() && end > KEPT_BUFFER_BYTES {
            *buffer = BytesMut::new();
        }
        Ok(Some(frame))
    }

    fn deliver(&mut self, frame: Bytes) -> Result<(), String> {
        let unanswered = self.exchanges.len() - self.answered;
        let expected = self.next_correlation_id.wrapping_sub(unanswered as i32);
        let found = frame.first_chunk().map(|id| i32::from_be_bytes(*id));
        let exchange = self.exchanges.get_mut(self.answered);
        let (Some(exchange), true) = (exchange, found == Some(expected)) else {
            return Err(format!(
                "a response with correlation id {found:?} where {unanswered} are expected from {expected} on"
            ));
        };
        self.answered += 1;
        match std::mem::replace(exchange, Exchange::Done) {
            Exchange::Waiting(waker, _) => {
                *exchange = Exchange::Arrived(frame);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Exchange::Abandoned(_) | Exchange::Arrived(_) | Exchange::Done => self.forget_done(),
        }
        Ok(())
    }

    /// What ended the connection while nobody was reading.
    fn find_silent_end(&mut self) -> Option<&'static str> {
        if self.answered < self.exchanges.len() {
            return None;
        }
        let stream = self.stream.as_ref()?;
        match stream.try_read(&mut [0]) {
            Ok(0) => Some("the node closed it"),
            Ok(_) => Some("the node sent what nobody asked for"),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some("it is broken"),
        }
    }

    fn close(&mut self, error: ClientError) {
        if self.stream.take().is_none() {
            return;
        }
        tracing::debug!(%error, "connection ended");
        self.closed = Some(error);
        self.unsent.clear();
        self.read_buffer = BytesMut::new();
        for exchange in &mut self.exchanges {
            if let Exchange::Waiting(Some(waker), _) = exchange {
                waker.wake_by_ref();
            }
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Requests whose response is outstanding.
    pub(super) fn in_flight(&self) -> usize {
        let state = self.state.lock();
        state.exchanges.len() - state.answered
    }
}
