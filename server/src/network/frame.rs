//! Frames: a four-byte length, then that many bytes. The length is checked before anything is done with it, and memory
//! is taken for what has arrived, not for what is claimed.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::{future::Future, io};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of the length prefix.
const LENGTH_BYTES: usize = 4;
/// The smallest read buffer.
const MIN_BUFFER_BYTES: usize = 4 * 1024;
/// Reads of frames smaller than this are batched: one read takes as many frames as the buffer holds.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// What is read past the end of a large frame: enough for a small frame or the header of the next large one. It is the
/// most that has to be moved when the buffer is used again.
const READ_AHEAD_BYTES: usize = 4 * 1024;
/// A frame up to this size gets its whole buffer at once (untouched pages cost nothing); the buffer of a larger one
/// grows as its bytes arrive.
const MAX_UNEARNED_BYTES: usize = 1024 * 1024;
/// Frames up to this size that carry no records are copied out of the read buffer, so that a parked request keeps only
/// its own bytes alive.
const MAX_COPIED_BYTES: usize = 16 * 1024;
/// After so many reads in a row that filled little of the buffer, the next buffer is half as large.
const SMALL_READS_TO_SHRINK: u8 = 32;
/// Api key 0, Produce: the one request whose bytes are worth sharing with the read buffer.
const PRODUCE: [u8; 2] = [0, 0];

/// The length prefix is negative, zero or above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame length {length} is not within 1 and {max_bytes}")]
pub(crate) struct InvalidFrameLength {
    /// The length as received.
    pub(crate) length: i32,
    /// `socket.request.max.bytes`.
    pub(crate) max_bytes: usize,
}

/// Cuts a byte stream into frames. It holds no memory between frames.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: BytesMut,
    max_frame_bytes: usize,
    /// The size that the next buffer is made with; follows what the connection sends.
    buffer_bytes: usize,
    /// Reads in a row that filled little of the buffer.
    small_reads: u8,
}

impl FrameReader {
    pub(crate) fn new(max_frame_bytes: usize) -> Self {
        FrameReader {
            buffer: BytesMut::new(),
            max_frame_bytes,
            buffer_bytes: MIN_BUFFER_BYTES,
            small_reads: 0,
        }
    }

