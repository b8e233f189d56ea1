//! One blocking connection and the frames on it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader, RequestKind, ResponseHeader, ResponseKind};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// The client id that every request carries.
const CLIENT_ID: &str = "raw";

/// A reply as it came: everything after its length field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(pub Bytes);

impl Frame {
    /// The correlation id, the first four bytes.
    pub fn correlation_id(&self) -> i32 {
        self.0.clone().try_get_i32().unwrap_or(i32::MIN)
    }

    /// Decodes the reply to a request of type `R`; left-over bytes are an error.
    pub fn decode<R: Request>(&self, version: i16) -> Result<R::Response> {
        let mut bytes = self.0.clone();
        ResponseHeader::decode(
            &mut bytes,
            <R::Response as HeaderVersion>::header_version(version),
        )?;
        let response = R::Response::decode(&mut bytes, version)?;
        ensure!(
            !bytes.has_remaining(),
            "{} bytes left over after the reply",
            bytes.len()
        );
        Ok(response)
    }

    /// Decodes the reply to a request of kind `key`; left-over bytes are an error.
    pub fn decode_kind(&self, key: ApiKey, version: i16) -> Result<ResponseKind> {
        let mut bytes = self.0.clone();
        ResponseHeader::decode(&mut bytes, key.response_header_version(version))?;
        let response = ResponseKind::decode(key, &mut bytes, version)?;
        ensure!(
            !bytes.has_remaining(),
            "{} bytes left over after the reply",
            bytes.len()
        );
        Ok(response)
    }
}

/// A TCP connection to a broker.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    next_correlation_id: i32,
}

impl Connection {
    /// Connects; reads time out after 30 s so that a missing reply fails a test.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))
            .with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.set_write_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            stream,
            next_correlation_id: 1,
        })
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Gives up the connection for its socket.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Sends a request and waits for its reply.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.send(version, request)?;
        self.receive::<R>(version)
    }

    /// Sends a request; gives its correlation id.
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> Result<i32> {
        let id = self.take_correlation_id();
        let frame = encode_frame(version, id, request)?;
        self.write(&frame)?;
        Ok(id)
    }

    /// Waits for the reply to a request of type `R`.
    pub fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        let frame = self
            .read_frame()?
            .context("the broker closed the connection")?;
        frame
            .decode::<R>(version)
            .with_context(|| format!("reply to key {} v{version}", R::KEY))
    }

    /// Sends a request of any kind; gives its correlation id.
    pub fn send_kind(&mut self, key: ApiKey, version: i16, request: &RequestKind) -> Result<i32> {
        let mut body = BytesMut::new();
        request.encode(&mut body, version)?;
        self.send_body(key as i16, version, &body)
    }

    /// Sends a frame with a proper header in front of `body`; gives its correlation id.
    pub fn send_body(&mut self, key: i16, version: i16, body: &[u8]) -> Result<i32> {
        let id = self.take_correlation_id();
        let frame = frame_of(key, version, id, body);
        self.write(&frame)?;
        Ok(id)
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("write")
    }

    /// The next reply, or `None` when the broker has closed the connection.
    pub fn read_frame(&mut self) -> Result<Option<Frame>> {
        read_frame(&mut self.stream)
    }

    fn take_correlation_id(&mut self) -> i32 {
        let id = self.next_correlation_id;
        self.next_correlation_id = self.next_correlation_id.wrapping_add(1);
        id
    }
}

/// The next frame on a stream, or `None` when the peer has closed it.
pub fn read_frame(stream: &mut TcpStream) -> Result<Option<Frame>> {
    let mut length = [0; 4];
    if !read_or_closed(stream, &mut length)? {
        return Ok(None);
    }
    let length = i32::from_be_bytes(length);
    if !(4..=512 << 20).contains(&length) {
        bail!("a frame claims {length} bytes");
    }
    let mut body = vec![0; length as usize];
    if !read_or_closed(stream, &mut body)? {
        return Ok(None);
    }
    Ok(Some(Frame(Bytes::from(body))))
}

/// Fills `out`; `false` when the peer closed or reset the connection first.
fn read_or_closed(stream: &mut TcpStream, out: &mut [u8]) -> Result<bool> {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match stream.read_exact(out) {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.kind(), UnexpectedEof | ConnectionReset | BrokenPipe) => Ok(false),
        Err(e) => Err(e).context("read"),
    }
}

/// A whole frame of a typed request.
pub fn encode_frame<R: Request>(version: i16, correlation_id: i32, request: &R) -> Result<Bytes> {
    let mut body = BytesMut::new();
    request
        .encode(&mut body, version)
        .with_context(|| format!("encode key {} v{version}", R::KEY))?;
    Ok(frame_of(R::KEY, version, correlation_id, &body))
}

/// A whole frame of any key: length, request header as this key and version want it, body.
pub fn frame_of(key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i32(0);
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str(CLIENT_ID)));
    if header
        .encode(&mut out, request_header_version(key, version))
        .is_err()
    {
        // Only version 0 of the header cannot hold these fields, and nothing uses it.
        return Bytes::new();
    }
    out.put_slice(body);
    let length = (out.len() - 4) as i32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out.freeze()
}

/// The version of the request header for a key and version; 1 for keys that nobody knows.
pub fn request_header_version(key: i16, version: i16) -> i16 {
    ApiKey::try_from(key).map_or(1, |key| key.request_header_version(version))
}
