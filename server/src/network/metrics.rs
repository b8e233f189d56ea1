//! What the network layer counts. Plain atomics: counting looks nothing up and takes no lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::api::{API_KEYS, CloseReason};

/// Error codes from -1 to 255 have a counter each.
const ERROR_CODES: usize = 257;

/// Powers of two of a microsecond that request times are counted in; the last takes everything above half a minute.
pub const TIME_BUCKETS: usize = 26;

/// The counters of one API.
#[derive(Debug, Default)]
pub struct ApiCounters {
    /// Requests taken in.
    pub requests: AtomicU64,
    /// Microseconds from a request's arrival to its response being handed to the socket, summed up.
    pub total_time_us: AtomicU64,
    /// How many requests took less than 2^i microseconds and at least half of that.
    pub time_buckets: [AtomicU64; TIME_BUCKETS],
}

/// What the network layer counts, by api key, error code and refusal reason.
#[derive(Debug)]
pub struct NetworkMetrics {
    apis: Box<[ApiCounters]>,
    /// By api key, then by error code plus one; a row is made at its first error.
    errors: Box<[OnceLock<Box<[AtomicU64]>>]>,
    refused: [AtomicU64; CloseReason::ALL.len()],
    /// Bytes received in frames, length prefixes included.
    pub bytes_in: AtomicU64,
    /// Bytes of responses handed to the sockets.
    pub bytes_out: AtomicU64,
    /// Connections that are open now.
    pub connections: AtomicI64,
    /// Connections ever accepted.
    pub connections_accepted: AtomicU64,
}

impl Default for NetworkMetrics {
    fn default() -> Self {
        NetworkMetrics {
            apis: (0..API_KEYS).map(|_| ApiCounters::default()).collect(),
            errors: (0..API_KEYS).map(|_| OnceLock::new()).collect(),
            refused: Default::default(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            connections: AtomicI64::new(0),
            connections_accepted: AtomicU64::new(0),
        }
    }
}

impl NetworkMetrics {
    /// The counters of an api key; `None` outside the table's range.
    pub fn api(&self, api_key: i16) -> Option<&ApiCounters> {
        self.apis.get(usize::try_from(api_key).ok()?)
    }

    /// Counts a request of `api_key`.
    pub(crate) fn count_request(&self, api_key: i16) {
        if let Some(api) = self.api(api_key) {
            api.requests.fetch_add(1, Relaxed);
        }
    }

    /// Records how long a request of `api_key` took, from its arrival to its response being handed to the socket.
    pub(crate) fn record_request_time(&self, api_key: i16, time: Duration) {
        if let Some(api) = self.api(api_key) {
            let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            let bucket = (u64::BITS - time_us.leading_zeros()) as usize;
            api.total_time_us.fetch_add(time_us, Relaxed);
            api.time_buckets[bucket.min(TIME_BUCKETS - 1)].fetch_add(1, Relaxed);
        }
    }

    /// Counts one error code in a response of `api_key`.
    pub fn count_error(&self, api_key: i16, error_code: i16) {
        let row = usize::try_from(api_key)
            .ok()
            .and_then(|key| self.errors.get(key));
        let column = usize::try_from(i32::from(error_code) + 1)
            .ok()
            .filter(|c| *c < ERROR_CODES);
        if let (Some(row), Some(column)) = (row, column) {
            let row = row.get_or_init(|| (0..ERROR_CODES).map(|_| AtomicU64::new(0)).collect());
            row[column].fetch_add(1, Relaxed);
        }
    }

    /// Every (api key, error code, count) that was counted at least once.
    pub fn errors(&self) -> impl Iterator<Item = (i16, i16, u64)> {
        self.errors.iter().zip(0_i16..).flat_map(|(row, api_key)| {
            let counts = row.get().map_or(&[][..], |counts| counts);
            counts
                .iter()
                .zip(-1_i16..)
                .filter_map(move |(count, error_code)| {
                    let count = count.load(Relaxed);
                    (count > 0).then_some((api_key, error_code, count))
                })
        })
    }

    /// Counts a connection that the broker ended.
    pub fn count_refused(&self, reason: CloseReason) {
        self.refused[reason as usize].fetch_add(1, Relaxed);
    }

    /// How many connections the broker ended for `reason`.
    pub fn refused(&self, reason: CloseReason) -> u64 {
        self.refused[reason as usize].load(Relaxed)
    }
}
