//! One connection: one task that reads requests, runs their handlers and sends the responses in order.
//!
//! The task is a single poll function, so that a request whose handler answers at once costs no task, no channel and no
//! boxed future: read, handle everything that is complete, write all responses with one call.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::frame::FrameReader;
use super::response_queue::{Place, RequestStamp, ResponseFailed, ResponseQueue};
use super::server::{OpenConnection, RequestHandler};
use crate::api::table::Dispatched;
use crate::api::{CloseReason, Reply, RequestContext, ResponseBody};

/// Requests whose response is outstanding; at so many the connection reads no further.
const MAX_IN_FLIGHT: usize = 128;
/// Bytes of responses that the client has not taken; at so many the connection handles no further request.
const MAX_QUEUED_BYTES: usize = 1024 * 1024;
/// Reads after which the task lets others have the thread.
const READS_PER_TURN: u32 = 8;
/// How long a connection that the broker ends waits for the client's end, so that the client reads its last responses
/// and a FIN: closing with unread input would send a reset.
const LINGER: Duration = Duration::from_secs(1);
/// How much input is thrown away meanwhile.
const LINGER_BYTES: usize = 1024 * 1024;

/// Why the loop of a connection ended.
#[derive(Debug)]
enum End {
    /// The client closed its side and has all its responses.
    ByClient,
    /// The broker ends the connection; the client may still be sending.
    ByBroker,
    /// The socket is broken or the broker will wait no longer.
    Broken,
}

struct RunningHandler {
    place: Place,
    future: BoxFuture<'static, Reply>,
}

/// The state of a connection's task.
pub(super) struct Connection<H> {
    stream: TcpStream,
    frames: FrameReader,
    queue: ResponseQueue,
    running: Option<RunningHandler>,
    /// Reused for every request; handlers that need it longer clone it.
    ctx: RequestContext,
    handler: Arc<H>,
    open: OpenConnection,
    idle_timer: Pin<Box<Sleep>>,
    idle_limit: Option<Duration>,
    last_active: Instant,
    client_closed: bool,
    /// No further request is handled; what is in the queue is sent.
    closing: bool,
}

impl<H: RequestHandler> Connection<H> {
    pub(super) fn new(
        stream: TcpStream,
        ctx: RequestContext,
        handler: Arc<H>,
        open: OpenConnection,
    ) -> Self {
        let config = open.config();
        let idle_limit = config.connections_max_idle;
        Connection {
            stream,
            frames: FrameReader::new(config.socket_request_max_bytes),
            queue: ResponseQueue::default(),
            running: None,
            ctx,
            handler,
            open,
            idle_timer: Box::pin(sleep(idle_limit.unwrap_or(Duration::from_secs(3600)))),
            idle_limit,
            last_active: Instant::now(),
            client_closed: false,
            closing: false,
        }
    }

