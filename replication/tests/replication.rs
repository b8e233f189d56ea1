//! The rules of replication in a whole cluster: golden scripts of single situations, and a seeded simulation.

mod model;
mod scripts;
mod simulation;
