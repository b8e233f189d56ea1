//! Real clients and Apache Kafka's tools against both brokers.
//!
//! One binary, so that all tests share one broker of each kind. `BROKER=highwater|kafka|both` selects.

mod admin;
mod codec_matrix;
mod confluent;
mod durability;
mod groups;
mod java_tools;
mod kcat;
mod produce_consume;
mod streams;
mod support;
