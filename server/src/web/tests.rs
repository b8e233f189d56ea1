//! Tests of the HTTP port over loopback.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

#[derive(Default)]
struct TestPages {
    broken: AtomicBool,
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
}

fn start(pages: Arc<TestPages>) -> WebServer {
    let address = HttpAddress {
        host: "127.0.0.1".to_owned(),
        port: 0,
    };
    WebServer::start(&[address], pages).expect("bound")
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
    assert!(get(&server, "/").await.starts_with("HTTP/1.1 404 "));
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
    let error = WebServer::start(&[address], Arc::new(TestPages::default())).expect_err("in use");
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
