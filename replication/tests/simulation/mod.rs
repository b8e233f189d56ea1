//! A seeded simulation of replication: brokers and controllers that run the product's rules over a network that delays,
//! loses and reorders, on machines that crash, pause and lose what was not synced.
//!
//! Each seed is one history. After every step all invariants of `invariants/` are checked, and when faults are over all
//! must become well again. A failing seed prints a script that `tests/scripts` understands.
//!
//! - `HIGHWATER_SIM_SEEDS=100000 cargo test -p highwater-replication --test replication seed` runs more seeds,
//! - `HIGHWATER_SIM_SEED=17` runs one of them,
//! - `HIGHWATER_SIM_TOLD=1000000` tells what all of its steps did, not only the last ones,
//! - `HIGHWATER_SIM_RULE=strict-min-isr` runs it without a safety rule.

mod faults;
pub(crate) mod invariants;
mod liveness;
mod plan;
mod report;
mod rules_off;
mod run;
mod schedule;
mod seeds;
