//! What the network layer counts. Plain atomics: counting looks nothing up and takes no lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::api::{API_KEYS, CloseReason};

/// Error codes from -1 to 255 have a counter each.
const ERROR_CODES: usize = 257;

/// The counters of one API.
#[derive(Debug, Default)]
pub struct ApiCounters {
    /// Requests taken in.
    pub requests: AtomicU64,
    /// Nanoseconds from the frame being complete to its response being ready to be sent.
    pub total_time_ns: AtomicU64,
}

/// What the network layer counts, by api key, error code and refusal reason.
#[derive(Debug)]
pub struct NetworkMetrics {
    apis: Box<[ApiCounters]>,
    /// By api key and error code; a row is as long as [`ERROR_CODES`].
    errors: Box<[AtomicU64]>,
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
            errors: (0..API_KEYS * ERROR_CODES)
                .map(|_| AtomicU64::new(0))
                .collect(),
            refused: Default::default(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            connections: AtomicI64::new(0),
            connections_accepted: AtomicU64::new(0),
        }
    }
}

impl NetworkMetrics {
    fn error_index(api_key: i16, error_code: i16) -> Option<usize> {
        let api = usize::try_from(api_key)
            .ok()
            .filter(|key| *key < API_KEYS)?;
        let code = usize::try_from(i32::from(error_code) + 1)
            .ok()
            .filter(|c| *c < ERROR_CODES)?;
        Some(api * ERROR_CODES + code)
    }

    /// The counters of an api key; `None` outside the table's range.
    pub fn api(&self, api_key: i16) -> Option<&ApiCounters> {
        self.apis.get(usize::try_from(api_key).ok()?)
    }

    /// Counts one error code in a response of `api_key`.
    pub fn count_error(&self, api_key: i16, error_code: i16) {
        if let Some(index) = Self::error_index(api_key, error_code) {
            self.errors[index].fetch_add(1, Relaxed);
        }
    }

    /// How often `error_code` was answered to `api_key`.
    pub fn errors(&self, api_key: i16, error_code: i16) -> u64 {
        Self::error_index(api_key, error_code).map_or(0, |index| self.errors[index].load(Relaxed))
    }

    /// Every (api key, error code, count) that was counted at least once.
    pub fn all_errors(&self) -> impl Iterator<Item = (i16, i16, u64)> {
        self.errors.iter().enumerate().filter_map(|(index, count)| {
            let count = count.load(Relaxed);
            let (key, code) = (index / ERROR_CODES, index % ERROR_CODES);
            (count > 0).then_some((key as i16, code as i16 - 1, count))
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
