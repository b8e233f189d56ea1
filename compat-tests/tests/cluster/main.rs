//! Several nodes of either implementation, and what becomes of them and their records when some fail.
//!
//! `BROKER=highwater|kafka|both` selects. One cluster of each runs at a time.

mod acks_table;
mod controller_requests;
mod disks;
mod elections;
mod failure_scripts;
mod faults;
mod following;
mod harness;
mod isr_proposals;
mod librdkafka;
mod mixed;
mod producers;
mod quorum;
mod refusals;
mod registration;
mod replicas;
mod support;
mod tools;
mod truncation;
mod waiting;
