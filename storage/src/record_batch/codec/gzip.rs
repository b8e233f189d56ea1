//! gzip, RFC 1952.

use std::io::{self, Read, Write};

use flate2::bufread::GzDecoder;

use super::CompressionCodec;

const MEMBER_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Inflates all members of a payload. What follows the last and is no member is left out, as Java
/// does.
pub(super) struct GzipReader<'a> {
    member: GzDecoder<&'a [u8]>,
}

impl<'a> GzipReader<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self {
            member: GzDecoder::new(payload),
        }
    }
}

impl Read for GzipReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.member.read(buffer)?;
            let rest = *self.member.get_ref();
            if read > 0 || buffer.is_empty() || !rest.starts_with(&MEMBER_MAGIC) {
                return Ok(read);
            }
            self.member = GzDecoder::new(rest);
        }
    }
}

/// Writes one member.
pub(super) fn compress(records: &[u8], level: Option<i32>) -> io::Result<Vec<u8>> {
    let level = match level {
        Some(level) if CompressionCodec::GZIP_LEVELS.contains(&level) => {
            flate2::Compression::new(level as u32)
        }
        _ => flate2::Compression::default(),
    };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(records)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        GzipReader::new(payload).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn two_members_are_read_as_one() {
        let mut payload = compress(b"first ", None).unwrap();
        payload.extend(compress(b"second", None).unwrap());
        assert_eq!(read_all(&payload).unwrap(), b"first second");
    }

    #[test]
    fn bytes_after_the_last_member_are_left_out() {
        let mut payload = compress(b"records", None).unwrap();
        payload.extend_from_slice(b"xxxx");
        assert_eq!(read_all(&payload).unwrap(), b"records");
    }

    #[test]
    fn a_cut_or_damaged_member_is_an_error() {
        let payload = compress(b"records", None).unwrap();
        assert!(read_all(&payload[..payload.len() - 9]).is_err());
        assert!(read_all(&payload[..payload.len() - 1]).is_err());
        let mut damaged = payload;
        let at = damaged.len() - 8;
        damaged[at] ^= 1;
        assert!(read_all(&damaged).is_err());
    }
}
