//! A node in this process whose answers a test decides.

use std::future::Future;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// A request as the node gets it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) api_key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    /// How many connections came before.
    pub(crate) connection: usize,
    pub(crate) frame: Bytes,
}

impl Received {
    pub(crate) fn is(&self, api_key: ApiKey) -> bool {
        self.api_key == api_key as i16
    }

    /// The body of the request.
    pub(crate) fn body<R: Request>(&self) -> R {
        let mut frame = self.frame.clone();
        RequestHeader::decode(&mut frame, R::header_version(self.version)).unwrap();
        R::decode(&mut frame, self.version).unwrap()
    }

    /// A response to it, as a frame.
    pub(crate) fn answer<R: Encodable + HeaderVersion>(&self, response: &R) -> Option<Vec<u8>> {
        self.answer_in(response, self.version)
    }

    /// A response in another version than the request's.
    pub(crate) fn answer_in<R: Encodable + HeaderVersion>(
        &self,
        response: &R,
        version: i16,
    ) -> Option<Vec<u8>> {
        let mut frame = vec![0; 4];
        ResponseHeader::default()
            .with_correlation_id(self.correlation_id)
            .encode(&mut frame, R::header_version(version))
            .unwrap();
        response.encode(&mut frame, version).unwrap();
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Some(frame)
    }
}

type Answer = dyn Fn(Received) -> BoxFuture<'static, Option<Vec<u8>>> + Send + Sync;

/// The running node; dropping it closes its port and its connections.
pub(crate) struct FakeNode {
    pub(crate) port: u16,
    accepting: JoinHandle<()>,
    hang_up: Arc<Notify>,
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl FakeNode {
    /// Starts a node that answers each request, ApiVersions too, with what `answer` says: the bytes to send, or `None`
    /// to close the connection. A connection's requests are answered one after the other.
    pub(crate) async fn raw<F>(answer: impl Fn(Received) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer: Arc<Answer> = Arc::new(move |received| Box::pin(answer(received)));
        let hang_up = Arc::new(Notify::new());
        let hung_up = Arc::clone(&hang_up);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            let mut count = 0;
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (stream, _) = accepted.unwrap();
                        connections.spawn(serve(stream, count, Arc::clone(&answer)));
                        count += 1;
                    }
                    _ = hung_up.notified() => connections.abort_all(),
                }
            }
        });
        FakeNode {
            port,
            accepting,
            hang_up,
        }
    }

    /// Closes every connection.
    pub(crate) fn hang_up(&self) {
        self.hang_up.notify_one();
    }

    /// As [`raw`](Self::raw), with ApiVersions answered by these ranges.
    pub(crate) async fn serving<F>(
        versions: &[(ApiKey, i16, i16)],
        answer: impl Fn(Received) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        let versions = api_versions(versions);
        let answer = Arc::new(answer);
        Self::raw(move |received| {
            let (versions, answer) = (versions.clone(), Arc::clone(&answer));
            async move {
                match received.is(ApiKey::ApiVersions) {
                    true => received.answer(&versions),
                    false => answer(received).await,
                }
            }
        })
        .await
    }
}

/// An ApiVersions response with these ranges.
pub(crate) fn api_versions(versions: &[(ApiKey, i16, i16)]) -> ApiVersionsResponse {
    let ranges = versions.iter().map(|(key, min, max)| {
        ApiVersion::default()
            .with_api_key(*key as i16)
            .with_min_version(*min)
            .with_max_version(*max)
    });
    ApiVersionsResponse::default().with_api_keys(ranges.collect())
}

async fn serve(mut stream: TcpStream, connection: usize, answer: Arc<Answer>) {
    while let Ok(length) = stream.read_u32().await {
        let mut frame = vec![0; length as usize];
        stream.read_exact(&mut frame).await.unwrap();
        let mut header = frame.as_slice();
        let received = Received {
            api_key: header.get_i16(),
            version: header.get_i16(),
            correlation_id: header.get_i32(),
            connection,
            frame: frame.into(),
        };
        // A client that is gone does not want its answer.
        match answer(received).await {
            Some(bytes) if stream.write_all(&bytes).await.is_ok() => {}
            _ => return,
        }
    }
}
