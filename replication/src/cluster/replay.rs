//! Groups the records of the metadata log into what takes effect together (KIP-868).

use super::records::MetadataRecord;

/// Transaction markers in an order that has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A transaction begins inside another.
    #[error("a metadata transaction begins inside another")]
    NestedTransaction,
    /// A transaction ends that did not begin.
    #[error("a metadata transaction ends that did not begin")]
    NoTransaction,
}

/// Holds back the records of an open transaction until it ends.
#[derive(Debug, Default, Clone)]
pub struct Replay {
    open: Option<Vec<MetadataRecord>>,
}

impl Replay {
    /// Takes the next records of the log and gives those that take effect now, in order.
    pub fn push(
        &mut self,
        records: impl IntoIterator<Item = MetadataRecord>,
    ) -> Result<Vec<MetadataRecord>, ReplayError> {
        let mut effective = Vec::new();
        for record in records {
            match record {
                MetadataRecord::BeginTransaction(_) if self.open.is_some() => {
                    return Err(ReplayError::NestedTransaction);
                }
                MetadataRecord::BeginTransaction(_) => self.open = Some(Vec::new()),
                MetadataRecord::EndTransaction(_) => {
                    effective.append(&mut self.open.take().ok_or(ReplayError::NoTransaction)?);
                }
                MetadataRecord::AbortTransaction(_) => {
                    self.open.take().ok_or(ReplayError::NoTransaction)?;
                }
                record => match &mut self.open {
                    Some(held) => held.push(record),
                    None => effective.push(record),
                },
            }
        }
        Ok(effective)
    }

    /// Whether a transaction is open: a new controller writes an abort for it.
    pub fn in_transaction(&self) -> bool {
        self.open.is_some()
    }
}
