//! Several nodes of either implementation, and what becomes of them and their records when some fail.
//!
//! `BROKER=highwater|kafka|both` selects. One cluster runs at a time.

mod acks_table;
mod failure_scripts;
mod harness;
mod librdkafka;
mod support;
