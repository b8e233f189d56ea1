//! The responses of one connection, in the order of its requests.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use tokio::io::AsyncWrite;

use super::metrics::NetworkMetrics;
use crate::api::ResponseBody;

/// The most pieces that one vectored write takes.
const MAX_PIECES_PER_WRITE: usize = 64;
/// An empty queue keeps room for so many entries.
const KEPT_CAPACITY: usize = 32;

/// Which request a response belongs to, for its metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestStamp {
    pub(crate) api_key: i16,
    /// When the request was received.
    pub(crate) received_at: Instant,
}

/// The place of a response in the queue, from [`ResponseQueue::reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

enum Slot {
    Ready(ResponseBody),
    Parked(BoxFuture<'static, ResponseBody>),
    /// An asynchronous handler runs; it fills the place later.
    Reserved,
    /// The request turned out to have no response.
    Skipped,
}

/// A response that cannot be given: its handler panicked or it has no encoding. The connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseFailed;

/// Responses waiting for their turn, and the pieces that are on their way out.
#[derive(Default)]
pub(crate) struct ResponseQueue {
    slots: VecDeque<(RequestStamp, Slot)>,
    /// The place of the first slot.
    first_place: u64,
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    /// Bytes of ready responses behind one that is not.
    waiting_bytes: usize,
}

impl ResponseQueue {
    /// Requests whose response is not yet on its way.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of complete responses that the socket has not taken.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.outgoing_bytes + self.waiting_bytes
    }

    /// Whether every response has left.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.outgoing.is_empty()
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Adds a complete response.
    pub(crate) fn push_ready(
        &mut self,
        stamp: RequestStamp,
        body: ResponseBody,
        metrics: &NetworkMetrics,
    ) -> Result<(), ResponseFailed> {
        if self.slots.is_empty() {
            return self.send(stamp, body, metrics);
        }
        self.waiting_bytes += body.len();
        self.slots.push_back((stamp, Slot::Ready(body)));
        Ok(())
    }

    /// Adds a response that comes later.
    pub(crate) fn push_parked(
        &mut self,
        stamp: RequestStamp,
        future: BoxFuture<'static, ResponseBody>,
    ) {
        self.slots.push_back((stamp, Slot::Parked(future)));
    }

    /// Keeps a place for the response of an asynchronous handler.
    pub(crate) fn reserve(&mut self, stamp: RequestStamp) -> Place {
        self.slots.push_back((stamp, Slot::Reserved));
        Place(self.first_place + self.slots.len() as u64 - 1)
    }

    fn fill(&mut self, place: Place, slot: Slot) {
        let index = place
            .0
            .checked_sub(self.first_place)
            .and_then(|index| usize::try_from(index).ok());
        if let Some((_, reserved)) = index.and_then(|index| self.slots.get_mut(index)) {
            debug_assert!(matches!(reserved, Slot::Reserved), "a place is filled once");
            *reserved = slot;
        }
    }

    /// Fills a reserved place with a complete response.
    pub(crate) fn fill_ready(&mut self, place: Place, body: ResponseBody) {
        self.waiting_bytes += body.len();
        self.fill(place, Slot::Ready(body));
    }

    /// Fills a reserved place with a response that comes later.
    pub(crate) fn fill_parked(&mut self, place: Place, future: BoxFuture<'static, ResponseBody>) {
        self.fill(place, Slot::Parked(future));
    }

    /// Gives a reserved place up: the request has no response.
    pub(crate) fn fill_nothing(&mut self, place: Place) {
        self.fill(place, Slot::Skipped);
    }

    fn send(
        &mut self,
        stamp: RequestStamp,
        body: ResponseBody,
        metrics: &NetworkMetrics,
    ) -> Result<(), ResponseFailed> {
        if body.is_unencodable() {
            return Err(ResponseFailed);
        }
        self.outgoing_bytes += body.len();
        self.outgoing.extend(body.into_pieces());
        metrics.record_request_time(stamp.api_key, stamp.received_at.elapsed());
        Ok(())
    }

    /// Moves responses from the front to the socket's side for as long as they are ready; the first that is not wakes
    /// the task when it is.
    pub(crate) fn poll_front(
        &mut self,
        cx: &mut Context<'_>,
        metrics: &NetworkMetrics,
    ) -> Result<(), ResponseFailed> {
        while let Some((stamp, slot)) = self.slots.front_mut() {
            let stamp = *stamp;
            let body = match slot {
                Slot::Reserved => break,
                Slot::Skipped => None,
                Slot::Ready(body) => {
                    self.waiting_bytes -= body.len();
                    Some(std::mem::take(body))
                }
                Slot::Parked(future) => {
                    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                        Ok(Poll::Ready(body)) => Some(body),
                        Ok(Poll::Pending) => break,
                        // The panic hook has logged the message and the place.
                        Err(_) => return Err(ResponseFailed),
                    }
                }
            };
            self.slots.pop_front();
            self.first_place += 1;
            if let Some(body) = body {
                self.send(stamp, body, metrics)?;
            }
        }
        if self.slots.is_empty() && self.slots.capacity() > KEPT_CAPACITY {
            self.slots = VecDeque::new();
        }
        Ok(())
    }

    /// Drops every response that is not on its way.
    pub(crate) fn abandon_waiting(&mut self) {
        self.first_place += self.slots.len() as u64;
        self.slots.clear();
        self.waiting_bytes = 0;
    }

    /// Writes what is on its way, several responses with one call. `Ready(Ok(bytes))` means that all of it has left.
    pub(crate) fn poll_write_to<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_PIECES_PER_WRITE];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.outgoing) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let writer = Pin::new(&mut *writer);
            let written = ready!(writer.poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        if self.outgoing.capacity() > KEPT_CAPACITY {
            self.outgoing = VecDeque::new();
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        self.outgoing_bytes -= written;
        while let Some(piece) = self.outgoing.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.outgoing.pop_front();
        }
    }
}
