//! The rules of replication as pure functions: no I/O, no clock, no lock.
//!
//! Each file holds one rule; the [`runtime`](crate::runtime) asks them under its own lock and
//! carries out what they decide.

pub mod commit;
pub mod fencing;
pub mod high_watermark;
