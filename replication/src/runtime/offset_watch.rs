//! Who waits for an offset: parked fetches and `acks=all` produces (Kafka's purgatory in a page).
//!
//! A waiter registers the offset that interests it, looks once more at the partition (so that no
//! move between its first look and the registration is missed), and sleeps. Whoever moves the
//! watched offset calls [`OffsetWatch::advance`]; nothing polls, and with nobody waiting a move
//! costs one atomic load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The waiting list of one partition.
#[derive(Debug, Default)]
pub struct OffsetWatch {
    waiters: Mutex<Waiters>,
    /// Length of the list, read without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiters {
    next_id: u64,
    list: Vec<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    /// Woken when the watched offset is at least this.
    wake_at_offset: i64,
    notify: Arc<Notify>,
}

impl OffsetWatch {
    /// Registers a waiter that `notify` wakes once the watched offset reaches `wake_at_offset`, or
    /// on [`wake_all`](Self::wake_all). One `Notify` may be registered with many partitions.
    ///
    /// Look at the partition again after this call and before sleeping.
    #[must_use = "the waiter is taken off the list when this is dropped"]
    pub fn register(self: &Arc<Self>, wake_at_offset: i64, notify: Arc<Notify>) -> Registration {
        let mut waiters = self.waiters.lock();
        let id = waiters.next_id;
        waiters.next_id += 1;
        waiters.list.push(Waiter {
            id,
            wake_at_offset,
            notify,
        });
        self.count.store(waiters.list.len(), Ordering::SeqCst);
        // Pairs with the fence of `wake_where`: either the one who moves the offset sees this waiter, or the
        // look that follows sees the moved offset.
        fence(Ordering::SeqCst);
        Registration {
            watch: Arc::clone(self),
            id,
        }
    }

    /// Wakes every waiter whose offset has been reached. Called without the partition's lock.
    pub fn advance(&self, offset: i64) {
        self.wake_where(|waiter| waiter.wake_at_offset <= offset);
    }

    /// Wakes everyone: leadership, in-sync replicas, configuration or storage changed.
    pub fn wake_all(&self) {
        self.wake_where(|_| true);
    }

    /// How many requests wait here.
    pub fn waiting(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn wake_where(&self, due: impl Fn(&Waiter) -> bool) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let waiters = self.waiters.lock();
        for waiter in waiters.list.iter().filter(|waiter| due(waiter)) {
            // `notify_one` keeps a permit for a waiter that is not asleep yet.
            waiter.notify.notify_one();
        }
    }

    fn deregister(&self, id: u64) {
        let mut waiters = self.waiters.lock();
        if let Some(position) = waiters.list.iter().position(|waiter| waiter.id == id) {
            waiters.list.swap_remove(position);
        }
        if waiters.list.is_empty() {
            waiters.list.shrink_to(8);
        }
        self.count.store(waiters.list.len(), Ordering::SeqCst);
    }
}

/// A place on the waiting list; dropping it gives the place up.
#[derive(Debug)]
pub struct Registration {
    watch: Arc<OffsetWatch>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.watch.deregister(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// Whether the notify holds a permit now.
    async fn woken(notify: &Notify) -> bool {
        let mut notified = Box::pin(notify.notified());
        std::future::poll_fn(|context| Poll::Ready(notified.as_mut().poll(context).is_ready()))
            .await
    }

    #[tokio::test]
    async fn a_waiter_is_woken_when_its_offset_is_reached_and_not_before() {
        let watch = Arc::new(OffsetWatch::default());
        let notify = Arc::new(Notify::new());
        let registration = watch.register(5, Arc::clone(&notify));
        watch.advance(4);
        assert!(!woken(&notify).await);
        watch.advance(5);
        assert!(woken(&notify).await);
        drop(registration);
        assert_eq!(watch.waiting(), 0);
    }

    #[tokio::test]
    async fn everyone_is_woken_by_a_change_of_leadership() {
        let watch = Arc::new(OffsetWatch::default());
        let notify = Arc::new(Notify::new());
        let _registration = watch.register(i64::MAX, Arc::clone(&notify));
        watch.wake_all();
        assert!(woken(&notify).await);
    }

    #[tokio::test]
    async fn a_dropped_registration_is_not_woken() {
        let watch = Arc::new(OffsetWatch::default());
        let notify = Arc::new(Notify::new());
        drop(watch.register(1, Arc::clone(&notify)));
        watch.advance(10);
        assert!(!woken(&notify).await);
    }
}
