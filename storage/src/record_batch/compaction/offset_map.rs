//! The latest offset of each key.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// Maps keys to the latest offset they were seen at, up to a bound on memory.
///
/// It holds no keys but 128-bit hashes of them, under seeds that are drawn for each map: that two
/// keys of a log share one is not to be expected, and cannot be brought about.
#[derive(Debug)]
pub struct OffsetMap {
    offsets: HashMap<u128, i64, BuildHasherDefault<HashOfHash>>,
    seeds: [RandomState; 2],
    max_entries: usize,
    latest_offset: i64,
}

/// Bytes of memory for each entry, with the table's spare room.
const ENTRY_BYTES: usize = 64;

impl OffsetMap {
    /// An empty map of at most about this many bytes (`log.cleaner.dedupe.buffer.size`).
    pub fn new(max_bytes: usize) -> Self {
        Self {
            offsets: HashMap::default(),
            seeds: [RandomState::new(), RandomState::new()],
            max_entries: (max_bytes / ENTRY_BYTES).max(1),
            latest_offset: -1,
        }
    }

    /// Notes that `key` is at `offset`, which must not be below what was noted before. Gives `false`
    /// if the map is full and the key is new: nothing is noted then.
    pub fn put(&mut self, key: &[u8], offset: i64) -> bool {
        let hash = self.hash(key);
        if self.offsets.len() >= self.max_entries && !self.offsets.contains_key(&hash) {
            return false;
        }
        self.offsets.insert(hash, offset);
        self.advance_to(offset);
        true
    }

    /// The latest offset of `key`.
    pub fn latest_of(&self, key: &[u8]) -> Option<i64> {
        self.offsets.get(&self.hash(key)).copied()
    }

    /// The offset up to which (inclusive) the map knows the log; -1 at first.
    pub fn latest_offset(&self) -> i64 {
        self.latest_offset
    }

    pub(super) fn advance_to(&mut self, offset: i64) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    /// How many keys are in the map.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether no key is in the map.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    fn hash(&self, key: &[u8]) -> u128 {
        let [high, low] = self
            .seeds
            .each_ref()
            .map(|seed| u128::from(seed.hash_one(key)));
        high << 64 | low
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct HashOfHash(u64);

impl Hasher for HashOfHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_offset_of_a_key_counts() {
        let mut map = OffsetMap::new(1 << 20);
        assert_eq!(map.latest_offset(), -1);
        for (offset, key) in [b"a", b"b", b"a"].into_iter().enumerate() {
            assert!(map.put(key, offset as i64));
        }
        assert_eq!(map.latest_of(b"a"), Some(2));
        assert_eq!(map.latest_of(b"b"), Some(1));
        assert_eq!(map.latest_of(b"c"), None);
        assert_eq!(map.latest_offset(), 2);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn a_full_map_takes_known_keys_only() {
        let mut map = OffsetMap::new(2 * ENTRY_BYTES);
        assert!(map.put(b"a", 0));
        assert!(map.put(b"b", 1));
        assert!(!map.put(b"c", 2));
        assert_eq!(map.latest_offset(), 1);
        assert!(map.put(b"a", 2));
        assert_eq!(map.latest_of(b"a"), Some(2));
    }
}
