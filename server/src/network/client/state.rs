//! What the requests of a connection share: frames on their way out, and responses on their way in.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::request::EncodedRequest;
use super::{ClientConfig, ClientError, Connection};

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
pub(super) struct State {
    /// `None` once the connection is closed; then `closed` says why.
    stream: Option<TcpStream>,
    closed: Option<ClientError>,
    unsent: VecDeque<Bytes>,
    /// Frames that were put in line so far, and how many of them the socket has taken.
    queued: u64,
    written: u64,
    /// Who waits until the socket has taken a frame, by the number of frames up to it.
    writers: Vec<(u64, Waker)>,
    read_buffer: BytesMut,
    /// In the order they were sent; their correlation ids are consecutive.
    exchanges: VecDeque<Exchange>,
    /// How many at the front of `exchanges` have their response.
    answered: usize,
    next_correlation_id: i32,
    /// The request whose waker the socket has: when it is done, another must take over.
    driver: Option<i32>,
}

impl State {
    /// Of a connection with nothing on its way.
    pub(super) fn new(stream: TcpStream) -> Self {
        State {
            stream: Some(stream),
            closed: None,
            unsent: VecDeque::new(),
            queued: 0,
            written: 0,
            writers: Vec::new(),
            read_buffer: BytesMut::new(),
            exchanges: VecDeque::new(),
            answered: 0,
            next_correlation_id: 0,
            driver: None,
        }
    }

    /// Puts a request in line to be sent by whoever polls next.
    pub(super) fn begin(
        &mut self,
        request: EncodedRequest,
        permit: OwnedSemaphorePermit,
    ) -> Result<i32, ClientError> {
        if let Some(error) = &self.closed {
            return Err(error.clone());
        }
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        self.enqueue(request.into_frame(correlation_id));
        self.exchanges.push_back(Exchange::Waiting(None, permit));
        Ok(correlation_id)
    }

    /// As [`begin`](Self::begin), for a request that gets no response: it has the correlation id of the next one that
    /// does, since those are consecutive. Gives the number of frames up to it.
    pub(super) fn begin_unanswered(&mut self, request: EncodedRequest) -> Result<u64, ClientError> {
        if let Some(error) = &self.closed {
            return Err(error.clone());
        }
        self.enqueue(request.into_frame(self.next_correlation_id));
        Ok(self.queued)
    }

    fn enqueue(&mut self, frame: Bytes) {
        self.unsent.push_back(frame);
        self.queued += 1;
    }

    pub(super) fn poll_written(
        &mut self,
        ticket: u64,
        connection: &Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ClientError>> {
        if let Err(error) = self.flush(cx) {
            self.close(connection.closed_error(&error.to_string()));
        }
        if self.written >= ticket {
            if !self.unsent.is_empty() {
                // The socket would wake this one, which is done.
                self.wake_one();
            }
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &self.closed {
            return Poll::Ready(Err(error.clone()));
        }
        match self.writers.iter_mut().find(|(other, _)| *other == ticket) {
            Some((_, waker)) => waker.clone_from(cx.waker()),
            None => self.writers.push((ticket, cx.waker().clone())),
        }
        Poll::Pending
    }

    /// Nobody waits for this frame any more. The socket may have been about to wake who did: another writes on.
    pub(super) fn abandon_writing(&mut self, ticket: u64) {
        self.writers.retain(|(other, _)| *other != ticket);
        self.wake_one();
    }

    /// Where the exchange is, if it is not over yet.
    fn index(&self, correlation_id: i32) -> Option<usize> {
        let behind = self.next_correlation_id.wrapping_sub(correlation_id);
        self.exchanges
            .len()
            .checked_sub(usize::try_from(behind).ok()?)
    }

    pub(super) fn poll_response(
        &mut self,
        correlation_id: i32,
        connection: &Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, ClientError>> {
        if !self.has_arrived(correlation_id)
            && let Err(reason) = self.drive(correlation_id, connection.config(), cx)
        {
            self.close(connection.closed_error(&reason));
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

    pub(super) fn abandon(&mut self, correlation_id: i32) {
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
        self.wake_one();
    }

    /// Wakes one of those who wait, to write and read on.
    fn wake_one(&self) {
        let waiting = self.exchanges.iter().find_map(|exchange| match exchange {
            Exchange::Waiting(Some(waker), _) => Some(waker),
            _ => None,
        });
        let writer = self.writers.first().map(|(_, waker)| waker);
        // A writer does not read, but whoever waits for a response writes too.
        if let Some(waker) = waiting.or(writer) {
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
                Poll::Pending => break,
            }
            if frame.is_empty() {
                self.unsent.pop_front();
                self.written += 1;
            }
        }
        let written = self.written;
        for (_, waker) in self
            .writers
            .extract_if(.., |(ticket, _)| *ticket <= written)
        {
            waker.wake();
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
    pub(super) fn find_silent_end(&mut self) -> Option<&'static str> {
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

    pub(super) fn close(&mut self, error: ClientError) {
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
        for (_, waker) in self.writers.drain(..) {
            waker.wake();
        }
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.stream.is_none()
    }

    /// Requests whose response is outstanding.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.exchanges.len() - self.answered
    }
}
