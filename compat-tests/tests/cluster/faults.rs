//! Short runs with faults; `cargo run -p compat-tests --bin faults` makes long ones.
//!
//! `FAULT_SECONDS` and `FAULT_SEED` change the first, `ROLLING_RESTARTS` the second. They run on Apache Kafka only with
//! `BROKER=kafka`: that it keeps its promises is not what they are to find out.

use std::time::Duration;

use compat_tests::broker::BrokerKind;
use compat_tests::cluster::{Cluster, SmallDisk, for_each_kind};
use compat_tests::each_broker::selected_brokers;
use compat_tests::faults::plan::Kind;
use compat_tests::faults::run::{Program, Settings, run};

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}")),
        Err(_) => default,
    }
}

#[track_caller]
fn nothing_is_found(settings: &Settings) {
    let with_highwater = selected_brokers().contains(&BrokerKind::Highwater);
    for_each_kind(|kind| {
        if with_highwater && kind == BrokerKind::ApacheKafka {
            return;
        }
        let report = run(kind, settings).unwrap_or_else(|error| panic!("{error:#}"));
        eprintln!("{report}");
        assert_eq!(report.findings().count(), 0, "{report}");
        assert!(
            report.verdict.acknowledged > 0 && report.batches_compared > 0,
            "{report}"
        );
    });
}

#[test]
fn no_acknowledged_value_is_lost_doubled_or_moved_under_faults() {
    let mut kinds = Vec::from(Kind::ALL);
    if !SmallDisk::may_be_mounted() {
        eprintln!("without {}, which needs root", Kind::DiskFull);
        kinds.retain(|&kind| kind != Kind::DiskFull);
    }
    if !Cluster::may_have_clocks() && std::env::var_os("CI").is_none() {
        eprintln!("without {}, which needs libfaketime", Kind::Clock);
        kinds.retain(|&kind| kind != Kind::Clock);
    }
    nothing_is_found(&Settings::new(Program::Faults {
        seed: number("FAULT_SEED", 1),
        kinds,
        lasts: Duration::from_secs(number("FAULT_SECONDS", 60)),
        longest: Duration::from_secs(8),
    }));
}

#[test]
fn rolling_restart_under_load_loses_and_doubles_nothing() {
    let rounds = u32::try_from(number("ROLLING_RESTARTS", 2)).unwrap();
    nothing_is_found(&Settings::new(Program::RollingRestart { rounds }));
}
