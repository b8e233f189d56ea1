//! Carrying a CRC-32C over bytes without reading them.
//!
//! A checksum is a polynomial over GF(2), reduced by the generator; `n` more bytes multiply it by
//! x^8n. Powers of x are made from a table of squares, so the cost grows with the count of bits of
//! the length, not with the length: a second pass over a batch would be far dearer.

use std::sync::LazyLock;

/// CRC-32C's generator, lowest power in the highest bit, as all polynomials here.
const GENERATOR: u32 = 0x82f6_3b78;
/// The polynomial 1.
const ONE: u32 = 1 << 31;

/// x^(8 * 2^k).
static BYTE_SHIFTS: LazyLock<[u32; 32]> = LazyLock::new(|| {
    let mut power = ONE >> 8;
    std::array::from_fn(|_| {
        let shift = power;
        power = multiply(power, power);
        shift
    })
});

/// The product of two polynomials, reduced.
fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        product ^= b & 0u32.wrapping_sub(a >> bit & 1);
        b = (b >> 1) ^ (GENERATOR & 0u32.wrapping_sub(b & 1));
    }
    product
}

/// What the difference of two checksums becomes when the same `count` bytes follow on both sides.
pub(super) fn append_zeros(difference: u32, count: usize) -> u32 {
    BYTE_SHIFTS
        .iter()
        .enumerate()
        .filter(|(k, _)| count >> k & 1 == 1)
        .fold(difference, |crc, (_, shift)| multiply(*shift, crc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_shifted_difference_is_that_of_the_longer_messages(
            a in any::<[u8; 40]>(),
            b in any::<[u8; 40]>(),
            tail in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let joined = |head: &[u8]| crc32c::crc32c_append(crc32c::crc32c(head), &tail);
            prop_assert_eq!(
                append_zeros(crc32c::crc32c(&a) ^ crc32c::crc32c(&b), tail.len()),
                joined(&a) ^ joined(&b)
            );
        }
    }
}