    /// The length, with its prefix, of the frame at the front of the buffer; `None` while the prefix is incomplete.
    fn front_frame_bytes(&self) -> Result<Option<usize>, InvalidFrameLength> {
        let Some(prefix) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*prefix);
        match usize::try_from(length) {
            Ok(bytes) if bytes > 0 && bytes <= self.max_frame_bytes => {
                Ok(Some(LENGTH_BYTES + bytes))
            }
            _ => Err(InvalidFrameLength {
                length,
                max_bytes: self.max_frame_bytes,
            }),
        }
    }

    /// The next complete frame that has arrived, without its length prefix.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Bytes>, InvalidFrameLength> {
        let Some(end) = self.front_frame_bytes()? else {
            return Ok(None);
        };
        if self.buffer.len() < end {
            return Ok(None);
        }
        let body = &self.buffer[LENGTH_BYTES..end];
        if body.len() <= MAX_COPIED_BYTES && !body.starts_with(&PRODUCE) {
            let frame = Bytes::copy_from_slice(body);
            self.buffer.advance(end);
            return Ok(Some(frame));
        }
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(end - LENGTH_BYTES).freeze()))
    }

    /// Whether a complete frame, or the error in its place, is there to be taken.
    pub(crate) fn has_frame(&self) -> bool {
        match self.front_frame_bytes() {
            Ok(Some(end)) => self.buffer.len() >= end,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Whether nothing of an incomplete frame is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Gives the buffer back when it holds nothing, so that a connection costs none while it waits.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            self.buffer = BytesMut::new();
        }
    }

    /// Makes room for the next read and says how much of it may be filled.
    fn make_room(&mut self) -> usize {
        let held = self.buffer.len();
        let spare = self.buffer.capacity() - held;
        let frame_bytes = match self.front_frame_bytes() {
            Ok(Some(end)) if end > held => end,
            _ => 0,
        };
        if frame_bytes <= MAX_BATCH_BYTES / 2 {
            let least = frame_bytes.saturating_sub(held).max(self.buffer_bytes / 2);
            if spare < least {
                self.buffer.reserve(least.max(self.buffer_bytes));
            }
            return self.buffer.capacity() - held;
        }
        let whole = frame_bytes + READ_AHEAD_BYTES;
        let earned = MAX_UNEARNED_BYTES.max(held.saturating_mul(2));
        if spare < READ_AHEAD_BYTES.min(whole - held) || (whole <= earned && spare < whole - held) {
            self.buffer.reserve(whole.min(earned) - held);
        }
        self.buffer_bytes = self.buffer_bytes.max(whole.min(MAX_UNEARNED_BYTES));
        whole - held
    }

    /// Learns from a read of `read` bytes where `room` was offered: the next buffer follows the connection's habit.
    fn note_read(&mut self, read: usize, room: usize) {
        if read == room {
            self.small_reads = 0;
            if self.buffer_bytes < MAX_BATCH_BYTES {
                self.buffer_bytes = (self.buffer_bytes * 4).min(MAX_BATCH_BYTES);
            }
        } else if read < self.buffer_bytes / 4 {
            self.small_reads += 1;
            if self.small_reads == SMALL_READS_TO_SHRINK {
                self.small_reads = 0;
                self.buffer_bytes = (self.buffer_bytes / 2).max(MIN_BUFFER_BYTES);
            }
        } else {
            self.small_reads = 0;
        }
    }

    /// Reads what has arrived, once. `Ready(Ok(0))` is the end of the stream.
    pub(crate) fn poll_read_from<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let room = self.make_room();
        let mut limited = (&mut self.buffer).limit(room);
        let room = limited.chunk_mut().len();
        let reading: Pin<&mut _> = pin!(reader.read_buf(&mut limited));
        let read = reading.poll(cx)?;
        if let Poll::Ready(read) = read {
            self.note_read(read, room);
        }
        read.map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::task::noop_waker_ref;
    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    /// Gives its bytes in pieces of given sizes, then ends.
    struct Pieces {
        bytes: Vec<u8>,
        sizes: VecDeque<usize>,
        position: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let size = self.sizes.pop_front().unwrap_or(usize::MAX);
            let left = self.bytes.len() - self.position;
            let size = size.min(left).min(buf.remaining());
            buf.put_slice(&self.bytes[self.position..self.position + size]);
            self.position += size;
            Poll::Ready(Ok(()))
        }
    }

    fn stream_of(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        for frame in frames {
            stream.extend_from_slice(&(frame.len() as i32).to_be_bytes());
            stream.extend_from_slice(frame);
        }
        stream
    }

    /// Reads to the end of the stream and gives all frames.
    fn read_all(
        frames: &mut FrameReader,
        mut pieces: Pieces,
    ) -> Result<Vec<Bytes>, InvalidFrameLength> {
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut all = Vec::new();
        loop {
            while let Some(frame) = frames.next_frame()? {
                all.push(frame);
            }
            frames.release();
            match frames.poll_read_from(&mut pieces, &mut cx) {
                Poll::Ready(Ok(0)) => return Ok(all),
                Poll::Ready(Ok(_)) => {}
                other => panic!("a reader in memory is always ready: {other:?}"),
            }
        }
    }

    fn pieces(bytes: Vec<u8>, sizes: impl IntoIterator<Item = usize>) -> Pieces {
        Pieces {
            bytes,
            sizes: sizes.into_iter().collect(),
            position: 0,
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_whole_and_in_order_however_the_stream_is_cut(
            lengths in prop::collection::vec(prop_oneof![1_usize..200, 1_usize..100_000], 1..12),
            produce in any::<bool>(),
            sizes in prop::collection::vec(prop_oneof![1_usize..20, 1_usize..100_000], 0..60),
            kept in any::<bool>(),
        ) {
            let frames: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(i, length)| {
                    let mut frame = vec![i as u8 + 1; *length];
                    if produce && frame.len() >= 2 {
                        frame[..2].copy_from_slice(&PRODUCE);
                    }
                    frame
                })
                .collect();
            let mut reader = FrameReader::new(1 << 20);
            let mut read = read_all(&mut reader, pieces(stream_of(&frames), sizes)).unwrap();
            if !kept {
                read.iter_mut().for_each(|frame| *frame = Bytes::copy_from_slice(frame));
            }
            prop_assert_eq!(&read, &frames);
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_take_more_memory_than_a_first_buffer_beyond_what_arrived(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let arrived = bytes.len();
            let mut reader = FrameReader::new(100 << 20);
            // Either result is fine; the memory is what counts.
            let _ = read_all(&mut reader, pieces(bytes, [7, 1, 50]));
            prop_assert!(reader.buffer.capacity() <= arrived + MAX_UNEARNED_BYTES + READ_AHEAD_BYTES);
        }
    }

    #[test]
    fn a_length_that_is_zero_negative_or_too_large_is_refused_before_a_buffer_is_taken() {
        for (length, legal) in [
            (0, false),
            (-1, false),
            (i32::MIN, false),
            (i32::MAX, false),
            (1001, false),
            (1000, true),
        ] {
            let mut reader = FrameReader::new(1000);
            let mut bytes = length.to_be_bytes().to_vec();
            bytes.extend_from_slice(b"GET / HTTP/1.1");
            let read = read_all(&mut reader, pieces(bytes, []));
            assert_eq!(read.is_ok(), legal, "length {length}");
            assert!(reader.buffer.capacity() <= 2 * MIN_BUFFER_BYTES);
        }
    }

    #[test]
    fn a_large_claim_takes_memory_only_as_its_bytes_arrive() {
        let mut reader = FrameReader::new(100 << 20);
        let mut bytes = (99_i32 << 20).to_be_bytes().to_vec();
        bytes.resize(3 << 20, 1);
        assert_eq!(
            read_all(&mut reader, pieces(bytes, [])).unwrap(),
            Vec::<Bytes>::new()
        );
        assert!(
            reader.buffer.capacity() <= 8 << 20,
            "capacity {}",
            reader.buffer.capacity()
        );
    }

    #[test]
    fn records_are_slices_of_the_read_buffer_and_small_other_frames_are_not() {
        let mut produce = vec![7; 1000];
        produce[..2].copy_from_slice(&PRODUCE);
        let fetch = vec![1; 1000];
        let mut reader = FrameReader::new(1 << 20);
        reader
            .buffer
            .extend_from_slice(&stream_of(&[produce, fetch]));
        let buffer = reader.buffer.as_ptr_range();
        let produce = reader.next_frame().unwrap().unwrap();
        let fetch = reader.next_frame().unwrap().unwrap();
        assert!(buffer.contains(&produce.as_ptr()));
        assert!(!buffer.contains(&fetch.as_ptr()));
    }

    #[test]
    fn a_large_frame_is_moved_at_most_once() {
        let frames: Vec<Vec<u8>> = (0..4).map(|_| vec![0; 200_000]).collect();
        let mut reader = FrameReader::new(1 << 20);
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut pieces = pieces(stream_of(&frames), []);
        let mut starts = Vec::new();
        while let Poll::Ready(Ok(1..)) = reader.poll_read_from(&mut pieces, &mut cx) {
            let start = reader.buffer.as_ptr() as usize;
            while reader.next_frame().unwrap().is_some() {}
            assert!(
                reader.buffer.len() <= MAX_BATCH_BYTES,
                "held {}",
                reader.buffer.len()
            );
            starts.push(start);
        }
        // The first buffer is small; from then on one buffer serves every frame.
        starts.dedup();
        assert!(starts.len() <= 3, "buffers at {starts:x?}");
    }

    #[test]
    fn an_empty_reader_gives_its_buffer_back() {
        let mut reader = FrameReader::new(1 << 20);
        read_all(&mut reader, pieces(stream_of(&[vec![1; 50_000]]), [])).unwrap();
        reader.release();
        assert_eq!(reader.buffer.capacity(), 0);
    }
}
