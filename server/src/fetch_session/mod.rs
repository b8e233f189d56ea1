//! Incremental fetch sessions (KIP-227): a consumer or follower names its partitions once and then
//! sends only what changes; the broker answers only what changed.
//!
//! * [`session`]: one session, pure: what it holds, what a response updates and leaves out.
//! * [`cache`]: the bounded set of sessions of this broker, with Kafka's rule of eviction.
//! * [`context`]: what one request means for its session: full, incremental, without, or an error.

pub mod cache;
pub mod context;
pub mod session;

pub use cache::FetchSessionCache;
pub use context::{FetchContext, FetchEpoch, SessionRequest};
pub use session::{FetchTarget, PartitionKey, PartitionResult, TopicRef};
