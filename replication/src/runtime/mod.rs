//! What drives the rules: partitions with their logs, locks and waiting requests.

use std::future::Future;
use std::pin::Pin;

pub mod alter_partition;
pub mod commit_wait;
pub mod context;
pub mod error;
pub mod fetcher;
pub mod leader_endpoint;
pub mod low_watermark_wait;
pub mod metrics;
pub mod offset_watch;
pub mod partition;
pub mod read;
pub mod replica_manager;
pub mod settings;
pub mod throttle;
pub mod topic_settings;

#[cfg(test)]
mod testing;

/// A future of a trait object's method.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
