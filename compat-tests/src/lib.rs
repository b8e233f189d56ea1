//! Real clients and raw frames against Highwater and Apache Kafka alike.
//!
//! The broker is a black box: this crate depends on no product crate. [`broker::Broker`] starts either
//! one on free ports with a data directory of its own, and [`each_broker::for_each_broker`] runs one test
//! body against both, so that an expectation which holds on only one of them fails.

pub mod apache_kafka;
pub mod broker;
pub mod cache;
pub mod clients;
pub mod each_broker;
pub mod highwater;
pub mod java_tools;
pub mod process;
pub mod raw;
