//! Runs with faults, in the manner of Jepsen's test of Kafka: clients that write and read unique values while nodes
//! and links fail, and checks of what they were told.
//!
//! [`history`] and [`checkers`] are pure; [`plan`] chooses faults from a seed; [`nemesis`] does them to a cluster;
//! [`workload`] runs the clients; [`run`] puts them together.

pub mod checkers;
pub mod history;
pub mod nemesis;
pub mod plan;
pub mod replicas;
pub mod run;
pub mod workload;
