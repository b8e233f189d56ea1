//! A node that may be reached or not: connects on demand, and again after a failure.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Request, StrBytes};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::request::{api, decode_response};
use super::versions::{api_versions_version, encodable, is_unsupported_version};
use super::{ApiVersionRanges, ClientConfig, ClientError, Connection, random};

/// A connection and the versions that its node serves.
struct Negotiated {
    connection: Connection,
    versions: ApiVersionRanges,
}

/// The attempts to connect so far.
#[derive(Default)]
struct Attempts {
    /// Failures since the last success.
    failures: u32,
    /// When the next one may be made.
    not_before: Option<Instant>,
}

/// One node at one address.
pub struct Client {
    host: String,
    port: u16,
    address: Arc<str>,
    config: Arc<ClientConfig>,
    current: ArcSwapOption<Negotiated>,
    /// Held while connecting, so that everybody waits for the same attempt.
    attempts: Mutex<Attempts>,
}

impl Client {
    /// A node that is connected to when it is first called.
    pub fn new(host: impl Into<String>, port: u16, config: Arc<ClientConfig>) -> Self {
        let host = host.into();
        Client {
            address: format!("{host}:{port}").into(),
            host,
            port,
            config,
            current: ArcSwapOption::empty(),
            attempts: Mutex::default(),
        }
    }

    /// The node's host and port.
    pub fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Whether it is a client of the node at this address.
    pub fn is_at(&self, host: &str, port: u16) -> bool {
        (self.host.as_str(), self.port) == (host, port)
    }

    /// Sends a request in the highest version that both sides know.
    ///
    /// Dropping the future does not take the request back.
    ///
    /// # Errors
    /// When the node cannot be reached, does not serve the API, or does not answer. One attempt to connect is made.
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Response, ClientError> {
        let negotiated = self.negotiated().await?;
        let version = self.version::<R>(&negotiated, encodable::<R>())?;
        negotiated.connection.call(request, version).await
    }

    /// As [`call`](Self::call), for a request that is another in each version: `make` gets the highest within
    /// `versions` that the node serves. Gives that version with the response.
    pub async fn call_within<R: Request>(
        &self,
        versions: RangeInclusive<i16>,
        make: impl FnOnce(i16) -> R,
    ) -> Result<(i16, R::Response), ClientError> {
        let negotiated = self.negotiated().await?;
        let version = self.version::<R>(&negotiated, versions)?;
        let response = negotiated.connection.call(&make(version), version).await?;
        Ok((version, response))
    }

    /// As [`call`](Self::call), but gives the version and the response frame as it came: header and body.
    pub async fn exchange<R: Request>(&self, request: &R) -> Result<(i16, Bytes), ClientError> {
        let negotiated = self.negotiated().await?;
        let version = self.version::<R>(&negotiated, encodable::<R>())?;
        let frame = negotiated.connection.exchange(request, version).await?;
        Ok((version, frame))
    }

    /// Sends a request that the node never answers: Produce with `acks=0`. `make` gets the highest version within
    /// `versions` that the node serves. Ends when the operating system has taken its last byte.
    ///
    /// Dropping the future does not take the request back.
    ///
    /// # Errors
    /// When the node cannot be reached, does not serve the API, or the connection ends before all is written. One
    /// attempt to connect is made.
    pub async fn send_unanswered_within<R: Request>(
        &self,
        versions: RangeInclusive<i16>,
        make: impl FnOnce(i16) -> R,
    ) -> Result<(), ClientError> {
        let negotiated = self.negotiated().await?;
        let version = self.version::<R>(&negotiated, versions)?;
        let connection = &negotiated.connection;
        connection.send_unanswered(&make(version), version).await
    }

    /// Connects, if there is no connection.
    ///
    /// # Errors
    /// When the node cannot be reached. One attempt is made.
    pub async fn connect(&self) -> Result<(), ClientError> {
        self.negotiated().await.map(drop)
    }

    /// Whether there is a connection that the node has not closed.
    pub fn is_connected(&self) -> bool {
        let current = self.current.load_full();
        current.is_some_and(|negotiated| !negotiated.connection.is_closed())
    }

    /// Whether there was a connection that has ended since, and none was made after it. A node that was sent what it
    /// does not answer says in this way that it could not do it.
    pub fn has_lost_connection(&self) -> bool {
        let current = self.current.load_full();
        current.is_some_and(|negotiated| negotiated.connection.is_closed())
    }

