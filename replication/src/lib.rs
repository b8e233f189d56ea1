//! Who leads a partition, who is in sync, what is committed.
//!
//! * [`state`]: the rules as pure functions.
//! * [`cluster`]: what the cluster is, as an immutable image that metadata records change.
//! * [`runtime`]: what drives the rules against `storage`.

pub mod cluster;
pub mod runtime;
pub mod state;
