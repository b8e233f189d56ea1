//! What drives the rules: partitions with their logs, locks and waiting requests.

pub mod commit_wait;
pub mod error;
pub mod offset_watch;
pub mod partition;
pub mod read;
pub mod replica_manager;
