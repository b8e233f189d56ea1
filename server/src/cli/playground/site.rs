//! The page and its control calls, on a port of its own, for whoever has the token.
//!
//! A page of another site cannot use them: it has no token, requests that name another host are refused (so that a name
//! that is made to lead here gains nothing), and so are those that come from another origin.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use super::action::Action;
use super::page;
use super::world::World;
use crate::web::page::{html, query_pairs};
use crate::web::{Body, Handler, events, text};

/// The header with the token.
const TOKEN_HEADER: &str = "x-playground-token";
/// The longest action.
const MAX_BODY_BYTES: usize = 4096;
/// How often the page learns of changes at most.
const WATCH_INTERVAL: Duration = Duration::from_millis(150);

/// Answers the requests to the playground's port.
pub(super) struct PlaygroundSite {
    world: Arc<World>,
    gate: Gate,
}

impl PlaygroundSite {
    pub(super) fn new(world: Arc<World>, gate: Gate) -> Self {
        PlaygroundSite { world, gate }
    }

    fn watch(&self) -> Response<Body> {
        let Ok(permit) = Arc::clone(&self.world.watchers).try_acquire_owned() else {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many pages are open already\n",
            );
        };
        self.world.interest.notify_one();
        let world = Arc::clone(&self.world);
        events::stream(WATCH_INTERVAL, permit, move || {
            std::future::ready(world.rows())
        })
    }
}

impl Handler for PlaygroundSite {
    fn handle(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let query = request.uri().query().unwrap_or_default();
        if let Err(reason) = self.gate.check(request.headers(), query) {
            return Box::pin(std::future::ready(text(StatusCode::FORBIDDEN, reason)));
        }
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => html(page::PLAYGROUND),
            (&Method::GET, "/events") => self.watch(),
            (&Method::POST, "/control") => {
                let world = Arc::clone(&self.world);
                return Box::pin(control(world, request));
            }
            (_, "/" | "/events" | "/control") => {
                text(StatusCode::METHOD_NOT_ALLOWED, "not with this method\n")
            }
            _ => text(StatusCode::NOT_FOUND, "nothing is here\n"),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Reads an action and does it.
async fn control(world: Arc<World>, request: Request<Incoming>) -> Response<Body> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES);
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let action: Action = match serde_json::from_slice(&body) {
        Ok(action) => action,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("no action: {error}\n")),
    };
    match world.act(action).await {
        Ok(()) => text(StatusCode::OK, "done\n"),
        Err(reason) => text(StatusCode::CONFLICT, format!("{reason}\n")),
    }
}

/// Who is let in.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    token: String,
    port: u16,
}

impl Gate {
    pub(super) fn new(token: String, port: u16) -> Self {
        Gate { token, port }
    }

    /// Refuses what is not from the page that was opened with the token.
    fn check(&self, headers: &HeaderMap, query: &str) -> Result<(), &'static str> {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| hosts.iter().any(|own| own.eq_ignore_ascii_case(host))) {
            return Err("this host is not served here\n");
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !hosts.iter().any(|own| origin == format!("http://{own}")) {
                return Err("this origin is not served here\n");
            }
        }
        let in_header = headers.get(TOKEN_HEADER);
        let given = match in_header.and_then(|token| token.to_str().ok()) {
            Some(token) => Some(token.to_owned()),
            None => query_pairs(query)
                .find(|(key, _)| key == "token")
                .map(|(_, token)| token),
        };
        match given {
            Some(token) if is_same(token.as_bytes(), self.token.as_bytes()) => Ok(()),
            _ => Err(
                "the address that the playground has printed has a token, which is missing here\n",
            ),
        }
    }
}

/// Compares in a time that tells nothing of where the first difference is.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(HeaderName, &'static str)], query: &str) -> bool {
        let gate = Gate::new("secret".to_owned(), 9640);
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect();
        gate.check(&headers, query).is_ok()
    }

    #[test]
    fn only_the_page_with_the_token_is_let_in() {
        let token = HeaderName::from_static(TOKEN_HEADER);
        let host = (HOST, "127.0.0.1:9640");
        assert!(check(std::slice::from_ref(&host), "token=secret"));
        assert!(check(&[host.clone(), (token.clone(), "secret")], ""));
        assert!(check(
            &[(HOST, "localhost:9640"), (ORIGIN, "http://localhost:9640")],
            "a=b&token=secret"
        ));
        for (headers, query) in [
            (vec![host.clone()], ""),
            (vec![host.clone()], "token=secreT"),
            (vec![host.clone()], "token=secret2"),
            (vec![host.clone(), (token, "wrong")], "token=secret"),
            (vec![(HOST, "evil.example:9640")], "token=secret"),
            (vec![(HOST, "127.0.0.1:9641")], "token=secret"),
            (vec![], "token=secret"),
            (
                vec![host.clone(), (ORIGIN, "http://evil.example")],
                "token=secret",
            ),
            (vec![host, (ORIGIN, "null")], "token=secret"),
        ] {
            assert!(!check(&headers, query), "{headers:?} {query}");
        }
    }
}
