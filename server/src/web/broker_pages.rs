//! The HTTP port of a broker: the console, `/metrics`, `/health` and `/ready`.
//!
//! It only reads, is for monitoring on a trusted network, and is off unless `http.listeners` is set.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::rows::Rows;
use super::{Body, Handler, events, page, text};

/// Pages that may be watched at the same time: half of the connections stay for monitoring.
const MAX_WATCHERS: usize = 8;
/// How often a watched page is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the broker to say that it is healthy.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Seconds after which a watcher who was refused may come again.
const RETRY_AFTER_SECONDS: &str = "10";
/// Partitions on one page of the console.
pub const PARTITIONS_PER_PAGE: usize = 50;

/// The content type of the Prometheus text that prometheus-client writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the pages are made of.
pub trait Pages: Send + Sync + 'static {
    /// All metrics as OpenMetrics text; may take a while.
    fn metrics(&self) -> Result<String, std::fmt::Error>;
    /// Whether the process works; if it does not, a restart may help. The text says what is wrong.
    fn health(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Whether clients are served now. The text says why not.
    fn ready(&self) -> Result<(), String>;
    /// What the console shows now.
    fn console(&self, query: &ConsoleQuery) -> BoxFuture<'_, Rows>;
}

/// What a watcher of the console wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsoleQuery {
    /// Only topics whose name contains this; empty for all.
    pub topic: String,
    /// How many partitions are on the pages before this one.
    pub skip: usize,
    /// Internal topics too.
    pub internal: bool,
}

impl ConsoleQuery {
    /// Reads the query of a URL; what is unknown or cannot be read is as if it were not there.
    fn parse(query: &str) -> Self {
        let mut parsed = ConsoleQuery::default();
        for (key, value) in page::query_pairs(query) {
            match key.as_str() {
                "topic" => parsed.topic = value,
                "skip" => parsed.skip = value.parse().unwrap_or(0),
                "internal" => parsed.internal = value == "1",
                _ => {}
            }
        }
        parsed
    }
}

/// Answers the requests that come to a broker's HTTP port.
pub struct BrokerSite {
    pages: Arc<dyn Pages>,
    watchers: Arc<Semaphore>,
}

impl BrokerSite {
    /// The site over these pages.
    pub fn new(pages: Arc<dyn Pages>) -> Arc<Self> {
        Arc::new(BrokerSite {
            pages,
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS)),
        })
    }

    fn watch(&self, query: &str) -> Response<Body> {
        let Ok(permit) = Arc::clone(&self.watchers).try_acquire_owned() else {
            let mut refused = text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many pages of the console are open already\n",
            );
            let retry_after = HeaderValue::from_static(RETRY_AFTER_SECONDS);
            refused.headers_mut().insert(RETRY_AFTER, retry_after);
            return refused;
        };
        let pages = Arc::clone(&self.pages);
        let query = ConsoleQuery::parse(query);
        events::stream(WATCH_INTERVAL, permit, move || {
            let (pages, query) = (Arc::clone(&pages), query.clone());
            async move { pages.console(&query).await }
        })
    }
}

impl Handler for BrokerSite {
    fn handle(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
        if !is_read {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET is expected\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allowed);
            return Box::pin(std::future::ready(response));
        }
        let pages = Arc::clone(&self.pages);
        match request.uri().path() {
            "/" => Box::pin(std::future::ready(page::html(page::CONSOLE))),
            "/events" if request.method() == Method::GET => {
                let watched = self.watch(request.uri().query().unwrap_or_default());
                Box::pin(std::future::ready(watched))
            }
            "/metrics" => Box::pin(metrics(pages)),
            "/health" => Box::pin(async move {
                match timeout(HEALTH_TIMEOUT, pages.health()).await {
                    Ok(health) => status(health, "healthy\n"),
                    Err(_) => status(Err("no answer in time".to_owned()), ""),
                }
            }),
            "/ready" => Box::pin(std::future::ready(status(pages.ready(), "ready\n"))),
            _ => Box::pin(std::future::ready(text(
                StatusCode::NOT_FOUND,
                "/, /metrics, /health and /ready are here\n",
            ))),
        }
    }
}

/// Writes the metrics on a thread that may block: with many partitions it takes a while.
async fn metrics(pages: Arc<dyn Pages>) -> Response<Body> {
    match spawn_blocking(move || pages.metrics()).await {
        Ok(Ok(body)) => {
            let mut response = text(StatusCode::OK, body);
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
            response
        }
        Ok(Err(_)) | Err(_) => {
            tracing::error!("cannot write the metrics");
            text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the metrics cannot be written\n",
            )
        }
    }
}

fn status(result: Result<(), String>, fine: &'static str) -> Response<Body> {
    match result {
        Ok(()) => text(StatusCode::OK, fine),
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_what_is_no_query_is_the_first_page() {
        let wanted = ConsoleQuery {
            topic: "a b&c".to_owned(),
            skip: 50,
            internal: true,
        };
        assert_eq!(
            ConsoleQuery::parse("topic=a+b%26c&skip=50&internal=1&x"),
            wanted
        );
        assert_eq!(
            ConsoleQuery::parse("skip=-1&internal=yes&%zz=%"),
            ConsoleQuery::default()
        );
    }
}
