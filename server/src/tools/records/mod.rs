//! The records that Kafka keeps for itself, as JSON: those of the metadata log and of the internal topics.
//!
//! One reader goes by the schemas (`schemas.rs`, made from those in Kafka's jars), so that records are printed which the
//! broker itself has no use for.

mod coordinator;
mod json;
mod metadata;
mod reader;
mod schema;
pub(crate) mod schemas;

pub(crate) use coordinator::{CoordinatorError, CoordinatorKind, CoordinatorRecord};
pub(crate) use json::{Json, java_double};
pub(crate) use metadata::read_metadata_record;
pub(crate) use reader::Reader;
pub(crate) use schema::Message;
