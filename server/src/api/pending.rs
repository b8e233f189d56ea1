//! Entries of one request that wait for something, each for itself.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

/// Where a partition stands in a request and its answer: the topic's entry, and the partition's in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) topic: usize,
    pub(super) partition: usize,
}

/// Waits for all, until `deadline`, and settles each when its own wait ends, and not again: what becomes of its leader or
/// its in-sync replicas while others are waited for is not its matter. Those that still wait then are settled with `None`.
pub(super) async fn settle_each<W, F: Future>(
    mut waits: Vec<(Place, W)>,
    deadline: Instant,
    wait_for: impl Fn(W) -> F,
    mut settle: impl FnMut(Place, Option<F::Output>),
) {
    // The common case, which needs no list.
    if waits.len() == 1
        && let Some((place, wait)) = waits.pop()
    {
        let outcome = timeout_at(deadline, wait_for(wait)).await;
        return settle(place, outcome.ok());
    }
    let mut waiting: BTreeSet<Place> = waits.iter().map(|(place, _)| *place).collect();
    let mut settled: FuturesUnordered<_> = (waits.into_iter())
        .map(|(place, wait)| {
            let outcome = wait_for(wait);
            async move { (place, outcome.await) }
        })
        .collect();
    while let Ok(Some((place, outcome))) = timeout_at(deadline, settled.next()).await {
        waiting.remove(&place);
        settle(place, Some(outcome));
    }
    for place in waiting {
        settle(place, None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    fn place(partition: usize) -> Place {
        Place {
            topic: 0,
            partition,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_settled_when_its_wait_ends_and_the_rest_at_the_deadline() {
        let deadline = Instant::now() + Duration::from_secs(1);
        for count in [1, 3] {
            for ended in 0..=count {
                let (ends, waits): (Vec<_>, Vec<_>) = (0..count)
                    .map(|partition| {
                        let (end, wait) = oneshot::channel();
                        (end, (place(partition), wait))
                    })
                    .unzip();
                // The last ones first.
                let mut ends = ends.into_iter().rev();
                for end in ends.by_ref().take(ended) {
                    end.send(Instant::now()).expect("waited for");
                }
                let mut told = Vec::new();
                let wait_for = |wait: oneshot::Receiver<Instant>| async move { wait.await.ok() };
                settle_each(waits, deadline, wait_for, |place, outcome| {
                    told.push((place.partition, outcome.flatten().is_some()));
                })
                .await;
                told.sort_unstable();
                let expected = (0..count).map(|partition| (partition, partition + ended >= count));
                assert_eq!(told, expected.collect::<Vec<_>>(), "{ended} of {count}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_at_the_deadline_is_not_late() {
        for count in [1, 300] {
            let waits = (0..count).map(|partition| (place(partition), ())).collect();
            let mut in_time = 0;
            let deadline = Instant::now();
            settle_each(
                waits,
                deadline,
                |()| std::future::ready(()),
                |_, outcome| {
                    in_time += usize::from(outcome.is_some());
                },
            )
            .await;
            assert_eq!(in_time, count);
        }
    }
}
