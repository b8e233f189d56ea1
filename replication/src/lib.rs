//! Replication.
