//! The shape of a line in the API table, and the macro that makes one from a handler.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kafka_protocol::protocol::Request;

use super::context::RequestContext;
use super::reply::Reply;
use super::request_shape::{self, ShapeError};
use crate::broker::Broker;
use crate::network::ListenerKind;

/// A request body that does not parse.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A count or length exceeds what the request holds.
    #[error("request body does not parse: {0}")]
    Shape(#[from] ShapeError),
    /// Anything else.
    #[error("request body does not parse: {0}")]
    Body(String),
}

/// What became of a request at the end of its synchronous part.
pub enum Dispatched {
    /// The handler has answered or parked.
    Done(Reply),
    /// An asynchronous handler runs; the connection starts no other request before it has ended.
    Running(BoxFuture<'static, Reply>),
}

/// Decodes a body and runs its handler.
pub type DispatchFn = fn(&Arc<Broker>, &RequestContext, Bytes) -> Result<Dispatched, DecodeError>;

/// Decodes a body and hands the request on: whole, as it came, then its body.
pub type ForwardFn =
    fn(&Arc<Broker>, &RequestContext, Bytes, Bytes) -> Result<Dispatched, DecodeError>;

/// On which listeners an API is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedOn {
    /// On those for clients and brokers.
    Broker,
    /// On those of the controller.
    Controller,
    /// On all.
    Both,
}

impl ServedOn {
    /// Whether listeners of this kind are among them.
    pub fn includes(self, kind: ListenerKind) -> bool {
        match (self, kind) {
            (Self::Both, _)
            | (Self::Broker, ListenerKind::Broker)
            | (Self::Controller, ListenerKind::Controller) => true,
            (Self::Broker, ListenerKind::Controller) | (Self::Controller, ListenerKind::Broker) => {
                false
            }
        }
    }
}

/// One API: its key, the versions served and the handler.
pub struct ApiEntry {
    /// Kafka's api key.
    pub key: i16,
    /// Kafka's name of the API, without "Request".
    pub name: &'static str,
    /// The lowest version with a handler.
    pub min_version: i16,
    /// The highest version with a handler.
    pub max_version: i16,
    /// The lowest version that ApiVersions tells; below `min_version` where clients need it (KIP-896: Produce 0).
    pub advertised_min_version: i16,
    /// On which listeners it is served.
    pub served_on: ServedOn,
    /// Set where only the active controller can answer: another node's broker listener hands the request on to it with
    /// this, and another node's controller listener refuses it with NOT_CONTROLLER.
    pub forward: Option<ForwardFn>,
    /// Decodes and handles.
    pub dispatch: DispatchFn,
    /// Decodes a body of a version and forgets it: what fuzzing and tests aim at.
    pub decode: fn(i16, Bytes) -> Result<(), DecodeError>,
}

/// Decodes a request body of a version. Bytes behind it are ignored, as Kafka does.
pub(crate) fn decode<R: Request>(api_version: i16, body: Bytes) -> Result<R, DecodeError> {
    let mut body = request_shape::checked(R::KEY, api_version, body)?;
    R::decode(&mut body, api_version).map_err(|error| DecodeError::Body(error.to_string()))
}

/// Makes a table of APIs from lines like these; the versions are those that kafka-protocol knows.
///
/// ```ignore
/// api_table! {
///     on Broker;
///     sync Produce(ProduceRequest) => produce::handle, advertised_from 0;
///     sync Fetch(FetchRequest) => fetch::handle, up_to 17;
///     forwarded CreateTopics(CreateTopicsRequest) => create_topics::handle;
/// }
/// ```
///
/// A `sync` handler is `fn(&Arc<Broker>, &RequestContext, XRequest) -> Reply`, an `async` one is
/// `async fn(Arc<Broker>, RequestContext, XRequest) -> Reply`. A `forwarded` one is `async`, only the active controller
/// runs it, and its request is [`Forwarded`](super::forwarding::Forwarded).
macro_rules! api_table {
    (on $served_on:ident; $($kind:ident $name:ident($request:ty) => $handler:path
        $(, advertised_from $from:literal)? $(, up_to $up_to:literal)?;)*) => {
        &[$($crate::api::table::ApiEntry {
            key: <$request as ::kafka_protocol::protocol::Request>::KEY,
            name: stringify!($name),
            min_version: <$request as ::kafka_protocol::protocol::Message>::VERSIONS.min,
            max_version: $crate::api::table::first(
                &[$($up_to,)? <$request as ::kafka_protocol::protocol::Message>::VERSIONS.max],
            ),
            advertised_min_version: $crate::api::table::first(
                &[$($from,)? <$request as ::kafka_protocol::protocol::Message>::VERSIONS.min],
            ),
            served_on: $crate::api::table::ServedOn::$served_on,
            forward: $crate::api::table::api_table!(@forward $kind $request),
            dispatch: $crate::api::table::api_table!(@dispatch $kind $request, $handler),
            decode: |api_version, body| {
                $crate::api::table::decode::<$request>(api_version, body).map(|_| ())
            },
        }),*]
    };
    (@forward forwarded $request:ty) => { Some($crate::api::forwarding::forward::<$request>) };
    (@forward $kind:ident $request:ty) => { None };
    (@dispatch sync $request:ty, $handler:path) => {
        |broker, ctx, body| {
            let request = $crate::api::table::decode::<$request>(ctx.api_version, body)?;
            Ok($crate::api::table::Dispatched::Done($handler(broker, ctx, request)))
        }
    };
    (@dispatch async $request:ty, $handler:path) => {
        |broker, ctx, body| {
            let request = $crate::api::table::decode::<$request>(ctx.api_version, body)?;
            let handled = $handler(::std::sync::Arc::clone(broker), ctx.clone(), request);
            Ok($crate::api::table::Dispatched::Running(Box::pin(handled)))
        }
    };
    (@dispatch forwarded $request:ty, $handler:path) => {
        $crate::api::table::api_table!(@dispatch async $request, $handler)
    };
}
pub(crate) use api_table;

/// The first number of a list that is not empty.
pub(crate) const fn first(numbers: &[i16]) -> i16 {
    numbers[0]
}
