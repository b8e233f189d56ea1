//! The rules of replication as pure functions and state machines: no I/O, no clock, no lock.
//!
//! Events come in, effects go out; the log's offsets, the time and the metadata of brokers are
//! arguments. The [`runtime`](crate::runtime) asks them under its own lock and carries out what
//! they decide; the simulation drives the same code.

pub mod alter_partition;
pub mod commit;
#[cfg(test)]
mod epochs;
pub mod fencing;
pub mod fetch_position;
pub mod follower;
pub mod high_watermark;
pub mod isr;
pub mod leader;
pub mod leadership;
pub mod replica;
pub mod replica_progress;
pub mod replica_selector;
pub mod replication_quota;
pub mod truncation;
