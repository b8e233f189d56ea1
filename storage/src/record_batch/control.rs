//! Control records: what brokers write into a partition for clients and brokers.

use super::error::BatchError;

/// A control record, told by its key: a version and a type, two bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlRecord {
    /// The end of a producer's transaction (KIP-98).
    EndTransaction(EndTransactionMarker),
    /// Another type (those of KRaft's log: leader change, snapshot header and footer, version,
    /// voters), or one that this version does not know.
    Other {
        /// The type's number.
        control_type: i16,
    },
}

impl ControlRecord {
    /// Reads a control record from its key and value.
    ///
    /// # Errors
    /// [`BatchError::MalformedControlRecord`] if the key, or a marker's value, is too short.
    pub fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, BatchError> {
        let key = key.ok_or(BatchError::MalformedControlRecord("its key is null"))?;
        let [version_high, version_low, type_high, type_low, ..] = *key else {
            return Err(BatchError::MalformedControlRecord(
                "its key is shorter than 4 bytes",
            ));
        };
        if i16::from_be_bytes([version_high, version_low]) < 0 {
            return Err(BatchError::MalformedControlRecord(
                "its key has a negative version",
            ));
        }
        let is_commit = match i16::from_be_bytes([type_high, type_low]) {
            0 => false,
            1 => true,
            control_type => return Ok(Self::Other { control_type }),
        };
        let value = value.ok_or(BatchError::MalformedControlRecord(
            "a marker's value is null",
        ))?;
        let [version_high, version_low, epoch @ ..] = value else {
            return Err(BatchError::MalformedControlRecord(
                "a marker's value is too short",
            ));
        };
        if i16::from_be_bytes([*version_high, *version_low]) < 0 {
            return Err(BatchError::MalformedControlRecord(
                "a marker has a negative version",
            ));
        }
        let epoch = epoch
            .first_chunk::<4>()
            .ok_or(BatchError::MalformedControlRecord(
                "a marker's value is too short",
            ))?;
        Ok(Self::EndTransaction(EndTransactionMarker {
            is_commit,
            coordinator_epoch: i32::from_be_bytes(*epoch),
        }))
    }
}

/// The marker that ends a producer's transaction in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// Commit, or else abort.
    pub is_commit: bool,
    /// Epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
}

impl EndTransactionMarker {
    /// Version 0, then the type: 0 abort, 1 commit.
    pub fn key_bytes(self) -> [u8; 4] {
        [0, 0, 0, u8::from(self.is_commit)]
    }

    /// Version 0, then the coordinator's epoch.
    pub fn value_bytes(self) -> [u8; 6] {
        let mut value = [0; 6];
        value[2..].copy_from_slice(&self.coordinator_epoch.to_be_bytes());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_marker_survives_a_round_trip(is_commit in any::<bool>(), coordinator_epoch in any::<i32>()) {
            let marker = EndTransactionMarker { is_commit, coordinator_epoch };
            prop_assert_eq!(
                ControlRecord::parse(Some(&marker.key_bytes()), Some(&marker.value_bytes())),
                Ok(ControlRecord::EndTransaction(marker))
            );
        }

        #[test]
        fn arbitrary_keys_and_values_do_not_panic(
            key in proptest::option::of(proptest::collection::vec(0u8..3, 0..8)),
            value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..8)),
        ) {
            let _ = ControlRecord::parse(key.as_deref(), value.as_deref());
        }
    }

    #[test]
    fn other_types_are_told_apart() {
        assert_eq!(
            ControlRecord::parse(Some(&[0, 0, 0, 2]), None),
            Ok(ControlRecord::Other { control_type: 2 })
        );
        assert!(ControlRecord::parse(Some(&[0, 0, 0]), None).is_err());
        assert!(ControlRecord::parse(None, None).is_err());
    }
}
