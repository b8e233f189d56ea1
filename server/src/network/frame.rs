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
