//! Raw frames against both brokers: what no client library would send, and what every one relies on.
//!
//! One file a subject. A test is one expectation, verified on Apache Kafka by running it there too;
//! see the crate's documentation for `BROKER`, which chooses the broker.

mod bad_input;
mod compare;
mod connections;
mod fetch;
mod groups;
mod offsets;
mod pipelining;
mod process;
mod produce;
mod produce_errors;
mod requests;
mod requests_admin;
mod requests_cluster;
mod sessions;
mod storage;
mod support;
mod topics;
mod versions;