    /// Serves the connection to its end.
    pub(super) async fn run(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        tracing::debug!(peer = %self.ctx.peer, connection_id = self.ctx.connection_id, ?end, "connection ends");
        self.handler.on_connection_end(&self.ctx);
        if matches!(end, End::ByBroker) {
            self.linger().await;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.open.register(cx.waker());
        match self.poll_turn(cx) {
            Ok(poll) => poll,
            Err(error) => {
                tracing::debug!(peer = %self.ctx.peer, %error, "connection is broken");
                Poll::Ready(End::Broken)
            }
        }
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<End>> {
        let mut reads = 0;
        loop {
            if self.open.is_stopping() {
                self.closing = true;
                if self.open.is_aborting() {
                    return Ok(Poll::Ready(End::Broken));
                }
            }
            self.handle_frames();
            // After it, so that a handler that has just begun is polled: nothing else would.
            self.poll_running(cx);
            if self.queue.poll_front(cx, &self.ctx.metrics) == Err(ResponseFailed) {
                self.close_without_response(CloseReason::Internal);
            }
            let _ = self.poll_write(cx)?;
            if self.may_handle() && self.frames.has_frame() {
                continue;
            }
            if self.queue.is_empty() && self.running.is_none() {
                if self.closing {
                    return Ok(Poll::Ready(End::ByBroker));
                }
                if self.client_closed {
                    return Ok(Poll::Ready(End::ByClient));
                }
            }
            if self.client_closed || !self.may_handle() || self.frames.has_frame() {
                // Woken by the response in front, the running handler or the socket taking bytes.
                return Ok(self.poll_idle(cx));
            }
            match self.poll_read(cx)? {
                Poll::Ready(()) => {}
                Poll::Pending => return Ok(self.poll_idle(cx)),
            }
            reads += 1;
            if reads == READS_PER_TURN {
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
        }
    }

    /// Whether another request may be handled now.
    fn may_handle(&self) -> bool {
        !self.closing
            && self.running.is_none()
            && self.queue.in_flight() < MAX_IN_FLIGHT
            && self.queue.queued_bytes() < MAX_QUEUED_BYTES
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        // Readiness is asked first: a connection that waits holds no buffer.
        if self.frames.is_empty() && self.stream.poll_read_ready(cx)?.is_pending() {
            self.frames.release();
            return Ok(Poll::Pending);
        }
        let Poll::Ready(read) = self.frames.poll_read_from(&mut self.stream, cx)? else {
            self.frames.release();
            return Ok(Poll::Pending);
        };
        self.client_closed = read == 0;
        self.ctx.metrics.bytes_in.fetch_add(read as u64, Relaxed);
        self.last_active = Instant::now();
        Ok(Poll::Ready(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        if !self.queue.has_outgoing() {
            return Ok(Poll::Ready(()));
        }
        let before = self.queue.queued_bytes();
        let written = self.queue.poll_write_to(&mut self.stream, cx)?;
        let bytes = before - self.queue.queued_bytes();
        if bytes > 0 {
            self.ctx.metrics.bytes_out.fetch_add(bytes as u64, Relaxed);
            self.last_active = Instant::now();
        }
        Ok(written)
    }

    /// Handles the complete frames of the buffer, as far as the bounds allow.
    fn handle_frames(&mut self) {
        while self.may_handle() {
            let frame = match self.frames.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(
                        peer = %self.ctx.peer,
                        listener = self.ctx.listener.name,
                        %error,
                        "closing connection"
                    );
                    return self.close(CloseReason::InvalidFrameLength);
                }
            };
            let dispatched = self.handler.handle(&mut self.ctx, frame);
            let stamp = RequestStamp {
                api_key: self.ctx.api_key,
                received_at: self.last_active,
            };
            match dispatched {
                Dispatched::Done(Reply::Ready(body)) => self.push_ready(stamp, body),
                Dispatched::Done(Reply::Parked(future)) => self.queue.push_parked(stamp, future),
                Dispatched::Done(Reply::Nothing) => self.record_time(stamp),
                Dispatched::Done(Reply::Close(reason)) => self.close(reason),
                Dispatched::Running(future) => {
                    let place = self.queue.reserve(stamp);
                    self.running = Some(RunningHandler { place, future });
                    return;
                }
            }
        }
    }

    fn push_ready(&mut self, stamp: RequestStamp, body: ResponseBody) {
        if self.queue.push_ready(stamp, body, &self.ctx.metrics) == Err(ResponseFailed) {
            self.close_without_response(CloseReason::Internal);
        }
    }

    fn record_time(&self, stamp: RequestStamp) {
        self.ctx
            .metrics
            .record_request_time(stamp.api_key, stamp.received_at.elapsed());
    }

    /// Drives the asynchronous handler, also while an earlier response is still outstanding. When it ends, the frames
    /// behind it are handled.
    fn poll_running(&mut self, cx: &mut Context<'_>) {
        while let Some(running) = &mut self.running {
            let place = running.place;
            let reply = match catch_unwind(AssertUnwindSafe(|| running.future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => return,
                Ok(Poll::Ready(reply)) => reply,
                // The panic hook has logged the message and the place.
                Err(_) => Reply::Close(CloseReason::Internal),
            };
            self.running = None;
            match reply {
                Reply::Ready(body) => self.queue.fill_ready(place, body),
                Reply::Parked(future) => self.queue.fill_parked(place, future),
                Reply::Nothing => self.queue.fill_nothing(place),
                Reply::Close(reason) => {
                    self.queue.fill_nothing(place);
                    self.close(reason);
                }
            }
            self.handle_frames();
        }
    }

    /// Ends the connection after the responses to earlier requests.
    fn close(&mut self, reason: CloseReason) {
        self.ctx.metrics.count_refused(reason);
        self.closing = true;
    }

    /// Ends the connection at a response that cannot be given.
    fn close_without_response(&mut self, reason: CloseReason) {
        self.queue.abandon_waiting();
        self.running = None;
        self.close(reason);
    }

    /// Ends a connection on which nothing moved for the limit. As for Kafka, a request whose response is parked keeps
    /// none open: a client that is gone without a word would stay for as long as it asked to wait.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // A handler that runs is let to its end, since it may be changing things, and wakes the task then.
        let Some(limit) = self.idle_limit.filter(|_| self.running.is_none()) else {
            return Poll::Pending;
        };
        while self.idle_timer.as_mut().poll(cx).is_ready() {
            let idle_for = self.last_active.elapsed();
            if idle_for >= limit {
                tracing::info!(peer = %self.ctx.peer, listener = self.ctx.listener.name, "closing idle connection");
                self.ctx.metrics.count_refused(CloseReason::Idle);
                return Poll::Ready(End::ByBroker);
            }
            let next = tokio::time::Instant::now() + (limit - idle_for);
            self.idle_timer.as_mut().reset(next);
        }
        Poll::Pending
    }

    /// Sends a FIN, then throws away what the client still sends until it closes too, within bounds.
    async fn linger(self) {
        let Connection {
            mut stream,
            mut idle_timer,
            frames,
            ..
        } = self;
        drop(frames);
        if let Err(error) = socket2::SockRef::from(&stream).shutdown(std::net::Shutdown::Write) {
            tracing::debug!(%error, "shutting down a socket failed");
            return;
        }
        idle_timer
            .as_mut()
            .reset(tokio::time::Instant::now() + LINGER);
        let mut left = LINGER_BYTES;
        poll_fn(|cx| {
            if idle_timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut scratch = [0_u8; 4096];
            while left > 0 {
                let reading = std::pin::pin!(stream.read(&mut scratch));
                match reading.poll(cx) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(read)) => left = left.saturating_sub(read),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        })
        .await;
    }
}
