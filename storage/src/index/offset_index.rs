//! Offset to position (`.index`): one entry about every `index.interval.bytes`.

use super::sparse_index::{Entry, SparseIndex};

/// The batch at `position` has `offset` as its last offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Last offset of a batch.
    pub offset: i64,
    /// Where the batch begins in the segment, in bytes.
    pub position: u32,
}

impl OffsetEntry {
    /// Its size in the file.
    pub const BYTES: usize = 8;
}

impl Entry for OffsetEntry {
    const BYTES: usize = OffsetEntry::BYTES;

    fn encode(&self, base_offset: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&((self.offset - base_offset) as u32).to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn decode(base_offset: i64, bytes: &[u8]) -> Self {
        let mut relative = [0; 4];
        let mut position = [0; 4];
        relative.copy_from_slice(&bytes[0..4]);
        position.copy_from_slice(&bytes[4..8]);
        Self {
            offset: base_offset.saturating_add(i64::from(i32::from_be_bytes(relative))),
            position: u32::from_be_bytes(position),
        }
    }

    fn follows(&self, earlier: &Self) -> bool {
        self.offset > earlier.offset && self.position > earlier.position
    }

    fn is_sane(&self, base_offset: i64) -> bool {
        self.offset >= base_offset && self.position <= i32::MAX as u32
    }
}

/// A segment's offset index.
pub(crate) type OffsetIndex = SparseIndex<OffsetEntry>;

impl OffsetIndex {
    /// The last entry whose offset is at most `offset`: where to begin to look for it.
    pub(crate) fn lookup(&self, offset: i64) -> std::io::Result<Option<OffsetEntry>> {
        self.last_where(|entry| entry.offset <= offset)
    }

    /// The last entry whose position is at most `position`.
    pub(crate) fn lookup_position(&self, position: u32) -> std::io::Result<Option<OffsetEntry>> {
        self.last_where(|entry| entry.position <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: i64 = 1_000;

    fn new_index(max_bytes: u32) -> (tempfile::TempDir, OffsetIndex) {
        let dir = tempfile::tempdir().expect("a directory");
        let index = OffsetIndex::new(dir.path().into(), "x.index".into(), BASE, max_bytes);
        index.create().expect("created");
        (dir, index)
    }

    fn entry(number: i64) -> OffsetEntry {
        OffsetEntry {
            offset: BASE + 3 * number,
            position: 100 * number as u32,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn lookup_finds_what_a_linear_scan_finds(count in 0i64..300, closes in 0usize..4, target in 990i64..2000) {
            let (_dir, index) = new_index(1 << 20);
            for number in 0..count {
                index.append(entry(number));
                if closes > 0 && number % 97 == 13 * closes as i64 {
                    index.close().unwrap();
                }
            }
            let all: Vec<_> = (0..count).map(entry).collect();
            prop_assert_eq!(index.entries().unwrap(), all.clone());
            prop_assert_eq!(index.lookup(target).unwrap(), all.iter().rfind(|e| e.offset <= target).copied());
            let position = (target * 7) as u32;
            prop_assert_eq!(
                index.lookup_position(position).unwrap(),
                all.iter().rfind(|e| e.position <= position).copied()
            );
            prop_assert_eq!(index.last().unwrap(), all.last().copied());
        }
    }

    #[test]
    fn entries_survive_a_close_and_a_new_open() {
        let (dir, index) = new_index(1 << 20);
        (0..100).for_each(|number| index.append(entry(number)));
        index.close().expect("closed");
        let again = OffsetIndex::new(dir.path().into(), "x.index".into(), BASE, 1 << 20);
        assert!(again.looks_whole() && again.entries().is_ok());
        assert_eq!(again.entries().expect("loaded").len(), 100);
        again.append(entry(100));
        again.close().expect("closed");
        assert_eq!(again.last().expect("loaded"), Some(entry(100)));
    }

    #[test]
    fn a_full_index_takes_no_more() {
        let (_dir, index) = new_index(20);
        index.append(entry(0));
        assert!(!index.is_full());
        index.append(entry(1));
        assert!(index.is_full());
        index.append(entry(2));
        assert_eq!(index.entries().expect("loaded").len(), 2);
    }

    #[test]
    fn damaged_files_are_noticed() {
        let (dir, index) = new_index(1 << 20);
        (0..100).for_each(|number| index.append(entry(number)));
        index.close().expect("closed");
        let whole = std::fs::read(index.path()).expect("read");
        let check = |bytes: &[u8]| {
            std::fs::write(dir.path().join("x.index"), bytes).expect("written");
            OffsetIndex::new(dir.path().into(), "x.index".into(), BASE, 1 << 20)
                .entries()
                .is_ok()
        };
        assert!(check(&whole));
        assert!(check(&[]));
        assert!(!check(&whole[..799]));
        let mut zeros = whole.clone();
        zeros.extend_from_slice(&[0; 16]);
        assert!(!check(&zeros));
        let mut flipped = whole.clone();
        flipped[400] ^= 0x80;
        assert!(!check(&flipped));
        std::fs::remove_file(dir.path().join("x.index")).expect("removed");
        assert!(
            OffsetIndex::new(dir.path().into(), "x.index".into(), BASE, 1 << 20)
                .entries()
                .is_err()
        );
    }

    #[test]
    fn replacing_keeps_only_the_new_entries() {
        let (_dir, index) = new_index(1 << 20);
        (0..100).for_each(|number| index.append(entry(number)));
        index.replace(&[entry(1), entry(2)]).expect("replaced");
        assert_eq!(index.entries().expect("loaded"), vec![entry(1), entry(2)]);
        index.append(entry(3));
        index.close().expect("closed");
        assert_eq!(index.entries().expect("loaded").len(), 3);
    }
}