    fn version<R: Request>(
        &self,
        negotiated: &Negotiated,
        ours: RangeInclusive<i16>,
    ) -> Result<i16, ClientError> {
        let (min, max) = (*ours.start(), *ours.end());
        negotiated
            .versions
            .highest_common(R::KEY, ours)
            .ok_or_else(|| ClientError::UnsupportedVersion {
                address: self.address.clone(),
                api: api::<R>(),
                min,
                max,
            })
    }

    /// Ends the connection, if there is one. Requests that wait for a response get an error with `reason`; the next
    /// request connects again.
    pub fn disconnect(&self, reason: &str) {
        if let Some(negotiated) = self.current.swap(None) {
            negotiated.connection.close(reason);
        }
    }

    async fn negotiated(&self) -> Result<Arc<Negotiated>, ClientError> {
        let usable = || {
            let current = self.current.load_full();
            current.filter(|negotiated| !negotiated.connection.is_closed())
        };
        if let Some(negotiated) = usable() {
            return Ok(negotiated);
        }
        let mut attempts = self.attempts.lock().await;
        if let Some(negotiated) = usable() {
            return Ok(negotiated);
        }
        if let Some(not_before) = attempts.not_before {
            sleep_until(not_before).await;
        }
        match self.connect_and_negotiate().await {
            Ok(negotiated) => {
                *attempts = Attempts::default();
                let negotiated = Arc::new(negotiated);
                self.current.store(Some(Arc::clone(&negotiated)));
                Ok(negotiated)
            }
            Err(error) => {
                attempts.failures = attempts.failures.saturating_add(1);
                let rest = self
                    .config
                    .reconnect_backoff
                    .after(attempts.failures, random());
                attempts.not_before = Some(Instant::now() + rest);
                Err(error)
            }
        }
    }

    async fn connect_and_negotiate(&self) -> Result<Negotiated, ClientError> {
        let failed = |reason: String| ClientError::Connect {
            address: self.address.clone(),
            reason: reason.into(),
        };
        let stream = timeout(self.config.connection_setup_timeout, self.open())
            .await
            .map_err(|_| failed("no connection in time".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        let connection = Connection::new(stream, self.address.clone(), Arc::clone(&self.config));
        let versions = self.api_versions(&connection).await?;
        Ok(Negotiated {
            connection,
            versions,
        })
    }

    async fn open(&self) -> std::io::Result<TcpStream> {
        let mut last_error = std::io::Error::other("the host has no address");
        for address in lookup_host((self.host.as_str(), self.port)).await? {
            let socket = match address.is_ipv4() {
                true => TcpSocket::new_v4()?,
                false => TcpSocket::new_v6()?,
            };
            if let Some(bytes) = self.config.socket_receive_buffer_bytes {
                // Before connecting: the window is agreed on then.
                SockRef::from(&socket).set_recv_buffer_size(bytes)?;
            }
            match socket.connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    SockRef::from(&stream).set_keepalive(true)?;
                    return Ok(stream);
                }
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Asks which versions the node serves; a node that is older than the question names its own version of it
    /// (KIP-511).
    async fn api_versions(&self, connection: &Connection) -> Result<ApiVersionRanges, ClientError> {
        const CORRELATION_ID_BYTES: usize = 4;
        let mut refusal = None;
        loop {
            let version = api_versions_version(refusal.as_ref());
            let mut request = ApiVersionsRequest::default();
            if version >= 3 {
                request = request
                    .with_client_software_name(StrBytes::from_static_str("highwater"))
                    .with_client_software_version(StrBytes::from_static_str(env!(
                        "CARGO_PKG_VERSION"
                    )));
            }
            let frame = connection.exchange(&request, version).await?;
            let is_refused = frame
                .get(CORRELATION_ID_BYTES..)
                .is_some_and(is_unsupported_version);
            let encoded_in = if is_refused { 0 } else { version };
            let decode = decode_response::<ApiVersionsRequest>(frame, encoded_in);
            let response: ApiVersionsResponse = decode.map_err(|reason| ClientError::Decode {
                address: self.address.clone(),
                api: api::<ApiVersionsRequest>(),
                reason,
            })?;
            match (response.error_code, refusal.is_some()) {
                (0, _) => return Ok(ApiVersionRanges::new(&response)),
                (_, false) if is_refused => refusal = Some(response),
                (error_code, _) => {
                    return Err(ClientError::Connect {
                        address: self.address.clone(),
                        reason: format!("ApiVersions is answered with error {error_code}").into(),
                    });
                }
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Client {
    /// Requests whose response is outstanding.
    pub(super) fn in_flight(&self) -> usize {
        let current = self.current.load_full();
        current.map_or(0, |negotiated| negotiated.connection.in_flight())
    }
}
