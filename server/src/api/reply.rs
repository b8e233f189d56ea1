//! What a handler gives back: a response body, a promise of one, nothing, or the end of the connection.

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kafka_protocol::messages::ResponseHeader;
use kafka_protocol::protocol::{Encodable, HeaderVersion};

/// The answer of a handler to one request.
#[must_use]
pub enum Reply {
    /// The response is complete.
    Ready(ResponseBody),
    /// Stage 1 of the request is done, its effects are ordered before those of the connection's next request, and the
    /// connection goes on reading. The response is sent, in request order, when the future completes.
    ///
    /// The future is polled only when every earlier response has left, so a time limit must be fixed when it is made.
    /// It should end early when the broker stops: see [`Broker::until_stopping`](crate::broker::Broker::until_stopping).
    Parked(BoxFuture<'static, ResponseBody>),
    /// The request has no response (Produce with acks=0).
    Nothing,
    /// Earlier responses are sent, then the connection is closed without a response to this request.
    Close(CloseReason),
}

impl From<ResponseBody> for Reply {
    fn from(body: ResponseBody) -> Self {
        Reply::Ready(body)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Ready(body) => f.debug_tuple("Ready").field(body).finish(),
            Reply::Parked(_) => f.write_str("Parked"),
            Reply::Nothing => f.write_str("Nothing"),
            Reply::Close(reason) => f.debug_tuple("Close").field(reason).finish(),
        }
    }
}

/// Why the broker ends a connection. The name is the `reason` label of the metric that counts refused input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum CloseReason {
    /// The length prefix is negative, zero or larger than `socket.request.max.bytes`.
    InvalidFrameLength,
    /// The request header does not parse.
    MalformedHeader,
    /// No handler exists for the api key.
    UnknownApi,
    /// The api version lies outside the handler's range.
    UnsupportedVersion,
    /// The request body does not parse.
    MalformedRequest,
    /// A Produce with acks=0 failed; closing is the only way to tell its client.
    FailedWithoutResponse,
    /// The handler panicked or its response could not be encoded.
    Internal,
    /// Nothing was received for `connections.max.idle.ms`.
    Idle,
    /// `max.connections.per.ip` is reached.
    TooManyConnectionsFromAddress,
    /// No file descriptor was left for the connection.
    NoDescriptorLeft,
}

impl CloseReason {
    /// Every reason, in the order of its discriminant.
    pub const ALL: [CloseReason; 10] = [
        CloseReason::InvalidFrameLength,
        CloseReason::MalformedHeader,
        CloseReason::UnknownApi,
        CloseReason::UnsupportedVersion,
        CloseReason::MalformedRequest,
        CloseReason::FailedWithoutResponse,
        CloseReason::Internal,
        CloseReason::Idle,
        CloseReason::TooManyConnectionsFromAddress,
        CloseReason::NoDescriptorLeft,
    ];

    /// The reason as a metric label and log field.
    pub fn as_str(self) -> &'static str {
        match self {
            CloseReason::InvalidFrameLength => "invalid_frame_length",
            CloseReason::MalformedHeader => "malformed_header",
            CloseReason::UnknownApi => "unknown_api",
            CloseReason::UnsupportedVersion => "unsupported_version",
            CloseReason::MalformedRequest => "malformed_request",
            CloseReason::FailedWithoutResponse => "failed_without_response",
            CloseReason::Internal => "internal",
            CloseReason::Idle => "idle",
            CloseReason::TooManyConnectionsFromAddress => "too_many_connections_from_address",
            CloseReason::NoDescriptorLeft => "no_descriptor_left",
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One response frame, length prefix included, as a chain of byte slices that is written without being joined.
#[derive(Default, Clone)]
pub struct ResponseBody {
    first: Bytes,
    rest: Vec<Bytes>,
}

impl ResponseBody {
    /// A response that could not be encoded: the connection is closed in its place.
    pub(crate) fn unencodable() -> Self {
        ResponseBody::default()
    }

    /// A response whose header and body are there already; without its length prefix.
    pub(crate) fn from_frame(frame: Bytes) -> Self {
        match u32::try_from(frame.len()) {
            Ok(length) => ResponseBody {
                first: Bytes::copy_from_slice(&length.to_be_bytes()),
                rest: vec![frame],
            },
            Err(_) => Self::unencodable(),
        }
    }

    /// Whether this stands for a response that could not be encoded.
    pub(crate) fn is_unencodable(&self) -> bool {
        self.first.is_empty()
    }

    /// The number of bytes that go to the socket.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Bytes::len).sum::<usize>()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in the order they are sent.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        std::iter::once(self.first).chain(self.rest)
    }

    /// The whole frame in one buffer; for tests and tools.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        out.extend_from_slice(&self.first);
        for piece in &self.rest {
            out.extend_from_slice(piece);
        }
        out
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ResponseBody({} bytes in {} pieces)",
            self.len(),
            1 + self.rest.len()
        )
    }
}

