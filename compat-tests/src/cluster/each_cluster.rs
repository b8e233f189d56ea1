//! One test body against a cluster of both implementations.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Cluster, ClusterOptions};
use crate::broker::BrokerKind;
use crate::each_broker::{Outcome, on_each, report};

/// One cluster of each implementation at a time: a machine has few cores, and time-outs are short. One of either
/// beside each other costs little more than one: what a test of Apache Kafka does most is wait.
fn turn(kind: BrokerKind) -> MutexGuard<'static, ()> {
    static HIGHWATER: Mutex<()> = Mutex::new(());
    static APACHE_KAFKA: Mutex<()> = Mutex::new(());
    let turn = match kind {
        BrokerKind::Highwater => &HIGHWATER,
        BrokerKind::ApacheKafka => &APACHE_KAFKA,
    };
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `test` for each selected implementation, with no other cluster of that implementation beside it.
///
/// # Panics
/// When `test` panicked for one of them.
pub fn for_each_kind(test: impl Fn(BrokerKind)) {
    on_each(|kind| {
        let _turn = turn(kind);
        report(kind, "", catch_unwind(AssertUnwindSafe(|| test(kind))))
    });
}

/// Runs `test` against a fresh cluster of each selected implementation, one test at a time for each.
///
/// All of them are tried, also after a failure, so that one run tells on which an expectation holds.
///
/// # Panics
/// When `test` panicked on one of them; the ends of its nodes' logs are printed.
pub fn for_each_cluster(options: &ClusterOptions, test: impl Fn(&mut Cluster)) {
    on_each(|kind| on_fresh_cluster(kind, options, &test));
}

/// As [`for_each_cluster`], for what only Highwater does: no cluster of Apache Kafka is started.
///
/// # Panics
/// As there.
pub fn for_highwater_cluster(options: &ClusterOptions, test: impl Fn(&mut Cluster)) {
    on_each(|kind| match kind {
        BrokerKind::Highwater => on_fresh_cluster(kind, options, &test),
        BrokerKind::ApacheKafka => Ok(()),
    });
}

fn on_fresh_cluster(
    kind: BrokerKind,
    options: &ClusterOptions,
    test: &impl Fn(&mut Cluster),
) -> Outcome {
    let _turn = turn(kind);
    let mut cluster = Cluster::start(kind, options).unwrap_or_else(|error| panic!("{error:#}"));
    let result = catch_unwind(AssertUnwindSafe(|| test(&mut cluster)));
    report(kind, &cluster.ends_of_logs(25), result)
}

/// Runs `test` against the cluster of three combined nodes that all such tests of this process share. They take
/// topics and groups with names of their own, and leave every node running.
///
/// # Panics
/// As [`for_each_cluster`].
pub fn for_each_shared_cluster(test: impl Fn(&Cluster)) {
    on_each(|kind| {
        let _turn = turn(kind);
        let cluster = shared(kind);
        let result = catch_unwind(AssertUnwindSafe(|| test(cluster)));
        report(kind, &cluster.ends_of_logs(25), result)
    });
}

fn shared(kind: BrokerKind) -> &'static Cluster {
    static HIGHWATER: OnceLock<Cluster> = OnceLock::new();
    static APACHE_KAFKA: OnceLock<Cluster> = OnceLock::new();
    let cell = match kind {
        BrokerKind::Highwater => &HIGHWATER,
        BrokerKind::ApacheKafka => &APACHE_KAFKA,
    };
    cell.get_or_init(|| {
        Cluster::start(kind, &ClusterOptions::new()).unwrap_or_else(|error| panic!("{error:#}"))
    })
}
