//! Which partition a record goes to.

/// Kafka's hash of a key (Austin Appleby's MurmurHash2 with Kafka's seed).
fn murmur2(data: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut h = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    for (index, byte) in rest.iter().enumerate().rev() {
        h ^= u32::from(*byte) << (8 * index);
    }
    if !rest.is_empty() {
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    (h ^ (h >> 15)) as i32
}

/// Records with a key go where the key's hash says; those without stay with one partition for a batch's size of bytes
/// (KIP-794).
#[derive(Debug)]
pub(super) struct Partitioner {
    partitions: usize,
    batch_size: usize,
    sticky: usize,
    sticky_bytes: usize,
}

impl Partitioner {
    /// For so many partitions, at least one. `random` chooses the first.
    pub(super) fn new(partitions: usize, batch_size: usize, random: u32) -> Self {
        Partitioner {
            partitions: partitions.max(1),
            batch_size,
            sticky: random as usize % partitions.max(1),
            sticky_bytes: 0,
        }
    }

    /// The partition of a record of so many bytes. `random` chooses the next for those without a key; it is asked only
    /// when there is one to choose.
    pub(super) fn choose(
        &mut self,
        key: Option<&[u8]>,
        bytes: usize,
        random: impl FnOnce() -> u32,
    ) -> usize {
        match key {
            Some(key) => (murmur2(key) & i32::MAX) as usize % self.partitions,
            None => {
                if self.sticky_bytes >= self.batch_size {
                    self.sticky = random() as usize % self.partitions;
                    self.sticky_bytes = 0;
                }
                self.sticky_bytes += bytes;
                self.sticky
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_kafkas() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
        ] {
            assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
        }
        assert_eq!(murmur2(b"abc"), 479_470_107);
    }

    #[test]
    fn records_without_a_key_stay_for_a_batch() {
        let mut partitioner = Partitioner::new(3, 100, 4);
        assert_eq!(partitioner.choose(None, 60, || 0), 1);
        assert_eq!(partitioner.choose(None, 60, || 0), 1);
        assert_eq!(partitioner.choose(None, 60, || 2), 2);
        assert_eq!(partitioner.choose(None, 60, || 0), 2);
    }
}
