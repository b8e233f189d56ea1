//! What a partition knows of its idempotent and transactional producers (KIP-98).
//!
//! For each producer id: its epoch, its last five batches and the transaction it has open. From that
//! follow the answer to a repeated batch, the refusal of a gap or of an old epoch, and the offset up
//! to which readers with isolation level read_committed may read.
//!
//! The state is a function of the log: every batch that was appended is [applied], in order, and a
//! [snapshot](ProducerSnapshot) of it lets a start skip what came before. Everything here is memory
//! and arithmetic, time is an argument; only [`snapshot_file`] touches files.
//!
//! [applied]: ProducerStateManager::apply

mod entry;
mod history;
mod manager;
mod snapshot;
pub mod snapshot_file;

pub use entry::{BatchMetadata, ProducerStateEntry, RETAINED_BATCHES};
pub use history::HistoryScan;
pub use manager::{CompletedTxn, ProducerStateManager, SequenceCheck};
pub use snapshot::{ProducerSnapshot, SnapshotEntry, SnapshotError};
