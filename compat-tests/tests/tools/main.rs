//! Highwater's command-line tools print what Apache Kafka's print: every call is made with both, against both brokers.
//!
//! `BROKER=highwater|kafka|both` selects the brokers. A file per tool or two; they share the cluster of three nodes of
//! each implementation and one JVM for Apache Kafka's tools ([`frame`]), and take names of their own for what they
//! create.

mod cluster;
mod configs;
mod console;
mod dump_log;
mod elections;
mod failures;
mod frame;
mod groups;
mod leaderless;
mod log_dirs;
mod measure;
mod offsets;
mod reassign;
mod topics;
mod undelivered;
