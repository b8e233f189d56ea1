//! Keeps what compaction reads and writes below a rate, and ends it when the broker stops.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Debts below this are not waited for one by one.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// The rate from which on there is no limit: nothing reads or writes faster.
const UNLIMITED_BYTES_PER_SECOND: f64 = 1e15;

/// A limit in bytes per second (`log.cleaner.io.max.bytes.per.second`), reads and writes together. Time in which
/// nothing is read or written is not saved up.
#[derive(Debug)]
pub(crate) struct Throttle {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    bytes_per_second: f64,
    /// When all that was read and written so far is paid for.
    paid_at: Instant,
    is_stopped: bool,
}

/// The broker stops: no more is to be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Throttle {
    pub(crate) fn new(bytes_per_second: f64) -> Self {
        Self {
            state: Mutex::new(State {
                bytes_per_second,
                paid_at: Instant::now(),
                is_stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Changes the limit, also for what is being waited for.
    pub(crate) fn set_rate(&self, bytes_per_second: f64) {
        let mut state = self.state.lock();
        state.bytes_per_second = bytes_per_second;
        state.paid_at = Instant::now();
        self.changed.notify_all();
    }

    /// Ends all waiting; whoever pays from now on is told to stop.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Takes note of bytes that were read or written, and waits for as long as they are too many.
    pub(crate) fn pay(&self, bytes: usize) -> Result<(), Stopped> {
        let mut state = self.state.lock();
        if !state.is_stopped && state.bytes_per_second < UNLIMITED_BYTES_PER_SECOND {
            let now = Instant::now();
            state.paid_at = state.paid_at.max(now) + price(bytes, state.bytes_per_second);
            if state.paid_at - now >= SHORTEST_WAIT {
                self.wait_until_paid(&mut state);
            }
        }
        if state.is_stopped {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    fn wait_until_paid(&self, state: &mut parking_lot::MutexGuard<'_, State>) {
        while !state.is_stopped && state.paid_at > Instant::now() {
            let until = state.paid_at;
            self.changed.wait_until(state, until);
        }
    }
}

/// The time that `bytes` take; at most a day, since a rate may be as low as one likes.
fn price(bytes: usize, bytes_per_second: f64) -> Duration {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    Duration::try_from_secs_f64(bytes as f64 / bytes_per_second).map_or(DAY, |time| time.min(DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_that_the_rate_says() {
        assert_eq!(price(500, 1000.0), Duration::from_millis(500));
        assert_eq!(price(0, 1000.0), Duration::ZERO);
        for rate in [1e-300, 0.0, -1.0] {
            assert_eq!(price(1, rate), Duration::from_secs(24 * 60 * 60));
        }
        let throttle = Throttle::new(100_000.0);
        let began = Instant::now();
        for _ in 0..100 {
            throttle.pay(300).expect("goes on");
        }
        // Less than the shortest wait may be left unpaid.
        assert!(began.elapsed() >= Duration::from_millis(290));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let throttle = Throttle::new(f64::MAX);
        let began = Instant::now();
        throttle.pay(usize::MAX).expect("goes on");
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_higher_rate_and_the_end_are_not_waited_for() {
        let throttle = Throttle::new(1.0);
        std::thread::scope(|scope| {
            let paying = scope.spawn(|| throttle.pay(1 << 20));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!paying.is_finished());
            throttle.set_rate(f64::MAX);
            assert_eq!(paying.join().expect("no panic"), Ok(()));
            throttle.set_rate(1.0);
            let paying = scope.spawn(|| throttle.pay(1 << 20));
            std::thread::sleep(Duration::from_millis(50));
            throttle.stop();
            assert_eq!(paying.join().expect("no panic"), Err(Stopped));
            assert_eq!(throttle.pay(0), Err(Stopped));
        });
    }
}
