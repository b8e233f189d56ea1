//! Real clients and raw frames against Highwater and Apache Kafka alike.
//!
//! The broker is a black box: this crate depends on no product crate. [`broker::Broker`] starts either
//! one on free ports with a data directory of its own, and [`each_broker::for_each_broker`] runs one test
//! body against both, so that an expectation which holds on only one of them fails. [`cluster::Cluster`] and
//! [`cluster::for_each_cluster`] do the same with several nodes.

pub mod apache_kafka;
pub mod broker;
pub mod cache;
pub mod clients;
pub mod cluster;
pub mod each_broker;
pub mod faults;
pub mod highwater;
pub mod java_tools;
pub mod node;
pub mod own_tools;
pub mod process;
pub mod raw;
