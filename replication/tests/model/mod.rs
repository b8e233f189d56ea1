//! A model of a cluster around the product's rules of replication. The rules (`replication/src/state` and
//! `replication/src/cluster`) are the real ones; the model has what they leave to others: logs, a network, processes
//! that come and go, time. Scripts and simulation both drive it with the same steps.
//!
//! One partition is enough: the rules know no others.

pub(crate) mod around;
pub(crate) mod broker;
pub(crate) mod clock;
pub(crate) mod controller;
pub(crate) mod epochs;
pub(crate) mod errors;
pub(crate) mod following;
pub(crate) mod governing;
pub(crate) mod history;
pub(crate) mod leading;
pub(crate) mod living;
pub(crate) mod log;
pub(crate) mod macros;
pub(crate) mod message;
pub(crate) mod metadata;
pub(crate) mod network;
pub(crate) mod notes;
pub(crate) mod rules;
pub(crate) mod serving;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod step;
pub(crate) mod telling;
pub(crate) mod world;
