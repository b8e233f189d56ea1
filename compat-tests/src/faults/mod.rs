//! Runs with faults, in the manner of Jepsen's test of Kafka: clients that write and read unique values while nodes
//! and links fail, and checks of what they were told.

pub mod checkers;
pub mod history;
