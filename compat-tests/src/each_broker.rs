//! One test body against both brokers.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use crate::broker::{Broker, BrokerKind, BrokerOptions};

/// The brokers to test, from the environment variable `BROKER`: `highwater`, `kafka` or `both` (the default).
///
/// # Panics
/// When the variable has another value.
#[must_use]
pub fn selected_brokers() -> &'static [BrokerKind] {
    const BOTH: [BrokerKind; 2] = [BrokerKind::Highwater, BrokerKind::ApacheKafka];
    match std::env::var("BROKER").as_deref() {
        Err(_) | Ok("" | "both") => &BOTH,
        Ok("highwater") => &BOTH[..1],
        Ok("kafka") => &BOTH[1..],
        Ok(other) => panic!("BROKER={other}: it may be highwater, kafka or both"),
    }
}

/// The broker of this kind that all tests of this process share: default settings, plus `num.partitions` 1.
/// Tests take topics and groups with names of their own.
///
/// # Panics
/// When it does not start.
#[must_use]
pub fn shared(kind: BrokerKind) -> &'static Broker {
    static HIGHWATER: OnceLock<Broker> = OnceLock::new();
    static APACHE_KAFKA: OnceLock<Broker> = OnceLock::new();
    let cell = match kind {
        BrokerKind::Highwater => &HIGHWATER,
        BrokerKind::ApacheKafka => &APACHE_KAFKA,
    };
    cell.get_or_init(|| {
        Broker::start(kind, BrokerOptions::new()).unwrap_or_else(|error| panic!("{error:#}"))
    })
}

/// Runs `test` against the shared broker of each selected kind.
///
/// All of them are tried, also after a failure, so that one run tells on which broker an expectation holds.
///
/// # Panics
/// When `test` panicked on one of them; the end of that broker's log is printed.
pub fn for_each_broker(test: impl Fn(&Broker)) {
    on_each(|kind| {
        let broker = shared(kind);
        reporting(kind, || broker.log(), || test(broker))
    });
}

/// As [`for_each_broker`], with a fresh broker of the test's own, which it may kill and start again.
///
/// # Panics
/// As [`for_each_broker`].
pub fn for_each_broker_with(options: &BrokerOptions, test: impl Fn(&mut Broker)) {
    on_each(|kind| {
        let mut broker =
            Broker::start(kind, options.clone()).unwrap_or_else(|error| panic!("{error:#}"));
        let result = catch_unwind(AssertUnwindSafe(|| test(&mut broker)));
        report(kind, &end_of(&broker.log()), result)
    });
}

/// How a test body ended.
pub(crate) type Outcome = Result<(), Box<dyn std::any::Any + Send>>;

/// Runs `run` for each selected broker, also after a failure.
pub(crate) fn on_each(run: impl Fn(BrokerKind) -> Outcome) {
    let mut failure = None;
    for &kind in selected_brokers() {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(kind))).unwrap_or_else(Err);
        if let Err(panic) = outcome {
            failure.get_or_insert(panic);
        }
    }
    if let Some(panic) = failure {
        resume_unwind(panic);
    }
}

fn reporting(kind: BrokerKind, log: impl Fn() -> String, test: impl Fn()) -> Outcome {
    let result = catch_unwind(AssertUnwindSafe(test));
    report(kind, &end_of(&log()), result)
}

/// Says on which broker a test passed or failed.
pub(crate) fn report(kind: BrokerKind, log: &str, outcome: Outcome) -> Outcome {
    if outcome.is_err() {
        eprintln!("==== failed on {kind}; the end of its log:\n{log}\n====");
    } else {
        eprintln!("passed on {kind}");
    }
    outcome
}

fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
