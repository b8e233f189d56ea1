//! Server-sent events: a stream of changes for each watcher, made only while it takes them.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _, unfold};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use super::Body;
use super::rows::{self, Rows};

/// After so long without a change something is sent nevertheless, so that both sides notice a broken connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// A stream ends after so long; the page comes back by itself.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A response that sends all rows, and then what changes in them, looking every `interval`. Nobody looks while the
/// watcher does not take what is there; `permit` is given back when it has gone.
pub fn stream<F, L>(interval: Duration, permit: OwnedSemaphorePermit, look: L) -> Response<Body>
where
    F: Future<Output = Rows> + Send + 'static,
    L: FnMut() -> F + Send + 'static,
{
    let events = events(interval, look);
    let frames = events.map(move |event| {
        // Held as long as the stream is.
        let _ = &permit;
        Ok::<_, Infallible>(Frame::data(event))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that collects a response before it hands it on would hold all of this back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What is sent: events, and comments as signs of life.
fn events<F, L>(interval: Duration, look: L) -> impl Stream<Item = Bytes> + Send
where
    F: Future<Output = Rows> + Send + 'static,
    L: FnMut() -> F + Send + 'static,
{
    struct State<L> {
        look: L,
        shown: Option<Rows>,
        next_look: Instant,
        end: Instant,
        last_sent: Instant,
    }
    let now = Instant::now();
    let state = State {
        look,
        shown: None,
        next_look: now,
        end: now + LIFETIME,
        last_sent: now,
    };
    unfold(state, move |mut state| async move {
        loop {
            sleep_until(state.next_look).await;
            let now = Instant::now();
            if now >= state.end {
                return None;
            }
            let rows = (state.look)().await;
            state.next_look = Instant::now() + interval;
            let event = match &state.shown {
                None => Some(rows::all(&rows)),
                Some(shown) => rows::changes(shown, &rows),
            };
            state.shown = Some(rows);
            let text = match event {
                Some(event) => format!("data: {event}\n\n"),
                None if now - state.last_sent >= SIGN_OF_LIFE => ": nothing new\n\n".to_owned(),
                None => continue,
            };
            state.last_sent = now;
            return Some((Bytes::from(text), state));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use serde_json::json;
    use tokio::sync::Semaphore;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn all_is_sent_once_then_changes_and_nothing_while_nobody_takes_it() {
        let places = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&places).try_acquire_owned().expect("a place");
        let looks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&looks);
        let response = stream(INTERVAL, permit, move || {
            let look = counted.fetch_add(1, Ordering::Relaxed);
            // Changes at every third look.
            std::future::ready(Rows::from([("n".to_owned(), json!(look / 3))]))
        });
        let mut body = response.into_body();
        let mut next = async || {
            let frame = body.frame().await.expect("an event").expect("no error");
            let data = frame.into_data().expect("data");
            String::from_utf8(data.to_vec()).expect("text")
        };
        assert_eq!(
            next().await,
            "data: {\"remove\":[],\"reset\":true,\"set\":{\"n\":0}}\n\n"
        );
        tokio::time::sleep(SIGN_OF_LIFE / 2).await;
        assert_eq!(looks.load(Ordering::Relaxed), 1, "nobody took the next");
        assert_eq!(next().await, "data: {\"remove\":[],\"set\":{\"n\":1}}\n\n");
        assert_eq!(looks.load(Ordering::Relaxed), 4);
        assert_eq!(places.available_permits(), 0);
        drop(body);
        assert_eq!(places.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_shows_that_it_lives_and_ends_some_day() {
        let places = Arc::new(Semaphore::new(1));
        let permit = places.try_acquire_owned().expect("a place");
        let response = stream(INTERVAL, permit, || std::future::ready(Rows::new()));
        let mut body = response.into_body();
        let began = Instant::now();
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            let data = frame.expect("no error").into_data().expect("data");
            assert!(frames == 0 || data.starts_with(b": "), "{data:?}");
            frames += 1;
        }
        assert!(frames > 100, "{frames}");
        assert!(began.elapsed() >= LIFETIME);
    }
}
