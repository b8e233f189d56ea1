//! Space on disk for an entry, before anyone is asked to agree on it: afterwards it cannot be refused any more.

use std::sync::Arc;

use highwater_storage::Log;
use parking_lot::Mutex;

use super::log_store::LogStore;
use crate::controller::reserve::Reserve;
use crate::metadata::MetadataError;

/// Reserved in the metadata log beyond what is needed, so that not every entry asks the file system.
const STEP_BYTES: u64 = 64 << 10;

/// The files that an entry goes to: the quorum's log and the metadata log.
pub(in crate::controller) struct Room {
    store: LogStore,
    log: Arc<Log>,
    reserve: Arc<Mutex<Reserve>>,
    #[cfg(test)]
    full_disk: full_disk::FullDisk,
}

impl Room {
    pub(super) fn new(store: LogStore, log: Arc<Log>, reserve: Arc<Mutex<Reserve>>) -> Self {
        Self {
            store,
            log,
            reserve,
            #[cfg(test)]
            full_disk: full_disk::FullDisk::default(),
        }
    }

    /// Reserves space for an entry of so many bytes in both logs. On a full disk, what is kept back is given up for it
    /// if `may_use_reserve`.
    pub(in crate::controller) fn reserve(
        &self,
        bytes: u64,
        may_use_reserve: bool,
    ) -> Result<(), MetadataError> {
        let take = || {
            #[cfg(test)]
            self.full_disk.refuse()?;
            self.store.reserve(bytes)?;
            Ok(self.log.reserve_space(bytes + STEP_BYTES)?)
        };
        match may_use_reserve {
            true => self.reserve.lock().write_when_full(take),
            false => take(),
        }
    }

    /// How much of the quorum's log is on disk for sure.
    #[cfg(test)]
    pub(super) fn synced(&self) -> u64 {
        self.store.synced()
    }

    /// Has every write to the quorum's log fail from now on.
    #[cfg(test)]
    pub(super) fn fail_writes(&self) {
        self.store.fail_writes();
    }

    /// The disk as it is to seem to those who reserve space.
    #[cfg(test)]
    pub(super) fn full_disk(&self) -> &full_disk::FullDisk {
        &self.full_disk
    }

    /// Whether space is kept back for the day the disk is full.
    pub(in crate::controller) fn holds_reserve(&self) -> bool {
        self.reserve.lock().is_held()
    }

    /// Keeps space back again for the day the disk is full, if there is enough.
    pub(in crate::controller) fn hold_reserve(&self) {
        self.reserve.lock().hold();
    }
}

/// A disk that is full for as long as a test wants it.
#[cfg(test)]
pub(super) mod full_disk {
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use highwater_storage::StorageError;

    use crate::metadata::MetadataError;

    #[derive(Default)]
    pub(in crate::controller::quorum) struct FullDisk {
        is_full: AtomicBool,
        refusals: AtomicUsize,
    }

    impl FullDisk {
        pub(in crate::controller::quorum) fn set(&self, is_full: bool) {
            self.is_full.store(is_full, Ordering::SeqCst);
        }

        /// How often space was asked for in vain.
        pub(in crate::controller::quorum) fn refusals(&self) -> usize {
            self.refusals.load(Ordering::SeqCst)
        }

        pub(super) fn refuse(&self) -> Result<(), MetadataError> {
            if !self.is_full.load(Ordering::SeqCst) {
                return Ok(());
            }
            self.refusals.fetch_add(1, Ordering::SeqCst);
            Err(StorageError::io("reserve space for", "quorum-log", ErrorKind::StorageFull).into())
        }
    }
}
