//! Who leads, who is in sync, what is committed: pure rules and the runtime that drives them.

pub mod cluster;
