//! Tests of the HTTP port over loopback.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use serde_json::json;

use super::rows::Rows;
use super::*;

#[derive(Default)]
struct TestPages {
    broken: AtomicBool,
    looks: AtomicU32,
}

impl Pages for TestPages {
    fn metrics(&self) -> Result<String, std::fmt::Error> {
        if self.broken.load(Ordering::Relaxed) {
            Err(std::fmt::Error)
        } else {
            Ok("metric 1\n# EOF\n".to_owned())
        }
    }

    fn health(&self) -> BoxFuture<'_, Result<(), String>> {
        let stuck = self.broken.load(Ordering::Relaxed);
        Box::pin(async move {
            if stuck {
                std::future::pending().await
            } else {
                Ok(())
            }
        })
    }

    fn ready(&self) -> Result<(), String> {
        Err("starting".to_owned())
    }

    fn console(&self, query: &ConsoleQuery) -> BoxFuture<'_, Rows> {
        // More than the buffers of a connection hold.
        let size = query.skip;
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let row = json!({"look": look, "filling": "x".repeat(size)});
        Box::pin(async move { Rows::from([("row".to_owned(), row)]) })
    }
}

fn start(pages: Arc<TestPages>) -> WebServer {
    let address = HttpAddress {
        host: "127.0.0.1".to_owned(),
        port: 0,
    };
    let sockets = WebSockets::bind(&[address]).expect("bound");
    WebServer::start(sockets, BrokerSite::new(pages)).expect("listening")
}

async fn ask(server: &WebServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.addresses()[0])
        .await
        .expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .await
        .expect("received to the end");
    response
}

async fn get(server: &WebServer, path: &str) -> String {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

#[tokio::test]
async fn each_page_has_its_status_and_type() {
    let pages = Arc::new(TestPages::default());
    let server = start(Arc::clone(&pages));
    let metrics = get(&server, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(
        metrics.contains("application/openmetrics-text"),
        "{metrics}"
    );
    assert!(metrics.ends_with("metric 1\n# EOF\n"), "{metrics}");
    assert!(
        get(&server, "/health?verbose")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    let ready = get(&server, "/ready").await;
    assert!(
        ready.starts_with("HTTP/1.1 503 ") && ready.ends_with("starting\n"),
        "{ready}"
    );
    assert!(get(&server, "/x").await.starts_with("HTTP/1.1 404 "));
    let console = get(&server, "/").await;
    assert!(console.starts_with("HTTP/1.1 200 OK\r\n"), "{console}");
    assert!(console.contains("content-security-policy: default-src 'none'"));
    assert!(!console.contains("{nonce}"));
    let post = ask(
        &server,
        "POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    )
    .await;
    assert!(
        post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD\r\n"),
        "{post}"
    );
    pages.broken.store(true, Ordering::Relaxed);
    assert!(get(&server, "/metrics").await.starts_with("HTTP/1.1 500 "));
}

#[tokio::test]
async fn broken_requests_are_refused_and_the_next_is_served() {
    let server = start(Arc::default());
    for broken in [
        "\0\0\0\x12garbage\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\r\n\r\n\r\n\x16\x03\x01\r\n\r\n",
    ] {
        let response = ask(&server, broken).await;
        assert!(
            response.is_empty() || response.starts_with("HTTP/1.1 400 "),
            "{broken:?}: {response}"
        );
    }
    let huge = format!(
        "GET /health HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(2 * MAX_HEAD_BYTES)
    );
    let mut stream = TcpStream::connect(server.addresses()[0])
        .await
        .expect("connected");
    // The server may close before it has read everything.
    let _ = stream.write_all(huge.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    assert!(!response.starts_with(b"HTTP/1.1 200 "));
    assert!(
        get(&server, "/health")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
}

#[tokio::test(start_paused = true)]
async fn clients_that_send_nothing_are_dropped_and_make_room_for_others() {
    let server = start(Arc::default());
    let mut silent = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        silent.push(
            TcpStream::connect(server.addresses()[0])
                .await
                .expect("connected"),
        );
    }
    for stream in &mut silent {
        // Ends when the server gives up on it: with the clock paused, time passes only while everything waits.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200 "));
    }
    assert!(
        get(&server, "/health")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let server = start(Arc::default());
    let address = HttpAddress {
        host: "127.0.0.1".to_owned(),
        port: server.addresses()[0].port(),
    };
    let error = WebSockets::bind(&[address]).expect_err("in use");
    assert!(
        error
            .to_string()
            .starts_with("cannot listen on http.listeners=127.0.0.1:"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_is_not_healthy() {
    let pages = Arc::new(TestPages::default());
    pages.broken.store(true, Ordering::Relaxed);
    let server = start(pages);
    let health = get(&server, "/health").await;
    assert!(
        health.starts_with("HTTP/1.1 503 ") && health.ends_with("no answer in time\n"),
        "{health}"
    );
}

/// Connects and asks for the events with rows of so many bytes.
async fn watch(server: &WebServer, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.addresses()[0])
        .await
        .expect("connected");
    let request = format!("GET /events?skip={bytes} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

/// Reads until this text has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut received = String::new();
    while !received.contains(text) {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.expect("more");
        assert!(read > 0, "ended: {received}");
        received += &String::from_utf8_lossy(&piece[..read]);
    }
    received
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_outlasts_other_requests() {
    let server = start(Arc::default());
    let mut watcher = watch(&server, 0).await;
    let head = until(&mut watcher, "\"look\":0").await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    until(&mut watcher, "\"look\":100").await;
}

#[tokio::test(start_paused = true)]
async fn only_so_many_watch_and_a_place_is_free_when_one_goes() {
    let server = start(Arc::default());
    let mut watchers = Vec::new();
    for _ in 0..8 {
        let mut watcher = watch(&server, 0).await;
        until(&mut watcher, "\"look\"").await;
        watchers.push(watcher);
    }
    let refused = get(&server, "/events").await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: "),
        "{refused}"
    );
    assert!(
        get(&server, "/health")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    drop(watchers.pop());
    loop {
        let mut next = watch(&server, 0).await;
        let mut head = [0; 12];
        next.read_exact(&mut head).await.expect("an answer");
        if head == *b"HTTP/1.1 200" {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_takes_nothing_is_dropped() {
    let pages = Arc::new(TestPages::default());
    let server = start(Arc::clone(&pages));
    let mut stuck = watch(&server, 32 << 20).await;
    // What it was sent before it was given up is all that it gets.
    tokio::time::sleep(WRITE_TIMEOUT * 3).await;
    let looks = pages.looks.load(Ordering::Relaxed);
    assert!(looks <= 2, "{looks} looks for one that takes nothing");
    let mut received = Vec::new();
    let _ = stuck.read_to_end(&mut received).await;
    assert!(received.len() < 32 << 20, "{} bytes", received.len());
}
