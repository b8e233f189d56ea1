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
/// (KIP-794), and prefer partitions that have a leader.
#[derive(Debug)]
pub(super) struct Partitioner {
    batch_size: usize,
    sticky: Option<usize>,
    sticky_bytes: usize,
}

impl Partitioner {
    pub(super) fn new(batch_size: usize) -> Self {
        Partitioner {
            batch_size,
            sticky: None,
            sticky_bytes: 0,
        }
    }

    /// The partition of a record of so many bytes, of a topic whose partitions are led by `leaders`. `random` chooses the
    /// next for those without a key; it is asked only when there is one to choose.
    pub(super) fn choose(
        &mut self,
        key: Option<&[u8]>,
        bytes: usize,
        leaders: &[Option<i32>],
        random: impl FnOnce() -> u32,
    ) -> usize {
        if let Some(key) = key {
            return (murmur2(key) & i32::MAX) as usize % leaders.len().max(1);
        }
        if self.sticky_bytes >= self.batch_size {
            self.sticky = None;
            self.sticky_bytes = 0;
        }
        self.sticky_bytes += bytes;
        *self.sticky.get_or_insert_with(|| {
            let random = random() as usize;
            let led = (0..leaders.len()).filter(|index| leaders[*index].is_some());
            let led: Vec<usize> = led.collect();
            match led.len() {
                0 => random % leaders.len().max(1),
                count => led[random % count],
            }
        })
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
        let leaders = [Some(1); 3];
        let mut partitioner = Partitioner::new(100);
        assert_eq!(partitioner.choose(None, 60, &leaders, || 4), 1);
        assert_eq!(partitioner.choose(None, 60, &leaders, || 0), 1);
        assert_eq!(partitioner.choose(None, 60, &leaders, || 2), 2);
        assert_eq!(partitioner.choose(None, 60, &leaders, || 0), 2);
    }

    #[test]
    fn partitions_with_a_leader_are_preferred_where_no_key_decides() {
        let chosen = |leaders: &[Option<i32>], key: Option<&[u8]>, random: u32| {
            Partitioner::new(100).choose(key, 1, leaders, || random)
        };
        let leaders = [None, Some(1), None, Some(2)];
        assert_eq!(
            [0, 1, 2].map(|random| chosen(&leaders, None, random)),
            [1, 3, 1]
        );
        assert_eq!(
            chosen(&leaders, Some(b"foobar"), 0),
            chosen(&[Some(1); 4], Some(b"foobar"), 1)
        );
        assert_eq!(
            [0, 1, 2].map(|random| chosen(&[None, None], None, random)),
            [0, 1, 0]
        );
    }
}
