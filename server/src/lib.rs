//! A broker that speaks Apache Kafka's wire protocol: sockets, API handlers, coordinators, controller, configuration
//! and command line. The map of the code is in `ARCHITECTURE.md`.

pub mod api;
pub mod broker;
pub mod cli;
pub mod config;
pub mod console;
pub mod controller;
pub mod coordinator;
pub mod fetch_session;
mod kafka_names;
pub mod log_dirs;
pub mod metadata;
pub mod metrics;
pub mod network;
pub mod peer;
pub mod refusals;
mod tools;
pub mod web;
