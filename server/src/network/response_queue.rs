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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use futures_util::task::noop_waker_ref;
    use proptest::prelude::*;
    use tokio::sync::oneshot;

    use super::*;
    use crate::api::ResponseWriter;

    /// Takes a limited number of bytes a call, then says that it is full once.
    #[derive(Default)]
    struct Socket {
        written: Vec<u8>,
        bytes_per_call: usize,
        full: bool,
        calls: usize,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(buf)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.full = !self.full && self.bytes_per_call < usize::MAX;
            if self.full {
                return Poll::Pending;
            }
            self.calls += 1;
            let mut left = self.bytes_per_call;
            for buf in bufs {
                let taken = left.min(buf.len());
                self.written.extend_from_slice(&buf[..taken]);
                left -= taken;
            }
            Poll::Ready(Ok(self.bytes_per_call - left))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn stamp() -> RequestStamp {
        RequestStamp {
            api_key: 0,
            received_at: Instant::now(),
        }
    }

    fn body(correlation_id: i32) -> ResponseBody {
        ResponseWriter::new(correlation_id, 0, 8).finish()
    }

    fn correlation_ids(written: &[u8]) -> Vec<i32> {
        written
            .chunks(8)
            .map(|frame| i32::from_be_bytes(frame[4..8].try_into().unwrap()))
            .collect()
    }

    #[derive(Debug, Clone, Copy)]
    enum Kind {
        Ready,
        Parked,
        Reserved,
        ReservedThenParked,
        Skipped,
    }

    /// When it completes, its id, how, and through what.
    type Open = (u16, i32, Kind, Option<oneshot::Sender<()>>, Option<Place>);

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Ready),
            Just(Kind::Parked),
            Just(Kind::Reserved),
            Just(Kind::ReservedThenParked),
            Just(Kind::Skipped)
        ]
    }

    proptest! {
        #[test]
        fn responses_leave_in_the_order_of_requests_whatever_the_order_of_completion(
            kinds in prop::collection::vec(kind(), 1..40),
            completion in prop::collection::vec(any::<u16>(), 40),
            bytes_per_call in prop_oneof![1_usize..30, Just(usize::MAX)],
        ) {
            let metrics = NetworkMetrics::default();
            let mut cx = Context::from_waker(noop_waker_ref());
            let mut queue = ResponseQueue::default();
            let mut socket = Socket { bytes_per_call, ..Socket::default() };
            let mut open: Vec<Open> = Vec::new();
            let parked = |id: i32| {
                let (sender, receiver) = oneshot::channel::<()>();
                let future: BoxFuture<'static, ResponseBody> = Box::pin(async move {
                    receiver.await.expect("the sender lives");
                    body(id)
                });
                (sender, future)
            };
            let mut expected = Vec::new();
            for (id, kind) in (0_i32..).zip(&kinds) {
                let order = completion[id as usize];
                match kind {
                    Kind::Ready => queue.push_ready(stamp(), body(id), &metrics).unwrap(),
                    Kind::Parked => {
                        let (sender, future) = parked(id);
                        queue.push_parked(stamp(), future);
                        open.push((order, id, *kind, Some(sender), None));
                    }
                    _ => {
                        let place = queue.reserve(stamp());
                        open.push((order, id, *kind, None, Some(place)));
                    }
                }
                if !matches!(kind, Kind::Skipped) {
                    expected.push(id);
                }
            }
            open.sort_by_key(|(order, id, ..)| (*order, *id));
            for (_, id, kind, sender, place) in open {
                match (kind, sender, place) {
                    (Kind::Reserved, _, Some(place)) => queue.fill_ready(place, body(id)),
                    (Kind::Skipped, _, Some(place)) => queue.fill_nothing(place),
                    (_, _, Some(place)) => {
                        let (sender, future) = parked(id);
                        queue.fill_parked(place, future);
                        sender.send(()).unwrap();
                    }
                    (_, Some(sender), None) => sender.send(()).unwrap(),
                    _ => unreachable!("made above"),
                }
                queue.poll_front(&mut cx, &metrics).unwrap();
                let _ = queue.poll_write_to(&mut socket, &mut cx);
            }
            queue.poll_front(&mut cx, &metrics).unwrap();
            while queue.poll_write_to(&mut socket, &mut cx).is_pending() {}
            prop_assert!(queue.is_empty());
            prop_assert_eq!(queue.queued_bytes(), 0);
            prop_assert_eq!(correlation_ids(&socket.written), expected);
        }
    }

    #[test]
    fn responses_of_several_requests_leave_in_one_write() {
        let metrics = NetworkMetrics::default();
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut queue = ResponseQueue::default();
        for id in 0..32 {
            queue.push_ready(stamp(), body(id), &metrics).unwrap();
        }
        let mut socket = Socket {
            bytes_per_call: usize::MAX,
            ..Socket::default()
        };
        assert!(queue.poll_write_to(&mut socket, &mut cx).is_ready());
        assert_eq!(socket.calls, 1);
        assert_eq!(
            correlation_ids(&socket.written),
            (0..32).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_parked_response_is_polled_only_when_it_is_in_front_and_wakes_then() {
        struct CountingWaker(AtomicUsize);
        impl Wake for CountingWaker {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let metrics = NetworkMetrics::default();
        let wakes = Arc::new(CountingWaker(AtomicUsize::new(0)));
        let waker = Arc::clone(&wakes).into();
        let mut cx = Context::from_waker(&waker);
        let mut queue = ResponseQueue::default();
        let (first, first_done) = oneshot::channel();
        let (second, second_done) = oneshot::channel();
        queue.push_parked(stamp(), Box::pin(async move { first_done.await.unwrap() }));
        queue.push_parked(stamp(), Box::pin(async move { second_done.await.unwrap() }));
        queue.poll_front(&mut cx, &metrics).unwrap();
        second.send(body(2)).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        first.send(body(1)).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        queue.poll_front(&mut cx, &metrics).unwrap();
        assert_eq!(queue.in_flight(), 0);
    }

    #[test]
    fn a_panic_of_a_parked_response_is_a_failure_of_that_response_alone() {
        let metrics = NetworkMetrics::default();
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut queue = ResponseQueue::default();
        queue.push_ready(stamp(), body(1), &metrics).unwrap();
        queue.push_parked(stamp(), Box::pin(async { panic!("a handler's bug") }));
        assert_eq!(queue.poll_front(&mut cx, &metrics), Err(ResponseFailed));
        queue.abandon_waiting();
        let mut socket = Socket {
            bytes_per_call: usize::MAX,
            ..Socket::default()
        };
        assert!(queue.poll_write_to(&mut socket, &mut cx).is_ready());
        assert_eq!(correlation_ids(&socket.written), [1]);
    }

    #[test]
    fn request_times_are_recorded_by_api() {
        let metrics = NetworkMetrics::default();
        let mut queue = ResponseQueue::default();
        queue.push_ready(stamp(), body(1), &metrics).unwrap();
        let buckets = &metrics.api(0).unwrap().time_buckets;
        let recorded: u64 = buckets
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum();
        assert_eq!(recorded, 1);
    }
}
