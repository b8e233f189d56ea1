//! Aborted transactions (`.txnindex`), in order of their markers. The file is only there when there are any.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::mapped_file::{MappedFile, SyncError, unless_absent};

const VERSION: i16 = 0;
const ENTRY_BYTES: usize = 34;

/// A transaction that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// Whose transaction.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its marker.
    pub last_offset: i64,
    /// The last stable offset once the marker was there: no transaction with a later marker begins before it.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&VERSION.to_be_bytes());
        for field in [
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        ] {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> io::Result<Self> {
        let field = |number: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[2 + 8 * number..10 + 8 * number]);
            i64::from_be_bytes(field)
        };
        let version = i16::from_be_bytes([bytes[0], bytes[1]]);
        if version != VERSION {
            return Err(invalid(format!("version {version}")));
        }
        let entry = Self {
            producer_id: field(0),
            first_offset: field(1),
            last_offset: field(2),
            last_stable_offset: field(3),
        };
        if entry.first_offset > entry.last_offset {
            return Err(invalid(format!("{entry:?} ends before it begins")));
        }
        Ok(entry)
    }
}

/// The entries in the bytes of a transaction index (`.txnindex`), in whatever order they are.
///
/// # Errors
/// When the bytes are no whole number of entries, or one of them makes no sense.
pub fn read_transaction_index(bytes: &[u8]) -> io::Result<Vec<AbortedTxn>> {
    let (chunks, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(invalid(format!("{} bytes too many", rest.len())));
    }
    chunks.iter().map(AbortedTxn::decode).collect()
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// A segment's transaction index.
#[derive(Debug)]
pub(crate) struct TransactionIndex {
    file: MappedFile,
    base_offset: i64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The whole index, once it was needed.
    entries: Option<Arc<Vec<AbortedTxn>>>,
    /// How many of the entries are not in the file, for want of space. They are never forgotten.
    unwritten: usize,
}

impl TransactionIndex {
    pub(crate) fn new(dir: Arc<Path>, name: String, base_offset: i64) -> Self {
        Self {
            file: MappedFile::new(dir, name),
            base_offset,
            state: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// The index of a segment without a file.
    pub(crate) fn assume_empty(&self) {
        *self.state.lock() = State {
            entries: Some(Arc::default()),
            unwritten: 0,
        };
    }

    /// The index of a new segment: empty, whatever file lies there.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.file.close();
        match std::fs::remove_file(self.path()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.assume_empty();
        Ok(())
    }

    /// All entries, in order of their markers.
    pub(crate) fn entries(&self) -> io::Result<Arc<Vec<AbortedTxn>>> {
        self.load(&mut self.state.lock())
    }

    fn load(&self, state: &mut State) -> io::Result<Arc<Vec<AbortedTxn>>> {
        if let Some(entries) = &state.entries {
            return Ok(Arc::clone(entries));
        }
        let read = Arc::new(self.read()?);
        state.entries = Some(Arc::clone(&read));
        Ok(read)
    }

    fn read(&self) -> io::Result<Vec<AbortedTxn>> {
        let bytes = match std::fs::read(self.path()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let entries = read_transaction_index(&bytes)?;
        let ascends = |pair: &[AbortedTxn]| pair[0].last_offset < pair[1].last_offset;
        if !entries.windows(2).all(ascends)
            || entries
                .first()
                .is_some_and(|first| first.last_offset < self.base_offset)
        {
            return Err(invalid("the markers' offsets do not ascend".to_owned()));
        }
        Ok(entries)
    }

    /// Whether the file is absent or makes sense.
    pub(crate) fn is_sane(&self) -> bool {
        self.entries().is_ok()
    }

    /// Adds a transaction whose marker was appended. It is written at once; where that fails it stays in memory
    /// and is tried again by [`Self::write_pending`].
    pub(crate) fn append(&self, entry: AbortedTxn) -> io::Result<()> {
        let mut state = self.state.lock();
        drop(self.load(&mut state)?);
        if let Some(entries) = &mut state.entries {
            Arc::make_mut(entries).push(entry);
        }
        state.unwritten += 1;
        if let Err(error) = self.write(&mut state) {
            tracing::warn!(index = %self.path().display(), %error, "cannot write an aborted transaction, trying again later");
        }
        Ok(())
    }

    fn write(&self, state: &mut State) -> io::Result<()> {
        let Some(entries) = &state.entries else {
            return Ok(());
        };
        if state.unwritten == 0 {
            return Ok(());
        }
        let written = entries.len() - state.unwritten;
        let mut bytes = Vec::with_capacity(state.unwritten * ENTRY_BYTES);
        entries[written..]
            .iter()
            .for_each(|entry| entry.encode(&mut bytes));
        self.file.open_or_create()?;
        self.file
            .write_at((written * ENTRY_BYTES) as u64, &mut [IoSlice::new(&bytes)])?;
        state.unwritten = 0;
        Ok(())
    }

    /// Writes what could not be written before.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        self.write(&mut self.state.lock())
    }

    /// Replaces all entries.
    pub(crate) fn replace(&self, new: &[AbortedTxn]) -> io::Result<()> {
        if new.is_empty() {
            return self.create();
        }
        let mut bytes = Vec::with_capacity(new.len() * ENTRY_BYTES);
        new.iter().for_each(|entry| entry.encode(&mut bytes));
        let path = self.path();
        let mut new_path = path.clone().into_os_string();
        new_path.push(".tmp");
        let mut state = self.state.lock();
        std::fs::write(&new_path, &bytes)?;
        std::fs::rename(&new_path, &path)?;
        self.file.close();
        *state = State {
            entries: Some(Arc::new(new.to_vec())),
            unwritten: 0,
        };
        Ok(())
    }

    /// Forces the file to disk, if there is one.
    pub(crate) fn sync(&self) -> Result<(), SyncError> {
        let mut state = self.state.lock();
        self.write(&mut state)?;
        if state
            .entries
            .as_ref()
            .is_some_and(|entries| entries.is_empty())
        {
            return Ok(());
        }
        unless_absent(self.file.sync())
    }

    /// Closes the file and forgets what can be read again.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        if let Err(error) = self.write(&mut state) {
            tracing::warn!(index = %self.path().display(), %error, "cannot write aborted transactions");
            return;
        }
        self.file.close();
        // An empty list is kept: it costs nothing and saves looking for the file.
        if state
            .entries
            .as_ref()
            .is_some_and(|entries| !entries.is_empty())
        {
            state.entries = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(first_offset: i64, last_offset: i64) -> AbortedTxn {
        AbortedTxn {
            producer_id: 7,
            first_offset,
            last_offset,
            last_stable_offset: first_offset + 1,
        }
    }

    #[test]
    fn entries_survive_a_close_and_no_file_is_made_for_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let index = TransactionIndex::new(dir.path().into(), "x.txnindex".into(), 0);
        index.create().expect("created");
        assert!(!index.path().exists());
        index.append(txn(1, 5)).expect("appended");
        index.append(txn(0, 6)).expect("appended");
        index.close();
        assert_eq!(*index.entries().expect("read"), vec![txn(1, 5), txn(0, 6)]);
        assert_eq!(std::fs::metadata(index.path()).expect("there").len(), 68);
        index.replace(&[txn(1, 5)]).expect("replaced");
        index.append(txn(2, 9)).expect("appended");
        index.close();
        assert_eq!(*index.entries().expect("read"), vec![txn(1, 5), txn(2, 9)]);
        index.replace(&[]).expect("replaced");
        assert!(!index.path().exists());
    }

    #[test]
    fn damaged_files_are_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let index = |bytes: &[u8]| {
            std::fs::write(dir.path().join("x.txnindex"), bytes).expect("written");
            TransactionIndex::new(dir.path().into(), "x.txnindex".into(), 0).is_sane()
        };
        let mut bytes = Vec::new();
        txn(1, 5).encode(&mut bytes);
        txn(0, 6).encode(&mut bytes);
        assert!(index(&bytes));
        assert!(!index(&bytes[..67]));
        let mut version = bytes.clone();
        version[35] = 1;
        assert!(!index(&version));
        let mut order = bytes[34..].to_vec();
        order.extend_from_slice(&bytes[..34]);
        assert!(!index(&order));
    }
}