/// Writes one response frame piece by piece, so that record bytes can be spliced in without being copied.
///
/// ```ignore
/// let mut writer = ctx.response_writer::<FetchResponse>();
/// writer.buffer().put_i32(throttle_time_ms);
/// writer.splice(records);
/// Reply::Ready(writer.finish())
/// ```
pub struct ResponseWriter {
    /// Bytes since the last splice.
    tail: Vec<u8>,
    pieces: Vec<Bytes>,
    spliced_bytes: usize,
    failed: bool,
}

impl ResponseWriter {
    const LENGTH_BYTES: usize = 4;
    /// Pieces shorter than this are copied: a slice of its own costs more than the copy.
    const MIN_SPLICE_BYTES: usize = 512;

    pub(crate) fn new(correlation_id: i32, header_version: i16, capacity: usize) -> Self {
        let mut tail = Vec::with_capacity(capacity);
        tail.extend_from_slice(&[0; Self::LENGTH_BYTES]);
        let header = ResponseHeader::default().with_correlation_id(correlation_id);
        let failed = header.encode(&mut tail, header_version).is_err();
        ResponseWriter {
            tail,
            pieces: Vec::new(),
            spliced_bytes: 0,
            failed,
        }
    }

    /// The buffer that the next bytes of the response are put into. kafka-protocol's `encode` accepts it as it is.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Puts the encoding of `value` at `version`; a value that has no encoding there closes the connection.
    pub fn put<T: Encodable>(&mut self, value: &T, version: i16) {
        if let Err(error) = value.encode(&mut self.tail, version) {
            tracing::error!(%error, version, "response cannot be encoded");
            self.failed = true;
        }
    }

    /// Puts `bytes` without copying them (unless they are few).
    pub fn splice(&mut self, bytes: Bytes) {
        if bytes.len() < Self::MIN_SPLICE_BYTES {
            self.tail.extend_from_slice(&bytes);
            return;
        }
        self.pieces
            .push(Bytes::from(std::mem::take(&mut self.tail)));
        self.spliced_bytes += bytes.len();
        self.pieces.push(bytes);
    }

    /// The number of bytes put so far, length prefix and header included.
    pub fn len(&self) -> usize {
        self.tail.len() + self.pieces.iter().map(Bytes::len).sum::<usize>()
    }

    /// Never true: the length prefix and the header are always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Fills in the length prefix.
    pub fn finish(mut self) -> ResponseBody {
        let length = self.len() - Self::LENGTH_BYTES;
        let Ok(length) = i32::try_from(length) else {
            tracing::error!(length_bytes = length, "response is too large for a frame");
            return ResponseBody::unencodable();
        };
        if self.failed {
            return ResponseBody::unencodable();
        }
        if self.pieces.is_empty() {
            self.tail[..Self::LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
            return ResponseBody {
                first: Bytes::from(self.tail),
                rest: Vec::new(),
            };
        }
        if !self.tail.is_empty() {
            self.pieces.push(Bytes::from(self.tail));
        }
        let mut pieces = self.pieces.into_iter();
        let mut first = Vec::from(pieces.next().unwrap_or_default());
        first[..Self::LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        ResponseBody {
            first: Bytes::from(first),
            rest: pieces.collect(),
        }
    }
}

/// The response header version that `Response` is sent with.
pub(crate) fn response_header_version<Response: HeaderVersion>(api_version: i16) -> i16 {
    Response::header_version(api_version)
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;
    use kafka_protocol::messages::ApiVersionsResponse;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frame_with_spliced_pieces_is_the_frame_in_one_piece(
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..2000), any::<bool>()), 0..8),
        ) {
            let mut writer = ResponseWriter::new(77, 1, 16);
            let mut expected = vec![0, 0, 0, 77, 0];
            for (bytes, is_spliced) in parts {
                expected.extend_from_slice(&bytes);
                if is_spliced {
                    writer.splice(Bytes::from(bytes));
                } else {
                    writer.buffer().put_slice(&bytes);
                }
                prop_assert_eq!(writer.len(), 4 + expected.len());
            }
            let body = writer.finish();
            let length = (expected.len() as i32).to_be_bytes();
            prop_assert_eq!(body.len(), 4 + expected.len());
            prop_assert_eq!(body.to_vec(), [&length[..], &expected].concat());
            let pieces: Vec<Bytes> = body.into_pieces().collect();
            prop_assert_eq!(pieces.concat(), [&length[..], &expected].concat());
        }
    }

    #[test]
    fn records_are_sent_from_where_they_are() {
        let records = Bytes::from(vec![7; 10_000]);
        let mut writer = ResponseWriter::new(1, 0, 16);
        writer.splice(records.clone());
        writer.buffer().put_u8(0);
        let pieces: Vec<Bytes> = writer.finish().into_pieces().collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), records.as_ptr());
    }

    #[test]
    fn a_response_that_its_version_cannot_carry_is_unencodable() {
        let mut writer = ResponseWriter::new(1, 0, 16);
        let (response, unknown_version) = (ApiVersionsResponse::default(), 99);
        writer.put(&response, unknown_version);
        assert!(writer.finish().is_unencodable());
    }

    #[test]
    fn close_reasons_are_listed_in_the_order_of_their_numbers() {
        for (number, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason}");
        }
    }
}
