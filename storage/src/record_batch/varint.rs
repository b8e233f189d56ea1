//! Kafka's variable-length integers: zigzag, seven bits a byte, lowest first.

use bytes::BufMut;

/// Longest encoding of an `i32` in bytes.
pub(crate) const MAX_VARINT_BYTES: usize = 5;
/// Longest encoding of an `i64` in bytes.
pub(crate) const MAX_VARLONG_BYTES: usize = 10;

/// Reads an `i32` at `*position` and moves on. `None` if the bytes end or it is longer than five.
#[inline]
pub(crate) fn read_varint(bytes: &[u8], position: &mut usize) -> Option<i32> {
    let first = *bytes.get(*position)?;
    if first < 0x80 {
        *position += 1;
        return Some(zigzag_decode_32(u32::from(first)));
    }
    let mut value = u32::from(first & 0x7f);
    for i in 1..MAX_VARINT_BYTES {
        let byte = *bytes.get(*position + i)?;
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *position += i + 1;
            return Some(zigzag_decode_32(value));
        }
    }
    None
}

/// Reads an `i64` at `*position` and moves on. `None` if the bytes end or it is longer than ten.
#[inline]
pub(crate) fn read_varlong(bytes: &[u8], position: &mut usize) -> Option<i64> {
    let mut value = 0u64;
    for i in 0..MAX_VARLONG_BYTES {
        let byte = *bytes.get(*position + i)?;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *position += i + 1;
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

pub(crate) fn zigzag_decode_32(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// Writes an `i32`.
pub(crate) fn put_varint(out: &mut impl BufMut, value: i32) {
    put_unsigned(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

/// Writes an `i64`.
pub(crate) fn put_varlong(out: &mut impl BufMut, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn put_unsigned(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Bytes that `value` takes as a number of variable length.
pub fn varint_size_in_bytes(value: i32) -> usize {
    unsigned_size_in_bytes(u64::from(((value << 1) ^ (value >> 31)) as u32))
}

/// Bytes that [`put_varlong`] takes for `value`.
pub(crate) fn varlong_size_in_bytes(value: i64) -> usize {
    unsigned_size_in_bytes(((value << 1) ^ (value >> 63)) as u64)
}

fn unsigned_size_in_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_survive_a_round_trip(value in any::<i32>()) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_size_in_bytes(value));
            let mut position = 0;
            prop_assert_eq!(read_varint(&out, &mut position), Some(value));
            prop_assert_eq!(position, out.len());
        }

        #[test]
        fn varlongs_survive_a_round_trip(value in any::<i64>()) {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            prop_assert_eq!(out.len(), varlong_size_in_bytes(value));
            let mut position = 0;
            prop_assert_eq!(read_varlong(&out, &mut position), Some(value));
            prop_assert_eq!(position, out.len());
        }

        #[test]
        fn a_cut_varint_is_none_and_does_not_move(value in any::<i64>()) {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            let mut position = 0;
            prop_assert_eq!(read_varlong(&out[..out.len() - 1], &mut position), None);
            prop_assert_eq!(position, 0);
        }
    }

    #[test]
    fn varints_of_too_many_bytes_are_refused() {
        assert_eq!(read_varint(&[0xff; 6], &mut 0), None);
        assert_eq!(read_varlong(&[0xff; 11], &mut 0), None);
    }

    #[test]
    fn known_encodings() {
        let encode = |value| {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            out
        };
        assert_eq!(encode(0), [0]);
        assert_eq!(encode(-1), [1]);
        assert_eq!(encode(63), [0x7e]);
        assert_eq!(encode(64), [0x80, 0x01]);
        assert_eq!(encode(i32::MIN), [0xff, 0xff, 0xff, 0xff, 0x0f]);
    }
}
